"""Attacks on certificates that once succeeded."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import cordes
from cordes.certificates.residual.candidate import formula

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
    """The offset is added to the bounds of the error, twice because it is seen at points only;
    nothing follows for derivatives."""
    certificate = cordes.certify(POISSON, lambda x: u(x) + 9e-11)
    assert 9e-11 <= certificate.rms <= certificate.Linf <= 2e-10
    assert certificate.H1 is certificate.H2 is certificate.energy is None
    assert "miss g by 9e-11" in certificate.reason


@pytest.mark.filterwarnings("ignore")
def test_a_drift_that_is_not_bounded():
    """b = -Δv ∇v/|∇v|² makes Lv = 0 for any v."""

    def v(x):
        return (
            x[0] * (1 - x[0]) * x[1] * (1 - x[1]) * jnp.exp(0.11976245 * x[0] - 0.22054317 * x[1])
        )

    def b(x):
        gradient = jax.grad(v)(x)
        return -jnp.trace(jax.hessian(v)(x)) * gradient / jnp.dot(gradient, gradient)

    certificate = cordes.certify(cordes.Linear(SQUARE, np.eye(2), 0.0, b=b), v)
    assert certificate.Linf is None


def test_derivatives_that_are_not_those_of_the_function():
    certificate = cordes.certify(POISSON, lambda x: u(x) + 0.1 * jax.lax.stop_gradient(u(x)))
    assert certificate.Linf is None
    assert "not the derivative of its formula" in certificate.reason


def bubble(x):
    return jnp.prod(x * (1 - x))


def small(x, radius=0.01):
    return jnp.maximum(1 - jnp.sum((x - jnp.array([0.3713, 0.6127])) ** 2) / radius**2, 0) ** 4


@pytest.mark.parametrize(
    "hidden",
    [
        lambda x: jax.lax.scan(
            lambda total, y: (total + jax.lax.stop_gradient(y), None),
            0.0,
            jnp.stack([bubble(x), bubble(x)]),
        )[0],
        lambda x: jax.lax.fori_loop(
            0, 3, lambda _, total: total + jax.lax.stop_gradient(total), bubble(x)
        ),
        lambda x: jax.lax.cond(x[0] < 2, jax.lax.stop_gradient, lambda y: y, bubble(x)),
        lambda x: jax.lax.stop_gradient(small(x)),
    ],
)
def test_derivatives_that_are_hidden_in_loops_or_in_a_small_place(hidden):
    certificate = cordes.certify(POISSON, lambda x: u(x) + 0.1 * hidden(x))
    assert certificate.Linf is None
    assert "not the derivative of its formula" in certificate.reason


def test_the_formula_without_rules_has_the_values_of_the_function():
    def function(x):
        first = jax.lax.scan(
            lambda total, y: (jnp.sin(total) + jax.lax.stop_gradient(y), y * total),
            0.0,
            jnp.stack([x[0], x[1], 2.0]),
        )
        second = jax.lax.cond(x[0] < 0.5, lambda y: jax.lax.stop_gradient(y) ** 2, jnp.cos, x[1])
        return first[0] + jnp.sum(first[1]) + second + jax.nn.softplus(x[0])

    def expected(x):
        first = jnp.sin(jnp.sin(x[0]) + x[1]) + 2.0
        second = jnp.where(x[0] < 0.5, x[1] ** 2, jnp.cos(x[1]))
        return (
            first + x[1] * x[0] + 2.0 * (jnp.sin(x[0]) + x[1]) + second + jnp.log(1 + jnp.exp(x[0]))
        )

    for x in np.random.default_rng(3).uniform(0.0, 1.0, (8, 2)):
        assert float(formula(function)(x)) == pytest.approx(float(expected(x)), rel=1e-12)
        assert np.asarray(jax.grad(formula(function))(x)) == pytest.approx(
            np.asarray(jax.grad(expected)(x)), rel=1e-12
        )
        assert not np.allclose(jax.grad(function)(x), jax.grad(expected)(x))


def test_a_solution_of_another_problem():
    """The coefficients, the right-hand side and the boundary values are those of the problem that
    is asked about."""

    def g(x):
        return jnp.dot(x, x) / 2

    solution = cordes.solve(cordes.Linear(SQUARE, np.eye(2), 2.0, g=g))
    assert solution.certificate.Linf <= 1e-13
    certificate = cordes.certify(cordes.Linear(SQUARE, np.eye(2), 5.0, g=g), solution)
    # Δv = 3: the largest |v| is 3 · 0.0736713, ‖Δv‖ = 3.
    assert 0.221013 <= certificate.Linf <= 0.4
    assert certificate.energy == pytest.approx((3.0, 3.0), rel=1e-9)
    assert certificate.energy[0] <= 3.0 <= certificate.energy[1]
    other = cordes.certify(cordes.Linear(SQUARE, np.eye(2), 2.0, g=lambda x: g(x) + 1e-6), solution)
    assert other.Linf is None
    assert "boundary values are not exact" in other.reason
    near = cordes.certify(cordes.Linear(SQUARE, np.eye(2), 2.0, g=lambda x: g(x) + 5e-11), solution)
    assert 5e-11 <= near.rms <= near.Linf <= 2e-10
    assert near.H2 is None


@pytest.mark.parametrize("offset", [0.0, 5e-7])
def test_large_values_are_known_to_their_rounding(offset):
    """At 10⁶ the offset lies within what rounding explains."""

    def g(x):
        return 1e6 + jnp.dot(x, x) / 2

    certificate = cordes.certify(
        cordes.Linear(SQUARE, np.eye(2), 2.0, g=g), lambda x: g(x) + offset
    )
    assert max(offset, 1e-10) <= certificate.rms <= certificate.Linf <= 1e-5
    assert certificate.L2 >= 1e-10
    assert (certificate.H2 is None) == (offset > 0)


def test_a_gap_where_the_maximum_principle_fails():
    """With c < 0 the gap may be magnified without limit: v'' + c₀v = 0 with v = 10⁻¹¹ on the
    boundary."""

    def answer(x):
        return jnp.prod(jnp.sin(jnp.pi * x)) + 5e-11

    def right(x):
        return -(jnp.pi**2) * jnp.prod(jnp.sin(jnp.pi * x)) + 3 * answer(x)

    problem = cordes.Linear(cordes.Box([0], [1]), np.eye(1), right, c=-3.0)
    certificate = cordes.certify(problem, answer)
    assert certificate.rms is None
    assert "c is negative" in certificate.reason


def test_a_false_bound_of_the_residual():
    certificate = cordes.certify(POISSON, lambda x: 1.5 * u(x), residual_bound=1e-3)
    assert certificate.rms is None
    assert "residual_bound" in certificate.reason


def test_a_false_epsilon():
    problem = cordes.Linear(
        SQUARE, lambda x: jnp.diag(jnp.array([1.0, 1.5 + 0.05 * jnp.sin(x[0])])), f, epsilon=1.0
    )
    with pytest.raises(cordes.CordesError, match=r"epsilon = 1\.0 is claimed"):
        cordes.certify(problem, u)


@pytest.mark.parametrize("d", [2, 4])
def test_what_is_not_a_number_at_a_few_points(d):
    def w(x):
        return jnp.prod(x * (1 - x))

    problem = cordes.Linear(
        cordes.Box([0] * d, [1] * d),
        np.eye(d),
        lambda x: jnp.trace(jax.hessian(w)(x)) + 1e-3 * jnp.sqrt(x[0] - 0.0002),
    )
    certificate = cordes.certify(problem, w)
    assert certificate.rms is None
    assert "not a finite number" in certificate.reason


def test_a_layer_that_the_points_resolve_is_certified():
    """Steep, but not hidden."""

    def layer(x):
        return jnp.exp(-x[0] / 0.02) * jnp.sin(jnp.pi * x[1])

    problem = cordes.Linear(SQUARE, np.eye(2), lambda x: jnp.trace(jax.hessian(layer)(x)), g=layer)
    assert cordes.certify(problem, layer).Linf <= 1e-9


def test_tiny_coefficients():
    A = np.diag([1e-200, 1e-201])

    def v(x):
        return 0.1 * jnp.sin(3 * jnp.pi * x[0]) * u(x)

    tiny, small, plain = (
        cordes.certify(cordes.Linear(SQUARE, size * A, 0.0), v) for size in (1, 1e100, 1e200)
    )
    assert tiny.energy == pytest.approx(small.energy, rel=1e-6)
    # Squares of coefficients that are no numbers leave the level of points.
    assert (tiny.level, plain.level) == ("quadrature", "enclosed")
    assert tiny.energy[0] <= plain.energy[0] <= plain.energy[1] <= tiny.energy[1]
