"""Jets, residuals and sources of problems that are not linear."""

import jax
import numpy as np

import cordes
from cordes.jet import Jet, jet_of

SQUARE, CUBE = cordes.Box([0, 0], [1, 1]), cordes.Box([0] * 3, [1] * 3)
IDENTITY = np.eye(2)


def jets(problem, points):
    return Jet(*(np.asarray(part) for part in jax.jit(jax.vmap(jet_of(problem.exact)))(points)))


def random_jets(count, d, seed=0, scale=1.0):
    generator = np.random.default_rng(seed)
    hessian = scale * generator.standard_normal((count, d, d))
    return Jet(
        generator.standard_normal(count),
        generator.standard_normal((count, d)),
        hessian + np.swapaxes(hessian, 1, 2),
    )


def residuals(problem, points, jet):
    return np.asarray(
        jax.jit(jax.vmap(lambda x, *parts: problem.residual(x, Jet(*parts))))(points, *jet)
    )


def source(problem, points, *control):
    return np.asarray(jax.jit(jax.vmap(lambda x: problem.f(x, *control)))(points))
