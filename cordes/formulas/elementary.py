"""The elementary functions of one number, arithmetic and comparisons, by the names of JAX's
primitives: tables for all that read a formula.

Enclosures are in `intervals/functions.py` under the same names.
"""

import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
from scipy import special

INFINITE = (-math.inf, math.inf)


class Elementary(NamedTuple):
    """`values` computes the function with NumPy; `written` is its name in formulas, and in problem
    files where these know it (`file`).

    `domain`: it is real there alone. `smooth`: it is smooth inside this interval, and `order` is
    its singular order at the ends. `entire`: it is analytic on the whole line. `vanishing`: it
    vanishes with its argument; `only`: nowhere else. `positive`: it is never negative.
    """

    values: Callable[..., Any]
    written: str
    file: bool = False
    domain: tuple[float, float] = INFINITE
    smooth: tuple[float, float] | None = None
    order: float = 0.0
    entire: bool = False
    vanishing: bool = False
    only: bool = False
    positive: bool = False


def _logistic(t: Any) -> Any:
    return 1 / (1 + np.exp(-t))


_HALF_LINE, _SYMMETRIC, _ABOVE = (0.0, math.inf), (-1.0, 1.0), (-1.0, math.inf)
_FILE: dict[str, Any] = {"file": True}
_ZERO: dict[str, Any] = {"vanishing": True, "only": True}
_ENTIRE: dict[str, Any] = {"entire": True}
_POSITIVE: dict[str, Any] = {"positive": True}

ELEMENTARY: dict[str, Elementary] = {
    "exp": Elementary(np.exp, "exp", **_FILE, **_ENTIRE, **_POSITIVE),
    "exp2": Elementary(np.exp2, "exp2", **_ENTIRE, **_POSITIVE),
    "expm1": Elementary(np.expm1, "expm1", **_ENTIRE, **_ZERO),
    "sin": Elementary(np.sin, "sin", **_FILE, **_ENTIRE, vanishing=True),
    "cos": Elementary(np.cos, "cos", **_FILE, **_ENTIRE),
    "sinh": Elementary(np.sinh, "sinh", **_FILE, **_ENTIRE, **_ZERO),
    "cosh": Elementary(np.cosh, "cosh", **_FILE, **_ENTIRE, **_POSITIVE),
    "tanh": Elementary(np.tanh, "tanh", **_FILE, **_ENTIRE, **_ZERO),
    "atan": Elementary(np.arctan, "arctan", **_FILE, **_ENTIRE, **_ZERO),
    "asinh": Elementary(np.arcsinh, "arsinh", **_ENTIRE, **_ZERO),
    "logistic": Elementary(_logistic, "logistic", **_ENTIRE, **_POSITIVE),
    "erf": Elementary(special.erf, "erf", **_ENTIRE, **_ZERO),
    "erfc": Elementary(special.erfc, "erfc", **_ENTIRE, **_POSITIVE),
    "log": Elementary(np.log, "log", **_FILE, domain=_HALF_LINE, smooth=_HALF_LINE),
    "log1p": Elementary(np.log1p, "log1p", domain=_ABOVE, smooth=_ABOVE, **_ZERO),
    "asin": Elementary(np.arcsin, "arcsin", True, _SYMMETRIC, _SYMMETRIC, 0.5, **_ZERO),
    "acos": Elementary(np.arccos, "arccos", True, _SYMMETRIC, _SYMMETRIC, 0.5),
    "atanh": Elementary(np.arctanh, "artanh", False, _SYMMETRIC, _SYMMETRIC, **_ZERO),
    "acosh": Elementary(np.arccosh, "arcosh", False, (1.0, math.inf), (1.0, math.inf), 0.5),
    "tan": Elementary(np.tan, "tan", True, smooth=(-math.pi / 2, math.pi / 2), vanishing=True),
    "sqrt": Elementary(np.sqrt, "sqrt", **_FILE, domain=_HALF_LINE, **_ZERO, **_POSITIVE),
    "rsqrt": Elementary(lambda t: 1 / np.sqrt(t), "rsqrt", domain=_HALF_LINE, **_POSITIVE),
    "cbrt": Elementary(np.cbrt, "cbrt", **_FILE, **_ZERO),
    "abs": Elementary(np.abs, "abs", **_FILE, **_ZERO, **_POSITIVE),
    "sign": Elementary(np.sign, "sign", **_FILE, **_ZERO),
    "floor": Elementary(np.floor, "floor", **_FILE),
    "ceil": Elementary(np.ceil, "ceil"),
}
# The same by their names in formulas.
WRITTEN = {each.written: each for each in ELEMENTARY.values()}

# NumPy's functions of one or two numbers that JAX's operations round alike.
ARITHMETIC: dict[str, Callable[..., Any]] = {
    **{"neg": np.negative, "add": np.add, "sub": np.subtract, "mul": np.multiply},
    **{"max": np.maximum, "min": np.minimum},
}


class ComparisonRule(NamedTuple):
    """`values` compares with NumPy; `sign` is that of formulas, `file` that of problem files, and
    `opposite` the sign of what holds where this does not."""

    values: Callable[..., Any]
    sign: str
    file: str
    opposite: str


COMPARISONS: dict[str, ComparisonRule] = {
    "lt": ComparisonRule(np.less, "<", "<", "≥"),
    "le": ComparisonRule(np.less_equal, "≤", "<=", ">"),
    "gt": ComparisonRule(np.greater, ">", ">", "≤"),
    "ge": ComparisonRule(np.greater_equal, "≥", ">=", "<"),
    "eq": ComparisonRule(np.equal, "=", "==", "≠"),
    "ne": ComparisonRule(np.not_equal, "≠", "!=", "="),
}
# The same by their signs.
COMPARED = {each.sign: each for each in COMPARISONS.values()}


def names(fact: Callable[[Elementary], Any]) -> frozenset[str]:
    """The functions of which something holds."""
    return frozenset(name for name, each in ELEMENTARY.items() if fact(each))


# Operations of constants that NumPy rounds as JAX does: each of JAX's costs a compilation.
_BY_NUMPY = {
    **ARITHMETIC,
    **{"add_any": np.add, "square": np.square},
    **{name: each.values for name, each in COMPARISONS.items()},
    **{name: ELEMENTARY[name].values for name in ("abs", "sign", "sqrt")},
}


@np.errstate(all="ignore")
def evaluate_constants(equation: Any, constants: Sequence[Any]) -> list[np.ndarray]:
    """The results of an equation whose operands are all constant: what JAX computes in float64, and
    index arithmetic is exact."""
    name, variable = equation.primitive.name, equation.outvars[0].aval
    if name == "iota":
        axis = equation.params["dimension"]
        spread = [size if i == axis else 1 for i, size in enumerate(variable.shape)]
        numbers = np.arange(variable.shape[axis], dtype=variable.dtype).reshape(spread)
        return [np.broadcast_to(numbers, variable.shape)]
    if name == "convert_element_type" and _converted_alike(constants[0], variable.dtype):
        return [constants[0].astype(variable.dtype)]
    if name in _BY_NUMPY or (name == "div" and variable.dtype == np.float64):
        return [np.asarray(_BY_NUMPY.get(name, np.divide)(*constants), dtype=variable.dtype)]
    result = equation.primitive.bind(*constants, **equation.params)
    return [*map(np.asarray, result if equation.primitive.multiple_results else [result])]


def _converted_alike(constant: np.ndarray, dtype: np.dtype) -> bool:
    """Whether NumPy and JAX convert alike: they differ beyond the ends of an integer type."""
    if constant.dtype.kind != "f" or dtype.kind not in "iu":
        return True
    ends = np.iinfo(dtype)
    return bool(np.all((constant > float(ends.min)) & (constant < float(ends.max))))
