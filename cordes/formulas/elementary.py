"""The elementary functions of one number, by the names of JAX's primitives: one table for all that
read a formula.

Enclosures are in `intervals/functions.py` under the same names.
"""

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from scipy import special

INFINITE = (-math.inf, math.inf)


class Elementary(NamedTuple):
    """`values` computes the function with NumPy. `shown` is its name in formulas, `text` how it is
    written in problem files, both with {} for the argument where a name alone does not do; None
    where there is no way.

    `domain`: it is real there alone. `smooth`: it is smooth inside this interval, and `order` is
    its singular order at the ends. `entire`: it is analytic on the whole line. `vanishing`: it
    vanishes with its argument; `only`: nowhere else. `positive`: it is never negative.
    """

    values: Callable[..., Any]
    shown: str
    text: str | None
    domain: tuple[float, float] = INFINITE
    smooth: tuple[float, float] | None = None
    order: float = 0.0
    entire: bool = False
    vanishing: bool = False
    only: bool = False
    positive: bool = False


def _logistic(t: Any) -> Any:
    return 1 / (1 + np.exp(-t))


_HALF_LINE, _SYMMETRIC = (0.0, math.inf), (-1.0, 1.0)
_ZERO: dict[str, Any] = {"vanishing": True, "only": True}

ELEMENTARY: dict[str, Elementary] = {
    "exp": Elementary(np.exp, "exp", "exp", entire=True, positive=True),
    "exp2": Elementary(np.exp2, "exp2", "2**{}", entire=True, positive=True),
    "expm1": Elementary(np.expm1, "expm1", "exp({}) - 1", entire=True, **_ZERO),
    "sin": Elementary(np.sin, "sin", "sin", entire=True, vanishing=True),
    "cos": Elementary(np.cos, "cos", "cos", entire=True),
    "sinh": Elementary(np.sinh, "sinh", "sinh", entire=True, **_ZERO),
    "cosh": Elementary(np.cosh, "cosh", "cosh", entire=True, positive=True),
    "tanh": Elementary(np.tanh, "tanh", "tanh", entire=True, **_ZERO),
    "atan": Elementary(np.arctan, "arctan", "arctan", entire=True, **_ZERO),
    "asinh": Elementary(np.arcsinh, "arsinh", None, entire=True, **_ZERO),
    "logistic": Elementary(_logistic, "logistic", None, entire=True, positive=True),
    "erf": Elementary(special.erf, "erf", None, entire=True, **_ZERO),
    "log": Elementary(np.log, "log", "log", _HALF_LINE, _HALF_LINE),
    "log1p": Elementary(np.log1p, "log1p", None, (-1.0, math.inf), (-1.0, math.inf), **_ZERO),
    "asin": Elementary(np.arcsin, "arcsin", "arcsin", _SYMMETRIC, _SYMMETRIC, 0.5, **_ZERO),
    "acos": Elementary(np.arccos, "arccos", "arccos", _SYMMETRIC, _SYMMETRIC, 0.5),
    "atanh": Elementary(np.arctanh, "artanh", None, _SYMMETRIC, _SYMMETRIC, **_ZERO),
    "acosh": Elementary(np.arccosh, "arcosh", None, (1.0, math.inf), (1.0, math.inf), 0.5),
    "tan": Elementary(np.tan, "tan", "tan", smooth=(-math.pi / 2, math.pi / 2), vanishing=True),
    "sqrt": Elementary(np.sqrt, "sqrt", "sqrt", _HALF_LINE, **_ZERO, positive=True),
    "rsqrt": Elementary(lambda t: 1 / np.sqrt(t), "rsqrt", None, _HALF_LINE, positive=True),
    "cbrt": Elementary(np.cbrt, "cbrt", "cbrt", **_ZERO),
    "abs": Elementary(np.abs, "abs", "abs", **_ZERO, positive=True),
    "sign": Elementary(np.sign, "sign", "sign", **_ZERO),
    "floor": Elementary(np.floor, "floor", "floor"),
    "ceil": Elementary(np.ceil, "ceil", None),
}


def names(fact: Callable[[Elementary], Any]) -> frozenset[str]:
    """The functions of which something holds."""
    return frozenset(name for name, each in ELEMENTARY.items() if fact(each))
