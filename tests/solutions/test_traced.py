"""A solution is a pure function of x: JAX compiles it, maps it and differentiates it, and finds
what a plain call finds."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import cordes
from cordes.errors import OptionError

# Singular functions, interfaces, a lift, three dimensions, a convex answer, controls, a map.
CASES = (
    "ex4.4-discontinuous",
    "ex4.2-discontinuous",
    "ex4.1-smooth",
    "constant-3d",
    "ex4.6-monge-ampere",
    "switching-control",
    "transport-ellipses",
)


def jump(x):
    return x[1] - 0.3 * x[0] ** 2


def bent():
    """Singular functions in charts: A jumps across a curve that meets a circle."""
    return cordes.Linear(
        cordes.Ball([0, 0], 1),
        lambda x: jnp.where(jump(x) > 0, 2.0, 1.0) * jnp.eye(2),
        -1.0,
        g=lambda x: x[0] ** 3,
        interfaces=[jump],
        name="bent",
    )


@pytest.fixture(scope="module")
def bent_answer():
    return cordes.solve(bent(), features=40, progress=False, certify=False)


@pytest.fixture(scope="module", params=[*CASES, "bent"])
def solution(request, bent_answer):
    if request.param == "bent":
        return bent_answer
    problem = cordes.gallery[request.param]
    return cordes.solve(problem, features=100, progress=False, certify=False)


def close(found, expected, digits=1e-12):
    assert isinstance(found, jax.Array)
    assert found.shape == expected.shape
    np.testing.assert_allclose(found, expected, rtol=0, atol=digits * np.max(np.abs(expected)))


@pytest.mark.filterwarnings("ignore::cordes.CordesConditionWarning")
def test_compiled_mapped_and_differentiated(solution):
    x = solution.problem.domain.interior_points(40, seed=3)
    u, slope = solution(x), solution.gradient(x)
    assert isinstance(u, np.ndarray)
    close(jax.jit(solution)(x), u)
    close(jax.vmap(solution)(x), u)
    close(jax.jit(solution.gradient)(x), slope)
    # By JAX, through the answer itself.
    close(jax.jit(jax.vmap(jax.grad(solution)))(x), slope)


def test_second_derivatives_and_residuals(bent_answer):
    solution = bent_answer
    assert len(solution.amplitudes)
    x = solution.problem.domain.interior_points(12, seed=4)
    bend, residual = solution.hessian(x), solution.residual(x)
    close(jax.jit(solution.hessian)(x), bend)
    close(jax.jit(jax.vmap(jax.hessian(solution)))(x), bend)
    close(jax.jit(jax.vmap(jax.jacrev(solution.gradient)))(x), bend)
    found = jax.jit(solution.residual)(x)
    np.testing.assert_allclose(found, residual, rtol=0, atol=1e-12 * np.max(np.abs(bend)))


def test_shapes_in_a_trace(bent_answer):
    solution = bent_answer
    x = solution.problem.domain.interior_points(12, seed=4)
    shaped = x.reshape(3, 4, 2)
    close(jax.jit(solution)(shaped), solution(shaped))
    close(jax.jit(solution)(x[0]), solution(x[0]))
    close(jax.vmap(jax.jit(solution))(shaped), solution(shaped))
    # Parts of a point that are known, and one that is not.
    partial = jax.grad(lambda first: solution([first, x[0, 1]]))(x[0, 0])
    assert partial == pytest.approx(solution.gradient(x[0])[0], rel=1e-12)


def test_a_trace_does_not_look_where_points_are(bent_answer):
    """Nor does it warn: its points are not known yet. Their number and dimension are."""
    assert np.isfinite(jax.jit(bent_answer)(np.array([1.1, 1.0])))
    with pytest.raises(OptionError, match="last axis must have length 2"):
        jax.jit(bent_answer)(np.zeros((4, 3)))


def test_policies_and_maps_in_a_trace():
    control = cordes.solve(
        cordes.gallery["switching-control"], features=60, progress=False, certify=False
    )
    x = control.problem.domain.interior_points(30, seed=5)
    np.testing.assert_array_equal(jax.jit(control.policy)(x), control.policy(x))
    ellipses = cordes.solve(
        cordes.gallery["transport-ellipses"], features=60, progress=False, certify=False
    )
    x = ellipses.problem.domain.interior_points(30, seed=5)
    close(jax.jit(ellipses.map)(x), ellipses.map(x))
    with pytest.raises(OptionError, match=r"outside of jax\.jit"):
        jax.jit(ellipses.inverse)(ellipses.map(x))


def test_a_third_derivative_of_singular_functions_is_refused_in_words(bent_answer):
    solution = bent_answer
    with pytest.raises(OptionError, match="have two derivatives"):
        jax.jacfwd(jax.hessian(solution))(jnp.array([0.1, 0.2]))
    smooth = cordes.solve(bent(), features=40, progress=False, certify=False, singular=False)
    third = jax.jacfwd(jax.hessian(smooth))(jnp.array([0.1, 0.2]))
    assert third.shape == (2, 2, 2)


def test_many_points_with_singular_functions(bent_answer):
    """The call back from the compiled program does not wait for it."""
    x = bent_answer.problem.domain.interior_points(50_000, seed=6)
    close(jax.jit(bent_answer)(x), bent_answer(x))
