"""Certificates of Hamilton–Jacobi–Bellman equations against known solutions whose controls switch,
traps of the theory, and random attacks."""

import math
import sys
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import cordes
from cordes.certificates import linear as linear_certify
from cordes.certificates.equation import EnergyBound
from cordes.certificates.hjb import certify as hjb_certify
from cordes.certificates.hjb import energy as hjb_energy
from cordes.certificates.hjb import equation as hjb_equation
from cordes.certificates.hjb.certify import certify_hjb
from cordes.certificates.linear import certify_linear
from cordes.certificates.residual.candidate import FunctionCandidate
from cordes.certificates.residual.norms import fixed_rule
from cordes.certificates.theorems.energy import Invariants
from cordes.certificates.theorems.maximum import determinant_root
from cordes.domains.polar import largest_polar_factor

sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks"))
import hjb_battery as battery
from hjb_cases import NOWHERE, SQUARE, answer, bump, check_all, manufactured, truth, wave


@pytest.mark.parametrize(
    ("m", "sense", "drift", "reaction"),
    [(3, "sup", 0, 0), (5, "sup", 1.0, 0), (4, "inf", 1.0, 2.0)],
)
def test_known_solutions(m, sense, drift, reaction):
    problem = manufactured(SQUARE, wave, m, sense, drift, reaction)
    candidate = answer(problem, wave, bump)
    certificate = certify_hjb(problem, candidate, NOWHERE)
    check_all(certificate, SQUARE, bump)
    assert certificate.level in ("quadrature", "enclosed")
    assert certificate.epsilon_source == "interval"
    assert certificate.reason is None
    # More than one control is best somewhere: the case is no linear equation in disguise.
    points = SQUARE.interior_points(500, 1)
    assert len(np.unique(problem.policy(points, candidate.jet(points)), axis=0)) > 1
    # The same with the other sign of the error, which exchanges the sides of the maximum.
    check_all(
        certify_hjb(problem, answer(problem, wave, lambda x: -bump(x)), NOWHERE),
        SQUARE,
        lambda x: -bump(x),
    )
    assert np.all(np.isfinite(certificate.picture.residual(points[:5])))


def test_three_dimensions_on_a_ball():
    ball = cordes.Ball([0, 0, 0], 1.0)

    def u(x):
        return (1 - jnp.dot(x, x)) * jnp.exp(x[0])

    def v(x):
        return 0.1 * (1 - jnp.dot(x, x)) * jnp.cos(3 * x[0] + x[2])

    problem = manufactured(ball, u, 2, "sup")
    check_all(certify_hjb(problem, answer(problem, u, v), np.zeros((0, 3))), ball, v, count=12)


def test_four_dimensions_by_a_sample():
    box = cordes.Box([0] * 4, [1] * 4)

    def v(x):
        return 0.1 * jnp.prod(jnp.sin(jnp.pi * x))

    problem = manufactured(box, lambda x: jnp.zeros(()), 2, "inf")
    certificate = certify_hjb(
        problem, answer(problem, lambda x: jnp.zeros(()), v), np.zeros((0, 4))
    )
    assert certificate.level == "statistical (asymptotic)"
    check_all(certificate, box, v, count=8)


@pytest.mark.parametrize("terms", [False, True])
def test_one_control_is_the_linear_equation(terms, monkeypatch):
    # By quadrature both: one enclosed norm is wider than the other.
    for module in (linear_certify, hjb_certify):
        monkeypatch.setattr(module, "_enclosed", lambda *_: None)

    def A(x):
        return jnp.array([[2 + jnp.sin(3 * x[0]), 0.3], [0.3, 1 + x[1]]])

    lower = {"c": lambda x: 2 + x[0]} if terms else {}
    linear = cordes.Linear(SQUARE, A, lambda x: jnp.cos(x[0]), **lower)
    hjb_problem = cordes.HJB(
        SQUARE,
        [0.0],
        lambda x, a: A(x),
        lambda x, a: jnp.cos(x[0]),
        **({"c": lambda x, a: 2 + x[0]} if terms else {}),
    )
    one, other = (
        certify_hjb(hjb_problem, FunctionCandidate(hjb_problem, bump), NOWHERE),
        certify_linear(linear, FunctionCandidate(linear, bump), NOWHERE),
    )
    for name in ("L2", "H1", "H2", "Linf", "contraction", "lambda_"):
        assert getattr(one, name) == pytest.approx(getattr(other, name), rel=1e-6), name
    assert one.energy == pytest.approx(other.energy, rel=1e-6)
    # The sides of controls have a theorem each: both are named.
    assert one.theorems["Linf"].startswith(other.theorems["Linf"])
    assert one.theorems | {"Linf": ""} == other.theorems | {"Linf": ""}
    common = set(one.alternatives) & set(other.alternatives)
    assert len(common) >= 5
    assert {name: one.alternatives[name] for name in common} == pytest.approx(
        {name: other.alternatives[name] for name in common}, rel=1e-6
    )


# Traps --------------------------------------------------------------------------------------------


def two_speeds(sense, share, ratio=10.0):
    """u = 0, A¹ = I, A² = ratio·I, u_θ = ∓v with v = sin sin/10 and q = -Δv > 0. s₁ = 0 and s₂ =
    share·q: the first control is best for u."""

    def q(x):
        return 0.2 * jnp.pi**2 * wave(x)

    sign = 1.0 if sense == "sup" else -1.0
    problem = cordes.HJB(
        SQUARE,
        [1.0, ratio],
        lambda x, a: a * jnp.eye(2),
        lambda x, a: sign * jnp.where(a > 1, share * q(x), 0.0),
        sense=sense,
    )
    return (
        problem,
        FunctionCandidate(problem, lambda x: -sign * 0.1 * wave(x)),
        lambda x: sign * 0.1 * wave(x),
    )


@pytest.mark.parametrize("sense", ["sup", "inf"])
def test_the_multiplier_belongs_inside(sense):
    """The second control is best without multipliers, 10q - 8.9q > q, and its scaled equation sees
    a ninth of the error."""
    problem, candidate, v = two_speeds(sense, 8.9)
    x, weight = SQUARE.quadrature(30)
    jet = candidate.jet(x)
    control = problem.policy(x, jet, scaled=False)
    A, _, _, f = problem.pairs(x, control)
    naive = 2 / np.trace(A, axis1=1, axis2=2) * (np.sum(A * jet.hessian, axis=(1, 2)) - f)
    real = truth(SQUARE, v, 0.0)
    assert np.sqrt(weight @ naive**2) < 0.2 * real["energy"]
    certificate = certify_hjb(problem, candidate, NOWHERE)
    assert certificate.epsilon_source == "analytic"
    assert certificate.energy[1] == pytest.approx(real["energy"], rel=1e-4)
    # From below less is proved: what cells may leave out is taken off.
    assert 0.9 * real["energy"] <= certificate.energy[0] <= real["energy"]
    check_all(certificate, SQUARE, v)


@pytest.mark.parametrize("sense", ["sup", "inf"])
def test_the_sides_of_the_maximum(sense):
    """ϱ = q with the fast control best for u_θ, but the error obeys the slow equation, which only
    the worst control of all covers."""
    problem, candidate, v = two_speeds(sense, 8.99)
    x, weight = SQUARE.quadrature(30)
    jet = candidate.jet(x)
    A, _, _, f = problem.pairs(x, problem.policy(x, jet, scaled=False))
    rho = np.sum(A * jet.hessian, axis=(1, 2)) - f
    assert np.all(problem.sign * rho > 0)
    swapped = largest_polar_factor(SQUARE) * math.sqrt(weight @ (rho / determinant_root(A)) ** 2)
    assert swapped < 0.5 * 0.1
    certificate = certify_hjb(problem, candidate, NOWHERE)
    assert certificate.alternatives["ABP"] >= 0.1
    assert min(certificate.alternatives.values()) >= 0.1
    check_all(certificate, SQUARE, v)


@pytest.mark.parametrize("sign", [1.0, -1.0])
@pytest.mark.parametrize("sense", ["sup", "inf"])
def test_each_side_holds(monkeypatch, sense, sign):
    """One by one: the side whose equation is known bounds u_θ - u for a supremum, the one with the
    worst of all equations u - u_θ; the other way round for an infimum."""
    found = []
    original = hjb_certify.maxima

    def recorded(side):
        own = determinant_root(side.evaluated.local.A)
        found.append((np.array_equal(side.operators.root, own), original(side)))
        return found[-1][1]

    monkeypatch.setattr(hjb_certify, "maxima", recorded)

    def v(x):
        return sign * bump(x)

    problem = manufactured(SQUARE, wave, 3, sense, seed=4, depth=0.5)
    certify_hjb(problem, answer(problem, wave, v), NOWHERE)
    values = jax.jit(jax.vmap(v))(SQUARE.quadrature(40)[0])
    for known, bounds in found:
        larger = np.max(-values) if known == (sense == "sup") else np.max(values)
        assert all(each.bound >= larger for each in bounds)
    assert [known for known, _ in found] == [True, False]


@pytest.mark.parametrize("direct", [True, False])
def test_rounding_is_counted(monkeypatch, direct):
    """An answer that is known to 1e-3 only: the upper bound grows by that much, the lower one
    falls. With derivatives both diagonal entries count, twice."""
    problem, candidate, _ = two_speeds("sup", 8.9)
    # By quadrature both: enclosed norms have their own allowance.
    monkeypatch.setattr(hjb_certify, "_enclosed", lambda *_: None)
    if not direct:
        monkeypatch.setattr(hjb_equation, "DIRECT", 0)
    plain, original = certify_hjb(problem, candidate, NOWHERE), candidate.applied
    candidate.applied = lambda x, A, b, c: (original(x, A, b, c)[0], np.full(len(x), 1e-3))
    coarse = certify_hjb(problem, candidate, NOWHERE)
    reach = 1e-3 if direct else 4e-3
    assert plain.energy[1] + 0.7 * reach <= coarse.energy[1] <= plain.energy[1] + 1.01 * reach
    assert plain.energy[0] - 1.01 * reach <= coarse.energy[0] <= plain.energy[0] - 0.7 * reach


def test_rounding_is_counted_where_norms_are_enclosed():
    problem, candidate, _ = two_speeds("sup", 8.9)
    plain, original = certify_hjb(problem, candidate, NOWHERE), candidate.applied
    candidate.applied = lambda x, A, b, c: (original(x, A, b, c)[0], np.full(len(x), 1e-3))
    coarse = certify_hjb(problem, candidate, NOWHERE)
    assert plain.levels["energy"] == coarse.levels["energy"] == "enclosed"
    assert plain.energy[1] + 0.7e-3 <= coarse.energy[1] <= plain.energy[1] + 2e-3
    assert coarse.energy[0] <= plain.energy[0] - 0.7e-3


def test_both_ways_to_see_an_answer(monkeypatch):
    """Controls applied one by one and derivatives applied to controls give the same numbers."""
    problem = manufactured(SQUARE, wave, 3, "sup")
    direct = certify_hjb(problem, answer(problem, wave, bump), NOWHERE)
    monkeypatch.setattr(hjb_equation, "DIRECT", 0)
    other = certify_hjb(problem, answer(problem, wave, bump), NOWHERE)
    assert direct.energy == pytest.approx(other.energy, rel=1e-6)
    assert direct.Linf == pytest.approx(other.Linf, rel=1e-6)


# Attacks ------------------------------------------------------------------------------------------


def test_random_attacks():
    results = battery.run(24)
    assert battery.violations(results) == []
    assert sum("energy" in found for *_, found in results) >= 20
    assert sum("Linf" in found for *_, found in results) >= 20


def _unscaled_best(self, x, seen, multipliers, matrix=None):
    """The trap: the multiplier of the control that is best without multipliers."""
    matrix = np.eye(x.shape[1]) if matrix is None else matrix
    blocks = list(self.equations(x, seen, matrix))
    defect = np.concatenate([block[2] for block in blocks], axis=1)
    index, rows = np.argmax(defect, axis=1), np.arange(len(x))
    at = [
        np.concatenate([block[1][k].reshape(len(x), -1) for block in blocks], axis=1)[rows, index]
        for k in range(1, 5)
    ]
    values = [
        multiplier(Invariants(x.shape[1], *at)) * defect[rows, index] for multiplier in multipliers
    ]
    return [hjb_energy.Best(value, value, index) for value in values]


def _violated(number):
    case = battery.draw(number)
    certificate = battery.certify_case(case)
    return battery.violations([(number, case, certificate, battery.ratios(case, certificate))])


@pytest.mark.parametrize("fault", ["contraction", "maximum", "multiplier", "eigenvalue"])
def test_the_attacks_can_succeed(monkeypatch, fault):
    """Wrong constants are noticed."""
    if fault == "contraction":
        monkeypatch.setattr(
            EnergyBound,
            "upper",
            property(lambda self: self.norm.upper / (1 - 0.5 * self.contraction.value)),
        )
    elif fault == "maximum":
        monkeypatch.setattr(
            "cordes.certificates.theorems.maximum.largest_polar_factor",
            lambda domain: 0.2 * largest_polar_factor(domain),
        )
    elif fault == "eigenvalue":
        original = sys.modules["cordes.certificates.theorems.energy_bounds"].first_eigenvalue
        monkeypatch.setattr(
            "cordes.certificates.theorems.energy_bounds.first_eigenvalue",
            lambda *arguments: 3 * original(*arguments),
        )
    else:
        monkeypatch.setattr(hjb_energy.Pairs, "best", _unscaled_best)
    assert any(_violated(number) for number in range(24))


def test_the_rule_of_the_attacks_is_exact_enough():
    """The norms of the errors by the rule of the battery and by a finer one agree: what is called
    truth is true."""
    case = battery.draw(1)
    x, weight = case.problem.domain.quadrature(40)
    jet = battery.Answer(case.problem.controls[0]).jet(x)
    fine = fixed_rule(x, weight).norm(np.trace(jet.hessian, axis1=1, axis2=2)).upper
    assert fine == pytest.approx(
        case.norm(np.trace(case.error.hessian, axis1=1, axis2=2)), rel=1e-7
    )
