"""Every theorem that a certificate can rest on, in one table: an answer whose error is known, the
names of the theorems that must have given a bound of it, and no bound below the truth.

All of it belongs to the quick tier. What each theorem needs and where it fails is tested in the
other files of this room."""

import jax
import jax.numpy as jnp
import monge_ampere_cases
import numpy as np
import pytest
import transport_maps
from hjb_cases import bump, check_all, manufactured, wave

import cordes
from cordes.jet import jet_of

pytestmark = pytest.mark.quick

SQUARE = cordes.Box([0, 0], [1, 1])


def zero(x):
    return 0.0 * x[0]


def error(x):
    return 1e-3 * jnp.sin(jnp.pi * x[0]) * jnp.sin(2 * jnp.pi * x[1]) * jnp.exp(x[0])


def solved_by_the_error(A, b=None, c=None):
    """The equation whose solution is `error`, so that 0 is wrong by it."""
    drift, reaction = (jnp.zeros(2) if b is None else b), (0.0 if c is None else c)

    def at(coefficient, x):
        return coefficient(x) if callable(coefficient) else jnp.asarray(coefficient)

    def f(x):
        value, gradient, hessian = jet_of(error)(x)
        second = jnp.sum(at(A, x) * hessian)
        return second + jnp.dot(at(drift, x), gradient) - at(reaction, x) * value

    return cordes.Linear(SQUARE, A, f, b=b, c=c)


def turning(x):
    angle = 2 * x[0] + x[1]
    along = jnp.array([jnp.cos(angle), jnp.sin(angle)])
    return jnp.eye(2) + 3 * jnp.outer(along, along)


def growing(x):
    return jnp.array([[2 + x[0], 0.3], [0.3, 1 + x[1] ** 2]])


LINEAR = {
    "laplace": ((np.eye(2),), ["T1b", "ABP", "Green, T1b", "barrier (paraboloid)"]),
    "stretched": ((np.diag([4.0, 1.0]),), ["T1b with T1d", "Green, T1b with T1d"]),
    "turning": ((turning,), ["T1b", "Green, T1b", "ABP"]),
    "growing": ((growing,), ["T1c with T1d", "Green, T1c with T1d"]),
    "reaction": ((np.eye(2), None, 5.0), ["T2 (triangle)", "Green, T2", "barrier (constant)"]),
    "drift and reaction": (
        (np.eye(2), np.array([1.0, 0.5]), 20.0),
        ["T2", "ABP with drift", "barrier (exponential x1)"],
    ),
    "large drift": (
        (np.eye(2), np.array([12.0, 5.0])),
        [
            # T2 and T2 (triangle) agree but for rounding, which says whose name the energy has.
            "Green, T2 after the exponential transform",
            "barrier (exponential x2)",
            "Talenti",
            "interpolation, Green with drift",
            "Green with drift",
            "ABP (interpolated) with drift",
            "barrier (traversal x1)",
        ],
    ),
}


def named(certificate):
    return {str(name) for name in (*certificate.theorems.values(), *certificate.alternatives)}


def measured():
    """The mean square and the maximum of the error and its derivatives, by quadrature."""
    x, weight = SQUARE.quadrature(40)
    value, gradient, hessian = (np.asarray(part) for part in jax.vmap(jet_of(error))(x))

    def norm(values):
        return float(np.sqrt(weight @ np.sum(values.reshape(len(x), -1) ** 2, axis=1)))

    norms = {"L2": norm(value), "H1": norm(gradient), "H2": norm(hessian)}
    return norms | {"Linf": float(np.max(np.abs(value)))}


@pytest.mark.parametrize("name", LINEAR)
def test_linear_equations(name):
    coefficients, theorems = LINEAR[name]
    certificate = cordes.certify(solved_by_the_error(*coefficients), zero)
    assert set(theorems) <= named(certificate)
    truth = measured()
    for norm, size in truth.items():
        assert getattr(certificate, norm) >= size, norm
    for theorem, bound in certificate.alternatives.items():
        assert bound >= truth["Linf"], theorem


def test_a_barrier_that_is_trained():
    certificate = cordes.certify(solved_by_the_error(np.eye(2)), zero, norm="Linf", barrier=True)
    assert str(certificate.maximum_theorem) == "barrier (network)"
    assert measured()["Linf"] <= certificate.Linf <= 2 * measured()["Linf"]


@pytest.mark.parametrize(
    ("terms", "theorem"), [({}, "T1c"), ({"drift": 0.5, "reaction": 2.0}, "T2")]
)
def test_hamilton_jacobi_bellman(terms, theorem):
    problem = manufactured(SQUARE, wave, 3, **terms)
    certificate = cordes.certify(problem, lambda x: wave(x) - bump(x))
    assert str(certificate.theorems["energy"]) == theorem
    check_all(certificate, SQUARE, bump)


def test_monge_ampere():
    mode = monge_ampere_cases.mode(2, 1)
    answer = monge_ampere_cases.perturbed(1e-3, mode)
    certificate = cordes.certify(monge_ampere_cases.SMOOTH, answer)
    assert str(certificate.theorem) == "T4"
    assert 1e-3 <= certificate.Linf <= 4e-3


def test_monge_ampere_where_convexity_is_lost():
    problem = cordes.MongeAmpere(monge_ampere_cases.DISK, 1.0, lambda x: 10 * x[0])
    certificate = cordes.certify(problem, lambda x: 10 * x[0] + (1 - jnp.sum(x**2)) / 2)
    assert str(certificate.theorem) == "T4 with shift"
    # u = 10 x₁ + (|x|² - 1)/2.
    assert 1 <= certificate.Linf <= 1.6


def test_transport():
    certificate = transport_maps.check(
        transport_maps.benchmark(),
        jax.grad(transport_maps.benchmark_potential),
        transport_maps.cosine(1e-3, 1),
        3.0,
    )
    assert str(certificate.theorem).startswith("T5")
