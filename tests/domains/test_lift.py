"""Lifts: equal to g on the boundary, made from boundary values alone, finite second derivatives
everywhere, no roughness of their own."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import cordes  # noqa: F401
from cordes.domains import Ball, Box, Ellipsoid, Polygon
from cordes.domains.boundary_fit import GENERIC_POWERS, fit_boundary
from cordes.errors import CoefficientError, DomainError
from cordes.jet import jet_of

PENTAGON = Polygon([[0, 0], [2, -0.2], [2.5, 1], [1, 1.6], [-0.2, 0.9]])
TRIANGLE = Polygon([[0, 0], [2, 0], [0.3, 1.2]])
DOMAINS = [
    Box([-2, -2], [2, 2]),
    Box([0, -1, 0], [1, 2, 0.5]),
    Box([-1] * 5, [1, 1, 1, 1, 2]),
    Ball([0, 0], 2),
    Ball([0.1, 0.2, 0.3], 1.5),
    Ball([0.0] * 6, 1),
    Ellipsoid([0, 1], [[1, 0.5], [0.2, -0.7]]),
    TRIANGLE,
    PENTAGON,
]
each = pytest.mark.parametrize(
    "domain", DOMAINS, ids=lambda domain: f"{type(domain).__name__}{domain.dimension}"
)


def interface(x):
    return x[0] - 0.5 * x[1] - 0.1


def smooth(x):
    return jnp.exp(0.7 * x[0]) * jnp.cos(x[1] + 0.3 * x[-1])


def rough(x):
    return jnp.abs(interface(x)) ** (8 / 3) * jnp.cos(x[-1])


def values(function, points):
    return np.asarray(jax.jit(jax.vmap(function))(jnp.asarray(points)))


def off_boundary(domain, x):
    """By how much a point misses the boundary."""
    if isinstance(domain, Box):
        return jnp.maximum(
            jnp.min(jnp.minimum(jnp.abs(x - domain.lower), jnp.abs(domain.upper - x))),
            jnp.max(jnp.abs(x - domain.center) - domain.widths / 2),
        )
    if isinstance(domain, Polygon):
        heights = jnp.sum((domain.vertices - x) * domain.normals, axis=1)
        return jnp.maximum(jnp.min(jnp.abs(heights)), -jnp.min(heights))
    matrix = (
        domain.matrix if isinstance(domain, Ellipsoid) else domain.radius * np.eye(domain.dimension)
    )
    return jnp.abs(jnp.linalg.norm(np.linalg.inv(matrix) @ (x - domain.center)) - 1)


def guarded(domain, g):
    """g on the boundary, NaN elsewhere."""
    return lambda x: jnp.where(off_boundary(domain, x) > 1e-9, jnp.nan, g(x))


def special_points(domain):
    """Where formulas divide by zero: the centre and its neighbours, corners, points of edges,
    points on the interface."""
    center = domain.center
    points = [
        center,
        center + 1e-170,
        center + 1e-15,
        center + 1e-8,
        *domain.boundary_at(np.eye(domain.dimension)),
    ]
    if isinstance(domain, Box):
        points += [
            domain.lower,
            domain.upper,
            np.where(np.arange(domain.dimension) < 2, domain.lower, center),
        ]
    if isinstance(domain, Polygon):
        points += [
            *domain.vertices,
            *(0.99999999 * domain.vertices + 1e-8 * center),
            *(domain.vertices + 0.25 * domain.edges),
        ]
    on_interface = domain.interior_points(1)[0]
    on_interface[0] = 0.5 * on_interface[1] + 0.1
    return np.array([*points, on_interface])


# Each domain with the data that is harder for it, to save compile time; both where the two take
# different ways.
CASES = [(domain, rough) for domain in DOMAINS] + [(DOMAINS[0], smooth), (DOMAINS[3], smooth)]


@pytest.mark.parametrize(
    ("domain", "g"),
    CASES,
    ids=lambda case: getattr(case, "__name__", None) or f"{type(case).__name__}{case.dimension}",
)
def test_lift_is_exact_and_finite_and_never_looks_inside(domain, g):
    lift = domain.lift(guarded(domain, g), [interface] if g is rough else [])
    boundary, _ = domain.boundary_points(400, seed=3)
    others = np.concatenate([special_points(domain), domain.interior_points(400, seed=4)])
    jet = jax.jit(jax.vmap(jet_of(lift)))(jnp.concatenate([boundary, others]))
    assert np.max(np.abs(jet.value[:400] - values(g, boundary))) < 1e-12
    assert all(np.all(np.isfinite(part)) for part in jet)
    # Second derivatives are bounded by those of the data, up to a factor.
    data = np.max(np.abs(values(jax.hessian(g), domain.interior_points(400))))
    assert np.max(np.abs(jet.hessian)) < 6 * data


def test_generic_powers_fit_data_of_any_smoothness():
    exponent = 8 / 3
    assert exponent not in [power for power, _ in GENERIC_POWERS]
    angles = 2 * np.pi * (np.arange(1200) + 0.5) / 1200
    circle = 2 * np.stack([np.cos(angles), np.sin(angles)], axis=1)
    fresh, _ = Ball([0, 0], 2).boundary_points(5000)

    def remainder(interfaces):
        def g(x):
            return jnp.abs(x[0] - x[1]) ** exponent

        fitted = fit_boundary(g, circle, lambda x: x / 2, interfaces)
        return np.max(np.abs(values(lambda x: fitted(x) - g(x), fresh)))

    assert remainder([lambda x: x[0] - x[1]]) < 1e-6
    assert remainder([]) > 1e-3


def test_oblique_interface_does_not_roughen_the_lift_on_a_box():
    # The interface meets the upper face at x = (1.1, 2). Blending of faces alone carries the kink
    # of g there straight down, along x1 = 1.1.
    box = Box([-2, -2], [2, 2])

    def kink(lift, step=1e-3):
        line = jnp.array([[1.1 + multiple * step, 0.7] for multiple in (-2, -1, 1, 2)])
        hessian = jax.jit(jax.vmap(jax.hessian(lift)))(line)[:, 0, 0]
        return float(abs(hessian[0] - hessian[1] - hessian[2] + hessian[3]))

    def g(x):
        return jnp.abs(interface(x)) ** (8 / 3)

    assert kink(box.lift(g, [interface])) < 1e-4
    assert kink(box.lift(g)) > 1e-2


def test_aligned_interface_is_left_to_the_blending_of_faces():
    box = Box([-2, -2], [2, 2])

    def g(x):
        return jnp.abs(x[0]) ** 3 * jnp.cos(x[1]) / 6

    points = box.interior_points(50)
    assert np.array_equal(
        values(box.lift(g, [lambda x: x[0]]), points), values(box.lift(g), points)
    )


def test_polynomials_stay_polynomials():
    def cubic(x):
        return x[0] ** 3 - 2 * x[0] * x[1] + x[1] ** 2 + 1

    points = PENTAGON.interior_points(200)
    # No cubic vanishes on five lines, so the fit on the boundary is unique.
    assert np.max(np.abs(values(PENTAGON.lift(cubic), points) - values(cubic, points))) < 1e-12

    def quartic(x):
        return x[0] ** 4 - x[0] * x[1] ** 3 + x[1]

    ball = Ball([0.3, 0.1], 2)
    line = np.linspace(-1.2, 1.4, 101)
    along = values(ball.lift(quartic), np.stack([line, 0.3 - 0.5 * line], axis=1))
    assert np.max(np.abs(np.polynomial.Polynomial.fit(line, along, 4)(line) - along)) < 1e-11


def test_box_lift_reproduces_what_is_linear_in_one_coordinate():
    box = Box([0, -1, 0], [1, 2, 0.5])

    def g(x):
        return jnp.sin(3 * x[0]) * x[1] + x[2] * jnp.exp(x[1])

    points = box.interior_points(200)
    assert np.max(np.abs(values(box.lift(g), points) - values(g, points))) < 1e-13


def test_slopes_may_differ_on_the_two_sides_of_a_vertex():
    # A half wave on one edge and zero on the others: no smooth function has these values.
    def g(x):
        on_first = jnp.abs(jnp.sum((x - PENTAGON.vertices[0]) * PENTAGON.normals[0])) < 1e-12
        along = jnp.sum((x - PENTAGON.vertices[0]) * PENTAGON.edges[0]) / np.sum(
            PENTAGON.edges[0] ** 2
        )
        return jnp.where(on_first, jnp.sin(np.pi * along), 0.0)

    boundary, _ = PENTAGON.boundary_points(300)
    jet = jax.jit(jax.vmap(jet_of(PENTAGON.lift(g))))(
        jnp.concatenate([boundary, PENTAGON.vertices, PENTAGON.interior_points(300)])
    )
    assert np.max(np.abs(jet.value[:300] - values(g, boundary))) < 1e-12
    assert np.all(np.isfinite(jet.hessian))


def test_interface_that_misses_the_boundary_is_not_used():
    # |x| has no derivative at the centre, where a basis with this interface would give NaN.
    ball = Ball([0, 0], 2)
    lift = ball.lift(lambda x: jnp.abs(x[0]) ** 2.5, [lambda x: jnp.linalg.norm(x) - 1])
    assert np.all(np.isfinite(jax.jit(jax.hessian(lift))(jnp.zeros(2))))


@each
def test_constant_values_cost_nothing(domain):
    lift = domain.lift(lambda x: jnp.asarray(2.5))
    assert float(lift(jnp.asarray(domain.center))) == 2.5
    assert not jax.make_jaxpr(lift)(jnp.asarray(domain.center)).eqns
    assert np.all(jax.hessian(lift)(jnp.asarray(domain.center)) == 0)


def test_what_cannot_be_lifted_is_refused():
    with pytest.raises(CoefficientError, match=r"g is nan at the boundary point \[.*finite"):
        Ball([0, 0], 1).lift(lambda x: jnp.sqrt(x[0]))
    with pytest.raises(DomainError, match=r"9 dimensions: each point takes 3\^9"):
        Box([0] * 9, [1] * 9).lift(lambda x: x[0])
    assert float(Box([0] * 9, [1] * 9).lift(lambda x: 3.0)(jnp.zeros(9))) == 3.0
