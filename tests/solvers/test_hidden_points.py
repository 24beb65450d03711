"""Points where the data have something small: a source that uniform points miss is seen, and what
is not resolved is called so."""

import jax.numpy as jnp
import numpy as np
import pytest

import cordes
from cordes.ansatz.points import collocation_points
from cordes.problems.features import hidden_features
from cordes.solvers.rows.system import FRESH, System

UNIT = cordes.Box([0, 0], [1, 1])


def source(domain, place, radius):
    """(1 - |x - place|²/radius²)³/radius², nothing elsewhere."""

    def f(x):
        square = jnp.sum((x - jnp.asarray(place)) ** 2) / radius**2
        return jnp.where(square < 1, (1 - jnp.minimum(square, 1)) ** 3, 0.0) / radius**2

    return cordes.Linear(domain, A=1.0, f=f)


# ∫(1 - s²)⁶ over the unit ball: π/7 in the plane, and in space 4π · 1024/45045.
CASES = {
    "0.01": (source(UNIT, (0.52, 0.52), 0.01), np.sqrt(np.pi / 7) / 0.01),
    "0.005": (source(UNIT, (0.371, 0.613), 0.005), np.sqrt(np.pi / 7) / 0.005),
    "large domain": (
        source(cordes.Box([0, 0], [100, 100]), (33.0, 41.0), 0.45),
        np.sqrt(np.pi / 7) / 0.45 / 100,
    ),
    "cube": (
        source(cordes.Box([0, 0, 0], [1, 1, 1]), (0.4, 0.6, 0.3), 0.06),
        np.sqrt(4 * np.pi * 1024 / 45045 / 0.06),
    ),
}


@pytest.mark.parametrize(
    "name", ["0.01", *(pytest.param(name, marks=pytest.mark.long) for name in list(CASES)[1:])]
)
def test_a_small_source_is_seen(name):
    """The answer cannot follow it, which the result says, and the residual is that of f."""
    problem, size = CASES[name]
    solution = cordes.solve(problem, certify=False, progress=False, features=60)
    assert solution.result is cordes.Result.stagnated
    assert solution.residual_rms == pytest.approx(size, rel=0.5)
    assert 1 / 3 < solution.relative_residual < 3


@pytest.mark.long
def test_a_tolerance_is_not_met_by_not_looking():
    solution = cordes.solve(CASES["0.01"][0], tol=1e-3, progress=False)
    assert solution.result is not cordes.Result.converged
    # The error at the source is of the size of f r²/4.
    assert solution.certificate.Linf is None or solution.certificate.Linf > 0.05


@pytest.mark.long
def test_a_small_peak_of_a_determinant_is_seen():
    def f(x):
        return 1 + 20 * jnp.exp(-jnp.sum((x - 0.37) ** 2) / (2 * 0.005**2))

    problem = cordes.MongeAmpere(UNIT, f=f, g=lambda x: 0.5 * jnp.dot(x, x))
    solution = cordes.solve(problem, certify=False, progress=False, features=250)
    assert solution.result is cordes.Result.stagnated


def test_weights_keep_the_mean_square():
    """Boxes that overlap and leave the domain: Σ (weight · h)² is the mean of h² all the same."""
    disk = cordes.Ball([0, 0], 1)
    corners = np.array([[0.65, 0.65], [0.2, 0.2], [0.21, 0.21]])
    boxes = corners, corners + np.array([[0.2], [0.01], [0.03]])
    points = collocation_points(disk, 40_000, 0, hidden=boxes)
    assert len(points.x) > 44_000
    assert np.all(disk.contains(points.x))
    assert np.sum(points.weight**2) == pytest.approx(1, rel=1e-2)
    inside = np.all((points.x > corners[1]) & (points.x < boxes[1][1]), axis=1)
    assert np.sum(inside) > 1000
    assert np.sum(points.weight[inside] ** 2) == pytest.approx(1e-4 / np.pi, rel=0.1)


def test_where_nothing_is_hidden_points_are_what_they_were():
    problem = cordes.Linear(UNIT, A=1.0, f=lambda x: jnp.sin(30 * x[0]) + jnp.abs(x[1] - 0.3))
    system = System(problem, singular=False)
    assert not len(system.hidden[0])
    points = system.points(100, 0)
    np.testing.assert_array_equal(points.x, UNIT.interior_points(100, 0, "sobol"))
    np.testing.assert_array_equal(points.weight, np.full(100, 0.1))


def test_a_feature_where_points_gather_anyway_is_not_hidden():
    problem, place = CASES["0.01"][0], np.array([0.52, 0.52])
    assert len(hidden_features(problem, FRESH)[0])
    assert not len(hidden_features(problem, FRESH, [place])[0])
