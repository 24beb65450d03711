"""Distances less a number have a twin without a root: the same zero set, the same slope there."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from cordes.domains import Box
from cordes.formulas.regularity import jump, kink
from cordes.formulas.regularity.distances import without_root
from cordes.formulas.written.toml import parse

SQUARE = Box([-1, -1], [1, 1])
POINTS = SQUARE.interior_points(64, seed=3)
CENTRE = jnp.array([0.2, 0.1])
DISTANCES = {
    "norm": lambda x: jnp.linalg.norm(x) - 0.5,
    "from inside": lambda x: 0.3 - jnp.linalg.norm(x - CENTRE),
    "sum of squares": lambda x: jnp.sqrt(x[0] ** 2 + x[1] ** 2) - 0.5,
    "scaled": lambda x: 1 - 2 * jnp.linalg.norm(x - CENTRE) / 0.6,
    "ellipse": lambda x: jnp.sqrt((x[0] / 0.5) ** 2 + (x[1] / 0.2) ** 2) - 1,
    "strip": lambda x: jnp.abs(x[0] - 0.3) - 0.1,
    "file": parse("r - 0.5", 2, {}, "", (), False),
}
OTHERS = {
    "smooth": lambda x: x @ x - 0.25,
    "no zero": lambda x: jnp.linalg.norm(x) + 0.5,
    "smaller of two": lambda x: jnp.minimum(jnp.linalg.norm(x), x[0] + 2) - 0.5,
    "in a half": lambda x: jnp.where(x[0] > 0, jnp.linalg.norm(x), 1.0) - 0.5,
    "moving level": lambda x: jnp.linalg.norm(x) - 0.5 - 0.1 * x[0],
    "root of a root": lambda x: jnp.sqrt(jnp.linalg.norm(x)) - 0.5,
}


def on_zero_set(phi):
    """Zeros on rays from a point inside, by bisection."""
    directions = np.stack([np.cos(np.arange(12.0)), np.sin(np.arange(12.0))], axis=1)
    low, high = np.zeros(12), np.full(12, 0.7)
    start = np.asarray(CENTRE) + np.array([0.01, -0.03])
    values = jax.jit(jax.vmap(phi))
    inside = np.sign(values(start[None])[0])
    for _ in range(60):
        middle = (low + high) / 2
        same = np.sign(values(start + middle[:, None] * directions)) == inside
        low, high = np.where(same, middle, low), np.where(same, high, middle)
    return (start + low[:, None] * directions)[low < 0.69]


@pytest.mark.parametrize("name", DISTANCES)
def test_a_distance_has_a_smooth_twin(name):
    phi = DISTANCES[name]
    twin = without_root(phi, POINTS)
    assert twin is not None
    assert kink(phi, SQUARE) is not None
    assert kink(twin, SQUARE) is None
    x = on_zero_set(phi)
    assert len(x) > 3
    np.testing.assert_allclose(jax.vmap(twin)(x), 0, atol=1e-12)
    np.testing.assert_allclose(jax.vmap(jax.grad(twin))(x), jax.vmap(jax.grad(phi))(x), atol=1e-9)
    same = np.sign(jax.vmap(phi)(POINTS)) == np.sign(jax.vmap(twin)(POINTS))
    assert np.all(same)
    assert np.all(np.isfinite(jax.hessian(twin)(jnp.zeros(2))))
    # Coefficients that compare the distance jump on the twin.
    assert jump(lambda x: jnp.where(phi(x) < 0, 2.0, 1.0), SQUARE, [twin]) is None


@pytest.mark.parametrize("name", OTHERS)
def test_others_have_none_or_a_true_one(name):
    twin = without_root(OTHERS[name], POINTS)
    assert twin is None or name == "root of a root"


def test_one_circle_in_four_ways():
    ways = [
        lambda x: x @ x - 0.25,
        lambda x: x[0] ** 2 + x[1] ** 2 - 0.25,
        lambda x: jnp.linalg.norm(x) - 0.5,
        lambda x: 1 - 2 * jnp.linalg.norm(x),
    ]
    for declared in ways:
        for compared in ways:
            assert jump(lambda x, f=compared: jnp.sign(f(x)), SQUARE, [declared]) is None
    near = [lambda x: x @ x - 0.25 * (1 + 1e-12)]
    assert jump(lambda x: jnp.sign(jnp.linalg.norm(x) - 0.5), SQUARE, near) is not None


def test_a_square_in_several_ways():
    sides = [lambda x: x[0] - 0.5, lambda x: x[0] + 0.5, lambda x: x[1] - 0.5, lambda x: x[1] + 0.5]
    strips = [lambda x: jnp.abs(x[0]) - 0.5, lambda x: x[1] ** 2 - 0.25]
    inside = [
        lambda x: (jnp.abs(x[0]) < 0.5) & (jnp.abs(x[1]) < 0.5),
        lambda x: jnp.max(jnp.abs(x)) < 0.5,
        lambda x: jnp.maximum(jnp.abs(x[0]), jnp.abs(x[1])) < 0.5,
        lambda x: jnp.all((x > -0.5) & (x < 0.5)),
    ]
    for test in inside:

        def f(x, test=test):
            return jnp.where(test(x), 2.0, 1.0)

        assert jump(f, SQUARE, sides) is None
        assert jump(f, SQUARE, strips) is None
        assert jump(f, SQUARE, sides[:3]) is not None
        assert jump(f, SQUARE, strips[1:]) is not None


WRITTEN = {
    "tilted": (lambda x: 2 * x[0] + x[1] - 0.5, lambda x: x[0] + 0.5 * x[1] - 0.25),
    "parabola": (lambda x: x[1] - (x[0] ** 2 - 0.3), lambda x: x[1] - x[0] ** 2 + 0.3),
    "expanded": (lambda x: (x[0] - x[1]) ** 2 - 0.09, lambda x: jnp.abs(x[0] - x[1]) - 0.3),
    "factor": (lambda x: x[0], lambda x: x[0] * x[1]),
    "square": (lambda x: (x[0] - 0.3) ** 2 - 0.01, lambda x: (x[0] - 0.2) * (x[0] - 0.4)),
}


@pytest.mark.parametrize("name", WRITTEN)
def test_one_set_in_two_ways(name):
    compared, declared = WRITTEN[name]
    assert jump(lambda x: jnp.sign(compared(x)), SQUARE, [declared]) is None
    assert jump(lambda x: jnp.sign(compared(x) + 1e-9), SQUARE, [declared]) is not None


def test_quotients_without_a_pole():
    assert jump(lambda x: jnp.sinc(x[0] - x[1]), SQUARE) is None
    assert kink(lambda x: jnp.sinc(x[0] - x[1]), SQUARE) is None
    assert jump(lambda x: jnp.sin(x[0]) / x[1], SQUARE) is not None
    guarded = [lambda x: jnp.outer(x, x) / jnp.maximum(x @ x, 1e-300)]
    assert jump(guarded[0], SQUARE, spots=True) is None
    assert jump(guarded[0], SQUARE) is not None
