"""Monge–Ampère equations with known solutions, answers near them, and their certificates."""

from types import SimpleNamespace

import jax.numpy as jnp
import numpy as np

import cordes
from cordes.certificates.monge_ampere.certify import certify_monge_ampere
from cordes.certificates.residual.candidate import FunctionCandidate

SQUARE = cordes.Box([0, 0], [1, 1])
DISK = cordes.Ball([0, 0], 1.0)
NOWHERE = np.zeros((0, 2))


def exponential(x):
    return jnp.exp(jnp.sum(x**2) / 2)


def exponential_source(x):
    """det D² exp(|x|²/2) in two dimensions."""
    return (1 + jnp.sum(x**2)) * jnp.exp(jnp.sum(x**2))


SMOOTH = cordes.MongeAmpere(SQUARE, exponential_source, exponential, exact=exponential)


def mode(m, n):
    return lambda x: jnp.sin(m * jnp.pi * x[0]) * jnp.sin(n * jnp.pi * x[1])


def perturbed(t, v, u=exponential):
    return lambda x: u(x) + t * v(x)


def certified(problem, answer, singular=None):
    singular = np.zeros((0, problem.domain.dimension)) if singular is None else singular
    return certify_monge_ampere(problem, FunctionCandidate(problem, answer), singular)


def hidden(function):
    """A candidate of which nothing is known but values: no intervals."""
    inner = FunctionCandidate(SMOOTH, function)
    return SimpleNamespace(
        jet=inner.jet,
        applied=inner.applied,
        value=inner.value,
        kink=lambda: None,
        formulas=(),
        scales=None,
    )


def largest(problem, difference, count=20_000):
    points = problem.domain.interior_points(count, 77)
    return float(np.max(np.abs(cordes.problems.coefficients.sample(difference, points))))
