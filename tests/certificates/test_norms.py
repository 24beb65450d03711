"""Limits of norms: what n and 2n points say, and how often the statistical limits hold."""

import math

import numpy as np
import pytest

from cordes.certificates.residual.cells import CellMesh, CellNodes
from cordes.certificates.residual.norms import AGREEMENT, Norm, Quadrature, Sample, fixed_rule
from cordes.domains import Box

SQUARE = Box([0, 0], [1, 1])


def two_rules(coarse: np.ndarray, fine: np.ndarray) -> Quadrature:
    """Points of a coarse and of a fine rule with these weights."""
    n, m = len(coarse), len(fine)
    x = np.zeros((n + m, 1))
    return Quadrature(
        CellNodes(
            x,
            np.r_[coarse, np.zeros(m)],
            np.r_[np.zeros(n), fine],
            np.zeros(n + m, int),
            np.zeros_like(x),
        )
    )


# Quadrature


def test_limits_hold_both_rules():
    """The coarse rule gives 4, the fine one 9, of the integral of the square: the norm lies around
    3, and may be off by the difference to 2 at least."""
    norm = two_rules(np.array([1.0]), np.array([1.0])).norm(np.array([2.0, 3.0]))
    assert norm.upper >= 4
    assert norm.lower <= 2
    assert norm.spread >= 1 / 3
    assert not norm.converged


def test_rules_that_agree_leave_no_room():
    norm = two_rules(np.full(2, 0.5), np.full(4, 0.25)).norm(np.full(6, 7.0))
    assert (norm.lower, norm.upper) == pytest.approx((7.0, 7.0), rel=1e-14)
    assert norm.spread <= 1e-14
    assert norm.converged


def test_agreement_is_one_per_cent():
    assert AGREEMENT == 0.01
    rule = two_rules(np.array([1.0]), np.array([1.0]))
    assert rule.norm(np.array([0.998, 1.0])).converged
    assert not rule.norm(np.array([0.97, 1.0])).converged


@pytest.mark.parametrize("power", [1.0, 2.0, 3.0, 10.0])
@pytest.mark.parametrize("scale", [1.0, 1e-40, 1e40])
def test_powers_and_scales(power, scale):
    """∫ x^p over the square is 1/(p + 1); high powers of small and large residuals neither
    underflow nor overflow."""
    mesh = CellMesh(SQUARE)
    rule = Quadrature(mesh.nodes(mesh.cells))
    norm = rule.norm(-scale * rule.points[:, 0], power)
    truth = scale * (1 / (power + 1)) ** (1 / power)
    assert norm.lower <= truth * (1 + 1e-12)
    assert norm.upper >= truth * (1 - 1e-12)
    assert norm.upper == pytest.approx(truth, rel=1e-4)


def test_zero_is_zero():
    rule = fixed_rule(np.zeros((3, 1)), np.ones(3))
    assert rule.norm(np.zeros(3)) == Norm(0.0, 0.0)


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_what_is_not_finite_has_no_norm(bad):
    """Neither rule may give a number: an integrand that is not finite somewhere is not bounded by
    anything."""
    values = np.array([1.0, bad, 1.0, 1.0])
    norm = fixed_rule(np.zeros((4, 1)), np.ones(4)).norm(values)
    assert math.isinf(norm.upper)
    assert norm.lower == 0
    assert not norm.converged
    for proved in (True, False):
        norm = Sample(np.zeros((4, 1)), 1.0, 0.99, 1, proved).norm(
            values, 2.0, 5.0 if proved else None
        )
        assert math.isinf(norm.upper)
        assert norm.lower == 0


def test_a_fixed_rule_is_trusted():
    norm = fixed_rule(np.zeros((2, 1)), np.array([1.0, 3.0])).norm(np.array([1.0, 1.0]))
    assert (norm.lower, norm.upper, norm.spread) == (2.0, 2.0, 0.0)


# Samples


def test_levels():
    points = np.zeros((2, 1))
    assert Sample(points, 1.0, 0.99, 1).level == "statistical (asymptotic)"
    assert Sample(points, 1.0, 0.99, 1, True).level == "statistical"
    assert two_rules(np.ones(1), np.ones(1)).level == "quadrature"
    assert two_rules(np.ones(1), np.ones(1)).confidence is None


def benign(x: np.ndarray) -> np.ndarray:
    return 1 + np.sin(2 * math.pi * x)


BENIGN = math.sqrt(1.5)


def spike(x: np.ndarray) -> np.ndarray:
    """One in a hundredth of the interval, nearly nothing elsewhere: 30 points miss it three times
    out of four."""
    return np.where(x < 0.01, 1.0, 0.02 * x)


SPIKE = math.sqrt(0.01 + 0.0004 * (1 - 1e-6) / 3)


def misses(
    values,
    truth: float,
    size: int,
    repetitions: int,
    sample: Sample,
    bound: float | None = None,
    volume: float = 1.0,
) -> tuple[float, float]:
    """Shares of repetitions in which the upper limit is below the norm, and the lower limit above
    it."""
    rng = np.random.default_rng(17)
    above = below = 0
    for _ in range(repetitions):
        x = rng.random((size, 1))
        norm = sample._replace(points=x, volume=volume).norm(values(x[:, 0]), 2.0, bound)
        above += norm.upper < math.sqrt(volume) * truth
        below += norm.lower > math.sqrt(volume) * truth
    return above / repetitions, below / repetitions


@pytest.mark.parametrize(("confidence", "count"), [(0.9, 1), (0.95, 1), (0.9, 4)])
def test_coverage_of_the_normal_approximation(confidence, count):
    """On a benign integrand each side misses with the probability (1 - confidence)/2 for each of
    `count` norms: neither more nor far less."""
    sample = Sample(np.zeros((1, 1)), 1.0, confidence, count)
    above, below = misses(benign, BENIGN, 2000, 4000, sample, volume=3.0)
    wanted = (1 - confidence) / (2 * count)
    error = 3.5 * math.sqrt(wanted / 4000)
    assert wanted - error - 0.2 * wanted <= above <= wanted + error + 0.3 * wanted
    assert below <= wanted + error + 0.3 * wanted


def test_the_normal_approximation_is_refused_for_a_spike():
    """Thirty points miss it three times out of four, and see it once otherwise: neither says
    anything about the integral."""
    above, _ = misses(spike, SPIKE, 30, 1000, Sample(np.zeros((1, 1)), 1.0, 0.95, 1))
    assert above == 0


@pytest.mark.parametrize(
    ("power", "given"), [(2, True), (5, True), (6, True), (10, False), (100, False)]
)
def test_high_powers_are_refused_before_they_fail(power, given):
    """The ABP estimate in d dimensions takes the power d of the residual. Of normal values the
    truth is known; limits must hold, or not be given. Without the rule the upper limit of the tenth
    power is too small in a tenth of all samples, that of the sixteenth in four of ten."""
    truth = (2 ** (power / 2) * math.gamma((power + 1) / 2) / math.sqrt(math.pi)) ** (1 / power)
    rng, size = np.random.default_rng(11), 1 << 15
    sample = Sample(np.zeros((size, 1)), 1.0, 0.99, 1)
    uppers = np.array([sample.norm(rng.standard_normal(size), power).upper for _ in range(300)])
    # 0.005 is what each side may miss; 7 of 300 has a probability of 1e-3 then.
    assert np.sum(uppers < truth) <= 6
    assert np.mean(np.isfinite(uppers)) > 0.9 if given else np.all(np.isinf(uppers))


@pytest.mark.parametrize(
    ("values", "truth", "bound"),
    [(benign, BENIGN, 2.0), (spike, SPIKE, 1.0)],
    ids=["benign", "spike"],
)
@pytest.mark.parametrize("size", [30, 400])
def test_empirical_bernstein_holds_for_every_bounded_integrand(values, truth, bound, size):
    """Misses in 2000 repetitions at most as often as it may, on both sides; it never missed
    here."""
    sample = Sample(np.zeros((1, 1)), 1.0, 0.95, 1, True)
    above, below = misses(values, truth, size, 2000, sample, bound, volume=0.5)
    assert above <= 0.025
    assert below <= 0.025


def test_empirical_bernstein_formula():
    """Maurer and Pontil 2009, theorem 4, for X in [0, B²]: mean + √(2V ln(2/δ)/n) + 7B² ln(2/δ)/3(n
    - 1), δ shared by `count` norms and two sides."""
    x = np.random.default_rng(3).random((50, 1))
    values = 0.7 * benign(x[:, 0])
    volume, bound, confidence, count = 2.5, 1.4, 0.97, 4
    norm = Sample(x, volume, confidence, count, True).norm(values, 2.0, bound)
    logarithm = math.log(2 / ((1 - confidence) / (2 * count)))
    reach = math.sqrt(2 * np.var(values**2, ddof=1) * logarithm / 50) + 7 * bound**2 * logarithm / (
        3 * 49
    )
    assert norm.upper == pytest.approx(math.sqrt(volume * (np.mean(values**2) + reach)), rel=1e-12)
    assert norm.lower == pytest.approx(
        math.sqrt(volume * max(np.mean(values**2) - reach, 0.0)), rel=1e-12
    )


def test_a_residual_of_zero_is_not_zero_for_certain():
    """With a proved bound the sample that shows nothing still leaves something."""
    x = np.random.default_rng(4).random((100, 1))
    norm = Sample(x, 1.0, 0.99, 1, True).norm(np.zeros(100), 2.0, 3.0)
    assert norm.lower == 0
    assert norm.upper == pytest.approx(3 * math.sqrt(7 * math.log(400) / (3 * 99)), rel=1e-12)


def test_limits_shrink_with_the_sample_and_grow_with_the_confidence():
    rng = np.random.default_rng(5)
    x = rng.random((6400, 1))
    values = benign(x[:, 0])

    def width(size: int, confidence: float, proved: bool) -> float:
        norm = Sample(x[:size], 1.0, confidence, 2, proved).norm(
            values[:size], 2.0, 2.0 if proved else None
        )
        return norm.upper - norm.lower

    for proved in (True, False):
        assert width(6400, 0.99, proved) < 0.5 * width(1200, 0.99, proved)
        assert width(1200, 0.999, proved) > width(1200, 0.9, proved)
    assert width(1200, 0.99, True) > width(1200, 0.99, False)


def test_equal_values_have_their_norm():
    norm = Sample(np.zeros((1000, 1)), 4.0, 0.99, 1).norm(np.full(1000, 3.0))
    assert (norm.lower, norm.upper) == (pytest.approx(6.0), pytest.approx(6.0))


def test_values_near_a_pole_have_no_norm():
    values = np.array([1.0, 1e150, 1.0, 1.0])
    assert math.isinf(fixed_rule(np.zeros((4, 1)), np.ones(4)).norm(values).upper)
    assert math.isinf(Sample(np.zeros((4, 1)), 1.0, 0.99, 1, True).norm(values, 2.0, 1e200).upper)
