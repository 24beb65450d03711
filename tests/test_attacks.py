"""Attacks on certificates that once succeeded."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import cordes

SQUARE = cordes.Box([0, 0], [1, 1])


def u(x):
    return jnp.sin(jnp.pi * x[0]) * jnp.sin(jnp.pi * x[1])


def f(x):
    return -2 * jnp.pi**2 * u(x)


POISSON = cordes.Linear(SQUARE, np.eye(2), f)


def test_the_lower_bound_of_an_exact_answer_is_zero():
    assert cordes.certify(POISSON, u).energy[0] == 0.0


def test_a_residual_of_zero_with_lower_order_terms():
    problem = cordes.Linear(SQUARE, np.eye(2), 0.0, b=[1.0, 0.0], c=1.0)
    assert cordes.certify(problem, lambda x: 0.0 * x[0]).rms < 1e-100


def test_a_boundary_mismatch_below_the_threshold():
    certificate = cordes.certify(POISSON, lambda x: u(x) + 9e-11)
    assert certificate.Linf is None
    assert "miss g by 9e-11" in certificate.reason


@pytest.mark.filterwarnings("ignore")
def test_a_drift_that_is_not_bounded():
    """b = -Δv ∇v/|∇v|² makes Lv = 0 for any v."""

    def v(x):
        return x[0] * (1 - x[0]) * x[1] * (1 - x[1]) * jnp.exp(0.11976245 * x[0] - 0.22054317 * x[1])

    def b(x):
        gradient = jax.grad(v)(x)
        return -jnp.trace(jax.hessian(v)(x)) * gradient / jnp.dot(gradient, gradient)

    certificate = cordes.certify(cordes.Linear(SQUARE, np.eye(2), 0.0, b=b), v)
    assert certificate.Linf is None


def test_derivatives_that_are_not_those_of_the_function():
    certificate = cordes.certify(POISSON, lambda x: u(x) + 0.1 * jax.lax.stop_gradient(u(x)))
    assert certificate.Linf is None
    assert "not the derivative of its formula" in certificate.reason


def test_a_false_bound_of_the_residual():
    certificate = cordes.certify(POISSON, lambda x: 1.5 * u(x), residual_bound=1e-3)
    assert certificate.rms is None
    assert "residual_bound" in certificate.reason


def test_a_false_epsilon():
    problem = cordes.Linear(SQUARE, lambda x: jnp.diag(jnp.array([1.0, 1.5 + 0.05 * jnp.sin(x[0])])), f, epsilon=1.0)
    with pytest.raises(cordes.CordesError, match=r"epsilon = 1\.0 is claimed"):
        cordes.certify(problem, u)


@pytest.mark.parametrize("d", [2, 4])
def test_what_is_not_a_number_at_a_few_points(d):
    def w(x):
        return jnp.prod(x * (1 - x))

    problem = cordes.Linear(cordes.Box([0] * d, [1] * d), np.eye(d), lambda x: jnp.trace(jax.hessian(w)(x)) + 1e-3 * jnp.sqrt(x[0] - 0.0002))
    certificate = cordes.certify(problem, w)
    assert certificate.rms is None
    assert "not a finite number" in certificate.reason


def test_tiny_coefficients():
    A = np.diag([1e-200, 1e-201])

    def v(x):
        return 0.1 * jnp.sin(3 * jnp.pi * x[0]) * u(x)

    tiny, plain = (cordes.certify(cordes.Linear(SQUARE, matrix, 0.0), v) for matrix in (A, A * 1e200))
    assert tiny.energy == pytest.approx(plain.energy, rel=1e-6)
