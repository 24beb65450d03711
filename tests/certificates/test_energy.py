"""The energy theorems T1b, T1c, T1d and T2: their constants against direct searches."""

import itertools
import math

import numpy as np
import pytest
from random_coefficients import random_local, random_matrix

from cordes.certificates.theorems.energy import (
    Invariants,
    Local,
    Pilot,
    Tightened,
    TraceSplit,
    Triangle,
    Weighted,
    choose_tightened,
    choose_weighted,
    gradient_factor,
    inverse_root,
    normalised,
)
from cordes.problems.condition import cordes_multiplier, epsilon_at

# The weights of T2


def largest_ratio(weights, lambda_: float, eigenvalue: float, d: int) -> float:
    """The supremum over μ ≥ λ₁ by a dense search in log μ, refined around its largest value; the
    limit at infinity is κ."""
    beta, second, first, zeroth = weights
    kappa = beta + second * (1 - 1 / d)

    def ratio(mu: np.ndarray) -> np.ndarray:
        return (kappa * mu**2 + first * mu + zeroth) / (mu + lambda_) ** 2

    low, high = math.log(eigenvalue), math.log(eigenvalue + lambda_) + 25
    for _ in range(6):
        grid = np.linspace(low, high, 4001)
        values = ratio(np.exp(grid))
        best, step = grid[np.argmax(values)], grid[1] - grid[0]
        low, high = max(best - 2 * step, math.log(eigenvalue)), best + 2 * step
    return max(float(np.max(values)), kappa)


def test_normalised_weights_are_divided_by_the_true_supremum():
    """The supremum lies at infinity, at λ₁ or between, and all three occur."""
    rng = np.random.default_rng(0)
    places = set()
    for _ in range(300):
        d, eigenvalue = int(rng.integers(1, 6)), math.exp(rng.uniform(-2, 4))
        lambda_ = 0.0 if rng.random() < 0.2 else eigenvalue * math.exp(rng.uniform(-5, 5))
        scales = np.array([1, 1, eigenvalue + lambda_, (eigenvalue + lambda_) ** 2])
        weights = scales * np.exp(rng.uniform(-6, 6, 4)) * (rng.random(4) < 0.8)
        if np.max(weights) == 0:
            continue
        largest = largest_ratio(weights, lambda_, eigenvalue, d)
        found = np.array(normalised(tuple(weights), lambda_, eigenvalue, d))
        assert found * largest == pytest.approx(weights, rel=1e-6)
        assert largest_ratio(found, lambda_, eigenvalue, d) <= 1
        kappa = weights[0] + weights[1] * (1 - 1 / d)
        at_first = (kappa * eigenvalue**2 + weights[2] * eigenvalue + weights[3]) / (
            eigenvalue + lambda_
        ) ** 2
        places.add(
            "infinity"
            if largest == kappa
            else "first"
            if largest <= at_first * (1 + 1e-9)
            else "between"
        )
    assert places == {"infinity", "first", "between"}


def test_a_coarse_grid_in_mu_would_break_the_guarantee():
    """Weights that satisfy the condition on a grid, but are 25 times too large at μ = λ: their
    contraction is 0.4 where the theorem allows none."""
    lambda_, eigenvalue, d = 1e4, 1.0, 2
    weights = (1e-3, 1e-3, 4 * lambda_, 1e-3)
    grid = eigenvalue * np.array([1.0, 10.0, 100.0])
    kappa = weights[0] + weights[1] / 2
    on_grid = float(
        np.max((kappa * grid**2 + weights[2] * grid + weights[3]) / (grid + lambda_) ** 2)
    )
    exact = weights[2] / normalised(weights, lambda_, eigenvalue, d)[2]
    assert exact == pytest.approx(1.0, rel=1e-2)
    assert exact / on_grid > 25
    # The function sin(kx), k² = λ, sees the drift at full strength: ‖∇v‖² = λ/4λ² ‖L_λ v‖². Exact
    # weights know that, those of the grid do not.
    at = Invariants(
        d,
        np.full(1, 2.0),
        np.zeros(1),
        np.full(1, 0.4 * 2 * math.sqrt(lambda_)),
        np.full(1, lambda_),
    )
    true = 0.4
    drift_only = {
        name: math.sqrt(at.drift[0] ** 2 / weight)
        for name, weight in {"exact": weights[2] / exact, "grid": weights[2] / on_grid}.items()
    }
    assert drift_only["exact"] >= true > 4 * drift_only["grid"]


def test_gradient_factor_is_the_largest_slope():
    rng = np.random.default_rng(1)
    for _ in range(100):
        eigenvalue = math.exp(rng.uniform(-3, 3))
        lambda_ = 0.0 if rng.random() < 0.2 else math.exp(rng.uniform(-4, 4))
        mu = eigenvalue * np.exp(np.linspace(0, 12, 20_001))
        largest = float(np.max(np.sqrt(mu) / (mu + lambda_)))
        factor = gradient_factor(eigenvalue, lambda_)
        assert factor == pytest.approx(largest, rel=1e-6)
        assert factor >= largest * (1 - 1e-14)


# Pointwise formulas


def test_invariants_of_whitened_coefficients():
    """tr(M⁻¹A), |M^{-1/2}AM^{-1/2}| and b·M⁻¹b, formed in another way."""
    rng = np.random.default_rng(2)
    for d in (1, 2, 3, 5):
        local, matrix = random_local(rng, 7, d), random_matrix(rng, d)
        at = local.invariants(matrix)
        ratio = np.linalg.solve(matrix, local.A)
        trace = np.trace(ratio, axis1=1, axis2=2)
        square = np.trace(ratio @ ratio, axis1=1, axis2=2)
        assert at.trace == pytest.approx(trace, rel=1e-12)
        assert at.deviation**2 == pytest.approx(
            square - trace**2 / d, abs=1e-12 * float(np.max(square))
        )
        assert at.drift**2 == pytest.approx(
            np.einsum("ni,ni->n", local.b, np.linalg.solve(matrix, local.b.T).T), rel=1e-12
        )
        assert np.array_equal(at.reaction, local.c)
        assert inverse_root(matrix) @ matrix @ inverse_root(matrix) == pytest.approx(
            np.eye(d), abs=1e-12
        )


def test_trace_split_is_the_spread_of_the_eigenvalues_in_the_plane():
    rng = np.random.default_rng(3)
    local = random_local(rng, 50, 2, 2.0)
    values = np.linalg.eigvalsh(local.A)
    expected = (values[:, 1] - values[:, 0]) / (values[:, 1] + values[:, 0])
    assert TraceSplit().defects(local.invariants())[:, 0] == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize("d", [2, 3, 6])
def test_trace_split_dominates_the_classical_constant(d):
    """g/(1 - ρ') of T1b against γ/(1 - √(1 - ε)) for single matrices, and for fields with the
    suprema of both."""
    rng = np.random.default_rng(4)
    local = random_local(rng, 400, d, 0.5)
    at = local.invariants()
    rho, epsilon = TraceSplit().defects(at)[:, 0], epsilon_at(*local, None)
    holds = rho < 0.999
    assert np.sum(holds) > 50
    # ρ' < 1 is the Cordès condition: ε = d/(1 + ρ'²/(d - 1)) - (d - 1).
    assert epsilon == pytest.approx(d / (1 + rho**2 / (d - 1)) - (d - 1), abs=1e-10)
    split, classical = TraceSplit().multiplier(at), cordes_multiplier(local.A)
    assert np.all(
        split[holds] / (1 - rho[holds])
        <= classical[holds] / (1 - np.sqrt(1 - epsilon[holds])) * (1 + 1e-12)
    )
    largest, smallest = np.max(rho[holds]), np.min(epsilon[holds])
    assert np.all(
        split[holds] / (1 - largest)
        <= classical[holds] / (1 - math.sqrt(1 - smallest)) * (1 + 1e-12)
    )


@pytest.mark.parametrize("d", [2, 3, 5])
def test_tightened_at_p_one_over_d_is_the_classical_bound(d):
    rng = np.random.default_rng(5)
    for _ in range(20):
        local = random_local(rng, 1, d, 0.3)
        epsilon = float(epsilon_at(*local, None)[0])
        if epsilon <= 0:
            continue
        at = local.invariants()
        R = float(TraceSplit().defects(at)[0, 0]) ** 2 / (1 - 1 / d)
        scheme = Tightened(1 / d, math.sqrt(R / (1 + R / d)))
        assert scheme.defects(at)[0, 0] == pytest.approx(math.sqrt(1 - epsilon), rel=1e-10)
        # A double root: its rounding goes in by the square root.
        assert scheme.multiplier(at)[0] == pytest.approx(cordes_multiplier(local.A)[0], rel=1e-6)


def test_tightened_multipliers_satisfy_their_inequality():
    """(τ - 1)²/p + τ²R ≤ s² at all points whose ρ' is at most the supremum, and τ ≤ 1, with
    equality in the first."""
    rng = np.random.default_rng(6)
    local = random_local(rng, 300, 3, 0.3)
    at = local.invariants()
    rho = TraceSplit().defects(at)[:, 0]
    largest = float(np.max(rho))
    assert 0.3 < largest < 1
    for p, stretch in itertools.product((0.05, 0.3, 0.9), (1.0, 1.02, 1.2)):
        R = largest**2 / (1 - p)
        contraction = stretch * math.sqrt(R / (1 + p * R)) * (1 + 1e-14)
        if contraction >= 1:
            continue
        scheme = Tightened(p, contraction)
        tau = scheme.multiplier(at) / TraceSplit().multiplier(at)
        square = (tau - 1) ** 2 / p + tau**2 * rho**2 / (1 - p)
        assert np.all(tau <= 1)
        assert square == pytest.approx(np.full(len(square), contraction**2), rel=1e-9)


def quadratic(scheme: Weighted, at: Invariants, g: np.ndarray) -> np.ndarray:
    """Q as the theory writes it, 0/0 = 0."""
    beta, second, first, zeroth = scheme.weights
    terms = [
        ((g * at.trace / at.dimension - 1) ** 2, beta),
        (g**2 * at.deviation**2, second),
        (g**2 * at.drift**2, first),
        ((g * at.reaction - scheme.lambda_) ** 2, zeroth),
    ]
    return np.sum([term / weight if weight > 0 else 0 * term for term, weight in terms], axis=0)


def test_weights_of_smears_and_sueli_give_their_epsilon():
    rng = np.random.default_rng(7)
    for d in (2, 3, 4):
        local = random_local(rng, 40, d)
        at = local.invariants()
        for lambda_ in (0.1, 1.0, 7.0):
            weights = (1 / d, 1.0, 2 * lambda_, lambda_**2)
            assert normalised(weights, lambda_, 3.0, d) == pytest.approx(weights, rel=1e-12)
            scheme = Weighted(lambda_, weights)
            assert scheme.defects(at)[:, 0] ** 2 == pytest.approx(
                1 - epsilon_at(*local, lambda_), rel=1e-10, abs=1e-10
            )


def test_the_multiplier_of_weighted_minimises_its_quadratic():
    rng = np.random.default_rng(8)
    for _ in range(20):
        d = int(rng.integers(1, 5))
        local = random_local(rng, 30, d)
        lambda_ = math.exp(rng.uniform(-2, 2))
        scheme = Weighted(
            lambda_, normalised(tuple(np.exp(rng.uniform(-2, 2, 4))), lambda_, 2.0, d)
        )
        at = local.invariants()
        g = scheme.multiplier(at)
        best = quadratic(scheme, at, g)
        assert scheme.defects(at)[:, 0] ** 2 == pytest.approx(best, rel=1e-12)
        for factor in (0.3, 0.9, 0.999, 1.001, 1.1, 3.0):
            assert np.all(quadratic(scheme, at, factor * g) > best)


def test_weighted_without_a_positive_multiplier_never_contracts():
    """c < 0 so large that the optimum would be negative: √Q is at least one."""
    local = Local(np.eye(2)[None], np.zeros((1, 2)), np.array([-50.0]))
    for lambda_, weights in ((1.0, (0.5, 1.0, 2.0, 1.0)), (3.0, (0.1, 0.2, 1.0, 5.0))):
        scheme = Weighted(lambda_, normalised(weights, lambda_, 1.0, 2))
        assert scheme.multiplier(local.invariants())[0] > 0
        assert scheme.defects(local.invariants())[0, 0] >= 1


def test_triangle_formula():
    rng = np.random.default_rng(9)
    local = random_local(rng, 20, 3)
    at = local.invariants()
    trace = np.trace(local.A, axis1=1, axis2=2)
    rho = np.sqrt(2 * (3 * np.sum(local.A**2, axis=(1, 2)) / trace**2 - 1))
    for lambda_, k in (
        (0.0, 1 / math.sqrt(2.0)),
        (1.5, math.sqrt(2.0) / 3.5),
        (6.0, 1 / (2 * math.sqrt(6.0))),
    ):
        defects = Triangle(lambda_, 2.0).defects(at)
        assert defects[:, 0] == pytest.approx(rho, rel=1e-10)
        assert defects[:, 1] == pytest.approx(
            k * 3 * np.linalg.norm(local.b, axis=1) / trace, rel=1e-12
        )
        assert defects[:, 2] == pytest.approx(
            np.abs(3 * local.c / trace - lambda_) / (2 + lambda_), rel=1e-12
        )


# Choices


def pilot_of(
    rng: np.random.Generator, local: Local, eigenvalue: float, drift: bool, reaction: bool
) -> Pilot:
    return Pilot(
        local,
        local.invariants(),
        np.abs(rng.standard_normal(len(local.c))),
        eigenvalue,
        drift,
        reaction,
    )


def test_thinned_pilots_keep_the_extremes():
    rng = np.random.default_rng(11)
    pilot = pilot_of(rng, random_local(rng, 3000, 2), 5.0, True, True)
    few = pilot.thinned(100)
    assert len(few.at.trace) < 200
    assert len(few.residual) == len(few.at.trace) == len(few.local.c)
    for full, thin in ((pilot.at, few.at),):
        for ratio in (
            lambda at: at.deviation / at.trace,
            lambda at: at.drift / at.trace,
            lambda at: at.reaction / at.trace,
            lambda at: at.trace,
        ):
            assert np.max(ratio(thin)) == np.max(ratio(full))
        assert np.min(thin.reaction / thin.trace) == np.min(full.reaction / full.trace)
        assert np.min(thin.trace) == np.min(full.trace)
    # The parts still belong to the same points.
    assert few.local.invariants().deviation == pytest.approx(few.at.deviation)


def test_the_tightened_choice_is_smaller_where_the_residual_lives_in_isotropy():
    """Half of the points isotropic with the whole residual, half anisotropic: T1b pays for the
    worst point, T1c does not."""
    n = 200
    A = np.where(np.arange(n)[:, None, None] % 2 == 0, np.eye(2), np.diag([1.0, 9.0]) / 5)
    local = Local(A, np.zeros((n, 2)), np.zeros(n))
    residual = np.where(np.arange(n) % 2 == 0, 1.0, 1e-6)
    pilot = Pilot(local, local.invariants(), residual, 2 * math.pi**2, False, False)
    scheme = choose_tightened(pilot, 0.8)
    assert scheme is not None
    R = 0.8**2 / (1 - scheme.p)
    assert 1 > scheme.contraction >= math.sqrt(R / (1 + scheme.p * R))
    assert pilot.size(scheme, scheme.contraction) < 0.7 * pilot.size(TraceSplit(), 0.8)


@pytest.mark.parametrize(("drift", "reaction"), [(True, False), (False, True), (True, True)])
def test_chosen_schemes_are_admissible(drift, reaction):
    """The weights of every candidate satisfy their condition, the candidates come best first, and
    one of them holds for a moderate drift."""
    rng = np.random.default_rng([12, drift, reaction])
    local = random_local(rng, 300, 2)
    eigenvalue = 2 * math.pi**2
    local = local._replace(b=local.b * drift, c=local.c * reaction)
    pilot = pilot_of(rng, local, eigenvalue, drift, reaction)
    schemes = choose_weighted(pilot, evaluations=120)
    for scheme in schemes:
        if isinstance(scheme, Weighted):
            assert largest_ratio(scheme.weights, scheme.lambda_, eigenvalue, 2) <= 1 + 1e-12
            assert quadratic(scheme, pilot.at, scheme.multiplier(pilot.at)) == pytest.approx(
                scheme.defects(pilot.at)[:, 0] ** 2
            )
        else:
            assert isinstance(scheme, Triangle)
            assert scheme.eigenvalue == eigenvalue
    sizes = [pilot.size(scheme) for scheme in schemes]
    assert sizes == sorted(sizes)
    assert math.isfinite(sizes[0])
    assert any(str(scheme.theorem) == "Smears–Süli" for scheme in schemes) == reaction
