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
    "Isaacs(domain, controls, opponents, A, f)": ("game", "hamiltonjacobiisaacs", "hji"),
    "Transport(domain, source, target_domain, target)": ("optimaltransport", "mongekantorovich"),
}
NAMES = {name: meant for meant, names in _MEANT.items() for name in names}


_MISSING = {
    "Equations in time are problems of their own: cordes.Parabolic(domain, horizon, A, f, "
    'initial=…), or cordes.HJB(…, horizon=…); in files kind = "parabolic"': (
        *("t", "time", "horizon", "maturity", "initial", "terminal", "u0", "heat"),
        *("initialcondition", "terminalcondition", "evolution"),
    ),
    "What holds on the boundary is g=… where u is given there, and of Linear, HJB, Isaacs and "
    "Parabolic boundary=cordes.Neumann(h), cordes.Robin(kappa, h) or cordes.Periodic()": (
        *("bc", "bcs", "boundary", "boundarycondition", "boundaryconditions", "dirichlet"),
        *("neumann", "robin", "periodic", "flux", "normal", "h", "kappa"),
    ),
    "Stopping is a problem around another one: cordes.Obstacle(problem, below=…, above=…); in "
    'files kind = "obstacle"': ("below", "above", "stopping", "american", "exercise"),
}
MISSING = {name: what for what, names in _MISSING.items() for name in names}


def _key(name: str) -> str:
    return name.replace("_", "").replace("-", "").lower()


def hint(name: str) -> str | None:
    """What a name is called here; None where nothing comes to mind."""
    known = NAMES.get(_key(name))
    if known is not None:
        return f"There is no cordes.{name}: use cordes.{known}"
    return f"There is no cordes.{name}. {missing(name)}" if missing(name) else None


def missing(name: str) -> str:
    """What somebody who writes this name looks for, if it is known and not there."""
    what = MISSING.get(_key(name))
    return "" if what is None else f"{what}."
