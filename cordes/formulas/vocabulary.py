"""The words of arithmetic expressions in problem files, and what a parsed expression is."""

import ast
import dataclasses
import math
import re
from collections.abc import Callable
from typing import Any

import jax.numpy as jnp
from jax import Array

from cordes.formulas.elementary import COMPARISONS as TABLE
from cordes.formulas.elementary import WRITTEN

COORDINATE, CONTROL = re.compile(r"x[0-9]+"), re.compile(r"a[0-9]*")


@dataclasses.dataclass(frozen=True, eq=False, repr=False)
class Expression:
    """A function of one point (d,), and of a control where there are any, that was parsed from
    `text`; gives a scalar of the point's dtype.

    The definitions that it uses are evaluated once each, in the order of the file: a chain of
    definitions that doubles in size with each line costs no more than its lines.
    """

    text: str
    definitions: dict[str, "Expression"]
    evaluate: "Evaluator"
    controlled: bool = False

    def __call__(self, x: Array, a: Array | None = None) -> Array:
        x = jnp.asarray(x)
        scope = Scope(x, {}, () if a is None else jnp.ravel(jnp.asarray(a)))
        for name, definition in self.definitions.items():
            scope.values[name] = definition.evaluate(scope)
        return jnp.asarray(self.evaluate(scope), dtype=x.dtype)

    def __repr__(self) -> str:
        # The definitions are left out: written into each other they could grow without bound, and
        # JAX asks every function for its name.
        return f"Expression({self.text!r})"


@dataclasses.dataclass(frozen=True)
class Scope:
    """What names mean during one evaluation: the point, the values of the definitions, and the
    components of the control."""

    x: Array
    values: dict[str, Array]
    a: Any


Evaluator = Callable[[Scope], Any]
# A part of an expression: already a constant (float, or bool in conditions), or still to be
# evaluated.
Part = float | bool | Evaluator


@dataclasses.dataclass(frozen=True)
class Function:
    """A function that expressions may call. It takes the array module (numpy for constants,
    jax.numpy otherwise) and its arguments."""

    call: Callable[..., Any]
    least: int = 1
    most: int | None = 1


def length(module: Any, *components: Any) -> Any:
    """Euclidean length, with derivative 0 instead of NaN at the origin."""
    square = sum(component * component for component in components)
    positive = square > 0
    return module.where(positive, module.sqrt(module.where(positive, square, 1.0)), 0.0)


def _fold(name: str) -> Callable[..., Any]:
    """A function of two arguments as one of any number."""

    def fold(module: Any, first: Any, *others: Any) -> Any:
        for other in others:
            first = getattr(module, name)(first, other)
        return first

    return fold


FUNCTIONS = {
    name: Function(lambda module, value, name=name: getattr(module, name)(value))
    for name, each in WRITTEN.items()
    if each.file
} | {
    "arctan2": Function(lambda module, y, x: module.arctan2(y, x), 2, 2),
    "min": Function(_fold("minimum"), 2, None),
    "max": Function(_fold("maximum"), 2, None),
    "where": Function(lambda module, condition, yes, no: module.where(condition, yes, no), 3, 3),
    "norm": Function(length, 1, None),
}
all_of, any_of = _fold("logical_and"), _fold("logical_or")
CONSTANTS = {"pi": math.pi, "e": math.e}


def raised(module: Any, base: Any, exponent: Any) -> Any:
    # A whole exponent known in advance is a product: it has derivatives for negative bases too.
    if module is jnp and isinstance(exponent, float) and exponent.is_integer():
        return base ** int(exponent)
    return module.power(base, exponent)


_ARITHMETIC = {ast.Add: "add", ast.Sub: "subtract", ast.Mult: "multiply", ast.Div: "divide"}
OPERATORS: dict[type, Callable[..., Any]] = {
    kind: _fold(name) for kind, name in _ARITHMETIC.items()
} | {ast.Pow: raised}
_ORDER = {ast.Lt: "lt", ast.LtE: "le", ast.Gt: "gt", ast.GtE: "ge", ast.Eq: "eq", ast.NotEq: "ne"}
COMPARISONS: dict[type, Callable[..., Any]] = {
    kind: _fold(TABLE[name].values.__name__) for kind, name in _ORDER.items()
}


def is_reserved(name: str, controlled: bool = False) -> bool:
    """Whether a definition may not have this name, because expressions already use it; a, a1, a2, …
    only where there are controls."""
    variable = COORDINATE.fullmatch(name) or (controlled and CONTROL.fullmatch(name))
    return name in FUNCTIONS or name in CONSTANTS or name in ("x", "r") or bool(variable)


def described(node: ast.AST) -> str:
    """The Python construct in a word or two, for messages."""
    words = {
        "IfExp": "if … else, use where",
        "FloorDiv": "//",
        "Mod": "%",
        "MatMult": "@",
        "Constant": "a constant that is not a real number",
    }
    name = type(node).__name__
    return words.get(name, re.sub(r"(?<=[a-z])(?=[A-Z])", " ", name).lower())
