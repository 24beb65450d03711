"""The functions and operators that coefficients are written with, jax.numpy and those of problem
files, for symbols instead of numbers."""

import ast
import builtins
import math
from collections.abc import Callable
from functools import cache
from typing import Any

import jax.numpy as jnp
import numpy as np

from cordes.reports.pages.mathml import (
    POWER,
    Condition,
    Node,
    Untypeset,
    applied,
    array,
    brackets,
    cases,
    constant,
    node,
    row,
    symbol,
)

SAME = (
    "sin",
    "cos",
    "tan",
    "sinh",
    "cosh",
    "tanh",
    "arcsin",
    "arccos",
    "arctan",
    "log",
    "sign",
    "floor",
)
OTHER_NAMES = {
    "asin": "arcsin",
    "acos": "arccos",
    "atan": "arctan",
    "atan2": "arctan2",
    "absolute": "abs",
    "fabs": "abs",
    "amin": "min",
    "amax": "max",
    "concatenate": "hstack",
    "asarray": "array",
    "pow": "power",
}
SHAPING = (
    "array",
    "asarray",
    "stack",
    "vstack",
    "hstack",
    "concatenate",
    "eye",
    "diag",
    "outer",
    "dot",
    "matmul",
    "sum",
    "prod",
    "trace",
    "norm",
)
OTHERS = (
    "sqrt",
    "cbrt",
    "exp",
    "abs",
    "square",
    "power",
    "where",
    "min",
    "max",
    "amin",
    "amax",
    "minimum",
    "maximum",
    "arctan2",
    "zeros",
    "ones",
)
BUILTINS = ("abs", "min", "max", "sum", "len", "float", "pow")


@cache
def _known() -> dict[int, tuple[str, str]]:
    """Where the functions come from that are understood, and their names, by their identity: a
    function of another module may have the same name."""
    places = {"array": (jnp, jnp.linalg, np, np.linalg), "number": (math,), "builtin": (builtins,)}
    names = {
        "array": {*SAME, *SHAPING, *OTHERS, *OTHER_NAMES},
        "number": {*SAME, *OTHERS, *OTHER_NAMES},
        "builtin": set(BUILTINS),
    }
    found = {}
    for origin, modules in places.items():
        for module in modules:
            for name in names[origin]:
                if hasattr(module, name):
                    found[id(getattr(module, name))] = (origin, OTHER_NAMES.get(name, name))
    return found


def known_function(function: Any) -> tuple[str, str] | None:
    """The origin and the name of a function of jax.numpy, numpy, math or Python itself; None for
    all others."""
    return _known().get(id(function))


def operand(value: Any) -> Any:
    """A number or an array; lists become arrays."""
    if isinstance(value, list):
        return array(value)
    if isinstance(value, Node | np.ndarray):
        return value
    raise Untypeset("something that is no number")


def library(name: str, arguments: list, origin: str) -> Any:
    """A function of arrays (jax.numpy), of numbers, of Python itself ("builtin"), or of a problem
    file ("file")."""
    if name == "where" and len(arguments) == 3:
        return _entrywise(cases, arguments[0], *(operand(argument) for argument in arguments[1:]))
    if name in ("min", "max"):
        return _extreme(name, arguments, origin)
    if name in ("stack", "vstack", "hstack"):
        return _joined(name, arguments)
    made = [operand(argument) for argument in arguments]
    match name, made:
        case "array" | "float", [value]:
            return value
        case "square", [value]:
            return value**2
        case "eye", [size]:
            return array(np.eye(size.__index__()))
        case "zeros" | "ones", [size]:
            return array(
                np.full(
                    [each.__index__() for each in np.ravel(np.array(size, dtype=object))],
                    float(name == "ones"),
                )
            )
        case "len", [np.ndarray() as value]:
            return constant(len(value))
        case "diag", [np.ndarray(ndim=1) as value]:
            return np.array(
                [
                    [value[i] if i == j else constant(0) for j in range(len(value))]
                    for i in range(len(value))
                ],
                dtype=object,
            )
        case "outer", [np.ndarray(ndim=1) as one, np.ndarray(ndim=1) as two]:
            return np.multiply.outer(one, two)
        case "dot" | "matmul", [np.ndarray() as one, np.ndarray() as two]:
            return square(one) if _alike(one, two) else one @ two
        case "sum" | "prod", [np.ndarray() as value] if value.ndim == 1 or origin == "array":
            return (np.sum if name == "sum" else np.prod)(value)
        case "trace", [np.ndarray(ndim=2) as value]:
            return np.trace(value)
        case "norm", [np.ndarray() as value] if value.ndim == 1 or origin == "array":
            return length(value.ravel())
        case "norm", _ if origin == "file":
            return length(array(made))
        case "power", [base, exponent]:
            return base**exponent
        case "minimum" | "maximum" | "arctan2", [_, _]:
            return _entrywise(
                lambda *parts: applied(name[:3] if name != "arctan2" else name, *parts), *made
            )
        case _, [value]:
            return _entrywise(lambda part: elementary(name, part), value)
    raise Untypeset(f"the function {name}")


def _extreme(name: str, arguments: list, origin: str) -> Node:
    """The least or the largest of the entries of a vector, or of several numbers; what jax.numpy
    takes for an axis is refused."""
    made = (
        operand(arguments[0]) if len(arguments) == 1 else [node(argument) for argument in arguments]
    )
    if isinstance(made, np.ndarray) and made.ndim == 1 and origin in ("array", "builtin"):
        return applied(name, *map(node, made))
    if isinstance(made, list) and len(made) > 1 and origin in ("builtin", "file"):
        return applied(name, *made)
    raise Untypeset(f"{name} of something else than numbers")


def _joined(name: str, arguments: list) -> np.ndarray:
    """Vectors one after the other, or one above the other."""
    if len(arguments) != 1 or not isinstance(arguments[0], list):
        raise Untypeset(f"{name} with other arguments")
    if name == "stack":
        return array(arguments[0])
    parts = [operand(part) for part in arguments[0]]
    if name == "vstack":
        if any(not isinstance(part, np.ndarray) or part.ndim != 1 for part in parts):
            raise Untypeset("rows that are no vectors")
        return array(parts)
    if any(not isinstance(part, np.ndarray) or part.ndim != 1 for part in parts):
        raise Untypeset("parts that are no vectors")
    return np.concatenate(parts)


def elementary(name: str, part: Node) -> Node:
    """A function of one number."""
    match name:
        case "abs":
            return abs(part)
        case "sqrt":
            return Node(f"<msqrt>{part.mathml}</msqrt>")
        case "cbrt":
            return Node(f"<mroot>{row(part.mathml)}<mn>3</mn></mroot>")
        case "exp":
            return Node(f"<msup><mi>e</mi>{row(part.mathml)}</msup>", POWER)
        case _ if name in SAME:
            return applied(name, part)
    raise Untypeset(f"the function {name}")


def length(vector: np.ndarray) -> Node:
    """The Euclidean length: |x| of the point itself, else a root of squares."""
    return abs(symbol("x")) if is_point(vector) else Node(f"<msqrt>{square(vector).mathml}</msqrt>")


def square(vector: np.ndarray) -> Node:
    """|x|² of the point itself, else a sum of squares."""
    return (
        abs(symbol("x")) ** 2
        if is_point(vector)
        else sum((entry**2 for entry in vector), constant(0))
    )


def is_point(vector: Any) -> bool:
    """Whether this is the point x itself."""
    return (
        isinstance(vector, np.ndarray)
        and vector.ndim == 1
        and [node(entry).mathml for entry in vector]
        == [symbol("x", i + 1).mathml for i in range(len(vector))]
    )


def _alike(one: Any, two: Any) -> bool:
    """Whether two vectors are written alike."""
    return one.ndim == two.ndim == 1 and [node(entry).mathml for entry in one] == [
        node(entry).mathml for entry in two
    ]


def _entrywise(function: Callable[..., Node], *parts: Any) -> Any:
    if all(isinstance(part, Node | Condition) for part in parts):
        return function(*parts)
    return np.vectorize(function, otypes=[object])(*parts)


def number(value: Any) -> Any:
    """A number or an array. Lists are none: [1] + [2] is [1, 2]."""
    if not isinstance(value, Node | np.ndarray):
        raise Untypeset("arithmetic with something that is no number")
    return value


def binary(operator: ast.operator, left: Any, right: Any) -> Any:
    if isinstance(operator, ast.BitAnd | ast.BitOr):
        return joint("and" if isinstance(operator, ast.BitAnd) else "or", [left, right])
    left, right = number(left), number(right)
    match operator:
        case ast.Add():
            return left + right
        case ast.Sub():
            return left - right
        case ast.Mult():
            return left * right
        case ast.Div():
            return left / right
        case ast.Pow():
            return left**right
        case ast.MatMult():
            return left @ right
    raise Untypeset(f"the operator {type(operator).__name__}")


def joint(word: str, parts: list) -> Condition:
    """Several conditions; in brackets if they are joint themselves."""
    if not all(isinstance(part, Condition) for part in parts):
        raise Untypeset("a condition that is a number")
    return Condition(
        f"<mtext>\xa0{word}\xa0</mtext>".join(
            brackets(part.mathml) if part.compound else part.mathml for part in parts
        ),
        True,
    )
