"""Certificates of optimal transport: bounds that hold against known maps, sharp where they should
be, and random attacks."""

import math
import sys
from pathlib import Path
from types import SimpleNamespace

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import cordes
from cordes.certificates.residual.candidate import FunctionCandidate
from cordes.certificates.residual.norms import Norm
from cordes.certificates.transport import bounds as transport_bounds
from cordes.certificates.transport import certify as transport
from cordes.certificates.transport import map as transport_map
from cordes.certificates.transport.bounds import Flux
from cordes.certificates.transport.certify import bounds
from cordes.certificates.transport.target import gauge, image_of_boundary
from cordes.problems.transport import Transport

sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks"))
import transport_battery as battery
from transport_maps import (
    CUBE,
    DISK,
    INTERVAL,
    SQUARE,
    benchmark,
    benchmark_potential,
    bent,
    certified,
    check,
    cosine,
    facts,
    flat,
    truth,
    uniform_interval,
    uniform_square,
)


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
    monkeypatch.setattr(transport_bounds, "flux_norm", lambda *_: math.inf)
    certificate = certified(benchmark(), potential)
    error, _ = truth(benchmark(), jax.grad(benchmark_potential), potential)
    # α and β are proved to two per cent, which makes the bound larger.
    assert effectivity <= certificate.map_L2 / error <= 1.12 * effectivity


def test_small_errors():
    check(benchmark(), jax.grad(benchmark_potential), cosine(1e-8, 2), 3.0)


# One dimension: the distance of the densities is that of the maps, so that every constant is sharp


@pytest.mark.parametrize("with_flux", [True, False])
def test_the_bound_is_sharp_in_one_dimension(with_flux, monkeypatch):
    if not with_flux:
        monkeypatch.setattr(transport_bounds, "flux_norm", lambda *_: math.inf)
    error, _ = truth(uniform_interval(), lambda x: x, bent(1e-4))
    assert 1 <= facts(uniform_interval(), bent(1e-4)).delta / error <= 1.01
    check(uniform_interval(), lambda x: x, bent(1e-4), 1.02)


@pytest.mark.parametrize("name", ["poincare", "flux", "factor", "hessian"])
def test_wrong_constants_are_noticed(name, monkeypatch):
    """A tenth off, and the bound falls below the truth."""
    true = {
        "poincare": transport.describe_target,
        "flux": Flux.__call__,
        "factor": transport_bounds.flow_factor,
        "hessian": transport_map.curvature_of,
    }[name]
    if name == "poincare":
        monkeypatch.setattr(transport_bounds, "flux_norm", lambda *_: math.inf)
        monkeypatch.setattr(
            transport,
            "describe_target",
            lambda problem: true(problem)._replace(poincare=0.9 * true(problem).poincare),
        )
    elif name == "flux":
        monkeypatch.setattr(
            Flux, "__call__", lambda self, x: (0.9 * true(self, x)[0], *true(self, x)[1:])
        )
    elif name == "factor":
        monkeypatch.setattr(transport_bounds, "flow_factor", lambda *a: 0.9 * true(*a))
    else:
        monkeypatch.setattr(
            transport_map, "curvature_of", lambda *a: true(*a)._replace(alpha=1.0, beta=0.9)
        )
    problem, potential = (
        (uniform_square(), flat(1e-4)) if name == "hessian" else (uniform_interval(), bent(1e-4))
    )
    error, _ = truth(problem, lambda x: x, potential)
    assert certified(problem, potential).map_L2 < error


def test_the_bound_is_sharp_near_the_identity():
    check(uniform_square(), lambda x: x, flat(1e-4), 1.05)


def test_monotone_rearrangement():
    """The quantile function is the map: from the density (1 + x)/1.5 to (3 - y)/2.5 on the unit
    interval."""

    def exact(x):
        # (x + x²/2)/1.5 = (3y - y²/2)/2.5
        share = (x + x**2 / 2) / 1.5
        return 3 - jnp.sqrt(9 - 5 * share)

    problem = Transport(
        INTERVAL, lambda x: 1 + x[0], INTERVAL, lambda y: 3 - y[0], normalise=True, exact=exact
    )
    points = np.linspace(0, 1, 402)[1:-1]
    # T = x + x(1 - x) p(x): a polynomial with the right ends.
    fit = np.polynomial.Polynomial.fit(
        points, (np.asarray(exact(points)) - points) / (points * (1 - points)), 4
    ).convert()
    coefficients = (
        (np.polynomial.Polynomial([0, 1]) + np.polynomial.Polynomial([0, 1, -1]) * fit).integ().coef
    )
    for bend in (0.0, 0.02):

        def answer(x, bend=bend):
            return sum(float(c) * x[0] ** k for k, c in enumerate(coefficients)) + bend * jnp.cos(
                jnp.pi * x[0]
            )

        certificate = check(problem, exact, answer, 1.1)
        # In one dimension β/α, which is 3 here, does not matter.
        assert certificate.theorems["map_L2"] == "T5 (increasing)"
        assert certificate.alternatives["T5 (ii)"] > 2.9 * certificate.map_L2


def test_facts_in_closed_form():
    """φ' = x + s sin 2πx on the unit interval: q = 1 + 2πs cos 2πx."""
    s = 0.01
    found = facts(
        uniform_interval(), lambda x: x[0] ** 2 / 2 - s / (2 * jnp.pi) * jnp.cos(2 * jnp.pi * x[0])
    )
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
        return (
            x @ jnp.asarray(matrix) @ x / 2
            + x[0]
            - x[1]
            + 1e-3 * source.distance(x) ** 2 * jnp.cos(mode * x[0] + 1) * jnp.exp(x[1] / 2)
        )

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

    check(
        problem,
        lambda x: jnp.array([2.0, 1.0, 1.0]) * x + jnp.array([0.0, 0.0, 1.0]),
        potential,
        5.0,
    )


def test_a_target_density_that_varies():
    """ν manufactured, log-concave or not; μ = ν(∇u) det D²u."""

    def potential(x):
        return jnp.sum(x**2) / 2 + 0.01 * jnp.prod(jnp.cos(jnp.pi * (x + 0.5)))

    for target in (
        lambda y: jnp.exp(-jnp.sum(y**2)),
        lambda y: 1 + 0.5 * jnp.sin(3 * y[0]) * jnp.cos(2 * y[1]),
    ):

        def source(x, target=target):
            return target(jax.grad(potential)(x)) * jnp.linalg.det(jax.hessian(potential)(x))

        problem = Transport(SQUARE, source, SQUARE, target, normalise=True)
        check(
            problem,
            jax.grad(potential),
            lambda x: potential(x) + 1e-3 * jnp.cos(2 * jnp.pi * (x[0] + 0.5)),
            8.0,
        )


def test_a_translation_in_four_dimensions():
    """Statistical beyond three dimensions, and the bracket of W₂ holds the length of the shift."""
    start, shift = np.zeros(4), np.array([1.0, 0.0, -2.0, 0.0])
    problem = Transport(
        cordes.Box(start, start + 1), lambda x: jnp.ones(()), cordes.Box(shift, shift + 1)
    )
    certificate = certified(
        problem,
        lambda x: jnp.sum(x**2) / 2 + x @ jnp.asarray(shift) + 1e-3 * jnp.cos(jnp.pi * x[0]),
    )
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
    certificate = check(
        uniform_square(),
        lambda x: x,
        lambda x: jnp.sum(x**2) / 2 + 0.01 * x[0] - 0.003 * x[1] ** 2,
        15.0,
    )
    assert "leaves the target by 0.0" in certificate.reason


def test_a_map_far_outside_is_refused():
    certificate = certified(uniform_square(), lambda x: 4 * jnp.sum(x**2))
    assert certificate.map_L2 is None
    assert certificate.W2 is None
    assert "leaves the target by" in certificate.reason


def test_the_image_of_the_boundary():
    problem = uniform_square()
    image = image_of_boundary(
        problem, FunctionCandidate(problem, lambda x: jnp.sum(x**2) / 2 + 0.05 * x[0] ** 2)
    )
    # The face x₀ = ½ goes to 0.55: a gauge of 1.1, and the others stay.
    assert image.outside >= 0.05 - 1e-9
    assert 1.1 * (1 - image.shrink) <= 1
    assert image.shrink < 0.12
    # A bump of width 0.05 on one face is found.
    narrow = image_of_boundary(
        problem,
        FunctionCandidate(
            problem,
            lambda x: (
                jnp.sum(x**2) / 2 + 0.02 * (x[0] + 0.5) * jnp.exp(-(((x[1] - 0.123) / 0.05) ** 2))
            ),
        ),
    )
    assert narrow.outside >= 0.02 * 0.99
    assert gauge(
        cordes.Polygon([[0, 0], [1, 0], [0, 1]]), np.array([[0.5, 0.5], [1 / 3, 1 / 3], [1, 1]])
    ) == pytest.approx([1, 0, 4])


# A candidate of which nothing is known but values


def test_sampled_curvature():
    inner = FunctionCandidate(benchmark(), cosine(1e-3, 1))
    values = SimpleNamespace(
        jet=inner.jet, applied=inner.applied, value=inner.value, formulas=(), scales=None
    )
    certificate = bounds(benchmark(), values)
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
    """Without the slice that the map does not reach, without shrinking, and with a tenth of the
    flow, bounds fail."""
    true = transport.bounds_of

    def without(*arguments):
        found = true(*arguments)
        return found._replace(
            delta=0.1 * found.delta, moved=Norm(0.0, 0.0), slice=found.slice._replace(mass=0.0)
        )

    monkeypatch.setattr(transport, "bounds_of", without)
    assert battery.violations(battery.run(10))
