"""Bounds that do not grow with the drift: against Green's function of a spectral method, against
errors that are known, and against the drift itself."""

import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import cordes
from cordes.certificates.residual.candidate import Evaluated
from cordes.certificates.residual.norms import fixed_rule
from cordes.certificates.theorems.contraction import Coverage
from cordes.certificates.theorems.drift import estimates, interpolated
from cordes.certificates.theorems.energy import Local
from cordes.certificates.theorems.maximum import MaximumPrinciple
from cordes.certificates.theorems.pointwise import drifting_green_constant
from cordes.jet import jet_of

SQUARE = cordes.Box([0, 0], [1, 1])
SIZES = (1.0, 5.0, 20.0, 60.0, 120.0)
# Of the discrete norm of Green's function, which has a logarithm in it.
DISCRETE = 0.97


def along(size, angle):
    return size * np.array([math.cos(angle), math.sin(angle)])


def chebyshev(n):
    """Derivative, nodes and weights (Clenshaw and Curtis) on (0, 1)."""
    angle = np.pi * np.arange(n + 1) / n
    sign = np.r_[2, np.ones(n - 1), 2] * (-1.0) ** np.arange(n + 1)
    x = np.cos(angle)
    derivative = np.outer(sign, 1 / sign) / (x[:, None] - x + np.eye(n + 1))
    derivative -= np.diag(derivative.sum(axis=1))
    moments = [2 / (1 - k * k) if k % 2 == 0 else 0.0 for k in range(n + 1)]
    weight = np.linalg.solve(np.cos(np.outer(np.arange(n + 1), angle)), moments)
    return 2 * derivative, (x + 1) / 2, weight / 2


def spectral(A, b, c, n):
    """Inner nodes, the operator on functions that vanish on the boundary, the weights."""
    derivative, x, weight = chebyshev(n)
    points = np.stack(np.meshgrid(x, x, indexing="ij"), -1).reshape(-1, 2)
    D = [np.kron(derivative, np.eye(n + 1)), np.kron(np.eye(n + 1), derivative)]
    A, b, c = (np.asarray(jax.vmap(part)(points)) for part in (A, b, c))
    L = sum(A[:, i, j, None] * (D[i] @ D[j]) for i in range(2) for j in range(2))
    L = L + b[:, :1] * D[0] + b[:, 1:] * D[1] - np.diag(c)
    inside = np.all((points > 1e-12) & (points < 1 - 1e-12), axis=1)
    return points[inside], L[np.ix_(inside, inside)], np.kron(weight, weight)[inside]


def principle_of(problem, residual=1.0):
    x, weight = problem.domain.quadrature(24)
    local = Local(*problem.coefficients(x)[:3])
    coverage = Coverage(
        problem.domain,
        lambda x: problem.linearise(x)[:3],
        lambda x: Local(*problem.coefficients(x)[:3]),
        x,
        local,
        problem.constant_coefficients,
    )
    evaluated = Evaluated(local, np.full(len(x), residual), np.zeros(len(x)))
    measure = fixed_rule(x, weight)
    return MaximumPrinciple(problem.domain, measure, evaluated, True, coverage=coverage), coverage


def random_coefficients(seed):
    """A and b, constant for even seeds."""
    random = np.random.default_rng(seed)
    size, angle, q = 10 ** random.uniform(0, 2), random.uniform(0, 7), random.normal(size=6)
    a = random.uniform(0.3, 3, 2)
    matrix = np.diag(a) + 0.5 * math.sqrt(a[0] * a[1]) * (1 - np.eye(2))
    if seed % 2 == 0:
        return matrix if seed % 4 else np.eye(2), along(size, angle), random.uniform(0, 3)

    def b(x):
        first = 0.5 * q[0] * jnp.sin(3 * q[1] * x[0] + 2 * q[2] * x[1])
        second = 0.5 * q[3] * jnp.cos(3 * q[4] * x[1] + q[5] * x[0])
        return jnp.asarray(along(size, angle)) + size * jnp.array([first, second])

    def A(x):
        return jnp.asarray(matrix) * (1 + 0.3 * jnp.sin(2 * x[0] + x[1]))

    return (np.eye(2) if seed % 4 == 1 else A), b, 0.0


@pytest.mark.parametrize("seed", range(8))
def test_constants_against_greens_function(seed):
    """‖G(x, ·)‖ is the best constant, and ∫G the smallest ψ: both of a spectral method, which knows
    nothing of the theorems."""
    A, b, c = random_coefficients(seed)
    problem = cordes.Linear(SQUARE, A, lambda x: 1.0 + 0 * x[0], b=b, c=c)
    _, L, weight = spectral(problem.A, problem.b, problem.c, 26)
    G = -np.linalg.inv(L)
    best = math.sqrt(np.max(np.sum(G**2 / weight, axis=1)))
    principle, coverage = principle_of(problem)
    assert principle.traversals[0].peak >= DISCRETE * np.max(np.sum(G, axis=1))
    found = estimates(problem, principle, coverage)
    assert found
    for estimate in found:
        # The largest weight makes the norm at most that of the residual alone.
        assert estimate.power == 2
        assert estimate.factor * np.max(estimate.weight) >= DISCRETE * best, estimate.cited
        assert interpolated(principle, estimate).bound >= DISCRETE * np.max(np.sum(G, axis=1))


@pytest.mark.parametrize("seed", range(6))
def test_traversals_lie_above_everywhere(seed):
    """-Lψ ≥ 1 at points that are no edges of cells, ψ ≥ 0, and ∇ψ is the gradient."""
    A, b, c = random_coefficients(seed)
    problem = cordes.Linear(SQUARE, A, lambda x: 1.0 + 0 * x[0], b=b, c=c)
    principle, _ = principle_of(problem)
    x = np.random.default_rng(seed).uniform(0.001, 0.999, (4000, 2))
    local, step = Local(*problem.coefficients(x)[:3]), 1e-7
    for each in principle.traversals:
        value, gradient, hessian = each.at(x)
        minus = local.c * value - np.sum(local.A * hessian, axis=(1, 2))
        assert np.min(minus - np.sum(local.b * gradient, axis=1)) >= 1 - 1e-7
        assert np.min(value) >= 0
        assert np.max(value) <= each.peak
        for i, shift in enumerate(step * np.eye(2)):
            slope = (each.at(x + shift)[0] - each.at(x - shift)[0]) / (2 * step)
            np.testing.assert_allclose(
                slope, gradient[:, i], atol=1e-4 * np.max(np.abs(gradient)), rtol=1e-4
            )


def test_the_way_out_takes_no_longer_than_the_drift():
    for size, angle in ((20.0, 0.4), (120.0, 1.9)):
        problem = cordes.Linear(SQUARE, np.eye(2), 1.0, b=along(size, angle))
        principle, _ = principle_of(problem)
        assert principle.traversals[0].peak <= 1.01 / np.max(np.abs(along(size, angle)))
        # The plain constant of the maximum principle is beyond 1e5 here.
        assert principle.factor <= 4


def wobbling(random):
    """An error that vanishes on the boundary."""
    k, phase = random.integers(1, 7, 2), random.uniform(0, 6)

    def error(x):
        wave = jnp.sin(k[0] * jnp.pi * x[0]) * jnp.sin(k[1] * jnp.pi * x[1])
        return wave * jnp.exp(jnp.cos(3 * x[0] + phase) * x[1])

    return error


def solved_by(error, b, domain=SQUARE, **options):
    """The equation whose solution is `error`, so that 0 is wrong by it."""

    def f(x):
        _, gradient, hessian = jet_of(error)(x)
        return jnp.trace(hessian) + jnp.dot(b(x) if callable(b) else jnp.asarray(b), gradient)

    return cordes.Linear(domain, np.eye(domain.dimension), f, b=b, **options)


def effectivity(problem, error):
    """Linf over the truth, which no bound may undercut, under any name."""
    x = problem.domain.interior_points(20_000, 3, "sobol")
    truth = float(np.max(np.abs(jax.vmap(error)(x))))
    certificate = cordes.certify(problem, lambda x: 0.0 * x[0])
    for name, bound in certificate.alternatives.items():
        assert bound >= truth, name
    assert certificate.rms >= math.sqrt(np.mean(np.asarray(jax.vmap(error)(x)) ** 2)) * 0.99
    return certificate.Linf / truth, certificate


@pytest.mark.parametrize("size", SIZES)
def test_constant_drifts(size):
    random = np.random.default_rng(int(size))
    error, angle = wobbling(random), random.uniform(0, 2 * np.pi)
    found, certificate = effectivity(solved_by(error, along(size, angle)), error)
    assert 1 <= found <= 200
    names = {"Green with drift", "Talenti", "ABP (interpolated) with drift"}
    assert names <= set(certificate.alternatives)


VARIABLE = {
    "rotating": lambda x: 120 * jnp.array([x[1] - 0.5, 0.5 - x[0]]),
    "outward": lambda x: 120 * (x - 0.5),
    "saddle": lambda x: 120 * jnp.array([x[0] - 0.5, 0.5 - x[1]]),
    "channel": lambda x: 120 * jnp.array([x[1] * (1 - x[1]), 0.3 * jnp.sin(6 * x[0])]),
    "swirl": lambda x: 80 * jnp.array([1 + 0.5 * jnp.sin(5 * x[1]), 0.5 * jnp.cos(4 * x[0])]),
    "cells": lambda x: 30 * jnp.array([jnp.sin(3 * x[0]) * jnp.cos(3 * x[1]),
                                       -jnp.cos(3 * x[0]) * jnp.sin(3 * x[1])]),
    "sinks": lambda x: 60 * jnp.array([1 + 0.5 * jnp.sin(5 * x[0]), 0.5 * jnp.cos(4 * x[1])]),
    "kink": lambda x: 60 * jnp.array([1 + jnp.abs(x[1] - 0.4), x[0]]),
    "jump": lambda x: jnp.where(x[0] > 0.4, 90.0, 40.0) * jnp.array([1.0, 0.5]),
}  # fmt: skip


@pytest.mark.parametrize("name", VARIABLE)
def test_variable_drifts(name):
    error = wobbling(np.random.default_rng(len(name)))
    b = VARIABLE[name]
    interfaces = [lambda x: x[0] - 0.4] if name == "jump" else []
    problem = solved_by(error, b, interfaces=interfaces)
    found, certificate = effectivity(problem, error)
    assert 1 <= found <= 1000
    # A jump of b is a source or a sink that no derivative shows.
    assert ("Talenti" in certificate.alternatives) == (name != "jump")


@pytest.mark.parametrize("seed", range(4))
def test_derivatives_of_the_error(seed):
    """H1 and H2 from the equation: above the truth, and no exponential of the drift."""
    random = np.random.default_rng(seed)
    error = wobbling(random)
    b = along(10 ** random.uniform(0.5, 2), 7 * random.random())
    b = b if seed % 2 else (lambda x, b=b: jnp.asarray(b) * (1 + 0.3 * jnp.sin(4 * x[0])))
    certificate = cordes.certify(solved_by(error, b), lambda x: 0.0 * x[0])
    x, weight = SQUARE.quadrature(40)
    _, gradient, hessian = (np.asarray(part) for part in jax.vmap(jet_of(error))(x))
    slope = math.sqrt(weight @ np.sum(gradient**2, axis=1))
    curvature = math.sqrt(weight @ np.sum(hessian**2, axis=(1, 2)))
    assert 1 <= certificate.H1 / slope <= 1000
    assert 1 <= certificate.H2 / curvature <= 1e4


def test_an_inward_drift_keeps_bounds_that_grow():
    """The time of leaving is exponential there, and so is every bound that is one."""
    error = wobbling(np.random.default_rng(5))
    problem = solved_by(error, lambda x: -30 * (x - 0.5))
    found, certificate = effectivity(problem, error)
    assert found >= 1
    assert "Talenti" not in certificate.alternatives


@pytest.mark.parametrize(
    "domain",
    [cordes.Box([0, 0, 0], [1, 1, 1]), cordes.Ball([0, 0], 0.7), cordes.Box([0], [2])],
    ids=["cube", "disk", "interval"],
)
def test_other_domains(domain):
    d = domain.dimension
    distance, tilt = domain.distance, np.linspace(1.0, 2.0, d)

    def error(x):
        return distance(x) * jnp.sin(4 * jnp.dot(x, jnp.asarray(tilt)) + 1)

    found, certificate = effectivity(
        solved_by(error, 40 * tilt / np.linalg.norm(tilt), domain=domain), error
    )
    assert 1 <= found <= 200
    assert "Green with drift" in certificate.alternatives


def test_greens_function_in_one_dimension():
    """∫Γ² over the line, where all is elementary: downstream 1/β², upstream e^{-2βρ}/β²."""
    beta, length = 3.0, 2.0
    square = (length + (1 - math.exp(-2 * beta * length)) / (2 * beta)) / beta**2
    found = drifting_green_constant(cordes.Box([0], [length]), np.eye(1), np.array([beta]))
    assert found == pytest.approx(math.sqrt(square), rel=1e-8)
    assert found >= math.sqrt(square)


@pytest.mark.parametrize("reaction", [0.0, 7.0])
def test_greens_function_by_the_heat_kernel(reaction):
    """∫Γ² over the plane, where λ > 0 keeps it finite, by the Gaussians of which Γ is made."""
    b, lambda_ = np.array([2.0, 1.0]), 3.0 + reaction
    # Γ(z) = ∫ (4πt)⁻¹ exp(-|z - bt|²/4t - λt) dt, and two Gaussians of variances 2t, 2s with
    # means bt, bs overlap to (4π(t + s))⁻¹ exp(-|b|²(t - s)²/4(t + s)).
    node, weight = np.polynomial.legendre.leggauss(400)
    time = np.exp(14 * node - 10)
    measure = 14 * weight * time * np.exp(-lambda_ * time)
    total = time[:, None] + time
    overlap = np.exp(-(b @ b) * (time[:, None] - time) ** 2 / (4 * total)) / (4 * np.pi * total)
    square = float(measure @ overlap @ measure)
    plane = cordes.Box([-50, -50], [50, 50])
    found = drifting_green_constant(plane, np.eye(2), b, lambda_)
    assert found == pytest.approx(math.sqrt(square), rel=1e-4)


@pytest.mark.long
@pytest.mark.filterwarnings("ignore::cordes.CordesConditionWarning")
@pytest.mark.parametrize("size", [20.0, 100.0])
def test_layers_are_solved_and_certified(size):
    """Δu + b·∇u = 1 with layers along two sides."""
    b = size * np.array([1.0, 0.5])
    problem = cordes.Linear(SQUARE, np.eye(2), 1.0, b=b)
    solution = cordes.solve(problem)
    points, L, _ = spectral(problem.A, problem.b, problem.c, 56)
    error = np.max(np.abs(np.asarray(solution(points)) - np.linalg.solve(L, np.ones(len(L)))))
    certificate = solution.certify()
    assert error <= certificate.Linf <= 1000 * error
    assert certificate.rms <= certificate.Linf
