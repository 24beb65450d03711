"""Features that lie between all points of a coarse look: bounds are not below the truth, and an
answer that misses them is not called converged. See test_hidden_battery.py."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import cordes
from cordes.errors import CoefficientError

SQUARE = cordes.Box([0, 0], [1, 1])


def bump(place, width):
    def function(x):
        return jnp.maximum(1 - jnp.sum((x - jnp.asarray(place)) ** 2) / width**2, 0) ** 4

    return function


def test_a_small_source_is_found_or_the_bound_knows_of_it():
    """By features alone it is missed; the choice of the program finds it."""
    planted = bump([0.52, 0.52], 0.01)

    def exact(x):
        return jnp.prod(jnp.sin(jnp.pi * x)) + 0.05 * planted(x)

    problem = cordes.Linear(SQUARE, np.eye(2), lambda x: jnp.trace(jax.hessian(exact)(x)))
    blind = cordes.solve(problem, "least-squares", tol=1e-3)
    assert blind.result != "converged"
    assert blind.certificate.Linf >= 0.05
    assert blind.certificate.H2 >= 41
    points = 0.52 + 0.005 * np.random.default_rng(1).uniform(-1, 1, (500, 2))
    solution = cordes.solve(problem, tol=1e-3)
    truth = np.max(np.abs(solution(points) - jax.vmap(exact)(points)))
    assert solution.result == "converged"
    assert truth <= solution.certificate.Linf <= 1e-2


def test_a_declared_inclusion_is_integrated():
    place, radius = np.array([0.3713, 0.2127]), 0.02

    def phi(x):
        return jnp.sum((x - place) ** 2) - radius**2

    disk = cordes.Ball([0, 0], 1.0)
    problem = cordes.Linear(
        disk, lambda x: jnp.where(phi(x) < 0, 3.0, 1.0) * jnp.eye(2), -4.0, interfaces=[phi]
    )
    certificate = cordes.certify(problem, lambda x: 1 - jnp.dot(x, x))
    # Inside, Δv = 8/3.
    assert certificate.energy[1] >= 8 / 3 * radius * np.sqrt(np.pi)


def test_a_tiny_inclusion_is_no_useless_interface():
    place = np.array([0.3713, 0.2127])
    cordes.Linear(SQUARE, np.eye(2), 1.0, interfaces=[lambda x: jnp.sum((x - place) ** 2) - 1e-6])
    with pytest.raises(CoefficientError, match="does not change sign"):
        cordes.Linear(
            SQUARE, np.eye(2), 1.0, interfaces=[lambda x: jnp.sum((x - place) ** 2) + 1e-6]
        )


def test_what_no_enclosure_reads_is_known_at_points_only():
    """A source behind a loop lies between all points; nothing can look for it."""
    planted = bump([0.3713, 0.6127], 0.0015)

    def hidden(x):
        source = jnp.trace(jax.hessian(planted)(x))
        return jax.lax.while_loop(lambda s: s[1] < 1, lambda s: (s[0], s[1] + 1), (source, 0))[0]

    def smooth(x):
        return jnp.prod(jnp.sin(jnp.pi * x))

    problem = cordes.Linear(
        SQUARE, np.eye(2), lambda x: -2 * jnp.pi**2 * smooth(x) + 0.05 * hidden(x)
    )
    solution = cordes.solve(problem)
    assert solution.result == "converged_uncertified"
    certificate = cordes.certify(problem, smooth)
    for each in (solution.certificate, certificate):
        assert set(each.levels.values()) == {"sampled"}
        assert "f has no enclosure" in each.reason
        assert "'while'" in each.reason


def test_a_bump_of_what_is_given_on_a_face_is_followed():
    """The lift carries it through the domain, where its second derivatives are 1e7 times as large;
    the bound was 4e-11."""

    def given(x):
        return jnp.maximum(1 - ((x[1] - 0.3711) / 2e-4) ** 2, 0) ** 4

    sides = {"right": cordes.Neumann(given), "outer": cordes.Dirichlet(0.0)}
    problem = cordes.Linear(SQUARE, np.eye(2), 1.0, boundary=sides)
    solution = cordes.solve(problem, "least-squares", features=40)
    # The lift is about as large as the slope, the solution no more than the width of the bump.
    error = float(np.abs(solution([0.95, 0.3711])))
    assert error > 0.1
    assert solution.result != "converged"
    assert solution.certificate.Linf is None or solution.certificate.Linf > error - 0.1
