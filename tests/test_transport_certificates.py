"""Certificates of optimal transport: bounds that hold against known maps, the constants and the geometry that they rest on, and refusals with their reasons."""

import functools
import math
import sys
from pathlib import Path
from types import SimpleNamespace

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import cordes
from cordes.blocks import in_blocks
from cordes.certificates import transport as module
from cordes.certificates.candidate import FunctionCandidate
from cordes.certificates.conjugate import ball_zero, describe_target, gauge, image_of_boundary, integral, uniform_poincare
from cordes.certificates.flux import Flux
from cordes.certificates.norms import Norm, Quadrature, fixed_rule
from cordes.certificates.transport import NoBoundError, bounds, certify_transport, transport_facts
from cordes.problems.transport import Transport

sys.path.insert(0, str(Path(__file__).parent.parent / "benchmarks"))
import transport_battery as battery

SQUARE = cordes.Box([-0.5, -0.5], [0.5, 0.5])
INTERVAL = cordes.Box([0.0], [1.0])
DISK = cordes.Ball([0.0, 0.0], 1.0)
CUBE = cordes.Box([0.0, 0.0, 0.0], [1.0, 1.0, 1.0])


def certified(problem, potential):
    return certify_transport(problem, FunctionCandidate(problem, potential))


def facts(problem, potential):
    return transport_facts(problem, FunctionCandidate(problem, potential))


def at(function, x):
    return np.asarray(in_blocks(jax.jit(jax.vmap(function)), (x,)))


def truth(problem, exact, potential, count=None):
    """‖∇φ - T‖ in L²(μ) and W₂, by quadrature."""
    x, weight = problem.domain.quadrature(count or {1: 200, 2: 60, 3: 20}[problem.domain.dimension])
    mu, true, found = problem.source_density(x), at(exact, x), at(jax.grad(potential), x)
    return tuple(float(np.sqrt(weight @ (mu * np.sum(gap**2, axis=1)))) for gap in (found - true, x - true))


def check(problem, exact, potential, largest):
    """The certificate, with the bound of the map between 1 and `largest` times the truth, and W₂ in its bracket."""
    certificate = certified(problem, potential)
    error, distance = truth(problem, exact, potential)
    assert certificate.map_L2 is not None, certificate.reason
    assert 1 <= certificate.map_L2 / error <= largest
    assert certificate.W2[0] <= distance * (1 + 1e-9)
    assert certificate.W2[1] >= distance * (1 - 1e-9)
    return certificate


# The benchmark of Benamou, Froese and Oberman


def wave(z):
    return (-(z**2) / (8 * jnp.pi) + 1 / (256 * jnp.pi**3) + 1 / (32 * jnp.pi)) * jnp.cos(8 * jnp.pi * z) + z / (32 * jnp.pi**2) * jnp.sin(
        8 * jnp.pi * z
    )


def benchmark_potential(x):
    return jnp.sum(x**2) / 2 + 4 * wave(x[0]) * wave(x[1])


def benchmark_source(x):
    hessian = jax.hessian(benchmark_potential)(x)
    return hessian[0, 0] * hessian[1, 1] - hessian[0, 1] ** 2


@functools.cache
def benchmark():
    return Transport(SQUARE, benchmark_source, exact=jax.grad(benchmark_potential))


def cosine(t, k):
    return lambda x: benchmark_potential(x) + t * jnp.cos(k * jnp.pi * (x[0] + 0.5)) * jnp.cos(k * jnp.pi * (x[1] + 0.5))


def test_the_exact_map_of_the_benchmark():
    certificate = certified(benchmark(), benchmark_potential)
    assert certificate.map_L2 < 1e-11
    assert certificate.W2[0] <= 3.8384033e-3 * (1 + 2e-8)
    assert certificate.W2[1] >= 3.8384033e-3 * (1 - 2e-8)
    assert certificate.W2[1] - certificate.W2[0] < 1e-9
    assert certificate.theorem == "T5"
    assert certificate.epsilon_source == "interval"
    assert certificate.level == "quadrature"
    assert certificate.Linf is None
    assert certificate.L2 is None
    found = facts(benchmark(), benchmark_potential)
    assert 0.9 * 0.74683 < found.alpha <= 0.74683
    assert 1.24240 <= found.beta < 1.1 * 1.24240
    assert found.onto
    assert found.mass == pytest.approx(1, abs=1e-9)


@pytest.mark.parametrize(("k", "effectivity"), [(1, 2.4), (2, 5.0), (3, 7.5)])
def test_effectivities_of_the_theory(k, effectivity, monkeypatch):
    """With χ and the Poincaré constant as the theory quotes them, and less with a flux."""
    potential = cosine(1e-3 / k**2, k)
    check(benchmark(), jax.grad(benchmark_potential), potential, 3.0)
    monkeypatch.setattr(module._Attempt, "_flux", lambda *_: math.inf)
    certificate = certified(benchmark(), potential)
    error, _ = truth(benchmark(), jax.grad(benchmark_potential), potential)
    # α and β are proved to two per cent, which makes the bound larger.
    assert effectivity <= certificate.map_L2 / error <= 1.12 * effectivity


def test_small_errors():
    check(benchmark(), jax.grad(benchmark_potential), cosine(1e-8, 2), 3.0)


# One dimension: the distance of the densities is that of the maps, so that every constant is sharp


@functools.cache
def uniform_interval():
    return Transport(INTERVAL, lambda x: jnp.ones(()))


def bent(t):
    return lambda x: x[0] ** 2 / 2 + t * jnp.cos(jnp.pi * x[0])


@functools.cache
def uniform_square():
    return Transport(SQUARE, lambda x: jnp.ones(()))


def flat(t):
    return lambda x: jnp.sum(x**2) / 2 + t * jnp.prod(jnp.cos(jnp.pi * (x + 0.5)))


@pytest.mark.parametrize("with_flux", [True, False])
def test_the_bound_is_sharp_in_one_dimension(with_flux, monkeypatch):
    if not with_flux:
        monkeypatch.setattr(module._Attempt, "_flux", lambda *_: math.inf)
    error, _ = truth(uniform_interval(), lambda x: x, bent(1e-4))
    assert 1 <= facts(uniform_interval(), bent(1e-4)).delta / error <= 1.01
    check(uniform_interval(), lambda x: x, bent(1e-4), 1.02)


@pytest.mark.parametrize("name", ["poincare", "flux", "factor", "hessian"])
def test_wrong_constants_are_noticed(name, monkeypatch):
    """A tenth off, and the bound falls below the truth."""
    true = {"poincare": module.describe_target, "flux": Flux.__call__, "factor": module._Attempt._flow_factor, "hessian": module.curvature_of}[name]
    if name == "poincare":
        monkeypatch.setattr(module._Attempt, "_flux", lambda *_: math.inf)
        monkeypatch.setattr(module, "describe_target", lambda problem: true(problem)._replace(poincare=0.9 * true(problem).poincare))
    elif name == "flux":
        monkeypatch.setattr(Flux, "__call__", lambda self, x: (0.9 * true(self, x)[0], *true(self, x)[1:]))
    elif name == "factor":
        monkeypatch.setattr(module._Attempt, "_flow_factor", lambda *a: 0.9 * true(*a))
    else:
        monkeypatch.setattr(module, "curvature_of", lambda *a: true(*a)._replace(alpha=1.0, beta=0.9))
    problem, potential = (uniform_square(), flat(1e-4)) if name == "hessian" else (uniform_interval(), bent(1e-4))
    error, _ = truth(problem, lambda x: x, potential)
    assert certified(problem, potential).map_L2 < error


def test_the_bound_is_sharp_near_the_identity():
    check(uniform_square(), lambda x: x, flat(1e-4), 1.05)


def test_monotone_rearrangement():
    """The quantile function is the map: from the density (1 + x)/1.5 to (3 - y)/2.5 on the unit interval."""

    def exact(x):
        # (x + x²/2)/1.5 = (3y - y²/2)/2.5
        share = (x + x**2 / 2) / 1.5
        return 3 - jnp.sqrt(9 - 5 * share)

    problem = Transport(INTERVAL, lambda x: 1 + x[0], INTERVAL, lambda y: 3 - y[0], normalise=True, exact=exact)
    points = np.linspace(0, 1, 402)[1:-1]
    # T = x + x(1 - x) p(x): a polynomial with the right ends.
    fit = np.polynomial.Polynomial.fit(points, (np.asarray(exact(points)) - points) / (points * (1 - points)), 4).convert()
    coefficients = (np.polynomial.Polynomial([0, 1]) + np.polynomial.Polynomial([0, 1, -1]) * fit).integ().coef
    for bend in (0.0, 0.02):

        def answer(x, bend=bend):
            return sum(float(c) * x[0] ** k for k, c in enumerate(coefficients)) + bend * jnp.cos(jnp.pi * x[0])

        certificate = check(problem, exact, answer, 1.1)
        # In one dimension β/α, which is 3 here, does not matter.
        assert certificate.theorems["map_L2"] == "T5 (increasing)"
        assert certificate.alternatives["T5 (ii)"] > 2.9 * certificate.map_L2


def test_facts_in_closed_form():
    """φ' = x + s sin 2πx on the unit interval: q = 1 + 2πs cos 2πx."""
    s = 0.01
    found = facts(uniform_interval(), lambda x: x[0] ** 2 / 2 - s / (2 * jnp.pi) * jnp.cos(2 * jnp.pi * x[0]))
    a = 2 * math.pi * s
    assert found.largest_q == pytest.approx(1 + a, rel=1e-3)
    assert found.smallest_q == pytest.approx(1 - a, rel=1e-3)
    assert found.density_max == pytest.approx(a, rel=1e-2)
    assert found.density_L2 == pytest.approx(a / math.sqrt(2), rel=1e-2)
    assert found.total_variation == pytest.approx(a / math.pi, rel=1e-2)
    # χ² = ∫(1 - q)²/q = 1/√(1 - a²) - 1
    assert found.chi == pytest.approx(math.sqrt(1 / math.sqrt(1 - a**2) - 1), rel=1e-2)
    assert found.alpha == pytest.approx(1 - a, rel=0.03)
    assert found.outside == found.shrink == 0
    assert found.onto


# Maps between other shapes


@pytest.mark.parametrize("mode", [1.0, 4.0])
def test_linear_maps_between_ellipses(mode):
    source, matrix = cordes.Ellipsoid([0.0, 0.0], [1.5, 0.7]), np.array([[1.2, 0.3], [0.3, 0.9]])
    target = cordes.Ellipsoid([1.0, -1.0], matrix @ source.matrix)
    problem = Transport(source, lambda x: jnp.ones(()), target, normalise=True)

    def exact(x):
        return jnp.asarray(matrix) @ x + jnp.array([1.0, -1.0])

    def potential(x):
        return x @ jnp.asarray(matrix) @ x / 2 + x[0] - x[1] + 1e-3 * source.distance(x) ** 2 * jnp.cos(mode * x[0] + 1) * jnp.exp(x[1] / 2)

    certificate = check(problem, exact, potential, 6.0)
    assert certificate.epsilon_source == "interval"


def test_disk_to_disk():
    problem = Transport(DISK, lambda x: jnp.ones(()), cordes.Ball([0.0, 1.0], 2.0), normalise=True)
    check(
        problem,
        lambda x: 2 * x + jnp.array([0.0, 1.0]),
        lambda x: jnp.sum(x**2) + x[1] + 0.01 * DISK.distance(x) ** 2 * jnp.sin(2 * x[0] - x[1]),
        4.0,
    )


def test_box_in_space():
    target = cordes.Box([0.0, 0.0, 1.0], [2.0, 1.0, 2.0])
    problem = Transport(CUBE, lambda x: jnp.ones(()), target, normalise=True)

    def potential(x):
        return x[0] ** 2 + (x[1] ** 2 + x[2] ** 2) / 2 + x[2] + 2e-3 * jnp.prod(jnp.cos(jnp.pi * x))

    check(problem, lambda x: jnp.array([2.0, 1.0, 1.0]) * x + jnp.array([0.0, 0.0, 1.0]), potential, 5.0)


def test_a_target_density_that_varies():
    """ν manufactured, log-concave or not; μ = ν(∇u) det D²u."""

    def potential(x):
        return jnp.sum(x**2) / 2 + 0.01 * jnp.prod(jnp.cos(jnp.pi * (x + 0.5)))

    for target in (lambda y: jnp.exp(-jnp.sum(y**2)), lambda y: 1 + 0.5 * jnp.sin(3 * y[0]) * jnp.cos(2 * y[1])):

        def source(x, target=target):
            return target(jax.grad(potential)(x)) * jnp.linalg.det(jax.hessian(potential)(x))

        problem = Transport(SQUARE, source, SQUARE, target, normalise=True)
        check(problem, jax.grad(potential), lambda x: potential(x) + 1e-3 * jnp.cos(2 * jnp.pi * (x[0] + 0.5)), 8.0)


def test_a_translation_in_four_dimensions():
    """Statistical beyond three dimensions, and the bracket of W₂ holds the length of the shift."""
    start, shift = np.zeros(4), np.array([1.0, 0.0, -2.0, 0.0])
    problem = Transport(cordes.Box(start, start + 1), lambda x: jnp.ones(()), cordes.Box(shift, shift + 1))
    certificate = certified(problem, lambda x: jnp.sum(x**2) / 2 + x @ jnp.asarray(shift) + 1e-3 * jnp.cos(jnp.pi * x[0]))
    assert certificate.level.startswith("statistical")
    assert certificate.confidence == 0.99
    assert certificate.W2[0] <= math.sqrt(5) <= certificate.W2[1]
    assert certificate.map_L2 >= 1e-3 * math.pi / math.sqrt(2)
    assert certificate.map_L2 < 0.02


# Maps that miss the boundary of the target


@pytest.mark.parametrize("stretch", [1.0001, 1.05, 0.9999, 0.95])
def test_maps_that_leave_the_target_or_do_not_fill_it(stretch):
    problem = Transport(DISK, lambda x: jnp.ones(()), DISK, normalise=True)
    certificate = check(problem, lambda x: x, lambda x: stretch * jnp.sum(x**2) / 2, 12.0)
    found = facts(problem, lambda x: stretch * jnp.sum(x**2) / 2)
    assert not found.onto
    assert found.outside == pytest.approx(max(stretch - 1, 0.0), abs=1e-10)
    assert found.uncovered >= abs(stretch - 1) * 0.9
    if stretch > 1:
        assert found.shrink >= 1 - 1 / stretch
        assert certificate.theorem == "T5, shrunk"
        assert "leaves the target" in certificate.reason


def test_a_shift_over_the_boundary():
    certificate = check(uniform_square(), lambda x: x, lambda x: jnp.sum(x**2) / 2 + 0.01 * x[0] - 0.003 * x[1] ** 2, 15.0)
    assert "leaves the target by 0.0" in certificate.reason


def test_a_map_far_outside_is_refused():
    certificate = certified(uniform_square(), lambda x: 4 * jnp.sum(x**2))
    assert certificate.map_L2 is None
    assert certificate.W2 is None
    assert "leaves the target by" in certificate.reason


def test_the_image_of_the_boundary():
    problem = uniform_square()
    image = image_of_boundary(problem, FunctionCandidate(problem, lambda x: jnp.sum(x**2) / 2 + 0.05 * x[0] ** 2))
    # The face x₀ = ½ goes to 0.55: a gauge of 1.1, and the others stay.
    assert image.outside >= 0.05 - 1e-9
    assert 1.1 * (1 - image.shrink) <= 1
    assert image.shrink < 0.12
    # A bump of width 0.05 on one face is found.
    narrow = image_of_boundary(
        problem, FunctionCandidate(problem, lambda x: jnp.sum(x**2) / 2 + 0.02 * (x[0] + 0.5) * jnp.exp(-(((x[1] - 0.123) / 0.05) ** 2)))
    )
    assert narrow.outside >= 0.02 * 0.99
    assert gauge(cordes.Polygon([[0, 0], [1, 0], [0, 1]]), np.array([[0.5, 0.5], [1 / 3, 1 / 3], [1, 1]])) == pytest.approx([1, 0, 4])


# Constants


def test_neumann_eigenvalues_of_balls():
    assert ball_zero(2) == pytest.approx(1.841183781340659, rel=1e-10)
    assert ball_zero(3) == pytest.approx(2.081575977818101, rel=1e-10)
    assert ball_zero(2) < 1.8411837813406595


@pytest.mark.parametrize(
    ("domain", "tight"),
    [
        (cordes.Box([0, 0], [2, 1]), 1.0001),
        (cordes.Ball([1, 0], 0.7), 1.0001),
        (cordes.Ball([0, 0, 0], 1.3), 1.0001),
        (cordes.Ellipsoid([0, 0], [[1.5, 0.4], [0.4, 0.5]]), 1.2),
        (cordes.Polygon([[0, 0], [2, 0], [0.5, 1]]), 1.6),
    ],
)
def test_poincare_constants_of_uniform_densities(domain, tight):
    found = uniform_poincare(domain)
    assert ritz(domain, lambda y: np.ones(len(y))) <= found <= tight * ritz(domain, lambda y: np.ones(len(y)))


@pytest.mark.parametrize(
    "density",
    [lambda y: jnp.exp(2 * y[0]), lambda y: jnp.exp(-4 * jnp.sum(y**2)), lambda y: 1 + 0.9 * jnp.sin(6 * y[0]), lambda y: 0.2 + 8 * y[0] ** 2],
)
def test_poincare_constants_of_other_densities(density):
    problem = Transport(SQUARE, density, SQUARE, density)
    found = describe_target(problem)
    assert ritz(SQUARE, problem.target_density) <= found.poincare
    x = SQUARE.interior_points(4000, 8)
    assert found.smallest <= np.min(problem.target_density(x))
    assert found.largest >= np.max(problem.target_density(x))
    assert found.source in ("interval", "sampled")


def ritz(domain, density, degree=8):
    """√C_P from below: the best quotient of polynomials."""
    x, weight = domain.quadrature(30)
    weight = weight * density(x)
    flux = Flux(domain)
    flux.powers = flux.powers[np.sum(flux.powers, axis=1) <= degree]
    P, slopes = flux._polynomials(x)
    P, slopes = P[:, 1:] - weight @ P[:, 1:] / np.sum(weight), slopes[:, :, 1:]
    mass, stiffness = P.T @ (weight[:, None] * P), sum(slope.T @ (weight[:, None] * slope) for slope in slopes)
    return float(np.sqrt(np.max(np.linalg.eigvals(np.linalg.solve(stiffness, mass)).real)))


@pytest.mark.parametrize(
    "domain", [SQUARE, DISK, cordes.Polygon([[0, 0], [2, 0], [0.5, 1]]), CUBE, INTERVAL, cordes.Ellipsoid([0, 0], [[1.5, 0.4], [0.4, 0.5]])]
)
def test_fluxes_stay_inside_and_have_the_divergence_they_claim(domain):
    flux = Flux(domain)
    flux.coefficients = np.random.default_rng(3).standard_normal(flux.coefficients.shape) / np.arange(1, flux.coefficients.shape[1] + 1)
    x, h = domain.interior_points(50, 4), 1e-5
    differences = sum((flux(x + h * e)[0] - flux(x - h * e)[0])[:, i] / (2 * h) for i, e in enumerate(np.eye(domain.dimension)))
    _, divergence, rounding = flux(x)
    assert divergence == pytest.approx(differences, rel=1e-4, abs=1e-4)
    assert np.all(rounding > 0)
    edge, normals = domain.boundary_points(200, 5)
    assert np.max(np.abs(np.sum(flux(edge)[0] * normals, axis=1))) < 1e-10


def test_integrals_with_signs():
    x, weight = SQUARE.quadrature(10)
    low, high = integral(fixed_rule(x, weight), x[:, 0] + x[:, 1] ** 2 - 1, 1.0)
    assert low <= 1 / 12 - 1 + 1e-12
    assert high >= 1 / 12 - 1 - 1e-12
    assert isinstance(fixed_rule(x, weight), Quadrature)


# Refusals


def refused(problem, potential):
    certificate = certified(problem, potential)
    assert certificate.map_L2 is None
    assert certificate.W2 is None
    return certificate.reason


def test_a_potential_that_is_not_convex():
    reason = refused(uniform_square(), lambda x: jnp.sum(x**2) / 2 + 0.2 * jnp.prod(jnp.cos(jnp.pi * (x + 0.5))))
    assert "not convex" in reason
    assert "eigenvalue" in reason
    with pytest.raises(NoBoundError, match="not convex"):
        facts(uniform_square(), lambda x: -jnp.sum(x**2))


def test_kinks_jumps_and_false_derivatives():
    assert "kink" in refused(uniform_square(), lambda x: jnp.sum(x**2) / 2 + jnp.abs(x[0] - 0.1))
    stopped = refused(uniform_square(), lambda x: jnp.sum(x**2) / 2 + 0.1 * jax.lax.stop_gradient(jnp.cos(x[0])))
    assert "not the derivative" in stopped
    with pytest.warns(cordes.UndeclaredJumpWarning):
        problem = Transport(SQUARE, lambda x: 1 + 0.5 * (x[0] > 0.123), normalise=True)
    reason = refused(problem, lambda x: jnp.sum(x**2) / 2)
    assert "source jumps" in reason
    problem = Transport(SQUARE, lambda x: jnp.ones(()), SQUARE, lambda y: 1 + 0.5 * (y[1] > 0.123), normalise=True)
    assert "target jumps" in refused(problem, lambda x: jnp.sum(x**2) / 2)


def test_single_precision(monkeypatch):
    monkeypatch.setattr(module, "jax", SimpleNamespace(config=SimpleNamespace(read=lambda _: False)))
    assert "double precision is off" in refused(uniform_square(), flat(1e-3))


def test_densities_that_are_not_positive():
    problem = uniform_square()
    broken = SimpleNamespace(**{name: getattr(problem, name) for name in ("domain", "target_domain", "uniform", "target_density")})
    broken.source_density = lambda x: np.where(x[:, 0] > 0.45, -1.0, 1.0)
    certificate = bounds(broken, FunctionCandidate(problem, flat(1e-3)))
    assert "the density source is -1 at x" in certificate.reason


def test_masses_that_are_not_one_count():
    problem = uniform_square()
    names = ("domain", "target_domain", "uniform", "target_density", "mu", "nu")
    heavy = SimpleNamespace(**{name: getattr(problem, name) for name in names}, source_density=lambda x: 1.001 * problem.source_density(x))
    attempt = module._Attempt(heavy, FunctionCandidate(problem, flat(1e-6)), 0.99)
    assert attempt._mass_doubt(heavy.source_density, SQUARE) == pytest.approx(1e-3, rel=1e-9)
    assert attempt.facts().chi >= 2e-3


def test_second_derivatives_of_another_map():
    """The mass balance of a map onto the target shows that its Hessian is wrong."""
    inner = FunctionCandidate(uniform_square(), lambda x: jnp.sum(x**2) / 2)

    def jet(x):
        return inner.jet(x)._replace(hessian=1.1 * np.asarray(inner.jet(x).hessian))

    certificate = bounds(uniform_square(), SimpleNamespace(jet=jet, applied=inner.applied, value=inner.value))
    assert "mass balance" in certificate.reason


def test_norms_that_do_not_converge():
    attempt = module._Attempt(uniform_square(), FunctionCandidate(uniform_square(), lambda x: jnp.sum(x**2) / 2), 0.99)
    with pytest.raises(NoBoundError, match="did not converge"):
        attempt._check_convergence(Norm(0.0, 1.0, 0.3))


# A candidate of which nothing is known but values


def test_sampled_curvature():
    inner = FunctionCandidate(benchmark(), cosine(1e-3, 1))
    certificate = bounds(benchmark(), SimpleNamespace(jet=inner.jet, applied=inner.applied, value=inner.value))
    error, _ = truth(benchmark(), jax.grad(benchmark_potential), cosine(1e-3, 1))
    assert certificate.epsilon_source == "sampled"
    # The flow has the factor 2 where no largest quotient of the densities is proved.
    assert 2 <= certificate.map_L2 / error <= 5


# The battery


def test_random_attacks():
    results = battery.run(15)
    assert sum(bool(found) for *_, found in results) >= 12
    assert battery.violations(results) == []


def test_the_battery_notices_a_missing_term(monkeypatch):
    """Without the slice that the map does not reach, without shrinking, and with a tenth of the flow, bounds fail."""
    true = module._Attempt._bounds

    def without(self, *arguments):
        found = true(self, *arguments)
        return found._replace(delta=0.1 * found.delta, moved=Norm(0.0, 0.0), slice=found.slice._replace(mass=0.0))

    monkeypatch.setattr(module._Attempt, "_bounds", without)
    assert battery.violations(battery.run(10))
