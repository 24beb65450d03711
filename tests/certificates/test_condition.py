"""The Cordès condition against its formulas."""

import jax.numpy as jnp
import numpy as np
import pytest

import cordes
from cordes.errors import CoefficientError

SQUARE = cordes.Box([-1, -1], [1, 1])


def check(A, b=None, c=None, **data):
    A = np.asarray(A, dtype=float)
    return cordes.check(
        cordes.Linear(cordes.Box([-1] * len(A), [1] * len(A)), A, 1.0, b=b, c=c, **data)
    )


def random_spd(generator, dimension=2):
    factor = generator.standard_normal((dimension, dimension))
    return factor @ factor.T + 0.1 * np.eye(dimension)


def test_every_elliptic_matrix_satisfies_it_in_the_plane():
    generator = np.random.default_rng(1)
    for _ in range(4):
        A = random_spd(generator)
        small, large = np.linalg.eigvalsh(A)
        condition = check(A)
        assert condition.satisfied
        assert condition.lambda_ is None
        assert condition.source == "analytic"
        assert condition.epsilon == pytest.approx(
            2 * small * large / (small**2 + large**2), rel=1e-12
        )
        assert condition.multiplier_range == pytest.approx((np.trace(A) / np.sum(A**2),) * 2)


def test_strong_anisotropy_violates_it_in_space():
    condition = check(np.diag([10.0, 1, 1]))
    assert not condition.satisfied
    assert condition.epsilon == pytest.approx(144 / 102 - 2)
    assert "VIOLATED" in str(condition)
    assert check(np.diag([2.0, 1, 1])).satisfied


def test_reaction_alone_costs_nothing():
    A, c = np.array([[3.0, 1], [1, 2]]), 0.7
    condition = check(A, c=c)
    trace, square = np.trace(A), np.sum(A**2)
    assert condition.lambda_ == pytest.approx(c * trace / square, rel=1e-5)
    assert condition.epsilon == pytest.approx(check(A).epsilon, rel=1e-10)


@pytest.mark.parametrize("b", [[0.3, 0.0], [0.5, -0.8]])
def test_best_parameter_for_constant_coefficients(b):
    A, c = np.array([[3.0, 1], [1, 2]]), 1.3
    condition = check(A, b=b, c=c)
    trace, square, drift = np.trace(A), np.sum(A**2), np.dot(b, b)
    inverse = (4 * c * square - trace * drift) / (c * (4 * c * trace - drift))
    assert condition.lambda_ == pytest.approx(1 / inverse, rel=1e-5)
    expected = (trace + c * inverse) ** 2 / (square + drift * inverse / 2 + (c * inverse) ** 2) - 2
    assert condition.epsilon == pytest.approx(expected, rel=1e-10)


def test_drift_without_reaction_is_never_covered():
    condition = check(np.eye(2), b=[0.1, 0.0])
    assert not condition.satisfied
    assert condition.epsilon <= 0


@pytest.mark.parametrize("dimension", [2, 3])
@pytest.mark.parametrize(("ratio", "satisfied"), [(0.9, True), (1.1, False)])
def test_the_laplacian_needs_a_drift_below_twice_the_root_of_the_reaction(
    dimension, ratio, satisfied
):
    c = 0.8
    b = np.zeros(dimension)
    b[-1] = np.sqrt(ratio * 4 * c)
    assert check(np.eye(dimension), b=b, c=c).satisfied == satisfied


def test_gallery_values():
    # A lower bound over the whole domain: never above the true value, and below it by no more than
    # a safety for rounding.
    assert 9 / 29 - 1e-10 <= cordes.check(cordes.gallery["ex4.3-cube5"]).epsilon <= 9 / 29 + 1e-15
    condition = cordes.check(cordes.gallery["ex4.2-discontinuous"])
    assert condition.multiplier_range == pytest.approx((0.4, 0.4), rel=1e-12)
    assert condition.satisfied
    assert condition.source == "interval"


def test_the_worst_point_is_where_epsilon_is_smallest():
    def A(x):
        return jnp.diag(jnp.array([1 + 4 * x[0] ** 2, 1.0]))

    condition = cordes.check(cordes.Linear(SQUARE, A, 1.0))
    # The smallest ε, at |x1| = 1, has eigenvalues 5 and 1; interval arithmetic gives a lower bound
    # of it.
    assert abs(condition.worst_point[0]) > 0.999
    assert condition.source == "interval"
    assert 10 / 26 - 1e-3 <= condition.epsilon <= 10 / 26


def test_a_claimed_epsilon_is_kept_or_refused():
    def A(x):
        return jnp.diag(jnp.array([2.0 + x[0], 1.0]))

    # ε is smallest at x1 = 1, where the eigenvalues are 3 and 1.
    condition = cordes.check(cordes.Linear(SQUARE, A, 1.0, epsilon=0.6))
    assert (condition.epsilon, condition.source) == (0.6, "analytic")
    with pytest.raises(CoefficientError, match=r"epsilon = 0.7 is claimed, but ε = 0\.6"):
        cordes.check(cordes.Linear(SQUARE, A, 1.0, epsilon=0.7))
