"""Tables that are looked up by an index: enclosures against values at random points, and integers
that leave the range of their type."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.scipy.ndimage import map_coordinates

from cordes.domains import Box
from cordes.formulas.intervals import enclose
from cordes.formulas.lookups import RangeExtremes
from cordes.formulas.lookups.primitives import search, smooth
from cordes.formulas.rectangles.program import Neighbourhoods, RectangleProgram
from cordes.formulas.regularity import jump, kink

SQUARE = Box([0, 0], [1, 1])
generator = np.random.default_rng(3)
KNOTS = jnp.asarray(np.sort(generator.random(12)))
VALUES = jnp.asarray(generator.standard_normal(12))
TABLE = jnp.asarray(generator.standard_normal((17, 13)))
SINGLE = TABLE.astype(jnp.float32)
CUBE = jnp.asarray(generator.standard_normal((5, 6, 7)))


def pixel(x, scale=(17.0, 13.0)):
    return (x * jnp.array(scale)).astype(int)


FUNCTIONS = {
    "interp": lambda x: jnp.interp(x[0], KNOTS, VALUES),
    "interp of a vector": lambda x: jnp.sum(jnp.interp(x, KNOTS, VALUES)),
    "slope of interp": lambda x: jax.grad(lambda t: jnp.interp(t, KNOTS, VALUES))(x[0]),
    "searchsorted": lambda x: jnp.searchsorted(KNOTS, x[0] * x[1], side="right") * x[1],
    "bilinear": lambda x: map_coordinates(TABLE, [x[0] * 16, x[1] * 12], order=1),
    "nearest pixel": lambda x: map_coordinates(TABLE, [x[0] * 16, x[1] * 12], order=0),
    "clamped": lambda x: map_coordinates(TABLE, list(x * 30 - 7), order=1, mode="nearest"),
    "mirrored": lambda x: map_coordinates(TABLE, list(x * 30 - 7), order=1, mode="mirror"),
    "trilinear": lambda x: map_coordinates(CUBE, [x[0] * 4, x[1] * 5, 6 * x[0] * x[1]], order=1),
    "index": lambda x: TABLE[pixel(x)[0], pixel(x)[1]],
    "index from the end": lambda x: TABLE[-1 - pixel(x)[0], pixel(x)[1]],
    "filled": lambda x: TABLE.at[pixel(x, (20.0, 13.0))[0], 3].get(mode="fill", fill_value=7.0),
    "rows": lambda x: TABLE[pixel(x, (17.0, 16.0))],
    "a slice": lambda x: jax.lax.dynamic_slice(TABLE, pixel(x, (20.0, 20.0)) - 2, (3, 2)),
    "a vector of points": lambda x: jax.vmap(lambda t: jnp.interp(t, KNOTS, VALUES))(x),
    "digitize": lambda x: jnp.digitize(x[0], KNOTS) * x[1],
    "unrolled": lambda x: jnp.searchsorted(KNOTS, x[0], method="scan_unrolled") * 1.0,
    "one of three": lambda x: jnp.stack([x[0], x[1], x[0] * x[1]])[pixel(x, (3.0, 1.0))[0]],
    "single precision": lambda x: SINGLE[pixel(x)[0], 2].astype(float) * x[1],
    "wrapped": lambda x: jnp.take(VALUES, pixel(x, (40.0, 1.0))[0] - 5, mode="wrap"),
    "erfc": lambda x: jax.scipy.special.erfc(30 * x[0] - 3),
    "round": lambda x: TABLE[jnp.round(x[0] * 16).astype(jnp.int32), 0],
}


def outside(function, sizes=(1.0, 0.3, 0.05, 3e-3, 1e-6), cells=40, points=30):
    """How many values at random points of random cells lie in none of the enclosures."""
    draw, enclosure, found = np.random.default_rng(5), enclose(function), 0
    values = jax.jit(jax.vmap(jax.vmap(function)))
    for size in sizes:
        lower = draw.random((cells, 2)) * (1 - size)
        x = lower[:, None] + draw.random((cells, points, 2)) * size
        y = np.asarray(values(jnp.asarray(x)))
        rounding = 1e-13 * (1 + np.abs(y))
        inside = np.isnan(y)
        for piece in enclosure(lower, lower + size):
            low, high = piece.lower[:, None], piece.upper[:, None]
            inside |= (low - rounding <= y) & (y <= high + rounding)
        found += int(np.sum(~inside))
    return found


@pytest.mark.parametrize("name", FUNCTIONS)
def test_no_value_outside_its_enclosure(name):
    assert outside(FUNCTIONS[name]) == 0


def test_a_wrong_range_would_be_noticed(monkeypatch):
    """One index too few at the upper end: the pitfall of ENCLOSED, section 6."""
    right = RangeExtremes.__call__
    monkeypatch.setattr(
        RangeExtremes,
        "__call__",
        lambda self, lower, upper: right(self, lower, np.maximum(upper - 1, lower)),
    )
    assert outside(FUNCTIONS["index"]) > 0


@pytest.mark.parametrize("shape", [(9,), (6, 11), (4, 5, 3)])
def test_extremes_of_parts_of_a_table(shape):
    draw = np.random.default_rng(8)
    table = draw.standard_normal(shape)
    extremes = RangeExtremes(table)
    ends = np.sort(draw.integers(0, np.array(shape)[:, None, None], (len(shape), 200, 2)), axis=2)
    low, high = extremes(ends[..., 0], ends[..., 1])
    for part in range(200):
        where = tuple(slice(a, b + 1) for a, b in ends[:, part])
        assert (low[part], high[part]) == (np.min(table[where]), np.max(table[where]))


def test_a_decided_cell_gives_the_piece():
    """A cell that ends at knots: a linear piece has the values of the table as bounds, and
    continues as a straight line to complex numbers."""
    low, high = np.array([[KNOTS[3], 0.0]]), np.array([[KNOTS[4], 1.0]])
    found = RectangleProgram(FUNCTIONS["interp"], 2).run(
        Neighbourhoods(low, high, np.array([10.0]))
    )
    ends = np.sort([VALUES[3], VALUES[4]])
    np.testing.assert_allclose([found.real[0].lower[0], found.real[0].upper[0]], ends, rtol=1e-14)
    height = (10 - 0.1) / 4 * (ends[1] - ends[0])
    np.testing.assert_allclose(found.complex[0].above[0], height, rtol=1e-12)
    # A cell across a knot has no continuation, but bounds that are those of the table.
    found = RectangleProgram(FUNCTIONS["interp"], 2).run(
        Neighbourhoods(low - 1e-9, high, np.array([10.0]))
    )
    assert np.isinf(found.complex[0].above[0])
    assert found.real[0].upper[0] <= float(np.max(VALUES[2:5]))


def test_points_in_a_vector_are_searched_one_by_one():
    (found,) = enclose(FUNCTIONS["a vector of points"])([[KNOTS[3]] * 2], [[KNOTS[4]] * 2])
    wanted = np.sort([VALUES[3], VALUES[4]])
    np.testing.assert_allclose(found.lower[0], wanted[0], rtol=1e-14)
    np.testing.assert_allclose(found.upper[0], wanted[1], rtol=1e-14)


def test_linear_interpolation_is_continuous():
    for name in ("interp", "bilinear", "clamped", "trilinear"):
        assert jump(FUNCTIONS[name], SQUARE) is None
        assert "table" in str(kink(FUNCTIONS[name], SQUARE))
    assert jump(FUNCTIONS["nearest pixel"], SQUARE) is not None


def test_another_function_of_the_name_is_not_mistaken():
    @jax.jit
    def searchsorted(knots, query):
        return jnp.where(query > 0.5, 3, 1) + jnp.zeros_like(knots, int)[0]

    (found,) = enclose(lambda x: searchsorted(KNOTS, x[0]) * 1.0)([[0.7, 0.0]], [[0.8, 1.0]])
    assert found.lower[0] == found.upper[0] == 3.0


def test_search_and_smooth_are_ordinary_operations():
    draw = np.random.default_rng(1)
    even = jnp.linspace(-0.3, 1.7, 38)
    ends = [np.asarray(even), np.nextafter(even, 9), np.nextafter(even, -9)]
    query = jnp.asarray(np.concatenate([draw.random(500) * 3 - 1, *ends]))
    wanted = np.searchsorted(even, query, side="right")
    np.testing.assert_array_equal(search(even, query, even=True), wanted)
    np.testing.assert_array_equal(jax.jit(jax.vmap(lambda t: search(even, t)))(query), wanted)

    def parabola(x):
        place = search(even, x[0], even=True)
        return smooth(x[0] ** 2 * x[1] + 0.0 * place, x, order=2)

    hessian = jax.jit(jax.vmap(jax.hessian(parabola), in_axes=1))(jnp.array([[0.3], [0.5]]))
    np.testing.assert_allclose(hessian[0], [[1.0, 0.6], [0.6, 0.0]])


def whole(function, low=0.8, high=0.9):
    pieces = enclose(function)([[low, 0.0]], [[high, 1.0]])
    return min(p.lower[0] for p in pieces), max(p.upper[0] for p in pieces)


def integer(x, dtype=jnp.int32):
    return (65536 * x[0]).astype(dtype)


def test_integers_that_overflow():
    wide = 2.0**31
    assert whole(lambda x: (integer(x) * integer(x)) * 1.0) == (-wide, wide - 1)
    assert whole(lambda x: jnp.where(integer(x) * integer(x) < 0, 1.0, 0.0)) == (0.0, 1.0)
    assert whole(lambda x: jnp.prod(jnp.stack([integer(x)] * 3), dtype=jnp.int32) * 1.0)[0] == -wide
    # In 64 bits there is room.
    low, high = whole(lambda x: (integer(x, jnp.int64) ** 2) * 1.0)
    assert (low, high) == (52428.0**2, 58982.0**2)
    # Unsigned differences wrap, conversions are cut off or wrap.
    assert whole(lambda x: (integer(x, jnp.uint32) - 60000) * 1.0) == (0.0, 2 * wide - 1)
    assert whole(lambda x: (1e12 * x[0]).astype(jnp.int32) * 1.0) == (-wide, wide - 1)
    assert whole(lambda x: (integer(x, jnp.int64) * 65536).astype(jnp.int32) * 1.0)[0] == -wide
    assert whole(lambda x: (integer(x) % (integer(x) - 54000)) * 1.0)[0] == -wide


def test_a_product_of_integers_is_not_that_of_real_numbers():
    """Both have one formula, and differ where the integers overflow."""

    def differ(x):
        k = integer(x)
        return jnp.where((k * k).astype(float) < k.astype(float) * k.astype(float), 1.0, 0.0)

    assert float(differ(jnp.array([0.85, 0.0]))) == 1.0
    assert whole(differ)[1] == 1.0


def test_constants_are_converted_as_jax_does():
    convert = jax.jit(lambda t: t.astype(jnp.int32))

    def function(x):
        return convert(jnp.full((), 3e9)) + x[0] * 0.0

    value = float(function(jnp.array([0.85, 0.0])))
    assert whole(function) == (value, value)
