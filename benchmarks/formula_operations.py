"""The operations that random formulas are made of: as JAX computes them, and how a branch of each
is continued to complex points with NumPy."""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from scipy import special

KNOTS, TABLE = np.array([-1.5, -0.7, 0.0, 0.4, 1.2]), np.array([0.3, -1.0, 2.0, 0.5, 0.5])
Array = Any


class Operation(NamedTuple):
    """`real` with jax.numpy; `branch(reals, values)` with NumPy: which branch holds is decided by
    the reals."""

    count: int
    real: Callable
    branch: Callable


def analytic(count: int, real: Callable, twin: Callable) -> Operation:
    return Operation(count, real, lambda r, z: twin(*z))


def at_precision(function: Callable) -> Callable:
    """SciPy's functions know double precision only."""

    def twin(z: Array) -> Array:
        return function(z.astype(complex if np.iscomplexobj(z) else float)).astype(z.dtype)

    return twin


def interpolated(r: list[Array], z: list[Array]) -> Array:
    k = np.clip(np.searchsorted(KNOTS, r[0].astype(float)), 1, len(KNOTS) - 1)
    line = TABLE[k - 1] + (TABLE[k] - TABLE[k - 1]) * (z[0] - KNOTS[k - 1]) / np.diff(KNOTS)[k - 1]
    return np.where(r[0] < KNOTS[0], TABLE[0], np.where(r[0] > KNOTS[-1], TABLE[-1], line))


def looked_up(r: list[Array], z: list[Array]) -> Array:
    return TABLE[np.clip(np.nan_to_num(np.floor(2 * r[0]), nan=0), 0, 4).astype(int)] + 0 * r[0]


def angle(r: list[Array], z: list[Array]) -> Array:
    """The angle of the real parts, and the logarithm of how far (x + iy)/(x - iy) turns from
    there."""
    y, x = (np.real(part) for part in z)
    if not np.iscomplexobj(z[0]) and not np.iscomplexobj(z[1]):
        return np.arctan2(y, x)
    dy, dx = (1j * np.imag(part) for part in z)
    turns = [(dx + i * dy) / (x + i * y) for i in (1j, -1j)]
    # NumPy's log1p of complex numbers rounds 1 + u.
    first, second = (np.where(np.abs(u) < 1e-9, u - u * u / 2, np.log(1 + u)) for u in turns)
    return np.arctan2(y, x) + (first - second) / 2j


def middle(r: list[Array], z: list[Array]) -> Array:
    order = np.argsort(np.stack(r), axis=0)[1:2]
    return np.take_along_axis(np.stack(z), order, axis=0)[0]


def loop(module: Any, a: Array, b: Array) -> Array:
    if module is np:
        value = b
        for k in range(3):
            value = 0.5 * value * a + k
        return value
    return jax.lax.fori_loop(0, 3, lambda k, t: 0.5 * t * a + k, b)


def choose(take: Callable) -> Callable:
    """A branch by a test of the reals: the last two values are those to choose from."""
    return lambda r, z: np.where(take(*r), z[-2], z[-1])


def known(branch: Callable) -> Callable:
    """What is made of no number is none."""
    return lambda r, z: np.where(np.any(np.isnan(r), axis=0), np.nan, branch(r, z))


def logistic(z: Array) -> Array:
    return 1 / (1 + np.exp(-z))


def whole(x: Array) -> Array:
    return (100 * x).astype(jnp.int32)


def cut_off(x: Array, kind: Any = np.int32) -> Array:
    """A conversion to integers, which is cut off at the ends of the type."""
    ends = np.iinfo(kind)
    return np.clip(np.trunc(np.nan_to_num(x, nan=0.0)), ends.min, ends.max).astype(np.int64)


def wrapped(k: Array, kind: Any = np.int32) -> Array:
    return k.astype(kind).astype(np.int64)


def integers(r: list[Array], z: list[Array]) -> Array:
    a, b = (cut_off(100 * each) for each in r)
    return wrapped(wrapped(a * b) - a) * 0.01 + 0 * r[0]


def unsigned(r: list[Array], z: list[Array]) -> Array:
    return wrapped(cut_off(np.abs(100 * r[0]), np.uint8) - 3, np.uint8) + 0 * r[0]


UNARY = ("sin", "cos", "tan", "sinh", "cosh", "tanh", "exp", "exp2", "expm1", "log", "log1p")
UNARY += ("sqrt", "arctan", "arcsin", "arccos", "arcsinh", "arccosh", "arctanh", "square")
OPERATIONS: dict[str, Operation] = {
    **{name: analytic(1, getattr(jnp, name), getattr(np, name)) for name in UNARY},
    **{
        f"power {p}": analytic(1, lambda x, p=p: x**p, lambda z, p=p: z**p)
        for p in (2, 3, 4, -1, -2, -3, 0.25, 1.7, -0.3, -1.5)
    },
    "neg": analytic(1, lambda x: -x, lambda z: -z),
    "rsqrt": analytic(1, jax.lax.rsqrt, lambda z: 1 / np.sqrt(z)),
    "log2": analytic(1, jnp.log2, lambda z: np.log(z) / np.log(np.longdouble(2))),
    "logistic": analytic(1, jax.nn.sigmoid, logistic),
    "softplus": analytic(1, jax.nn.softplus, lambda z: np.log1p(np.exp(z))),
    "erf": analytic(1, jax.lax.erf, at_precision(special.erf)),
    "erfc": analytic(1, jax.lax.erfc, at_precision(special.erfc)),
    "gelu": analytic(
        1, jax.nn.gelu, lambda z: z * logistic(2 * 0.7978845608028654 * (z + 0.044715 * z**3))
    ),
    "add": analytic(2, jnp.add, np.add),
    "sub": analytic(2, jnp.subtract, np.subtract),
    "mul": analytic(2, jnp.multiply, np.multiply),
    "div": analytic(2, jnp.divide, np.divide),
    "pow": analytic(2, jnp.power, np.power),
    "logaddexp": analytic(2, jnp.logaddexp, lambda a, b: np.log(np.exp(a) + np.exp(b))),
    "hypot": analytic(
        2, lambda a, b: jnp.linalg.norm(jnp.stack([a, b])), lambda a, b: np.sqrt(a * a + b * b)
    ),
    "loop": analytic(2, lambda a, b: loop(jnp, a, b), lambda a, b: loop(np, a, b)),
    "sum": analytic(3, lambda *a: jnp.sum(jnp.stack(a)), lambda a, b, c: a + b + c),
    "prod": analytic(3, lambda *a: jnp.prod(jnp.stack(a)), lambda a, b, c: a * b * c),
    "dot": analytic(
        3, lambda *a: jnp.dot(jnp.stack(a), jnp.stack(a)), lambda a, b, c: a * a + b * b + c * c
    ),
    "det": analytic(
        3,
        lambda a, b, c: jnp.linalg.det(jnp.array([[a, b], [b, c]])),
        lambda a, b, c: a * c - b * b,
    ),
    "cumprod": analytic(
        3, lambda *a: jnp.sum(jnp.cumprod(jnp.stack(a))), lambda a, b, c: a + a * b + a * b * c
    ),
    "cumsum": analytic(
        3, lambda *a: jnp.prod(jnp.cumsum(jnp.stack(a))), lambda a, b, c: a * (a + b) * (a + b + c)
    ),
    "cbrt": Operation(
        1,
        jnp.cbrt,
        lambda r, z: (
            np.where(r[0] < 0, -1, 1) * np.where(r[0] < 0, -z[0], z[0]) ** (1 / np.longdouble(3))
        ),
    ),
    "abs": Operation(1, jnp.abs, lambda r, z: np.where(r[0] < 0, -z[0], z[0])),
    "relu": Operation(1, jax.nn.relu, known(lambda r, z: np.where(r[0] > 0, z[0], 0 * r[0]))),
    "sign": Operation(1, jnp.sign, lambda r, z: np.sign(r[0])),
    "floor": Operation(1, jnp.floor, lambda r, z: np.floor(r[0])),
    "ceil": Operation(1, jnp.ceil, lambda r, z: np.ceil(r[0])),
    "round": Operation(1, jnp.round, lambda r, z: np.round(r[0])),
    "fraction": Operation(1, lambda x: x - jnp.floor(x), lambda r, z: z[0] - np.floor(r[0])),
    "clip": Operation(
        1,
        lambda x: jnp.clip(x, -0.5, 0.8),
        lambda r, z: np.where(r[0] < -0.5, -0.5, np.where(r[0] > 0.8, 0.8, z[0])),
    ),
    "interp": Operation(1, lambda x: jnp.interp(x, KNOTS, TABLE), interpolated),
    "table": Operation(
        1, lambda x: jnp.asarray(TABLE)[jnp.clip(jnp.floor(2 * x), 0, 4).astype(int)], looked_up
    ),
    "max": Operation(2, jnp.maximum, known(choose(lambda a, b: a >= b))),
    "min": Operation(2, jnp.minimum, known(choose(lambda a, b: a <= b))),
    "fmod": Operation(2, jnp.fmod, lambda r, z: z[0] - z[1] * np.trunc(r[0] / r[1])),
    "atan2": Operation(2, jnp.arctan2, angle),
    "where": Operation(
        4, lambda a, b, c, d: jnp.where(a < b, c, d), choose(lambda a, b, c, d: a < b)
    ),
    "both": Operation(
        4,
        lambda a, b, c, d: jnp.where((a > 0) & ~(b >= 1), c, d),
        choose(lambda a, b, c, d: (a > 0) & ~(b >= 1)),
    ),
    "cond": Operation(
        3,
        lambda a, b, c: jax.lax.cond(a > 0, jnp.sin, jnp.square, b) + c,
        lambda r, z: np.where(r[0] > 0, np.sin(z[1]), z[1] * z[1]) + z[2],
    ),
    "sort": Operation(3, lambda *a: jnp.sort(jnp.stack(a))[1], known(middle)),
    "largest": Operation(
        3,
        lambda *a: jnp.max(jnp.stack(a)),
        known(lambda r, z: np.take_along_axis(np.stack(z), np.argmax(r, axis=0)[None], 0)[0]),
    ),
    "argmin": Operation(
        3,
        lambda *a: jnp.argmin(jnp.stack(a)) * 1.0,
        lambda r, z: np.argmin(np.stack(r), axis=0) + 0 * r[0],
    ),
    "integers": Operation(2, lambda a, b: (whole(a) * whole(b) - whole(a)) * 0.01, integers),
    "quotients": Operation(
        2,
        lambda a, b: jnp.where(whole(a) % 7 > whole(b) // 3, a, b),
        choose(lambda a, b: cut_off(100 * a) % 7 > cut_off(100 * b) // 3),
    ),
    "unsigned": Operation(
        1, lambda a: (jnp.abs(100 * a).astype(jnp.uint8) - jnp.uint8(3)) * 1.0, unsigned
    ),
}
# Those that are zero for no number but zero.
VANISHING = {
    *("exp", "exp2", "erfc", "logistic", "softplus", "square", "mul", "div", "pow", "prod", "dot"),
    *("gelu", "slope"),
    *(name for name in OPERATIONS if name.startswith("power")),
}
