"""The exponential transform: the transformed equation by automatic differentiation, the bounds of
φ, and a certificate that needs it."""

import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import cordes
from cordes.certificates.theorems.contraction import Coverage
from cordes.certificates.theorems.energy import Local
from cordes.certificates.theorems.exponential import Transform, find_transform
from cordes.domains import Ball, Box, Ellipsoid, Polygon
from cordes.jet import jet_of


def curved_problem(domain, b=None):
    def A(x):
        return jnp.array([[2 + jnp.sin(x[0]), 0.3 * x[1]], [0.3 * x[1], 1.5 + 0.2 * jnp.cos(x[0])]])

    return cordes.Linear(
        domain,
        A,
        0.0,
        b=b or (lambda x: jnp.array([x[1] ** 2, jnp.sin(x[0])])),
        c=lambda x: 1 + x[0] * x[1],
    )


def local_of(problem, points: np.ndarray) -> Local:
    return Local(*problem.coefficients(points)[:3])


@pytest.mark.parametrize("quadratic", [True, False])
def test_the_transformed_equation_is_the_old_one(quadratic):
    """e^{φ/2} L(e^{-φ/2} z) = L̃z at points, with the coefficients at one point and at many."""
    rng = np.random.default_rng(0)
    problem = curved_problem(Box([-1, -1], [1, 1]))
    S = rng.standard_normal((2, 2))
    transform = Transform(
        problem, np.array([0.1, -0.2]), rng.standard_normal(2), (S + S.T) * quadratic, 0.7, 1.0, 0.0
    )

    def phi(x):
        y = x - transform.center
        return (
            transform.constant
            + jnp.dot(transform.p, y)
            + jnp.dot(y, jnp.asarray(transform.S) @ y) / 2
        )

    def z(x):
        return jnp.sin(2 * x[0] - x[1]) * jnp.exp(x[1] / 2)

    def applied(coefficients, jet):
        A, b, c = coefficients
        return jnp.sum(A * jet.hessian) + jnp.dot(b, jet.gradient) - c * jet.value

    def old(x):
        return jnp.exp(phi(x) / 2) * applied(
            problem.linearise(x)[:3], jet_of(lambda y: jnp.exp(-phi(y) / 2) * z(y))(x)
        )

    def new(x):
        return applied(transform.linearise(x), jet_of(z)(x)), transform.linearise(x)

    points = problem.domain.interior_points(50, 3)
    before = jax.jit(jax.vmap(old))(points)
    after, coefficients = jax.jit(jax.vmap(new))(points)
    assert np.asarray(after) == pytest.approx(np.asarray(before), rel=1e-10, abs=1e-10)
    for one, many in zip(
        coefficients, transform.local(points, local_of(problem, points)), strict=True
    ):
        assert np.asarray(one) == pytest.approx(many, rel=1e-12, abs=1e-13)
    assert transform.phi(points) == pytest.approx(np.asarray(jax.vmap(phi)(points)), rel=1e-12)
    assert np.all(transform.growth(points) >= np.exp(transform.phi(points) / 2))


def gradient_drift(p, S):
    """b = A∇φ with φ = p·x + ½ x·Sx, for the A of the curved problem."""

    def b(x):
        A = jnp.array([[2 + jnp.sin(x[0]), 0.3 * x[1]], [0.3 * x[1], 1.5 + 0.2 * jnp.cos(x[0])]])
        return A @ (jnp.asarray(p) + jnp.asarray(S) @ x)

    return b


DOMAINS = {
    "box": Box([-1, -0.5], [1, 1]),
    "disk": Ball([0.3, 0.1], 0.8),
    "ellipse": Ellipsoid([0.0, 0.0], [[1.0, 0.5], [0.0, 0.6]]),
    "polygon": Polygon([[-1, -1], [1, -0.5], [0, 1]]),
}
SHAPES = {
    "linear": np.zeros((2, 2)),
    "convex": np.array([[2.0, 0.5], [0.5, 1.0]]),
    "saddle": np.array([[1.5, 1.0], [1.0, -2.0]]),
}


@pytest.mark.parametrize(
    ("kind", "shape"),
    [
        ("box", "linear"),
        ("box", "saddle"),
        ("disk", "linear"),
        ("disk", "saddle"),
        ("ellipse", "convex"),
        ("polygon", "saddle"),
    ],
)
def test_bounds_of_phi(kind, shape):
    """The quadratic is found, what is left of the drift is rounding, and over the domain φ ≥ 0,
    e^{-φ/2} ≤ `largest`, |∇φ| ≤ `slope`, all nearly attained."""
    domain, p, S = DOMAINS[kind], np.array([1.0, -0.4]), SHAPES[shape]
    problem = curved_problem(domain, gradient_drift(p, S))
    points = domain.interior_points(200, 5)
    transform = find_transform(problem, points, local_of(problem, points))
    assert transform is not None
    assert pytest.approx(S, abs=1e-9) == transform.S
    assert np.max(np.abs(transform.local(points, local_of(problem, points)).b)) < 1e-9
    boundary, _ = domain.boundary_points(4000, 6)
    everywhere = np.concatenate(
        [domain.interior_points(4000, 7), boundary]
        + ([domain.vertices] if domain.vertices is not None else [])
    )
    phi = transform.phi(everywhere)
    assert np.min(phi) >= -1e-12
    assert np.max(np.exp(-phi / 2)) <= transform.largest
    slopes = np.linalg.norm(transform.p + (everywhere - transform.center) @ transform.S, axis=1)
    assert np.max(slopes) <= transform.slope
    # Linear functions and slopes are bounded over the bounding box, quadratic ones over the domain.
    if kind == "box" or shape != "linear":
        assert np.min(phi) <= 0.03
    if kind == "box":
        assert transform.slope <= np.max(slopes) * (1 + 1e-9)


def test_there_is_no_transform_for_a_rotation_or_without_drift_or_beyond_reason():
    domain = Box([-1, -1], [1, 1])
    points = domain.interior_points(200, 5)
    eye = np.tile(np.eye(2), (len(points), 1, 1))
    rotation = Local(eye, points @ np.array([[0.0, 1.0], [-1.0, 0.0]]), np.zeros(len(points)))
    problem = cordes.Linear(domain, np.eye(2), 0.0)
    assert find_transform(problem, points, rotation) is None
    assert find_transform(problem, points, rotation._replace(b=np.zeros_like(points))) is None
    steep = rotation._replace(b=np.tile([100.0, 0.0], (len(points), 1)))
    assert find_transform(problem, points, steep) is None
    assert find_transform(problem, points, steep._replace(b=steep.b / 10)) is not None


def test_the_coverage_of_the_transformed_equation():
    """Constant coefficients stay constant under a linear φ and do not under a quadratic one; values
    agree with the formulas."""
    domain = Box([-1, -1], [1, 1])
    problem = cordes.Linear(domain, np.diag([1.0, 2.0]), 0.0, b=np.array([3.0, -1.0]), c=0.5)
    points = domain.interior_points(100, 5)
    plain = Coverage(
        domain,
        lambda x: problem.linearise(x)[:3],
        lambda x: local_of(problem, x),
        points,
        local_of(problem, points),
        True,
    )
    transform = find_transform(problem, points, plain.local)
    assert transform is not None
    carried = transform.coverage(plain)
    assert carried.constant
    assert carried.local.b == pytest.approx(np.zeros_like(points), abs=1e-12)
    assert carried.local.c == pytest.approx(np.full(len(points), 0.5 + (9 + 0.5) / 4), rel=1e-12)
    bent = transform._replace(S=np.diag([0.1, 0.0])).coverage(plain)
    assert not bent.constant
    assert bent.values is not None
    assert bent.values(points).c == pytest.approx(bent.local.c, rel=1e-14)
    assert np.ptp(bent.local.b[:, 0]) > 0.1


@pytest.mark.parametrize("size", [6.0, 20.0])
def test_a_large_constant_drift_is_certified(size):
    """b is far beyond what T2 takes without the transform (|b| < √λ₁ = 4.4 for A = I); all bounds
    hold, and that of the root mean square is not absurd."""
    domain = Box([0, 0], [1, 1])
    A, b = np.array([[1.0, 0.3], [0.3, 1.0]]), size * np.array([1.0, 0.5])

    def error(x):
        return 1e-3 * jnp.sin(jnp.pi * x[0]) * jnp.sin(2 * jnp.pi * x[1]) * jnp.exp(x[0])

    def f(x):
        jet = jet_of(error)(x)
        return jnp.sum(A * jet.hessian) + jnp.dot(b, jet.gradient)

    problem = cordes.Linear(domain, A, f, b=b)
    certificate = cordes.certify(problem, lambda x: 0.0 * x[0])
    x, weight = domain.quadrature(40)
    value, gradient, hessian = (np.asarray(part) for part in jax.jit(jax.vmap(jet_of(error)))(x))
    rms, slope, bend = (
        math.sqrt(weight @ np.sum(part.reshape(len(x), -1) ** 2, axis=1))
        for part in (value, gradient, hessian)
    )
    assert "exponential transform" in certificate.theorems["energy"]
    assert certificate.rms is not None
    assert rms <= certificate.rms <= 300 * rms
    assert certificate.H1 is not None
    assert slope <= certificate.H1
    assert certificate.Linf is not None
    assert certificate.Linf >= np.max(np.abs(value))
    # D²v does not follow from a bound of the transformed function, but from that of v.
    assert "interpolation" in certificate.theorems["H2"]
    assert bend <= certificate.H2
    assert certificate.energy is None
