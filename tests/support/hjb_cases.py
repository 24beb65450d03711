"""Control problems with known solutions whose best control switches, and certificates against the
truth."""

import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import cordes
from cordes.certificates.residual.candidate import FunctionCandidate

SQUARE = cordes.Box([0, 0], [1, 1])
NOWHERE = np.zeros((0, 2))


def wave(x):
    return jnp.sin(jnp.pi * x[0]) * jnp.sin(jnp.pi * x[1])


def bump(x):
    return 0.05 * jnp.prod(x * (1 - x)) * jnp.cos(4 * x[0] + 2 * x[1])


def manufactured(domain, u, m, sense="sup", drift=0.0, reaction=0.0, seed=0, depth=5.0, **options):
    """f^a = L^a u ± s_a with s_a ≥ 0 whose minimum over the controls is zero: u solves the
    equation, and its best control changes from place to place."""
    rng, d = np.random.default_rng(seed), domain.dimension
    fields = rng.standard_normal((m, d, d))
    fields = fields + np.swapaxes(fields, 1, 2)
    fields -= np.trace(fields, axis1=1, axis2=2)[:, None, None] / d * np.eye(d)
    fields /= np.linalg.norm(fields, axis=(1, 2))[:, None, None]
    numbers = [
        fields.reshape(m, -1),
        3 * rng.standard_normal((m, d)),
        rng.uniform(0, 6, (m, 1)),
        np.exp(rng.uniform(-0.7, 0.7, (m, 1))),
    ]
    controls = np.concatenate(numbers, axis=1)
    cut = d * d

    def A(x, a):
        return a[-1] * (
            jnp.eye(d)
            + 0.55
            / math.sqrt(d - 1)
            * jnp.cos(jnp.dot(a[cut : cut + d], x))
            * a[:cut].reshape(d, d)
        )

    def b(x, a):
        return drift * a[-1] * jnp.sin(a[cut : cut + d])

    def c(x, a):
        return reaction * a[-1] * (1 + 0.3 * jnp.cos(jnp.dot(a[cut : cut + d], x)))

    def potential(x, a):
        return depth * jnp.cos(jnp.dot(a[cut : cut + d], x) + a[-2])

    def f(x, a):
        applied = (
            jnp.sum(A(x, a) * jax.hessian(u)(x)) + jnp.dot(b(x, a), jax.grad(u)(x)) - c(x, a) * u(x)
        )
        step = potential(x, a) - jnp.min(
            jax.vmap(lambda other: potential(x, other))(jnp.asarray(controls))
        )
        return applied + (step if sense == "sup" else -step)

    return cordes.HJB(
        domain,
        controls,
        A,
        f,
        b=b if drift else None,
        c=c if reaction else None,
        sense=sense,
        exact=u,
        **options,
    )


def truth(domain, v, lambda_, count=40):
    x, weight = domain.quadrature(count)
    value, gradient, hessian = (
        np.asarray(part)
        for part in jax.jit(jax.vmap(lambda x: (v(x), jax.grad(v)(x), jax.hessian(v)(x))))(x)
    )

    def norm(values):
        return float(np.sqrt(weight @ np.sum(values.reshape(len(x), -1) ** 2, axis=1)))

    energy = norm(np.trace(hessian, axis1=1, axis2=2) - lambda_ * value)
    return {
        "L2": norm(value),
        "H1": norm(gradient),
        "H2": norm(hessian),
        "Linf": float(np.max(np.abs(value))),
        "energy": energy,
    }


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
