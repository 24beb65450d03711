"""Cells on a line and in space, against exact solutions and closed forms."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import cordes


def manufactured(domain, matrix, u, **more):
    def f(x):
        return jnp.sum(matrix(x) * jax.hessian(u)(x))

    return cordes.Linear(domain, matrix, f, g=u, exact=u, **more)


def certified(solution):
    error, certificate = solution.error(), solution.certificate
    return error.linf <= certificate.Linf and error.l2 <= certificate.rms


def test_a_peak_on_a_line():
    problem = manufactured(
        cordes.Box([-1.0], [1.0]),
        lambda x: jnp.array([[2 + x[0]]]),
        lambda x: jnp.exp(-((x[0] - 0.3) ** 2) / 1e-6) + x[0],
    )
    solution = cordes.solve(problem, method="cells", progress=False)
    assert solution.error().linf < 1e-9
    assert certified(solution)
    assert solution.converged


@pytest.mark.filterwarnings("ignore::cordes.CordesConditionWarning")
def test_a_layer_of_a_hundred_thousandth_on_a_line():
    """εu'' + u' = 1, u = 0 at both ends: x less what the layer at 0 adds."""
    scale = 1e-5
    problem = cordes.Linear(cordes.Box([0.0], [1.0]), scale, 1.0, b=[1.0])
    solution = cordes.solve(problem, method="cells", progress=False)
    x = np.concatenate([np.linspace(0, 1, 101), scale * np.linspace(0, 20, 101)])[:, None]
    exact = x[:, 0] - np.expm1(-x[:, 0] / scale) / np.expm1(-1 / scale)
    error = np.max(np.abs(solution(x) - exact))
    assert error < 1e-10
    assert error <= solution.certificate.Linf < 1e-6


def test_a_jump_and_a_small_scale_on_a_line():
    """Second derivatives jump at a line, where nothing is blended; those of the other side are
    right up to it, and the residual falls as it does away from it."""

    def u(x):
        away = x[0] - 0.3
        bend = jnp.where(away > 0, 3.0, 1.0) * away**2
        return bend + jnp.exp(-((x[0] - 0.7) ** 2) / 1e-4)

    def matrix(x):
        return jnp.where(x[0] > 0.3, 1.0, 3.0) * jnp.ones((1, 1))

    domain = cordes.Box([-1.0], [1.0])
    problem = manufactured(domain, matrix, u, interfaces=[lambda x: x[0] - 0.3])
    solution = cordes.solve(problem, method="cells", progress=False)
    assert solution.error().linf < 1e-9
    assert certified(solution)
    near = solution.hessian(np.array([[0.3 - 1e-9], [0.3 + 1e-9]])).ravel()
    np.testing.assert_allclose(near, [2.0, 6.0], atol=1e-5)


@pytest.mark.long
def test_errors_in_space_fall_with_the_degree():
    """On the same cells."""

    def matrix(x):
        return jnp.array([[2.0, x[0] / 2, 0.0], [x[0] / 2, 1.0, 0.2], [0.0, 0.2, 1.5]])

    def u(x):
        return jnp.exp(-jnp.sum((x - jnp.array([0.313, -0.271, 0.1])) ** 2) / 0.5**2)

    problem = manufactured(cordes.Box([-1] * 3, [1] * 3), matrix, u)
    solutions = [
        cordes.solve(problem, cordes.Cells(cells=8, degree=degree), certify=False)
        for degree in (5, 9)
    ]
    assert solutions[0].network.tree.count == solutions[1].network.tree.count
    errors = [solution.error().linf for solution in solutions]
    assert errors[1] < 0.05 * errors[0]
