"""The theorems for equations in time and for obstacles: attained where they are sharp, broken by
the mistakes that are easily made, and attacked at random (benchmarks/time_battery.py)."""

import math
import sys
from pathlib import Path

import numpy as np
import pytest
from scipy.linalg import eigh

from cordes.certificates.theorems import comparison
from cordes.certificates.theorems.comparison import (
    Comparison,
    ProfileInTime,
    course,
    krylov_tso_constant,
)
from cordes.certificates.theorems.energy_in_time import (
    Consequences,
    SchemeInTime,
    normalised_in_time,
    smallest_frequency,
    time_root,
)
from cordes.certificates.theorems.stopping import ComparisonSide, in_time
from cordes.domains import Box

sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks"))
import time_battery as battery

CASES, PARTS = 48, 4
DEGREE = 12
FAR = 1e300


@pytest.mark.parametrize("part", range(PARTS))
def test_every_bound_in_time_holds(part):
    results = battery.run(range(part * CASES // PARTS, (part + 1) * CASES // PARTS))
    assert battery.violations(results) == []
    ratios = battery.smallest_ratios(results)
    # A battery without bounds, or with bounds far above the truth, would show nothing.
    assert ratios["L2"][2] == ratios["H1"][2] == ratios["O1 above"][2] == CASES // PARTS
    assert ratios["energy"][0] <= 1.01
    assert ratios["L2"][1] <= 8


@pytest.mark.parametrize(
    ("target", "factor"),
    [
        ("time_battery.first_eigenvalue", 1.5),
        ("cordes.certificates.theorems.comparison.krylov_tso_constant", 0.3),
    ],
)
def test_the_battery_in_time_can_fail(monkeypatch, target, factor):
    """Wrong constants are noticed."""
    module, name = target.rsplit(".", 1)
    original = getattr(sys.modules[module], name)
    monkeypatch.setattr(target, lambda *arguments: factor * original(*arguments))
    assert any(battery.violations(battery.run([number])) for number in range(60))


def test_swapped_sides_are_noticed():
    """sup(u - w) is paid by F⁺ and no other side."""
    cases = [(number, battery.draw(number)) for number in range(12)]
    wrong = [(n, battery.comparison_results(case, swapped=True)) for n, case in cases]
    assert battery.violations(wrong)


# The weights and the identity behind TP -----------------------------------------------------------


def forms(length):
    """∫q'², ∫q'q, ∫q² and q(T)² on polynomials with q(0) = 0, as matrices."""
    nodes, weights = np.polynomial.legendre.leggauss(DEGREE + 2)
    t, w = length * (nodes + 1) / 2, length * weights / 2
    legendre = np.polynomial.legendre.Legendre.basis
    q = np.stack([t * legendre(k)(nodes) for k in range(DEGREE)])
    slope = [
        legendre(k)(nodes) + t * legendre(k).deriv()(nodes) * 2 / length for k in range(DEGREE)
    ]
    p = np.stack(slope)
    return (p * w) @ p.T, (p * w) @ q.T, (q * w) @ q.T


def largest_share(omega, lambda_, alpha, weights, mu, length, dimension=2):
    """The largest ratio of the weighted form to ‖Pv‖² for one eigenfunction."""
    beta, second, first, zeroth = weights
    pp, pq, qq = forms(length)
    m = mu + lambda_
    whole = omega**2 * pp + omega * m * (pq + pq.T) + m**2 * qq
    kappa = beta + second * (1 - 1 / dimension)
    form = alpha * pp + (kappa * mu**2 + first * mu + zeroth) * qq
    return float(eigh(form, whole, eigvals_only=True)[-1])


def test_the_weighted_form_is_at_most_the_energy_and_attains_it():
    rng = np.random.default_rng(3)
    largest = 0.0
    for _ in range(30):
        omega, lambda_, length = np.exp(rng.uniform(-2, 2)), rng.uniform(0, 3), rng.uniform(0.1, 3)
        eigenvalue = float(np.exp(rng.uniform(-1, 3)))
        alpha = float(rng.choice([0.0, 0.4, 1 - 1e-12])) * omega**2
        weights = normalised_in_time(
            rng.uniform(0.05, 2, 4), omega, lambda_, alpha, eigenvalue, 2, time_root(length, True)
        )
        for mu in eigenvalue * np.append(np.geomspace(1, 1e4, 12), 1.0):
            share = largest_share(omega, lambda_, alpha, weights, mu, length)
            assert share <= 1 + 1e-9
            largest = max(largest, share)
    assert largest >= 0.98


def test_twice_the_gain_of_time_is_too_much():
    """With small m; with a large one the value at the end of time covers the mistake."""
    length, eigenvalue = 0.1, 0.5
    gain = time_root(length, True)
    weights = normalised_in_time((0.0, 0.0, 0.0, 1.0), 1.0, 0.0, 0.0, eigenvalue, 2, 2 * gain)
    assert largest_share(1.0, 0.0, 0.0, weights, eigenvalue, length) >= 1.5
    weights = normalised_in_time((0.0, 0.0, 0.0, 1.0), 1.0, 0.0, 0.0, eigenvalue, 2, gain)
    assert largest_share(1.0, 0.0, 0.0, weights, eigenvalue, length) <= 1


@pytest.mark.parametrize("mass", [0.3, 2.0, 30.0])
@pytest.mark.parametrize("length", [0.2, 1.5])
def test_the_frequency_of_the_slowest_error(mass, length):
    """‖ωq' + mq‖² ≥ (m² + ω²k²)‖q‖² is attained."""
    omega = 1.7
    pp, pq, qq = forms(length)
    whole = omega**2 * pp + omega * mass * (pq + pq.T) + mass**2 * qq
    least = float(eigh(whole, qq, eigvals_only=True)[0])
    k = smallest_frequency(omega, mass, length)
    assert mass**2 + omega**2 * k**2 <= least * (1 + 1e-12)
    assert mass**2 + omega**2 * k**2 >= least * (1 - 1e-7)


def decay_ratio(rng, still):
    """Bound over truth of N at the end for v = e^{-αt}e_μ, whose operator hides as much as TP lets
    it; `still` takes weights that only hold for v(0) = 0."""
    omega, lambda_ = float(np.exp(rng.uniform(-1, 1))), 0.0
    eigenvalue, length = float(np.exp(rng.uniform(-2, 2))), float(rng.uniform(0.05, 1))
    alpha, s = float(rng.choice([0.0, 0.5])) * omega**2, float(rng.uniform(0.1, 0.95))
    weights = normalised_in_time(
        (0.5, 0.5, 1.0, 1.0), omega, lambda_, alpha, eigenvalue, 2, time_root(length, still)
    )
    beta, second, first, zeroth = weights
    mu = eigenvalue * float(np.exp(rng.uniform(0, 2)))
    size = (beta + second / 2) * mu**2 + first * mu + zeroth
    rate = (mu + rng.choice([-1, 1]) * s * math.sqrt(size)) / omega
    hidden = max(abs(mu - omega * rate) - s * math.sqrt(alpha * rate**2 + size), 0.0)
    square = -math.expm1(-2 * rate * length) / (2 * rate) if rate else length
    norm, start = hidden * math.sqrt(square), math.sqrt(mu)
    known = Consequences(
        SchemeInTime(omega, lambda_, alpha, weights), s, eigenvalue, length, 1.0, start
    )
    return known.at_end(norm) / (start * math.exp(-rate * length))


def test_slabs_that_begin_with_an_error():
    rng = np.random.default_rng(4)
    ratios = [decay_ratio(rng, still=False) for _ in range(2000)]
    assert 1 - 1e-9 <= min(ratios) <= 1.05


def test_the_gain_of_time_is_not_for_later_slabs():
    rng = np.random.default_rng(4)
    assert min(decay_ratio(rng, still=True) for _ in range(2000)) < 0.99


# Krylov–Tso ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("width", [0.3, 0.05, 0.005])
def test_krylov_tso_is_attained_by_cones(width):
    """v = t h(x) with a parabola at the tip and a = v_t/|v_xx| there: ∫r²/a = 2T²∫h|h''|."""
    side = 1.4
    h = side / 2 - width / 2  # of the cone |x| with its tip replaced by x²/(2 width) + width/2
    nodes, weights = np.polynomial.legendre.leggauss(40)
    near = h - (width * nodes) ** 2 / (2 * width)
    square = 2 * (width * weights @ near) / width
    bound = krylov_tso_constant(Box([0.0], [side])) * math.sqrt(square)
    assert bound >= h
    assert bound <= h * (1 + 2 * width)


def test_krylov_tso_constants():
    assert krylov_tso_constant(Box([0.0], [2.0])) == pytest.approx(0.5, rel=1e-9)
    assert krylov_tso_constant(Box([0.0] * 2, [1.0] * 2)) == pytest.approx(0.24037, abs=1e-5)
    assert krylov_tso_constant(Box([0.0] * 3, [1.0] * 3)) == pytest.approx(0.19564, abs=1e-5)


def test_comparison_is_attained_by_functions_of_time():
    """w_t = -c₀w + R(t) with steps: M1 says what it is, at and between the times."""
    profile = ProfileInTime(np.array([0.0, 0.5, 2.0]), np.array([3.0, 1.0]), np.zeros(2))
    for rate in (-0.7, 0.0, 0.7):
        path = course(profile, rate, Comparison(0.2, 0.0))
        t = np.linspace(0, 2, 200_001)
        source = np.where(t < 0.5, 3.0, 1.0) * np.exp(rate * t)
        total = np.concatenate([[0.0], np.cumsum((source[1:] + source[:-1]) / 2 * np.diff(t))])
        exact = np.exp(-rate * t) * (0.2 + total)
        for k in (40_000, 120_000, 200_000):
            assert path.at(float(t[k])).above == pytest.approx(exact[k], rel=1e-4)
        assert path.at(1.3).below == 0.0


# Obstacles ----------------------------------------------------------------------------------------


def test_noise_above_the_obstacle_costs_nothing_with_the_best_eta():
    """w = ψ + 10⁻¹⁰ where one stops, F[ψ] = -2: without η the bound says 2."""
    x = np.linspace(0, 1, 1000)
    noise = 1e-10 * np.abs(np.sin(50 * x))
    side = ComparisonSide(np.full(1000, 2.0), noise, 0.0)
    nothing = ComparisonSide(np.zeros(1000), np.full(1000, FAR), 0.0)
    time, edges = np.linspace(0, 1, 1000), np.linspace(0, 1, 5)
    best = in_time(nothing, side, time, edges, 0.0)
    assert 1e-10 * 0.99 <= best.bounds.below <= 3e-10
    without = ComparisonSide(np.where(noise > 0, 2.0, 0.0), np.full(1000, FAR), 0.0)
    assert in_time(nothing, without, time, edges, 0.0).bounds.below >= 1.9


def test_an_eta_that_is_forgotten_in_the_bound_is_noticed():
    """The residual between ψ and ψ + η is free only for those who pay η."""
    numbers = range(60)
    honest = [(n, battery.stopping_results(n)) for n in numbers]
    assert battery.violations(honest) == []

    def forgotten(n):
        found = battery.stopping_results(n, eta=0.05)
        bound, truth = found["O1 below"]
        return bound - 0.05, truth

    assert any(bound < truth for bound, truth in map(forgotten, numbers))


def test_battery_uses_the_module_it_attacks():
    assert battery.comparison is comparison
