"""Interval arithmetic contains what it claims to contain, and is tight where it should be: against
fractions and many digits."""

from fractions import Fraction

import jax.numpy as jnp
import numpy as np
import pytest
from interval_cells import contained, points_in, random_cells

from cordes.formulas.intervals import Interval, enclose, functions, hull
from cordes.formulas.intervals.arithmetic import maximum, minimum, point

INFINITY = np.inf


def numbers(seed, count=400):
    """Numbers of all sizes, also zeros, integers, and such that underflow and overflow happen."""
    generator = np.random.default_rng(seed)
    ordinary = generator.standard_normal(count)
    wild = ordinary * 10.0 ** generator.integers(-320, 308, count)
    whole = generator.integers(-3, 4, count).astype(float)
    return np.where(
        generator.random(count) < 0.3,
        whole,
        np.where(generator.random(count) < 0.5, wild, ordinary),
    )


@pytest.mark.parametrize("name", ["add", "sub", "mul", "div"])
def test_rounding_is_outward_and_tight(name):
    operation = {
        "add": lambda a, b: a + b,
        "sub": lambda a, b: a - b,
        "mul": lambda a, b: a * b,
        "div": lambda a, b: a / b,
    }[name]
    a, b = numbers(1), numbers(2)
    b = np.where(b == 0, 1.0, b) if name == "div" else b
    result = operation(point(a), point(b))
    for x, y, lower, upper in zip(a, b, result.lower, result.upper, strict=True):
        exact = operation(Fraction(x), Fraction(y))
        assert lower == -INFINITY or Fraction(lower) <= exact
        assert upper == INFINITY or exact <= Fraction(upper)
        if np.isfinite(lower) and np.isfinite(upper) and abs(lower) < 1e308:
            assert np.nextafter(np.nextafter(lower, INFINITY), INFINITY) >= upper
        if exact == 0:
            assert lower == upper == 0


def test_intervals_of_numbers_contain_all_combinations():
    generator = np.random.default_rng(3)
    ends = np.sort(generator.integers(-3, 4, (2, 200, 2)).astype(float), axis=-1)
    a, b = Interval(ends[0, :, 0], ends[0, :, 1]), Interval(ends[1, :, 0], ends[1, :, 1])
    for share in np.linspace(0, 1, 5):
        for other in np.linspace(0, 1, 5):
            x, y = a.lower + share * (a.upper - a.lower), b.lower + other * (b.upper - b.lower)
            assert np.all((a + b).contains(x + y))
            assert np.all((a - b).contains(x - y))
            assert np.all((a * b).contains(x * y))
            assert np.all(
                (a / b).contains(np.divide(x, y, out=np.zeros_like(x), where=y != 0)) | (y == 0)
            )
            assert np.all(maximum(a, b).contains(np.maximum(x, y)))
            assert np.all(minimum(a, b).contains(np.minimum(x, y)))
            assert np.all(hull(a, b).contains(x) & hull(a, b).contains(y))
            assert np.all(abs(a).contains(np.abs(x)))
            for exponent in range(5):
                assert np.all(a.power(exponent).contains(x**exponent))


def test_powers_and_roots_round_outwards():
    a = np.abs(numbers(4))
    a = a[(a > 1e-50) & (a < 1e50)]
    for exponent in (2, 3, 5, -1, -2):
        result = point(a).power(exponent)
        for x, lower, upper in zip(a, result.lower, result.upper, strict=True):
            assert Fraction(lower) <= Fraction(x) ** exponent <= Fraction(upper)
    root = point(a).sqrt()
    for x, lower, upper in zip(a, root.lower, root.upper, strict=True):
        assert Fraction(lower) ** 2 <= Fraction(x) <= Fraction(upper) ** 2


def test_sums_products_and_linear_maps():
    generator = np.random.default_rng(5)
    lower = generator.standard_normal((7, 4, 3))
    x = Interval(lower, lower + 0.5)
    matrix = generator.standard_normal((5, 3))
    inside = lower + 0.5 * generator.random(lower.shape)
    assert np.all(x.sum().contains(inside.sum(axis=(1, 2))))
    assert np.all(x.sum(axis=-1).contains(inside.sum(axis=-1)))
    assert np.all(x.prod(axis=1).contains(inside.prod(axis=1)))
    assert np.all((x[:, :1] * matrix).sum(axis=-1).contains(inside[:, 0] @ matrix.T))
    exact = [
        [sum(Fraction(m) * Fraction(v) for m, v in zip(row, vector, strict=True)) for row in matrix]
        for vector in lower[:, 0]
    ]
    image = (point(lower[:, :1]) * matrix).sum(axis=-1)
    assert all(
        Fraction(low) <= value <= Fraction(high)
        for low, value, high in zip(
            image.lower.flat, np.array(exact).flat, image.upper.flat, strict=True
        )
    )


def test_squares_are_tight():
    x = Interval([-1.0, -2.0, 0.5, 0.0], [1.0, -1.0, 2.0, 3.0])
    square = x.square()
    np.testing.assert_allclose(square.lower, [0, 1, 0.25, 0], rtol=1e-15)
    np.testing.assert_allclose(square.upper, [1, 4, 4, 9], rtol=1e-15)
    assert square.lower[0] == square.lower[3] == 0


def test_nothing_is_ever_not_a_number():
    everything, zero, positive = (
        Interval([-INFINITY], [INFINITY]),
        Interval([0.0], [0.0]),
        Interval([0.0], [1.0]),
    )
    huge = point([1e308])
    for result in (
        everything - everything,
        zero * everything,
        everything * everything,
        zero / zero,
        everything / everything,
        huge + huge,
        huge * huge,
    ):
        assert not np.isnan(result.lower[0])
        assert not np.isnan(result.upper[0])
        assert result.lower[0] < INFINITY
    for result in (
        positive / zero,
        positive / Interval([-1.0], [1.0]),
        point([-1.0]).sqrt(),
        functions.log(point([-1.0])),
        functions.asin(point([2.0])),
    ):
        assert (result.lower[0], result.upper[0]) == (-INFINITY, INFINITY)
    # A divisor that touches zero at almost no point gives a half-line.
    half = point([1.0]).divide(positive, True)
    assert half.upper[0] == INFINITY
    assert 0.999 < half.lower[0] <= 1
    assert (huge + huge).lower[0] == np.finfo(float).max


ELEMENTARY = {
    **dict.fromkeys(
        (
            "sin",
            "cos",
            "tan",
            "exp",
            "exp2",
            "expm1",
            "tanh",
            "sinh",
            "cosh",
            "atan",
            "asinh",
            "erf",
        ),
        (-9, 9),
    ),
    **dict.fromkeys(("asin", "acos", "atanh"), (-1, 1)),
    **{"log": (0, 5), "log1p": (-1, 5), "acosh": (1, 9), "cbrt": (0, 9)},
}


def test_elementary_functions_against_many_digits():
    mpmath = pytest.importorskip("mpmath")
    generator = np.random.default_rng(6)
    for name, ends in ELEMENTARY.items():
        x = np.concatenate(
            [
                generator.uniform(ends[0], ends[1], 200),
                np.arange(1, 20) * np.pi / 2 if name in ("sin", "cos", "tan") else [],
            ]
        )
        result = getattr(functions, name)(point(x))
        true = (lambda t: mpmath.power(2, t)) if name == "exp2" else getattr(mpmath, name)
        with mpmath.workprec(200):
            for t, lower, upper in zip(
                x.tolist(), result.lower.tolist(), result.upper.tolist(), strict=True
            ):
                assert mpmath.mpf(lower) <= true(mpmath.mpf(t)) <= mpmath.mpf(upper), (name, t)


def test_elementary_functions_agree_with_numpy():
    """JAX's arctanh, which is wrong by more than a hundred units in the last place, is no
    measure."""
    lower, upper = random_cells(400, 1, 0.1, seed=12, lower=-0.99, upper=0.99)
    for width in (0.0, 1.0):
        pieces = enclose(lambda x: [jnp.arctanh(x), jnp.tanh(x), jnp.cosh(x)])(
            lower, lower + width * (upper - lower)
        )
        points = points_in(lower, lower + width * (upper - lower))
        assert np.all(contained(pieces, [np.arctanh(points), np.tanh(points), np.cosh(points)]))


def test_sums_over_no_boxes():
    """A search may have nothing left to look at."""
    none = Interval(np.zeros((0, 3, 2)), np.zeros((0, 3, 2)))
    assert none.sum(axis=1).lower.shape == (0, 2)
    assert none.sum().lower.shape == (0,)
