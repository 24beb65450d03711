"""Names that are natural to look for and that cordes calls otherwise."""

_LINEAR = "Linear(domain, A, f), with A = 1 for Δu = f"
_MEANT = {
    "Box(lower, upper)": ("rectangle", "square", "cube", "hypercube", "interval"),
    "Ball(center, radius)": ("disk", "disc", "circle", "sphere"),
    "Ellipsoid(center, axes)": ("ellipse",),
    "Polygon(vertices)": ("triangle",),
    "AbstractDomain, to be subclassed, or one of Box, Ball, Ellipsoid, Polygon": ("domain",),
    _LINEAR: ("poisson", "laplace", "elliptic", "nondivergence"),
    "Linear, HJB, MongeAmpere and Transport": ("problem",),
    "HJB(domain, controls, A, f)": ("hamiltonjacobibellman", "bellman"),
    "Transport(domain, source, target_domain, target)": ("optimaltransport", "mongekantorovich"),
}
NAMES = {name: meant for meant, names in _MEANT.items() for name in names}


def hint(name: str) -> str | None:
    """What a name is called here; None where nothing comes to mind."""
    known = NAMES.get(name.replace("_", "").lower())
    return None if known is None else f"There is no cordes.{name}: use cordes.{known}"
