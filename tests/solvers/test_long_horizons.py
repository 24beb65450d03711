"""Long horizons: data that come and go many times while diffusion crosses the domain again and
again."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import cordes


def waves(x, t):
    return jnp.sin(3 * x[0] + jnp.sin(2 * t)) * jnp.exp(-t / 5) + x[0] * jnp.cos(t)


def f(x, t):
    return jax.hessian(waves)(x, t)[0, 0] - jax.grad(waves, argnums=1)(x, t)


@pytest.mark.parametrize(
    ("horizon", "largest"), [(10 / np.pi**2, 1e-11), (10.0, 2e-6)], ids=["decays", "crossings"]
)
def test_waves_in_a_long_time(horizon, largest):
    """Ten times the slowest decay, and ten times what diffusion needs to cross the domain, which is
    a hundred of the former."""
    problem = cordes.Parabolic(
        cordes.Box([0], [1]),
        horizon,
        A=1.0,
        f=f,
        g=waves,
        initial=lambda x: waves(x, 0.0),
        exact=waves,
    )
    solution = cordes.solve(problem, certify=True)
    error = solution.error().linf
    assert solution.result is cordes.Result.converged
    assert error <= largest
    assert error <= solution.certificate.Linf <= 1e-4
