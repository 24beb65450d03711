"""Certificates of the Monge–Ampère equation: bounds that hold against known solutions, sources that
are not smooth, and refusals with their reasons."""

import sys
from pathlib import Path
from types import SimpleNamespace

import jax.numpy as jnp
import numpy as np
import pytest

import cordes
from cordes.certificates.monge_ampere import certify as module
from cordes.certificates.monge_ampere import sides as sides_module
from cordes.certificates.monge_ampere.certify import bounds, certify_monge_ampere
from cordes.certificates.monge_ampere.sides import Densities, root_differences
from cordes.certificates.residual import measured as measured_module
from cordes.certificates.residual.candidate import AnswerCandidate, FunctionCandidate

sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks"))
import monge_ampere_battery as battery
from monge_ampere_cases import (
    DISK,
    NOWHERE,
    SMOOTH,
    SQUARE,
    certified,
    exponential,
    exponential_source,
    hidden,
    largest,
    mode,
    perturbed,
)

# The theorem


@pytest.mark.parametrize(
    ("m", "n", "effectivity"), [(1, 1, 1.9), (2, 1, 3.4), (3, 3, 12.6), (5, 4, 27)]
)
def test_the_effectivities_of_the_theory(m, n, effectivity):
    certificate = certified(SMOOTH, perturbed(1e-3, mode(m, n)))
    # Where the norm is enclosed, up to a quarter of it may stay unproved.
    assert 0.97 * effectivity <= certificate.Linf / 1e-3 <= 1.25 * effectivity
    assert certificate.theorem == certificate.maximum_theorem == "T4"
    assert certificate.epsilon_source == "interval"
    assert certificate.level == "enclosed"
    assert certificate.rms == certificate.L2
    # The mean square of the mode is 1/4.
    assert 0.5e-3 <= certificate.rms <= certificate.Linf
    assert certificate.H1 is None
    assert "Cordès" in certificate.reason
    points = SQUARE.interior_points(500, 3)
    assert np.all(
        np.abs(1e-3 * np.prod(np.sin(np.pi * np.array([m, n]) * points), axis=1))
        <= certificate.picture.bound(points)
    )
    assert np.all(certificate.picture.bound(points) <= certificate.Linf)
    hessian = FunctionCandidate(SMOOTH, perturbed(1e-3, mode(m, n))).jet(points).hessian
    determinant = hessian[:, 0, 0] * hessian[:, 1, 1] - hessian[:, 0, 1] ** 2
    assert certificate.picture.residual(points) == pytest.approx(
        determinant - SMOOTH.source_density(points), abs=1e-10
    )


@pytest.mark.parametrize("share", [0.5, -0.5])
def test_a_multiple_of_the_paraboloid(share):
    """u = (|x|² - 1)/2, w = (1 + s)u on the disk: both norms are known in closed form, and the
    bound is |s| while the error is |s|/2."""
    problem = cordes.MongeAmpere(DISK, 1.0, 0.0)
    certificate = certified(problem, lambda x: (1 + share) * (jnp.sum(x**2) - 1) / 2)
    assert certificate.Linf == pytest.approx(abs(share), rel=1e-6)
    # Pointwise: (1 - |x|²)^{3/4} times it.
    points = DISK.interior_points(100, 2)
    assert certificate.picture.bound(points) == pytest.approx(
        abs(share) * (1 - np.sum(points**2, axis=1)) ** 0.75, rel=1e-6
    )


def test_the_sides_are_not_exchanged():
    """Where det D²w > f only the upper side counts, which bounds u - w."""
    local = Densities(
        np.array([1.0, 4.0, 0.0]),
        np.array([[[2.0, 0], [0, 2]], [[1, 0], [0, 1]], [[1, 0], [0, 1]]]),
        np.zeros(3),
    )
    upper, lower = root_differences(local, 0.0)
    assert upper == pytest.approx([1, 0, 1], abs=1e-14)
    assert lower == pytest.approx([0, 1, 0], abs=1e-14)
    problem = cordes.MongeAmpere(DISK, 1.0, 0.0)
    attempt = module._Attempt(
        problem, FunctionCandidate(problem, lambda x: 1.5 * (jnp.sum(x**2) - 1) / 2)
    )
    measure, local = attempt._measured(NOWHERE, 0.99, 0.0)
    sides = attempt._norms(measure, local, 0.0, 0.0)
    assert sides.upper.upper == pytest.approx(0.5 * np.sqrt(np.pi), rel=1e-6)
    assert sides.lower.upper < 1e-9


@pytest.mark.parametrize("t", [1e-9, 1e-6])
def test_small_errors(t):
    certificate = certified(SMOOTH, perturbed(t, mode(2, 2)))
    assert t <= certificate.Linf <= 7 * t


def test_rounding_is_all_that_is_left_of_an_exact_answer():
    certificate = certified(SMOOTH, exponential)
    assert 0 < certificate.Linf <= 1e-11


def test_rounding_of_a_degenerate_determinant():
    """det D²w = 0 with rounding 1e-12: the root may be as large as 1e-6, and a bound must not claim
    less."""
    root = np.array([[1.0, 1.0], [1.0, 1.0]]) / np.sqrt(2)
    local = Densities(
        np.zeros(2), np.stack([root @ root, root @ root + 1e-6 * np.eye(2)]), np.full(2, 1e-12)
    )
    upper, lower = root_differences(local, 0.0)
    assert upper[0] >= 1e-6
    assert upper[1] >= np.sqrt(2e-6)
    assert np.all(lower == 0)
    # From below: the root falls by the rounding, and to zero where it cannot be trusted.
    local = Densities(np.ones(2), np.tile(np.eye(2), (2, 1, 1)), np.array([0.02, 0.5]))
    assert np.all(root_differences(local, 0.0)[1] >= 1 - np.sqrt([1 - 0.02, 0.5]))


def test_one_dimension_is_linear():
    """u'' = f: the constant is that of Green's function, ℓ/4 for a point load, and w need not be
    convex."""
    problem = cordes.MongeAmpere(
        cordes.Box([0], [2]), lambda x: jnp.exp(x[0]), lambda x: jnp.exp(x[0])
    )
    certificate = certified(problem, lambda x: jnp.exp(x[0]) + 3.0 * jnp.sin(jnp.pi * x[0]))
    assert certificate.theorem == "T4"
    assert certificate.epsilon_source == "analytic"
    # ∫ of one sign of 3π² sin(πx) is 6π.
    assert certificate.Linf == pytest.approx(0.5 * 6 * np.pi, rel=1e-2)
    assert certificate.Linf >= 3


def test_three_dimensions():
    ball = cordes.Ball([0, 0, 0], 1.0)
    problem = cordes.MongeAmpere(
        ball, lambda x: (1 + jnp.sum(x**2)) * jnp.exp(1.5 * jnp.sum(x**2)), exponential
    )

    def bump(x):
        return (1 - jnp.sum(x**2)) * jnp.cos(2 * x[0] + x[1])

    certificate = certified(problem, perturbed(1e-3, bump))
    truth = largest(problem, lambda x: 1e-3 * bump(x))
    assert truth <= certificate.Linf <= 6 * truth
    assert certificate.epsilon_source == "interval"


def test_four_dimensions_are_sampled():
    box = cordes.Box([0] * 4, [1] * 4)
    problem = cordes.MongeAmpere(
        box, lambda x: (1 + jnp.sum(x**2)) * jnp.exp(2 * jnp.sum(x**2)), exponential
    )
    certificate = certified(problem, perturbed(1e-3, lambda x: jnp.prod(4 * x * (1 - x))))
    assert 1e-3 <= certificate.Linf <= 1e-2
    assert certificate.level == "statistical (asymptotic)"
    assert certificate.confidence == 0.99
    assert certificate.epsilon_source == "sampled"


@pytest.mark.parametrize(
    "vertices", [[[0, 0], [1, 0], [0.2, 0.9]], [[0, 0], [2, 0], [2.5, 1], [1, 2], [-0.5, 1]]]
)
def test_polygons(vertices):
    domain = cordes.Polygon(vertices)
    problem = cordes.MongeAmpere(domain, exponential_source, exponential)

    def bump(x):
        return domain.distance(x) * jnp.sin(2 * x[0] + x[1])

    size = 1e-3 / largest(problem, bump)
    certificate = certified(problem, perturbed(size, bump))
    assert 1e-3 <= certificate.Linf <= 2e-2


def test_a_network_answer():
    """A network that approximates the solution."""
    poisson = cordes.Linear(
        SQUARE,
        np.eye(2),
        f=lambda x: (2 + jnp.sum(x**2)) * exponential(x),
        g=exponential,
        exact=exponential,
    )
    solution = cordes.solve(poisson, singular=False, progress=False)
    certificate = certify_monge_ampere(SMOOTH, AnswerCandidate(SMOOTH, solution), NOWHERE)
    assert solution.error().linf <= certificate.Linf <= 1e-10
    assert certificate.epsilon_source == "interval"


# Sources that are not smooth


CENTER = np.array([0.5, 0.5])


def flat_part(x):
    """½((|x - x₀| - 0.2)⁺)²: flat in a disk, where f = 0."""
    beyond = jnp.maximum(jnp.sum((x - CENTER) ** 2) - 0.04, 0.0)
    return beyond**2 / (jnp.sqrt(beyond + 0.04) + 0.2) ** 2 / 2


FLAT = cordes.MongeAmpere(
    SQUARE,
    lambda x: jnp.maximum(1 - 0.2 / jnp.sqrt(jnp.maximum(jnp.sum((x - CENTER) ** 2), 1e-6)), 0.0),
    flat_part,
    interfaces=[lambda x: jnp.sum((x - CENTER) ** 2) - 0.04],
)


@pytest.mark.parametrize("t", [1e-6, 1e-3])
def test_degenerate_parts(t):
    """The flat part of w is concave: its curvature of up to 8.7 t costs R²/2 = 1/4 of it."""
    certificate = certified(
        FLAT, perturbed(t, lambda x: 16 * x[0] * (1 - x[0]) * x[1] * (1 - x[1]), flat_part)
    )
    assert certificate.theorem == "T4 with shift"
    assert t <= certificate.Linf <= 4 * t


def test_an_integrable_pole():
    """u = |x|^{7/4}: f = c |x|^{-1/2}."""
    problem = cordes.MongeAmpere(
        DISK, lambda x: 1.75**2 * 0.75 * jnp.maximum(jnp.sum(x**2), 1e-300) ** -0.25, 1.0
    )
    certificate = certified(problem, lambda x: 1 + 0.8 * (jnp.sum(x**2) - 1), np.zeros((1, 2)))
    truth = largest(problem, lambda x: 1 + 0.8 * (jnp.sum(x**2) - 1) - jnp.sum(x**2) ** 0.875)
    assert truth <= certificate.Linf <= 5 * truth


@pytest.mark.parametrize("power", [1.0, 1.2])
def test_a_pole_without_integral(power):
    """|x|⁻² in the disk has an integral that grows like a logarithm; n and 2n points do not see
    that, its formula does."""
    problem = cordes.MongeAmpere(
        DISK, lambda x: jnp.sum((x - 0.1) ** 2) ** -power, lambda x: jnp.sum(x**2) / 2
    )
    certificate = certified(problem, lambda x: jnp.sum(x**2) / 2)
    assert certificate.Linf is None
    assert certificate.reason.startswith("f may jump or have a pole")


def test_a_pole_at_a_corner():
    """-√(2 - |x|²) on the unit square: the integral of f is infinite at (1, 1)."""
    problem = cordes.MongeAmpere(
        SQUARE, lambda x: 2 / (2 - jnp.sum(x**2)) ** 2, lambda x: jnp.sum(x**2) / 2
    )
    certificate = certified(problem, lambda x: jnp.sum(x**2) / 2)
    assert certificate.Linf is None
    assert certificate.reason.startswith(("f is not a density", "f may not be a density"))


def test_a_peak_is_no_pole():
    """A high but smooth peak of f has a bound."""
    problem = cordes.MongeAmpere(
        DISK,
        lambda x: 1 + 2e3 * jnp.exp(-jnp.sum((x - 0.1) ** 2) / 2e-4),
        lambda x: jnp.sum(x**2) / 2,
    )
    certificate = certified(problem, lambda x: jnp.sum(x**2) / 2)
    assert certificate.Linf is not None


# Refusals


def test_wrong_boundary_values():
    certificate = certified(SMOOTH, lambda x: exponential(x) + 1e-3)
    assert certificate.Linf is None
    assert "boundary values are not exact" in certificate.reason


def test_a_mismatch_within_rounding_is_added():
    without, with_gap = (
        bounds(SMOOTH, FunctionCandidate(SMOOTH, exponential), NOWHERE, gap=gap).Linf
        for gap in (0.0, 1e-6)
    )
    assert with_gap == pytest.approx(without + 1e-6, rel=1e-9)


def test_a_kink():
    certificate = certified(
        SMOOTH,
        lambda x: (
            exponential(x)
            + 0.1 * jnp.minimum(jnp.minimum(x[0], 1 - x[0]), jnp.minimum(x[1], 1 - x[1]))
        ),
    )
    assert certificate.Linf is None
    assert "kink" in certificate.reason


@pytest.mark.parametrize(
    ("value", "words"),
    [(-1e-3, "f is negative: f = -0.001 at x = "), (np.nan, "f is not a density: f = nan at x = ")],
)
def test_a_bad_source(value, words):
    def source(x):
        f = np.array(SMOOTH.source_density(x))
        f[np.linalg.norm(x - 0.3, axis=1) < 0.1] = value
        return f

    problem = SimpleNamespace(
        domain=SQUARE,
        interfaces=(),
        f=lambda x: jnp.nan,
        source_density=source,
        name="bad",
        data=dict,
    )
    certificate = bounds(problem, FunctionCandidate(SMOOTH, exponential), NOWHERE)
    assert certificate.Linf is None
    assert certificate.reason.startswith(words)


@pytest.mark.parametrize(
    "part", [lambda x: jnp.where(x[0] > 0.9, jnp.nan, 0.0), lambda x: jnp.sqrt(0.9 - x[0])]
)
def test_an_answer_that_is_no_number(part):
    certificate = bounds(SMOOTH, hidden(perturbed(1.0, part)), NOWHERE)
    assert certificate.Linf is None
    assert "not finite numbers" in certificate.reason


def test_an_affine_answer_without_error():
    certificate = certified(
        cordes.MongeAmpere(DISK, 0.0, lambda x: 10 * x[0] + 1), lambda x: 10 * x[0] + 1
    )
    # Nothing but the rounding of the values is left.
    assert 0 < certificate.Linf <= 1e-10


def test_a_norm_that_does_not_converge(monkeypatch):
    """Waves that are shorter than the cells, and no points to refine them."""
    monkeypatch.setitem(measured_module.BUDGETS, 2, 1)
    # By quadrature: enclosed norms need no points to converge.
    monkeypatch.setattr(module, "convex_measure", lambda *_: None)
    certificate = certified(SMOOTH, perturbed(1e-6, mode(40, 37)))
    assert certificate.Linf is None
    assert certificate.reason.startswith(
        "the norm of the residual did not converge: n and 2n points per direction differ by"
    )


# Random cases


@pytest.mark.parametrize("seed", [1, 2])
def test_every_bound_holds(seed):
    """The first cases of benchmarks/monge_ampere_battery.py."""
    results = battery.run(24, seed)
    assert battery.violations(results) == []
    # A battery in which hardly anything is bounded would prove nothing.
    assert sum(bool(found) for *_, found in results) >= 22
    assert np.median([found["Linf"] for *_, found in results if found]) <= 12


@pytest.mark.parametrize("factor", [0.2, 0.8])
def test_the_battery_can_fail(monkeypatch, factor):
    """Wrong constants are noticed, even those that are wrong by a fifth."""
    for name in ("largest_polar_factor", "polar_factor"):
        original = getattr(sides_module, name)
        monkeypatch.setattr(
            sides_module, name, lambda *arguments, original=original: factor * original(*arguments)
        )
    assert battery.violations(battery.run(8, battery.SEED))
