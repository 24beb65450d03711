"""Certificates of Hamilton–Jacobi–Bellman equations against known solutions whose controls switch, traps of the theory, and refusals."""

import math
import sys
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import cordes
from cordes.certificates import hjb, hjb_energy
from cordes.certificates.candidate import FunctionCandidate
from cordes.certificates.energy import Invariants, Local, TraceSplit
from cordes.certificates.hjb import Compared, certify_hjb
from cordes.certificates.hjb_coverage import CommonTriangle, ContinuumCoverage, ControlCoverage, choose_common, depends_on
from cordes.certificates.linear import certify_linear, pilot_points_of
from cordes.certificates.maximum import determinant_root
from cordes.certificates.norms import fixed_rule
from cordes.certificates.theorems import EnergyBound
from cordes.domains.constants import largest_polar_factor

sys.path.insert(0, str(Path(__file__).parent.parent / "benchmarks"))
import hjb_battery as battery

SQUARE = cordes.Box([0, 0], [1, 1])
NOWHERE = np.zeros((0, 2))


def wave(x):
    return jnp.sin(jnp.pi * x[0]) * jnp.sin(jnp.pi * x[1])


def bump(x):
    return 0.05 * jnp.prod(x * (1 - x)) * jnp.cos(4 * x[0] + 2 * x[1])


def manufactured(domain, u, m, sense="sup", drift=0.0, reaction=0.0, seed=0, depth=5.0, **options):
    """f^a = L^a u ± s_a with s_a ≥ 0 whose minimum over the controls is zero: u solves the equation, and its best control changes from place to place."""
    rng, d = np.random.default_rng(seed), domain.dimension
    fields = rng.standard_normal((m, d, d))
    fields = fields + np.swapaxes(fields, 1, 2)
    fields -= np.trace(fields, axis1=1, axis2=2)[:, None, None] / d * np.eye(d)
    fields /= np.linalg.norm(fields, axis=(1, 2))[:, None, None]
    numbers = [fields.reshape(m, -1), 3 * rng.standard_normal((m, d)), rng.uniform(0, 6, (m, 1)), np.exp(rng.uniform(-0.7, 0.7, (m, 1)))]
    controls = np.concatenate(numbers, axis=1)
    cut = d * d

    def A(x, a):
        return a[-1] * (jnp.eye(d) + 0.55 / math.sqrt(d - 1) * jnp.cos(jnp.dot(a[cut : cut + d], x)) * a[:cut].reshape(d, d))

    def b(x, a):
        return drift * a[-1] * jnp.sin(a[cut : cut + d])

    def c(x, a):
        return reaction * a[-1] * (1 + 0.3 * jnp.cos(jnp.dot(a[cut : cut + d], x)))

    def potential(x, a):
        return depth * jnp.cos(jnp.dot(a[cut : cut + d], x) + a[-2])

    def f(x, a):
        applied = jnp.sum(A(x, a) * jax.hessian(u)(x)) + jnp.dot(b(x, a), jax.grad(u)(x)) - c(x, a) * u(x)
        step = potential(x, a) - jnp.min(jax.vmap(lambda other: potential(x, other))(jnp.asarray(controls)))
        return applied + (step if sense == "sup" else -step)

    return cordes.HJB(domain, controls, A, f, b=b if drift else None, c=c if reaction else None, sense=sense, exact=u, **options)


def truth(domain, v, lambda_, count=40):
    x, weight = domain.quadrature(count)
    value, gradient, hessian = (np.asarray(part) for part in jax.jit(jax.vmap(lambda x: (v(x), jax.grad(v)(x), jax.hessian(v)(x))))(x))

    def norm(values):
        return float(np.sqrt(weight @ np.sum(values.reshape(len(x), -1) ** 2, axis=1)))

    energy = norm(np.trace(hessian, axis1=1, axis2=2) - lambda_ * value)
    return {"L2": norm(value), "H1": norm(gradient), "H2": norm(hessian), "Linf": float(np.max(np.abs(value))), "energy": energy}


def check_all(certificate, domain, v, largest=30.0, count=40):
    """Every bound is above the truth, the lower one below, and none is absurd."""
    real = truth(domain, v, certificate.lambda_, count)
    for name in ("L2", "H1", "H2", "Linf"):
        assert real[name] <= getattr(certificate, name) <= largest * real[name], name
    lower, upper = certificate.energy
    assert real["energy"] / largest <= lower <= real["energy"] <= upper <= largest * real["energy"]
    assert certificate.rms == pytest.approx(certificate.L2 / math.sqrt(domain.volume))
    for name, bound in certificate.alternatives.items():
        assert bound >= real["Linf"], name


def answer(problem, u, v):
    return FunctionCandidate(problem, lambda x: u(x) - v(x))


@pytest.mark.parametrize(("m", "sense", "drift", "reaction"), [(3, "sup", 0, 0), (3, "inf", 0, 0), (5, "sup", 1.0, 0), (4, "inf", 1.0, 2.0)])
def test_known_solutions(m, sense, drift, reaction):
    problem = manufactured(SQUARE, wave, m, sense, drift, reaction)
    candidate = answer(problem, wave, bump)
    certificate = certify_hjb(problem, candidate, NOWHERE)
    check_all(certificate, SQUARE, bump)
    assert certificate.level == "quadrature"
    assert certificate.epsilon_source == "interval"
    assert certificate.reason is None
    # More than one control is best somewhere: the case is no linear equation in disguise.
    points = SQUARE.interior_points(500, 1)
    assert len(np.unique(problem.policy(points, candidate.jet(points)), axis=0)) > 1
    # The same with the other sign of the error, which exchanges the sides of the maximum.
    check_all(certify_hjb(problem, answer(problem, wave, lambda x: -bump(x)), NOWHERE), SQUARE, lambda x: -bump(x))
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
    certificate = certify_hjb(problem, answer(problem, lambda x: jnp.zeros(()), v), np.zeros((0, 4)))
    assert certificate.level == "statistical (asymptotic)"
    check_all(certificate, box, v, count=8)


@pytest.mark.parametrize("terms", [False, True])
def test_one_control_is_the_linear_equation(terms):
    def A(x):
        return jnp.array([[2 + jnp.sin(3 * x[0]), 0.3], [0.3, 1 + x[1]]])

    lower = {"c": lambda x: 2 + x[0]} if terms else {}
    linear = cordes.Linear(SQUARE, A, lambda x: jnp.cos(x[0]), **lower)
    hjb_problem = cordes.HJB(SQUARE, [0.0], lambda x, a: A(x), lambda x, a: jnp.cos(x[0]), **({"c": lambda x, a: 2 + x[0]} if terms else {}))
    one, other = (
        certify_hjb(hjb_problem, FunctionCandidate(hjb_problem, bump), NOWHERE),
        certify_linear(linear, FunctionCandidate(linear, bump), NOWHERE),
    )
    for name in ("L2", "H1", "H2", "Linf", "contraction", "lambda_"):
        assert getattr(one, name) == pytest.approx(getattr(other, name), rel=1e-6), name
    assert one.energy == pytest.approx(other.energy, rel=1e-6)
    assert one.theorems == other.theorems
    common = set(one.alternatives) & set(other.alternatives)
    assert len(common) >= 5
    assert {name: one.alternatives[name] for name in common} == pytest.approx({name: other.alternatives[name] for name in common}, rel=1e-6)


# Traps ------------------------------------------------------------------------------------------------------------------------------------------------


def two_speeds(sense, share, ratio=10.0):
    """u = 0, A¹ = I, A² = ratio·I, u_θ = ∓v with v = sin sin/10 and q = -Δv > 0. s₁ = 0 and s₂ = share·q: the first control is best for u."""

    def q(x):
        return 0.2 * jnp.pi**2 * wave(x)

    sign = 1.0 if sense == "sup" else -1.0
    problem = cordes.HJB(SQUARE, [1.0, ratio], lambda x, a: a * jnp.eye(2), lambda x, a: sign * jnp.where(a > 1, share * q(x), 0.0), sense=sense)
    return problem, FunctionCandidate(problem, lambda x: -sign * 0.1 * wave(x)), lambda x: sign * 0.1 * wave(x)


@pytest.mark.parametrize("sense", ["sup", "inf"])
def test_the_multiplier_belongs_inside(sense):
    """The second control is best without multipliers, 10q - 8.9q > q, and its scaled equation sees a ninth of the error."""
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
    assert certificate.energy == pytest.approx((real["energy"], real["energy"]), rel=1e-4)
    check_all(certificate, SQUARE, v)


@pytest.mark.parametrize("sense", ["sup", "inf"])
def test_the_sides_of_the_maximum(sense):
    """ϱ = q with the fast control best for u_θ, but the error obeys the slow equation, which only the worst control of all covers."""
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
    """One by one: `right` without extremes bounds u_θ - u for a supremum, with them u - u_θ; the other way round for an infimum."""
    found = []
    original = hjb.maxima
    monkeypatch.setattr(hjb, "maxima", lambda side: found.append((side.extremes is None, original(side))) or found[-1][1])

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
    """An answer that is known to 1e-3 only: the upper bound grows by that much, the lower one falls. With derivatives both diagonal entries count, twice."""
    problem, candidate, _ = two_speeds("sup", 8.9)
    if not direct:
        monkeypatch.setattr(hjb, "DIRECT", 0)
    plain, original = certify_hjb(problem, candidate, NOWHERE), candidate.applied
    candidate.applied = lambda x, A, b, c: (original(x, A, b, c)[0], np.full(len(x), 1e-3))
    coarse = certify_hjb(problem, candidate, NOWHERE)
    reach = 1e-3 if direct else 4e-3
    assert plain.energy[1] + 0.7 * reach <= coarse.energy[1] <= plain.energy[1] + 1.01 * reach
    assert plain.energy[0] - 1.01 * reach <= coarse.energy[0] <= plain.energy[0] - 0.7 * reach


def test_both_ways_to_see_an_answer(monkeypatch):
    """Controls applied one by one and derivatives applied to controls give the same numbers."""
    problem = manufactured(SQUARE, wave, 3, "sup")
    direct = certify_hjb(problem, answer(problem, wave, bump), NOWHERE)
    monkeypatch.setattr(hjb, "DIRECT", 0)
    other = certify_hjb(problem, answer(problem, wave, bump), NOWHERE)
    assert direct.energy == pytest.approx(other.energy, rel=1e-6)
    assert direct.Linf == pytest.approx(other.Linf, rel=1e-6)


# A continuum of controls ------------------------------------------------------------------------------------------------------------------------------


def smears_sueli(maximiser=None):
    """Experiment 1 of Smears and Süli 2014 with A = ½(I + sin θ · rotated diag(1, -1)), whose supremum has a closed form."""

    def u(x):
        return jnp.exp(x[0] * x[1]) * wave(x)

    def best(hessian):
        p, q = hessian[0, 0] - hessian[1, 1], 2 * hessian[0, 1]
        size = jnp.sqrt(p**2 + q**2)
        return jnp.minimum(math.sqrt(3) / 2, math.pi**2 * size / (4 * math.sqrt(3))), size, jnp.arctan2(q, p)

    def g(x):
        hessian = jax.hessian(u)(x)
        s, size, _ = best(hessian)
        return 0.5 * jnp.trace(hessian) + s / 2 * size - math.sqrt(3) * s**2 / math.pi**2 - math.pi**2 * u(x)

    def A(x, a):
        turn = jnp.array([[jnp.cos(a[1]), jnp.sin(a[1])], [jnp.sin(a[1]), -jnp.cos(a[1])]])
        return 0.5 * (jnp.eye(2) + jnp.sin(a[0]) * turn)

    def right(x, jet):
        s, _, angle = best(jet.hessian)
        return jnp.array([jnp.arcsin(s), angle])

    theta, phi = np.meshgrid(np.linspace(0, math.pi / 3, 6), np.linspace(-math.pi, math.pi, 17), indexing="ij")
    controls = np.stack([theta.ravel(), phi.ravel()], axis=1)
    problem = cordes.HJB(SQUARE, controls, A, lambda x, a: math.sqrt(3) * jnp.sin(a[0]) ** 2 / math.pi**2 + g(x), c=math.pi**2, maximiser=right)
    return problem, u


def test_a_continuum_with_a_maximiser():
    problem, u = smears_sueli()
    certificate = certify_hjb(problem, answer(problem, u, bump), NOWHERE)
    check_all(certificate, SQUARE, bump)
    assert certificate.theorems["energy"] == "T2 (common multiplier)"
    assert certificate.lambda_ == pytest.approx(2 * math.pi**2)
    # √3/2 is attained; intervals over all angles add a little.
    assert certificate.epsilon_source == "interval"
    assert math.sqrt(3) / 2 <= certificate.contraction <= 0.9
    # ‖Δv - 2π²v‖ ≤ 2‖F‖/(1 - s).
    x, weight = SQUARE.quadrature(40)
    residual = np.asarray(jax.jit(jax.vmap(problem.residual))(x, answer(problem, u, bump).jet(x)))
    assert certificate.energy[1] == pytest.approx(2 * math.sqrt(weight @ residual**2) / (1 - certificate.contraction), rel=0.02)
    assert certificate.alternatives["ABP"] >= truth(SQUARE, bump, 0.0)["Linf"]
    # A maximiser that is not the best one is found out.
    wrong, _ = smears_sueli()
    wrong.maximiser = lambda x, jet: jnp.where(x[0] < 0.3, 0.5, 1.0) * problem.maximiser(x, jet)
    refused = certify_hjb(wrong, answer(wrong, u, bump), NOWHERE)
    assert refused.rms is None
    assert "maximiser is not the best" in refused.reason


def test_the_constant_of_experiment_1():
    """g = 2, λ = 2π², s = √3/2 exactly at the controls."""
    angle = np.linspace(0, 6, 50)
    turn = np.stack([np.cos(angle), np.sin(angle), np.sin(angle), -np.cos(angle)], axis=1).reshape(-1, 2, 2)
    local = Local(np.eye(2) + math.sqrt(3) / 2 * turn, np.zeros((50, 2)), np.full(50, 2 * math.pi**2))
    pilot = hjb_energy.ControlPilot(local, local.invariants(), np.ones(50), 2 * math.pi**2, False, True)
    triangle = CommonTriangle(2 * math.pi**2, 2 * math.pi**2, 1.0)
    assert pilot.contraction(triangle) == pytest.approx(math.sqrt(3) / 2, rel=1e-12)
    found = choose_common(pilot)
    assert any(isinstance(scheme, CommonTriangle) and scheme[:3] == pytest.approx(triangle[:3]) for scheme in found)
    assert pilot.size(found[0]) <= pilot.size(triangle)


def test_the_smallest_determinant_of_a_continuum(monkeypatch):
    """The bound from ρ' and the trace is below all determinants with that ρ', and attained by some."""
    rng = np.random.default_rng(0)
    for d in (2, 3, 4):
        betas = rng.standard_normal((20_000, d))
        betas -= np.mean(betas, axis=1, keepdims=True)
        rho = 0.8
        betas *= rho * math.sqrt(d / (d - 1)) / np.linalg.norm(betas, axis=1, keepdims=True)
        roots = np.prod(1 + betas, axis=1) ** (1 / d)
        coverage = object.__new__(ContinuumCoverage)
        coverage.local = Local(np.zeros((1, d, d)), np.zeros((1, d)), np.zeros(1))
        monkeypatch.setattr(hjb.Coverage, "contraction", lambda *_, rho=rho: hjb_contraction(rho))
        monkeypatch.setattr(hjb.Coverage, "largest_multiplier", lambda *_: hjb_contraction(1.0))
        bound = coverage.smallest_root()
        assert bound <= np.min(roots) * (1 + 1e-11)
        assert bound >= 0.95 * np.min(roots)


def hjb_contraction(value):
    from cordes.certificates.contraction import Contraction

    return Contraction(value, "interval", np.zeros(2))


# Many controls, coverage, refusals --------------------------------------------------------------------------------------------------------------------


def test_three_hundred_controls():
    angles = np.linspace(0, math.pi, 300, endpoint=False)

    def A(x, a):
        return jnp.eye(2) + 0.6 * jnp.array([[jnp.cos(2 * a), jnp.sin(2 * a)], [jnp.sin(2 * a), -jnp.cos(2 * a)]])

    def potential(x, a):
        return -0.5 * jnp.cos(2 * (a - 3 * x[0]))

    def f(x, a):
        step = potential(x, a) - jnp.min(jax.vmap(lambda other: potential(x, other))(jnp.asarray(angles)))
        return jnp.sum(A(x, a) * jax.hessian(wave)(x)) + step

    problem = cordes.HJB(SQUARE, angles, A, f)
    certificate = certify_hjb(problem, answer(problem, wave, bump), NOWHERE)
    check_all(certificate, SQUARE, bump)
    assert certificate.epsilon_source == "analytic"
    assert certificate.contraction <= 0.6 * (1 + 1e-9)


def test_a_violation_between_the_sampled_points_is_found():
    """A spike of anisotropy that no pilot point meets is seen by the intervals, for the control that has it."""

    def A(x, a):
        spike = jnp.exp(-1e5 * jnp.sum((x - jnp.array([0.3141, 0.2718])) ** 2))
        return jnp.array([[1.0, 0.0], [0.0, 1.0 + 0.2 * x[0] + a * 30 * spike]])

    problem = cordes.HJB(SQUARE, [0.0, 1.0], A, lambda x, a: 1.0 + a)
    points = pilot_points_of(SQUARE)
    compared = Compared(problem, FunctionCandidate(problem, bump), points)
    rows, controls = np.tile(points, (2, 1)), np.repeat(problem.controls, len(points), axis=0)
    local = Local(*(np.asarray(part) for part in problem.pairs(rows, controls)[:3]))
    coverage = ControlCoverage(problem, rows, local, compared.pairs, points)
    assert coverage.pairs.defects(TraceSplit(), points, np.eye(2))[0].max() < 0.5
    assert coverage.contraction(TraceSplit(), np.eye(2)).value > 0.9


def test_what_depends_on_what():
    x, a = jnp.ones(2), jnp.ones(())
    assert depends_on(lambda x, a: x[0] * a, (x, a), 0)
    assert not depends_on(lambda x, a: (a * jnp.eye(2), jnp.sin(a)), (x, a), 0)
    assert depends_on(lambda x, a: (a, jnp.where(x[1] > 0, 1.0, 2.0)), (x, a), 0)


def test_the_condition_fails_for_one_control():
    """In three dimensions diag(10, 1, 1) and its rotations cannot be rescued together; without a continuous A there is no bound of the maximum either."""
    cube = cordes.Box([0] * 3, [1] * 3)
    matrices = jnp.asarray([np.eye(3), *(np.diag(np.roll([10.0, 1, 1], k)) for k in range(3))])
    problem = cordes.HJB(cube, np.arange(4.0), lambda x, a: matrices[a.astype(int)], lambda x, a: -1.0)
    certificate = certify_hjb(problem, FunctionCandidate(problem, lambda x: 0.01 * jnp.prod(x * (1 - x))), np.zeros((0, 3)))
    assert certificate.energy is None
    assert "control" in certificate.reason
    assert "T1b needs a contraction below 1" in certificate.reason
    assert "near x =" in certificate.reason
    # The matrices are continuous: the maximum principle still holds.
    assert certificate.Linf > 0


def test_a_negative_reaction():
    problem = cordes.HJB(SQUARE, [0.0, 1.0], lambda x, a: (1 + a) * jnp.eye(2), lambda x, a: 1.0, c=lambda x, a: -0.5 * a)
    certificate = certify_hjb(problem, FunctionCandidate(problem, bump), NOWHERE)
    assert "c is negative" in certificate.reason
    # The energy theorems need no sign; Green's function takes it from there.
    assert certificate.L2 > 0
    assert "ABP" not in certificate.alternatives


def test_not_a_number():
    problem = cordes.HJB(SQUARE, [0.0, 1.0], lambda x, a: (1 + a) * jnp.eye(2), lambda x, a: jnp.where(a > 0, jnp.sqrt(x[0] - 0.0002), 1.0))
    certificate = certify_hjb(problem, FunctionCandidate(problem, bump), NOWHERE)
    assert certificate.rms is None
    assert "not a finite number" in certificate.reason
    assert "a = 1" in certificate.reason


def test_wrong_boundary_values():
    problem = cordes.HJB(SQUARE, [0.0, 1.0], lambda x, a: (1 + a) * jnp.eye(2), 1.0)
    certificate = certify_hjb(problem, FunctionCandidate(problem, lambda x: bump(x) + 1e-6), NOWHERE)
    assert certificate.rms is None
    assert "boundary values" in certificate.reason


# Attacks ----------------------------------------------------------------------------------------------------------------------------------------------


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
    at = [np.concatenate([block[1][k].reshape(len(x), -1) for block in blocks], axis=1)[rows, index] for k in range(1, 5)]
    values = [multiplier(Invariants(x.shape[1], *at)) * defect[rows, index] for multiplier in multipliers]
    return [hjb_energy.Best(value, value, index) for value in values]


@pytest.mark.parametrize("fault", ["contraction", "maximum", "multiplier", "eigenvalue"])
def test_the_attacks_can_succeed(monkeypatch, fault):
    """Wrong constants are noticed."""
    if fault == "contraction":
        monkeypatch.setattr(EnergyBound, "upper", property(lambda self: self.norm.upper / (1 - 0.5 * self.contraction.value)))
    elif fault == "maximum":
        monkeypatch.setattr("cordes.certificates.maximum.largest_polar_factor", lambda domain: 0.2 * largest_polar_factor(domain))
    elif fault == "eigenvalue":
        original = sys.modules["cordes.certificates.theorems"].first_eigenvalue
        monkeypatch.setattr("cordes.certificates.theorems.first_eigenvalue", lambda *arguments: 3 * original(*arguments))
    else:
        monkeypatch.setattr(hjb_energy.Pairs, "best", _unscaled_best)
    assert battery.violations(battery.run(24))


def test_the_rule_of_the_attacks_is_exact_enough():
    """The norms of the errors by the rule of the battery and by a finer one agree: what is called truth is true."""
    case = battery.draw(1)
    x, weight = case.problem.domain.quadrature(40)
    jet = battery.Answer(case.problem.controls[0]).jet(x)
    fine = fixed_rule(x, weight).norm(np.trace(jet.hessian, axis1=1, axis2=2)).upper
    assert fine == pytest.approx(case.norm(np.trace(case.error.hessian, axis1=1, axis2=2)), rel=1e-7)
