"""Names that are natural to look for and that cordes calls otherwise."""

_BOX = "Box(lower, upper)"
_BALL = "Ball(center, radius)"
_ELLIPSOID = "Ellipsoid(center, axes)"
_POLYGON = "Polygon(vertices)"
_LINEAR = "Linear(domain, A, f), with A = 1 for Δu = f"
_HJB = "HJB(domain, controls, A, f)"
_TRANSPORT = "Transport(domain, source, target_domain, target)"
NAMES = {
    "rectangle": _BOX,
    "square": _BOX,
    "cube": _BOX,
    "hypercube": _BOX,
    "interval": _BOX,
    "disk": _BALL,
    "disc": _BALL,
    "circle": _BALL,
    "sphere": _BALL,
    "ellipse": _ELLIPSOID,
    "triangle": _POLYGON,
    "domain": "AbstractDomain, to be subclassed, or one of Box, Ball, Ellipsoid, Polygon",
    "poisson": _LINEAR,
    "laplace": _LINEAR,
    "elliptic": _LINEAR,
    "nondivergence": _LINEAR,
    "problem": "Linear, HJB, MongeAmpere and Transport",
    "hamiltonjacobibellman": _HJB,
    "bellman": _HJB,
    "optimaltransport": _TRANSPORT,
    "mongekantorovich": _TRANSPORT,
}


def hint(name: str) -> str | None:
    """What a name is called here; None where nothing comes to mind."""
    known = NAMES.get(name.replace("_", "").lower())
    return None if known is None else f"There is no cordes.{name}: use cordes.{known}"
