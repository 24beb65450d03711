"""Rectangles on ellipses around cells: no value of the continued function lies outside."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from cordes.formulas.rectangles import Neighbourhoods, RectangleProgram

RHO = np.array([1.4, 2.0, 6.0, 15.0])
SMOOTH = {
    "polynomial": lambda x: x[0] ** 3 * x[1] - 2 * x[1] ** 2 + jnp.dot(x, x),
    "waves": lambda x: jnp.exp(x[0] * x[1]) * jnp.sin(3 * x[0] + x[1]) - jnp.cos(x[1]),
    "quotient": lambda x: (1 + x[0]) / (2 + x[0] * x[1]),
    "roots": lambda x: jnp.sqrt(3 + x[0] + x[1] ** 2) * (3 + x[0]) ** 1.7,
    "hyperbolic": lambda x: jnp.tanh(x[0] - x[1]) + jnp.cosh(x[0]) / jnp.cosh(2 * x[1]),
    "logarithm": lambda x: jnp.log(3 + x[0] * x[1]) + jnp.log1p(x[0] ** 2),
    "arcs": lambda x: jnp.arctan(3 * x[0] + x[1]) + jnp.arctan2(x[0], 3 + x[1]),
    "sigmoid": lambda x: jax.nn.sigmoid(3 * x[0] + x[1]) + jnp.tan(0.4 * x[0]),
    "matrix": lambda x: jnp.linalg.norm(jnp.array([[2, 0.3], [0.3, 1]]) @ x + 3),
    "product": lambda x: jnp.prod(jnp.sin(jnp.pi * x)) + x[0] ** -2.0 * 0.0 + jnp.sum(x[::-1]),
    "scattered": lambda x: (
        jnp.zeros(3, x.dtype).at[jnp.array([0, 2, 0])].add(x[jnp.array([0, 1, 1])])[0]
    ),
}


def cells(count, seed):
    rng = np.random.default_rng(seed)
    lower = rng.uniform(-1, 0.8, (count, 2))
    return lower, lower + 10 ** rng.uniform(-3, -0.3, (count, 2)), rng


def ellipse_points(lower, upper, axis, rho, rng, count=20):
    angle = rng.uniform(0, 2 * np.pi, count)
    around = (rho * np.exp(1j * angle) + np.exp(-1j * angle) / rho) / 2
    x = rng.uniform(lower, upper, (count, 2)).astype(complex)
    x[:, axis] = (lower[axis] + upper[axis]) / 2 + (upper - lower)[axis] / 2 * around
    return x


@pytest.mark.parametrize("name", SMOOTH)
def test_the_continued_function_stays_inside(name):
    function = SMOOTH[name]
    lower, upper, rng = cells(25, len(name))
    near = Neighbourhoods(lower, upper, RHO)
    (found,) = RectangleProgram(function, 2).run(near).complex
    size = near.sorted(found.size())
    assert np.mean(np.isfinite(size)) > 0.7
    values = jax.jit(jax.vmap(function))
    points, bounds = [], []
    for cell, axis, k in zip(*np.nonzero(np.isfinite(size)), strict=True):
        points.append(ellipse_points(lower[cell], upper[cell], axis, RHO[k], rng))
        bounds.append(np.full(20, size[cell, axis, k]))
    seen = np.abs(np.asarray(values(np.concatenate(points))))
    assert np.all(seen <= np.concatenate(bounds) * (1 + 1e-12))


def test_a_branch_is_continued_across_its_kink():
    """On x₀ ≥ 0 |x₀| is x₀, on the whole ellipse too; a cell with the kink inside has none along
    that axis, and one along the other."""
    program = RectangleProgram(lambda x: jnp.abs(x[0]) * x[1], 2)
    lower = np.array([[0.0, 0.0], [-0.5, 0.0]])
    near = Neighbourhoods(lower, np.array([[1.0, 1.0], [0.5, 1.0]]), RHO)
    size = near.sorted(program.run(near).complex[0].size())
    assert np.all(np.isfinite(size[0]))
    assert np.all(np.isinf(size[1, 0]))
    assert np.all(np.isfinite(size[1, 1]))


def test_poles_are_not_inside():
    """1/(x₀² + 0.01) has poles at ±0.1i: ellipses that reach them have no bound."""
    program = RectangleProgram(lambda x: 1 / (x[0] ** 2 + 0.01), 1)
    near = Neighbourhoods(np.array([[-0.1]]), np.array([[0.1]]), np.array([1.5, 2.0, 3.0, 6.0]))
    size = near.sorted(program.run(near).complex[0].size())[0, 0]
    heights = 0.1 * (near.rho - 1 / near.rho) / 2
    assert np.all(np.isinf(size[heights >= 0.1]))
    assert np.isfinite(size[0])


def test_a_forced_choice_narrows_what_it_compares():
    """exp(-1/(1 - s)) is finite on the branch s < 1 although 1 - s reaches zero."""
    from cordes.formulas.intervals import enclose

    def bump(x):
        inside = x[0] < 1
        return jnp.where(inside, jnp.exp(-1 / jnp.where(inside, 1 - x[0], 1.0)), 0.0)

    pieces = enclose(bump)(np.array([[0.9]]), np.array([[1.1]]))
    assert max(float(piece.upper[0]) for piece in pieces) < 1e-4


def test_max_is_the_operand_that_wins():
    """The derivative of max(t, 0)⁴ is known inside of the bump and zero outside."""
    from cordes.formulas.intervals import enclose

    slope = jax.grad(lambda x: jnp.maximum(1 - 4 * x[0] ** 2, 0.0) ** 4)
    lower = np.array([[0.1], [0.6]])
    (found,) = enclose(lambda x: slope(x)[0])(lower, lower + 0.01)
    assert np.all(found.upper < [0, 1e-300])
    assert found.lower[1] == 0


def test_a_constant_that_is_no_number_makes_nothing_zero():
    program = RectangleProgram(lambda x: jnp.arcsin(2.0) * x[0], 1)
    around = Neighbourhoods(np.zeros((1, 1)), np.ones((1, 1)), np.array([1.5]))
    assert np.all(np.isinf(program.run(around).complex[0].size()))
