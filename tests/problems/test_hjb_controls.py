"""Certificates of Hamilton–Jacobi–Bellman equations with a continuum of controls or hundreds of
them, what intervals cover, and refusals."""

import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hjb_cases import NOWHERE, SQUARE, answer, bump, check_all, truth, wave

import cordes
from cordes.certificates.hjb.certify import certify_hjb
from cordes.certificates.hjb.coverage import (
    CommonTriangle,
    ContinuumCoverage,
    ControlCoverage,
    choose_common,
    depends_on,
)
from cordes.certificates.hjb.equation import ComparedControls
from cordes.certificates.residual.candidate import FunctionCandidate
from cordes.certificates.residual.measured import pilot_points_of
from cordes.certificates.theorems.contraction import AbstractCoverage
from cordes.certificates.theorems.energy import Local, Pilot, TraceSplit

# A continuum of controls --------------------------------------------------------------------------


def smears_sueli(maximiser=None):
    """Experiment 1 of Smears and Süli 2014 with A = ½(I + sin θ · rotated diag(1, -1)), whose
    supremum has a closed form."""

    def u(x):
        return jnp.exp(x[0] * x[1]) * wave(x)

    def best(hessian):
        p, q = hessian[0, 0] - hessian[1, 1], 2 * hessian[0, 1]
        size = jnp.sqrt(p**2 + q**2)
        return (
            jnp.minimum(math.sqrt(3) / 2, math.pi**2 * size / (4 * math.sqrt(3))),
            size,
            jnp.arctan2(q, p),
        )

    def g(x):
        hessian = jax.hessian(u)(x)
        s, size, _ = best(hessian)
        return (
            0.5 * jnp.trace(hessian)
            + s / 2 * size
            - math.sqrt(3) * s**2 / math.pi**2
            - math.pi**2 * u(x)
        )

    def A(x, a):
        turn = jnp.array([[jnp.cos(a[1]), jnp.sin(a[1])], [jnp.sin(a[1]), -jnp.cos(a[1])]])
        return 0.5 * (jnp.eye(2) + jnp.sin(a[0]) * turn)

    def right(x, jet):
        s, _, angle = best(jet.hessian)
        return jnp.array([jnp.arcsin(s), angle])

    theta, phi = np.meshgrid(
        np.linspace(0, math.pi / 3, 6), np.linspace(-math.pi, math.pi, 17), indexing="ij"
    )
    controls = np.stack([theta.ravel(), phi.ravel()], axis=1)
    problem = cordes.HJB(
        SQUARE,
        controls,
        A,
        lambda x, a: math.sqrt(3) * jnp.sin(a[0]) ** 2 / math.pi**2 + g(x),
        c=math.pi**2,
        maximiser=right,
    )
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
    assert certificate.energy[1] == pytest.approx(
        2 * math.sqrt(weight @ residual**2) / (1 - certificate.contraction), rel=0.02
    )
    assert certificate.alternatives["ABP"] >= truth(SQUARE, bump, 0.0)["Linf"]
    # A maximiser that is not the best one is found out.
    wrong, _ = smears_sueli()
    vars(wrong)["maximiser"] = lambda x, jet: (
        jnp.where(x[0] < 0.3, 0.5, 1.0) * problem.maximiser(x, jet)
    )
    refused = certify_hjb(wrong, answer(wrong, u, bump), NOWHERE)
    assert refused.rms is None
    assert "maximiser is not the best" in refused.reason


def test_the_constant_of_experiment_1():
    """g = 2, λ = 2π², s = √3/2 exactly at the controls."""
    angle = np.linspace(0, 6, 50)
    turn = np.stack([np.cos(angle), np.sin(angle), np.sin(angle), -np.cos(angle)], axis=1).reshape(
        -1, 2, 2
    )
    local = Local(
        np.eye(2) + math.sqrt(3) / 2 * turn, np.zeros((50, 2)), np.full(50, 2 * math.pi**2)
    )
    pilot = Pilot(local, local.invariants(), np.ones(50), 2 * math.pi**2, False, True, active=50)
    triangle = CommonTriangle(2 * math.pi**2, 2 * math.pi**2, 1.0)
    assert pilot.contraction(triangle) == pytest.approx(math.sqrt(3) / 2, rel=1e-12)
    found = choose_common(pilot)
    assert any(
        isinstance(scheme, CommonTriangle) and scheme[:3] == pytest.approx(triangle[:3])
        for scheme in found
    )
    assert pilot.size(found[0]) <= pilot.size(triangle)


def test_the_smallest_determinant_of_a_continuum(monkeypatch):
    """The bound from ρ' and the trace is below all determinants with that ρ', and attained by
    some."""
    rng = np.random.default_rng(0)
    for d in (2, 3, 4):
        betas = rng.standard_normal((20_000, d))
        betas -= np.mean(betas, axis=1, keepdims=True)
        rho = 0.8
        betas *= rho * math.sqrt(d / (d - 1)) / np.linalg.norm(betas, axis=1, keepdims=True)
        roots = np.prod(1 + betas, axis=1) ** (1 / d)
        coverage = object.__new__(ContinuumCoverage)
        coverage.local = Local(np.zeros((1, d, d)), np.zeros((1, d)), np.zeros(1))
        monkeypatch.setattr(
            AbstractCoverage, "over_domain", lambda *_, rho=rho: hjb_contraction(rho)
        )
        monkeypatch.setattr(AbstractCoverage, "largest_multiplier", lambda *_: hjb_contraction(1.0))
        bound = coverage.smallest_root()
        assert bound <= np.min(roots) * (1 + 1e-11)
        assert bound >= 0.95 * np.min(roots)


def hjb_contraction(value):
    from cordes.certificates.theorems.contraction import Contraction

    return Contraction(value, "interval", np.zeros(2))


# Many controls, coverage, refusals ----------------------------------------------------------------


def test_three_hundred_controls():
    angles = np.linspace(0, math.pi, 300, endpoint=False)

    def A(x, a):
        return jnp.eye(2) + 0.6 * jnp.array(
            [[jnp.cos(2 * a), jnp.sin(2 * a)], [jnp.sin(2 * a), -jnp.cos(2 * a)]]
        )

    def potential(x, a):
        return -0.5 * jnp.cos(2 * (a - 3 * x[0]))

    def f(x, a):
        step = potential(x, a) - jnp.min(
            jax.vmap(lambda other: potential(x, other))(jnp.asarray(angles))
        )
        return jnp.sum(A(x, a) * jax.hessian(wave)(x)) + step

    problem = cordes.HJB(SQUARE, angles, A, f)
    certificate = certify_hjb(problem, answer(problem, wave, bump), NOWHERE)
    check_all(certificate, SQUARE, bump)
    assert certificate.epsilon_source == "analytic"
    assert certificate.contraction <= 0.6 * (1 + 1e-9)


def test_a_violation_between_the_sampled_points_is_found():
    """A spike of anisotropy that no pilot point meets is seen by the intervals, for the control
    that has it."""

    def A(x, a):
        spike = jnp.exp(-1e5 * jnp.sum((x - jnp.array([0.3141, 0.2718])) ** 2))
        return jnp.array([[1.0, 0.0], [0.0, 1.0 + 0.2 * x[0] + a * 30 * spike]])

    problem = cordes.HJB(SQUARE, [0.0, 1.0], A, lambda x, a: 1.0 + a)
    points = pilot_points_of(SQUARE)
    compared = ComparedControls(problem, FunctionCandidate(problem, bump), points)
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
    """In three dimensions diag(10, 1, 1) and its rotations cannot be rescued together; without a
    continuous A there is no bound of the maximum either."""
    cube = cordes.Box([0] * 3, [1] * 3)
    matrices = jnp.asarray([np.eye(3), *(np.diag(np.roll([10.0, 1, 1], k)) for k in range(3))])
    problem = cordes.HJB(
        cube, np.arange(4.0), lambda x, a: matrices[a.astype(int)], lambda x, a: -1.0
    )
    certificate = certify_hjb(
        problem,
        FunctionCandidate(problem, lambda x: 0.01 * jnp.prod(x * (1 - x))),
        np.zeros((0, 3)),
    )
    assert certificate.energy is None
    assert "control" in certificate.reason
    assert "T1b needs a contraction below 1" in certificate.reason
    assert "near x =" in certificate.reason
    # The matrices are continuous: the maximum principle still holds.
    assert certificate.Linf > 0


def test_a_negative_reaction():
    problem = cordes.HJB(
        SQUARE,
        [0.0, 1.0],
        lambda x, a: (1 + a) * jnp.eye(2),
        lambda x, a: 1.0,
        c=lambda x, a: -0.5 * a,
    )
    certificate = certify_hjb(problem, FunctionCandidate(problem, bump), NOWHERE)
    assert "c is negative" in certificate.reason
    # The energy theorems need no sign; Green's function takes it from there.
    assert certificate.L2 > 0
    assert "ABP" not in certificate.alternatives


def test_not_a_number():
    problem = cordes.HJB(
        SQUARE,
        [0.0, 1.0],
        lambda x, a: (1 + a) * jnp.eye(2),
        lambda x, a: jnp.where(a > 0, jnp.sqrt(x[0] - 0.0002), 1.0),
    )
    certificate = certify_hjb(problem, FunctionCandidate(problem, bump), NOWHERE)
    assert certificate.rms is None
    assert "not a finite number" in certificate.reason
    assert "a = 1" in certificate.reason


def test_wrong_boundary_values():
    problem = cordes.HJB(SQUARE, [0.0, 1.0], lambda x, a: (1 + a) * jnp.eye(2), 1.0)
    certificate = certify_hjb(
        problem, FunctionCandidate(problem, lambda x: bump(x) + 1e-6), NOWHERE
    )
    assert certificate.rms is None
    assert "boundary values" in certificate.reason
