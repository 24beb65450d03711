"""The yardstick: seconds of one plain training epoch on this machine, by dimension.

One full-batch Adam step (lr 3e-4) of a 4x64 SiLU network on 10,000 points of (-1,1)^d, residual
A:D^2(D N) - 1 with a constant full matrix A, D = prod(1 - x_i^2), second derivatives by vmapped
jax.hessian, float32, 20 steps inside one jitted scan; the minimum of several scans, compile
excluded. It knows no problem and stays plain, so that costs in epochs can be compared between
machines, problems and versions.     python -m cordes.studies.yardstick [d ...]
"""

import sys
import time

import jax
import jax.numpy as jnp
import optax


def epoch_seconds(dimension: int, points: int = 10_000, steps: int = 20, repeats: int = 3) -> float:
    keys = jax.random.split(jax.random.PRNGKey(0), 7)
    sizes = [dimension, 64, 64, 64, 64, 1]
    parameters = [
        (jax.random.normal(k, (m, n), jnp.float32) / m**0.5, jnp.zeros(n, jnp.float32))
        for k, m, n in zip(keys, sizes[:-1], sizes[1:])  # noqa: B905
    ]
    x = jax.random.uniform(keys[-1], (points, dimension), jnp.float32, -1, 1)
    matrix = jnp.eye(dimension, dtype=jnp.float32) + jnp.ones((dimension, dimension), jnp.float32)

    def value(parameters, x):
        h = x
        for weight, bias in parameters[:-1]:
            h = jax.nn.silu(h @ weight + bias)
        weight, bias = parameters[-1]
        return jnp.prod(1 - x**2) * (h @ weight + bias)[0]

    def loss(parameters):
        residual = jax.vmap(
            lambda x: jnp.sum(matrix * jax.hessian(value, argnums=1)(parameters, x)) - 1
        )
        return jnp.mean(residual(x) ** 2)

    adam = optax.adam(3e-4)

    def step(carry, _):
        parameters, state = carry
        loss_value, gradient = jax.value_and_grad(loss)(parameters)
        update, state = adam.update(gradient, state)
        return (optax.apply_updates(parameters, update), state), loss_value

    run = jax.jit(lambda carry: jax.lax.scan(step, carry, None, length=steps))
    carry = (parameters, adam.init(parameters))
    jax.block_until_ready(run(carry))
    best = float("inf")
    for _ in range(repeats):
        start = time.perf_counter()
        jax.block_until_ready(run(carry))
        best = min(best, (time.perf_counter() - start) / steps)
    return best


if __name__ == "__main__":
    for d in [int(word) for word in sys.argv[1:]] or [2]:
        print(f"d = {d}: {epoch_seconds(d):.4f} s per epoch")
