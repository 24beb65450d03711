"""Enclosures of functions contain all values, shrink with the cells, and follow switches; what has
no enclosure is refused."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from interval_cells import contained, points_in, random_cells, sampled

from cordes.formulas.intervals import Interval, UnsupportedOperation, enclose

# Enclosures of functions: every primitive.


@jax.custom_vjp
def doubled(x):
    return 2 * x


doubled.defvjp(lambda x: (doubled(x), None), lambda _, cotangent: (2 * cotangent,))

SMOOTH = {
    "arithmetic": lambda x: (x + 2) * (x - 1) / (x**2 + 3) - (-x),
    "powers": lambda x: [
        x**2,
        x**3,
        x**5,
        x**-2,
        jnp.square(x),
        jnp.power(jnp.abs(x), 0.25),
        jnp.power(2.0, x),
        jnp.power(x[0] ** 2 + 1, x),
        x**3.0,
    ],
    "exponentials": lambda x: [
        jnp.exp(x),
        jnp.exp2(x),
        jnp.expm1(x),
        jax.nn.sigmoid(x),
        jax.nn.softplus(x),
        jnp.logaddexp(x[0], x[1]),
    ],
    "logarithms": lambda x: [
        jnp.log(x**2 + 0.1),
        jnp.log1p(x**2),
        jnp.log2(x**2 + 1),
        jnp.log10(x**2 + 1),
    ],
    "waves": lambda x: [jnp.sin(3 * x), jnp.cos(3 * x), jnp.tan(0.5 * x)],
    "arcs": lambda x: [
        jnp.arctan(x),
        jnp.arctan2(x[0], x[1] ** 2 + 0.5),
        jnp.arcsin(x / 3),
        jnp.arccos(x / 3),
    ],
    "hyperbolic": lambda x: [
        jnp.sinh(x),
        jnp.cosh(x),
        jnp.tanh(x),
        jnp.arcsinh(x),
        jnp.arccosh(x**2 + 1.1),
    ],
    "roots": lambda x: [
        jnp.sqrt(x**2 + 0.1),
        jax.lax.rsqrt(x**2 + 0.1),
        jnp.cbrt(x),
        jnp.linalg.norm(x),
    ],
    "others": lambda x: [
        jax.lax.erf(x),
        jnp.abs(x),
        jax.nn.relu(x),
        jax.nn.gelu(x),
        jnp.polyval(jnp.array([1.0, 2.0, -1.0]), x[0]),
    ],
    "extremes": lambda x: [
        *(
            jnp.maximum(x, 0.3),
            jnp.minimum(x, x[::-1]),
            jnp.clip(x, -1, 1),
            jnp.max(x),
            jnp.min(x),
            jnp.sort(x),
        ),
        *(jax.lax.clamp(-0.5, x, 0.7), jax.lax.cummax(x), jax.lax.cummin(x)),
    ],
    "sums": lambda x: [
        jnp.sum(x),
        jnp.prod(x),
        jnp.mean(x),
        jnp.cumsum(x),
        jnp.cumprod(x),
        jnp.var(x),
        jax.lax.cumsum(x, reverse=True),
    ],
    "products": lambda x: [
        x @ x,
        jnp.outer(x, x),
        jnp.outer(x, x) @ x,
        jnp.einsum("i,j,ij->", x, x, jnp.eye(3)),
        jnp.dot(jnp.arange(3.0), x),
        jnp.cross(x, x[::-1]),
    ],
    "batched": lambda x: [
        jax.vmap(jnp.dot)(jnp.outer(x, x), jnp.outer(x, x[::-1])),
        jnp.tensordot(jnp.outer(x, x), jnp.outer(x, x), 2),
        jnp.kron(x, x),
    ],
    "determinant": lambda x: jnp.linalg.det(jnp.outer(x, x) + jnp.eye(3)),
    "derivatives": lambda x: [
        jax.grad(lambda y: jnp.sum(jnp.sin(y) * y))(x),
        jax.hessian(lambda y: jnp.prod(jnp.cos(y)))(x),
        jax.jvp(jnp.exp, (x,), (x,))[1],
    ],
    "loop": lambda x: jax.lax.fori_loop(0, 3, lambda i, total: total + i * x[i], 0.0),
    "scan": lambda x: jax.lax.scan(
        lambda carry, row: (carry + row, carry * row), 1.0, x, reverse=True
    ),
    "checkpoint": lambda x: jax.checkpoint(jnp.sin)(x),
    "custom derivatives": lambda x: [doubled(x), jax.grad(lambda y: jnp.sum(doubled(y) ** 2))(x)],
    "constants": lambda x: [
        jnp.eye(3),
        x[0] * jnp.linspace(0, 1, 4),
        jnp.zeros(2),
        3.0,
        jnp.isfinite(x) * x,
    ],
}

MOVING = {
    "indices": lambda x: [
        x[0],
        x[-1],
        x[1:],
        x[::-1],
        x[jnp.array([2, 0, 2])],
        jnp.outer(x, x)[..., 1],
        jnp.outer(x, x)[1, jnp.array([0, 2])],
    ],
    "arrays": lambda x: [
        jnp.array([[x[0], 1.0], [2, x[1]]]),
        jnp.stack([x, x + 1], axis=1),
        jnp.concatenate([x, jnp.ones(2)]),
        jnp.block([[x[0], x[1]], [x[1], x[2]]]),
    ],
    "matrices": lambda x: [
        jnp.diag(x),
        jnp.diagonal(jnp.outer(x, x)),
        jnp.trace(jnp.outer(x, x)),
        jnp.triu(jnp.outer(x, x)),
        jnp.outer(x, x + 1).T,
    ],
    "shapes": lambda x: [
        x.reshape(3, 1),
        x[None],
        jnp.squeeze(x[:, None]),
        jnp.broadcast_to(x, (2, 3)),
        jnp.tile(x, 2),
        jnp.repeat(x, 2),
        jnp.roll(x, 1),
    ],
    "pads": lambda x: [jnp.pad(x, (1, 2)), jax.lax.pad(x, 1.5, [(-1, 1, 1)]), *jnp.split(x, 3)],
    "updates": lambda x: [
        x.at[0].set(5.0),
        jnp.zeros((2, 2)).at[0, 1].set(x[0]),
        jax.lax.dynamic_update_slice(x, x[:1], (1,)),
        jax.lax.dynamic_slice(x, (1,), (2,)),
    ],
}


@pytest.mark.parametrize("group", [SMOOTH, MOVING])
def test_enclosures_contain_samples_and_shrink_with_the_cells(group):
    enclosures = {name: enclose(function) for name, function in group.items()}
    values = jax.jit(jax.vmap(lambda x: {name: function(x) for name, function in group.items()}))
    for width in (0.8, 1e-6, 0.0):
        lower, upper = random_cells(400, 3, width, seed=7)
        everything = jax.tree.map(
            lambda value: np.asarray(value, dtype=float), values(points_in(lower, upper))
        )
        for name, expected in everything.items():
            pieces = enclosures[name](lower, upper)
            assert len(pieces) == 1, name
            assert jax.tree.structure(pieces[0]) == jax.tree.structure(expected), name
            assert np.all(contained(pieces, expected)), (name, width)
            for interval, value in zip(
                jax.tree.leaves(pieces[0]), jax.tree.leaves(expected), strict=True
            ):
                assert interval.shape == value.shape, name
                # The median, because |x|^(1/4) and the cube root have steep places, where a small
                # cell has no small interval.
                assert np.median(interval.upper - interval.lower) <= 100 * width + 1e-12, (
                    name,
                    width,
                )


JUMPING = {
    "sign": lambda x: [jnp.sign(x), jnp.sign(x[0]) * x, jnp.sign(jnp.abs(x[0]) - 0.5)],
    "where": lambda x: [
        jnp.where(x[0] > 0, x, x**2),
        jnp.where((x[0] < x[1]) & ~(x[2] >= 0.5), 1.0, x[0]),
    ],
    "logic": lambda x: [
        jnp.any(x > 0),
        jnp.all(x > 0),
        (x[0] > 0) ^ (x[1] > 0),
        (x[0] > 0) | (x[1] <= 0),
        x[0] != 0,
        x[0] == 0,
        (x[0] > 0).astype(float),
    ],
    "steps": lambda x: [
        jnp.floor(2 * x),
        jnp.ceil(2 * x),
        jnp.round(2 * x),
        jax.lax.round(2 * x),
        x.astype(int),
    ],
    "remainders": lambda x: [jnp.mod(x[:1], 0.7), jax.lax.rem(x, 0.7), jnp.fmod(x, x[0])],
    "select": lambda x: jnp.select([x[0] > 1, x[0] < -1], [x, x**2], 0.5),
    "piecewise": lambda x: jnp.piecewise(
        x[0], [x[0] > 0, x[0] <= 0], [lambda t: t, lambda t: t**2]
    ),
    "cond": lambda x: jax.lax.cond(x[0] > 0, lambda y: (y, 1.0), lambda y: (-y, y[1]), x),
    "argmax": lambda x: [
        jnp.argmax(x),
        jnp.argmin(x),
        jnp.heaviside(x[0], 0.5),
        jnp.hypot(x[0], x[1]),
        jnp.nan_to_num(x),
    ],
    "derivatives": lambda x: [
        jax.grad(lambda y: jnp.sum(jnp.abs(y) ** 3))(x),
        jax.hessian(lambda y: jnp.abs(y[0]) ** 3 * jnp.cos(y[1]))(x),
    ],
    "angle": lambda x: jnp.arctan2(x[0], x[1]),
    "not a number": lambda x: [
        *(
            jnp.where(jnp.sqrt(x[0]) >= 0, 1.0, 2.0),
            jnp.where(jnp.log(x[0]) < 5, x, 7.0),
            jnp.nan_to_num(jnp.sqrt(x[0]), nan=-3.0),
        ),
        *(
            jnp.where(0.0 * jnp.sqrt(x[0]) > -1, 1.0, 2.0),
            jnp.where(jnp.isnan(jnp.arcsin(x[0])), 1.0, 2.0),
            jnp.isfinite(x[0] ** 0.5),
        ),
    ],
    "divisors": lambda x: [
        jnp.minimum(1 / jnp.floor(x[0]), 0.5),
        1 / jnp.where(x[1] > 0, 0.0, 2.0) > 1,
        1 / x[0],
        x[0] ** -2,
        x[0] ** -1,
    ],
    "guarded": lambda x: jnp.where(x[0] > 0, jnp.sqrt(x[0]) + jnp.log1p(x[0]), 0.0),
}


@pytest.mark.parametrize("name", JUMPING)
def test_jumping_functions_have_every_value_in_one_piece(name):
    function = JUMPING[name]
    enclosure = enclose(function)
    lower, upper = random_cells(600, 3, 0.7, seed=8)
    for seed in (1, 2, 3):
        assert np.all(
            contained(enclosure(lower, upper), sampled(function, points_in(lower, upper, seed)))
        )
    # Cells that have zero on their boundary, and single points on the jump.
    lower = (
        np.round(lower) + 0.0
    )  # No negative zeros, which the angle would tell from positive ones.
    upper = lower + 1
    assert np.all(contained(enclosure(lower, upper), sampled(function, points_in(lower, upper, 4))))
    assert np.all(contained(enclosure(lower, lower), sampled(function, lower)))


def random_expression(generator, depth):
    """A random function of x made of the operations that users write."""
    if depth == 0:
        kind, value = generator.integers(0, 3), float(generator.normal())
        return (lambda x: x[0], lambda x: x[1], lambda x: value)[kind]
    first, second = (
        random_expression(generator, depth - 1),
        random_expression(generator, generator.integers(0, depth)),
    )
    unary = [
        jnp.sin,
        jnp.tanh,
        jnp.abs,
        lambda t: t**2,
        lambda t: jnp.exp(-(t**2)),
        lambda t: jnp.sqrt(1 + t * t),
        jnp.cbrt,
        lambda t: 1 / (2 + jnp.cos(t)),
        jnp.sign,
    ]
    binary = [
        jnp.add,
        jnp.subtract,
        jnp.multiply,
        jnp.maximum,
        jnp.minimum,
        lambda a, b: jnp.where(a > b, a, b * a),
        lambda a, b: a / (1 + b**2),
    ]
    if generator.random() < 0.4:
        operation = unary[generator.integers(len(unary))]
        return lambda x: operation(jnp.asarray(first(x), dtype=float))
    operation = binary[generator.integers(len(binary))]
    return lambda x: operation(first(x), second(x))


def test_random_expressions():
    generator = np.random.default_rng(9)
    expressions = [random_expression(generator, 5) for _ in range(24)]
    lower, upper = random_cells(300, 2, 0.5, seed=10)
    points = points_in(lower, upper)
    values = sampled(
        lambda x: [jnp.asarray(expression(x), dtype=float) for expression in expressions], points
    )
    for expression, value in zip(expressions, values, strict=True):
        assert np.all(
            contained(
                enclose(lambda x, expression=expression: jnp.asarray(expression(x), dtype=float))(
                    lower, upper
                ),
                value,
            )
        )


def test_squares_are_recognised_wherever_they_come_from():
    lower, upper = np.array([[-1.0, -2.0]]), np.array([[1.0, 1.0]])
    squares = enclose(
        lambda x: [
            x * x,
            jnp.diag(jnp.outer(x, x)),
            x**2,
            x**2.0,
            jnp.stack([x[0] * x[0], x[1] * x[1]]),
        ]
    )(lower, upper)[0]
    for square in squares:
        np.testing.assert_allclose(square.lower[0], [0, 0], atol=0)
        np.testing.assert_allclose(square.upper[0], [1, 4], rtol=1e-15)
    lengths = enclose(
        lambda x: [
            x @ x,
            jnp.sum(x**2),
            jnp.linalg.norm(x) ** 2,
            jnp.einsum("i,i->", x, x),
            jnp.trace(jnp.outer(x, x)),
        ]
    )(lower, upper)[0]
    for length in lengths:
        assert length.lower[0] == 0
        assert length.upper[0] == pytest.approx(5, rel=1e-14)
    assert enclose(lambda x: jnp.sin(x[0]) - jnp.sin(x[0]))(lower, upper)[0].upper[0] == 0


# Switches.


def test_one_switch_for_one_thing():
    def function(x):
        return jnp.stack(
            [
                jnp.sign(x[0]),
                jnp.sign(x)[0],
                2.0 * (x[0] > 0) - 1,
                1 - 2.0 * (x[0] < 0),
                jnp.where(x[0] >= 0, 1.0, -1.0),
            ]
        )

    pieces = enclose(function)([[-1.0, 0.5]], [[1.0, 1.0]])
    assert len(pieces) == 2
    for piece, value in zip(
        sorted(pieces, key=lambda piece: piece.lower[0, 0]), (-1, 1), strict=True
    ):
        np.testing.assert_allclose(piece.lower[0], [value] * 5, rtol=1e-15)
        np.testing.assert_allclose(piece.upper[0], [value] * 5, rtol=1e-15)


def test_elements_of_a_vector_are_separate_switches():
    lower, upper = np.array([[-1.0, -1, 0.1], [0.1, 0.1, 0.1]]), np.array([[1.0, 1, 1], [1, 1, 1]])
    pieces = enclose(jnp.sign)(lower, upper)
    assert {tuple(piece.lower[0]) for piece in pieces} == {
        (-1, -1, 1),
        (-1, 1, 1),
        (1, -1, 1),
        (1, 1, 1),
    }
    for piece in pieces:
        assert np.array_equal(piece.lower, piece.upper)
        assert tuple(piece.lower[1]) == (1, 1, 1)


def test_zero_on_the_boundary_of_a_cell_is_decided_only_for_analytic_functions():
    cell = [[-1.0, -1.0]], [[0.0, 0.0]]
    assert len(enclose(lambda x: jnp.sign(x[0] * 3))(*cell)) == 1
    # max(x, 0) is zero on a set of positive measure, and its sign then too.
    values = [
        piece.lower[0]
        for piece in enclose(lambda x: jnp.sign(jnp.maximum(x[0], 0.0)))(
            [[-1.0, 0.0]], [[1.0, 1.0]]
        )
    ]
    assert {0.0, 1.0} <= set(values)
    single = enclose(lambda x: jnp.sign(jnp.maximum(x[0], 0.0)))(*cell)
    assert all(piece.upper[0] == 0 for piece in single)


def test_too_many_switches_give_the_hull():
    lower, upper = np.array([[-1.0] * 7, [0.5] * 7, [-1.0] + [0.5] * 6]), np.ones((3, 7))
    pieces = enclose(jnp.sign)(lower, upper)
    assert len(pieces) == 2
    for piece in pieces:
        assert np.all(piece.lower[0] == -1)
        assert np.all(piece.upper[0] == 1)
        assert np.all(piece.lower[1] == 1)
    assert {piece.lower[2, 0] for piece in pieces} == {-1, 1}
    assert len(enclose(jnp.sign)(lower[:, :6], upper[:, :6])) == 64


def test_observer_sees_operands_in_nested_functions():
    seen = {}

    def observer(step, operands, results):
        seen.setdefault(step.equation.primitive.name, []).append((operands, results))

    function = enclose(lambda x: jnp.abs(jax.nn.relu(x) - 2) + jnp.abs(jax.nn.relu(x) - 2))
    function.program(2).run(np.array([[-1.0, 0.5]]), np.array([[1.0, 1.0]]), observer=observer)
    assert {"max", "sub", "abs", "add"} <= set(seen)
    ((operand, constant), (result,)) = seen["max"][0]
    assert isinstance(operand, Interval)
    assert constant.exact
    assert constant.lower == 0
    np.testing.assert_array_equal(result.lower, [[0, 0.5]])
    assert len(seen["abs"]) == 1
    np.testing.assert_allclose(seen["abs"][0][0][0].upper, [[-1, -1]], rtol=1e-15)


@pytest.mark.parametrize(
    ("function", "name"),
    [
        (lambda x: jnp.linalg.inv(jnp.outer(x, x) + jnp.eye(2)), "lu"),
        (
            lambda x: x.at[jnp.where(x[0] > 0, 0, 1)].set(0.0),
            "scatter with an index that depends on x",
        ),
        (lambda x: jax.lax.while_loop(lambda y: jnp.sum(y) < 3, lambda y: y + 1, x), "while"),
        (lambda x: jnp.sin(x.astype(jnp.float32)), "convert_element_type in float32"),
        (lambda x: jax.lax.lgamma(x), "lgamma"),
    ],
)
def test_operations_without_enclosure_are_refused(function, name):
    with pytest.raises(UnsupportedOperation) as caught:
        enclose(function)(np.zeros((1, 2)), np.ones((1, 2)))
    assert caught.value.name == name
    assert name in str(caught.value)


def test_bad_cells_are_refused():
    with pytest.raises(ValueError, match="empty"):
        enclose(jnp.sin)([[1.0]], [[0.0]])
    with pytest.raises(ValueError, match=r"\(n, d\)"):
        enclose(jnp.sin)([1.0], [2.0])
