"""Transport problems whose maps are known, potentials near theirs, and their certificates against
the truth."""

import functools
from types import SimpleNamespace

import jax
import jax.numpy as jnp
import numpy as np

import cordes
from cordes.certificates.residual.candidate import FunctionCandidate
from cordes.certificates.transport.certify import certify_transport, examined
from cordes.certificates.transport.map import integral
from cordes.problems.transport import Transport
from cordes.runtime.blocks import in_blocks

SQUARE = cordes.Box([-0.5, -0.5], [0.5, 0.5])
INTERVAL = cordes.Box([0.0], [1.0])
DISK = cordes.Ball([0.0, 0.0], 1.0)
CUBE = cordes.Box([0.0, 0.0, 0.0], [1.0, 1.0, 1.0])


def certified(problem, potential):
    return certify_transport(problem, FunctionCandidate(problem, potential))


def facts(problem, potential):
    """What is known of a computed map T = ∇φ: `alpha` and `beta` bound D²φ, `chi` is the distance
    of the densities in χ², `delta` ≥ W₂(T_#μ, ν), `mass` that of ν that T reaches, `outside` how
    far T(∂X) leaves the target, and of q = ν(T) det D²φ/μ its extremes, the total variation, the
    mean square and the largest |q - 1|."""
    computed, curvature, image, _, measure, raw, found = examined(
        problem, FunctionCandidate(problem, potential)
    )
    volume, mass = problem.domain.volume, found.reached
    if image.shrink > 0:
        raw = computed.evaluate(measure.points, 0.0)
        mass = integral(measure, raw.G, volume)
    q = raw.G / raw.mu
    variation = integral(measure, np.abs(raw.mu - raw.G) / 2, volume)[1]
    return SimpleNamespace(
        alpha=curvature.alpha,
        beta=curvature.beta,
        chi=found.chi.upper,
        delta=found.delta + found.moved.upper,
        mass=sum(mass) / 2,
        total_variation=variation + max(1 - mass[0], 0.0) / 2,
        largest_q=np.max(q),
        smallest_q=np.min(q),
        density_L2=measure.norm((q - 1) * np.sqrt(raw.mu)).upper,
        density_max=np.max(np.abs(q - 1)),
        outside=image.outside,
        shrink=image.shrink,
        uncovered=image.gap,
        onto=image.onto,
    )


def at(function, x):
    return np.asarray(in_blocks(jax.jit(jax.vmap(function)), (x,)))


def truth(problem, exact, potential, count=None):
    """‖∇φ - T‖ in L²(μ) and W₂, by quadrature."""
    x, weight = problem.domain.quadrature(count or {1: 200, 2: 60, 3: 20}[problem.domain.dimension])
    mu, true, found = problem.source_density(x), at(exact, x), at(jax.grad(potential), x)
    return tuple(
        float(np.sqrt(weight @ (mu * np.sum(gap**2, axis=1)))) for gap in (found - true, x - true)
    )


def check(problem, exact, potential, largest):
    """The certificate, with the bound of the map between 1 and `largest` times the truth, and W₂ in
    its bracket."""
    certificate = certified(problem, potential)
    error, distance = truth(problem, exact, potential)
    assert certificate.map_L2 is not None, certificate.reason
    assert 1 <= certificate.map_L2 / error <= largest
    assert certificate.W2[0] <= distance * (1 + 1e-9)
    assert certificate.W2[1] >= distance * (1 - 1e-9)
    return certificate


# The benchmark of Benamou, Froese and Oberman


def wave(z):
    return (-(z**2) / (8 * jnp.pi) + 1 / (256 * jnp.pi**3) + 1 / (32 * jnp.pi)) * jnp.cos(
        8 * jnp.pi * z
    ) + z / (32 * jnp.pi**2) * jnp.sin(8 * jnp.pi * z)


def benchmark_potential(x):
    return jnp.sum(x**2) / 2 + 4 * wave(x[0]) * wave(x[1])


def benchmark_source(x):
    hessian = jax.hessian(benchmark_potential)(x)
    return hessian[0, 0] * hessian[1, 1] - hessian[0, 1] ** 2


@functools.cache
def benchmark():
    return Transport(SQUARE, benchmark_source, exact=jax.grad(benchmark_potential))


def cosine(t, k):
    return lambda x: (
        benchmark_potential(x)
        + t * jnp.cos(k * jnp.pi * (x[0] + 0.5)) * jnp.cos(k * jnp.pi * (x[1] + 0.5))
    )


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
