"""Every method on every kind of problem on every domain, in one table.

Each cell solves an equation whose solution is known, with a network small enough for seconds. No
cell refuses, but for the method of cells, which is not for transport, cannot cut a ball in space,
and says so. The error must be below the number in `LARGEST`, which says what the method reaches at
this size and not what it can do, and every bound of the certificate above the true error. The quick
tier (`make test`) runs the cells of `QUICK`, which have every method, kind and domain in them;
`make test-all` runs all. A new method, kind of problem or domain is one line in a dictionary here.
"""

import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import cordes
from cordes.jet import jet_of

DOMAINS = {
    "box": cordes.Box([0, 0], [1, 1]),
    # In the plane a ball is an ellipsoid of the same class; in space it is tried too.
    "ellipsoid": cordes.Ellipsoid([0, 0], [1.2, 0.8]),
    "polygon": cordes.Polygon([[0, 0], [1.1, 0], [1.3, 0.8], [0.5, 1.2], [-0.2, 0.7]]),
    "interval": cordes.Box([0], [1]),
    "l-shape": cordes.Polygon([[0, 0], [2, 0], [2, 1], [1, 1], [1, 2], [0, 2]]),
    "ring": cordes.Ball([0, 0], 1.0) - cordes.Ellipsoid([0.1, 0], [0.4, 0.3]),
    "box-3d": cordes.Box([0, 0, 0], [1, 1, 1]),
    "ball-3d": cordes.Ball([0, 0, 0], 1.0),
}

# Sizes for seconds, not for digits.
METHODS = {
    "least-squares": {"features": 150},
    "gauss-newton": {"width": 60, "points": 400, "steps": 60},
    "adam": {"width": 16, "depth": 2, "points": 200, "epochs": 1000},
    "cells": {"cells": 16},
    "expansions": {"levels": 3},
}
# The largest error at a point that they may leave; 150 features are few in three dimensions.
LARGEST = {
    "least-squares": 1e-6,
    "gauss-newton": 5e-3,
    "adam": 0.05,
    "cells": 1e-8,
    "expansions": 1e-3,
}
IN_SPACE = LARGEST | {"least-squares": 1e-4}


# Kinds of problems, each with a solution that is known


def smooth(x):
    """Neither zero on the boundary nor a polynomial."""
    return jnp.exp(x[0] / 2) * jnp.cos(jnp.sum(x)) + 0.3 * x[-1] ** 2


def linear(domain):
    """A turns from place to place, with drift and reaction."""
    d = domain.dimension
    fixed, turning = jnp.diag(jnp.linspace(1.0, 1.4, d)), jnp.ones((d, d)) / d

    def A(x):
        return fixed + 0.2 * jnp.sin(2 * jnp.sum(x)) * turning

    def b(x):
        return 0.2 * jnp.cos(x)

    def f(x):
        value, gradient, hessian = jet_of(smooth)(x)
        return jnp.sum(A(x) * hessian) + jnp.dot(b(x), gradient) - 0.5 * value

    return cordes.Linear(domain, A, f, b=b, c=0.5, g=smooth, exact=smooth)


def hjb(domain):
    """Two diffusions of which sometimes one and sometimes the other is the best."""
    d = domain.dimension
    diagonals = jnp.stack([jnp.linspace(1.0, 1.3, d), jnp.linspace(1.3, 1.0, d)])

    def A(x, a):
        return jnp.diag(jnp.where(a > 0.5, diagonals[1], diagonals[0]))

    def f(x, a):
        """L^a u plus a step that is zero for the better control and positive for the other."""
        step = jnp.sin(3 * x[0] + 1)
        _, _, hessian = jet_of(smooth)(x)
        worse = jnp.where(a > 0.5, jnp.maximum(step, 0.0), jnp.maximum(-step, 0.0))
        return jnp.sum(A(x, a) * hessian) + worse

    return cordes.HJB(domain, np.array([0.0, 1.0]), A, f, g=smooth, exact=smooth)


def bowl(x):
    return jnp.exp(jnp.sum(x**2) / 4) + 0.2 * x[0] ** 2


def monge_ampere(domain):
    def f(x):
        return jnp.linalg.det(jax.hessian(bowl)(x))

    return cordes.MongeAmpere(domain, f, bowl, exact=bowl)


def transport(domain):
    """The image of the domain under a diagonal matrix. Densities vary; on a box, whose faces go to
    faces by themselves, the map bends as well, but not in three dimensions, where networks of this
    size are too small for it."""
    stretch = np.linspace(1.2, 0.9, domain.dimension)

    def potential(x):
        square = jnp.sum(stretch * x**2) / 2
        if not isinstance(domain, cordes.Box) or domain.dimension == 3:
            return square
        place = (x - domain.lower) / (domain.upper - domain.lower)
        return square + 0.04 * jnp.cos(jnp.pi * place[0])

    def target(y):
        return 1 + 0.3 * jnp.sin(y[0] + 0.5)

    def source(x):
        _, gradient, hessian = jet_of(potential)(x)
        return target(gradient) * jnp.linalg.det(hessian)

    return cordes.Transport(
        domain, source, image(domain, stretch), target, exact=jax.grad(potential)
    )


def image(domain, stretch):
    if isinstance(domain, cordes.Box):
        return cordes.Box(stretch * domain.lower, stretch * domain.upper)
    if isinstance(domain, cordes.Polygon):
        return cordes.Polygon(stretch * np.asarray(domain.vertices))
    axes = domain.axes if isinstance(domain, cordes.Ellipsoid) else domain.radius
    return cordes.Ellipsoid(stretch * domain.center, stretch * axes)


KINDS = {"linear": linear, "hjb": hjb, "monge-ampere": monge_ampere, "transport": transport}


# The table

# Every method and every kind; domains have tests of their own.
QUICK = {
    ("gauss-newton", "linear", "interval"),
    ("adam", "hjb", "interval"),
    ("least-squares", "monge-ampere", "box"),
    ("least-squares", "transport", "ellipsoid"),
    ("cells", "linear", "box"),
    ("expansions", "linear", "l-shape"),
}
CONCAVE = ("l-shape", "ring")
# Convex domains are for all methods but one, and others for that one and linear equations.

ALL = [
    (method, kind, domain)
    for method, kind, domain in itertools.product(METHODS, KINDS, DOMAINS)
    if (domain in CONCAVE) == (method == "expansions")
    and (domain not in CONCAVE or kind == "linear")
]
REFUSED = [
    (kind, domain)
    for method, kind, domain in ALL
    if method == "cells" and (kind == "transport" or domain == "ball-3d")
]
CELLS = [
    pytest.param(*cell, marks=pytest.mark.quick if cell in QUICK else pytest.mark.long)
    for cell in ALL
    if cell[0] != "cells" or cell[1:] not in REFUSED
]


def options(method, problem):
    """In space a polynomial is enough for these problems."""
    return {} if (method, problem.domain.dimension) == ("cells", 3) else METHODS[method]


def test_the_quick_part_has_everything_in_it():
    methods, kinds, _ = zip(*QUICK, strict=True)
    assert (set(METHODS), set(KINDS)) == (set(methods), set(kinds))


@pytest.mark.parametrize(("method", "kind", "domain"), CELLS)
def test_a_cell(method, kind, domain):
    problem = KINDS[kind](DOMAINS[domain])
    solution = cordes.solve(problem, method=method, progress=False, **options(method, problem))
    error, certificate = solution.error(), solution.certificate
    ends = ["finished"] if method == "adam" else ["converged", "converged_uncertified", "stagnated"]
    assert solution.result in ends
    assert error.linf <= (IN_SPACE if problem.domain.dimension == 3 else LARGEST)[method]
    if kind == "transport":
        assert map_error(solution) <= certificate.map_L2 * (1 + 1e-9)
        assert "mean squares" in certificate.reason
    else:
        assert error.l2 <= certificate.rms
        assert error.linf <= certificate.Linf
    without = kind in ("monge-ampere", "transport") or not problem.domain.convex
    assert (certificate.H1 is None) == without


@pytest.mark.parametrize(("kind", "domain"), REFUSED)
def test_cells_refuse_what_they_are_not_for(kind, domain):
    with pytest.raises(cordes.OptionError, match="up to three dimensions"):
        cordes.solve(KINDS[kind](DOMAINS[domain]), method="cells", cells=16)


def map_error(solution):
    """In the mean square with the source density, which is what the theorem is about."""
    problem = solution.problem
    x, weight = problem.domain.quadrature({1: 100, 2: 40, 3: 16}[problem.domain.dimension])
    gap = solution.map(x) - jax.vmap(problem.exact)(x)
    return float(np.sqrt(weight @ (problem.source_density(x) * np.sum(gap**2, axis=1))))
