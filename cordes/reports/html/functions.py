"""The functions that coefficients are written with, jax.numpy and those of problem files, for symbols instead of numbers."""

from collections.abc import Callable
from typing import Any

import numpy as np

from cordes.reports.html.mathml import POWER, Node, Untypeset, applied, array, cases, constant, node, row, symbol

SAME = ("sin", "cos", "tan", "sinh", "cosh", "tanh", "arcsin", "arccos", "arctan", "log", "sign", "floor")
OTHER_NAMES = {
    "asin": "arcsin",
    "acos": "arccos",
    "atan": "arctan",
    "atan2": "arctan2",
    "absolute": "abs",
    "concatenate": "hstack",
    "asarray": "array",
}


def operand(value: Any) -> Any:
    """A number or an array; lists become arrays."""
    if isinstance(value, list):
        return array(value)
    if isinstance(value, Node | np.ndarray):
        return value
    raise Untypeset("something that is no number")


def library(name: str, arguments: list) -> Any:
    """A function of jax.numpy, or of a problem file."""
    name = OTHER_NAMES.get(name, name)
    made = [operand(argument) for argument in arguments]
    match name, made:
        case "array" | "stack" | "vstack" | "hstack" | "float" | "square", [value]:
            return value**2 if name == "square" else value
        case "eye", [size]:
            return array(np.eye(size.__index__()))
        case "len", [np.ndarray() as value]:
            return constant(len(value))
        case "diag", [np.ndarray() as value]:
            return np.array([[value[i] if i == j else constant(0) for j in range(len(value))] for i in range(len(value))], dtype=object)
        case "outer", [one, two]:
            return np.multiply.outer(one, two)
        case "dot" | "matmul", [one, two]:
            return square(one) if _alike(one, two) else one @ two
        case "sum" | "prod", [np.ndarray() as value]:
            return (np.sum if name == "sum" else np.prod)(value)
        case "trace", [value]:
            return np.trace(value)
        case "norm", [np.ndarray() as value]:
            return length(value)
        case "norm", _:
            return length(array(made))
        case "power", [base, exponent]:
            return base**exponent
        case "where", [condition, yes, no]:
            return _entrywise(cases, condition, yes, no)
        case "min" | "minimum" | "max" | "maximum", [_, _, *_]:
            return _entrywise(lambda *parts: applied(name[:3], *parts), *made)
        case _, [value]:
            return _entrywise(lambda part: elementary(name, part), value)
        case "arctan2", [_, _]:
            return _entrywise(lambda *parts: applied(name, *parts), *made)
    raise Untypeset(f"the function {name}")


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
    return abs(symbol("x")) ** 2 if is_point(vector) else sum((entry**2 for entry in vector), constant(0))


def is_point(vector: Any) -> bool:
    """Whether this is the point x itself."""
    return (
        isinstance(vector, np.ndarray)
        and vector.ndim == 1
        and [node(entry).mathml for entry in vector] == [symbol("x", i + 1).mathml for i in range(len(vector))]
    )


def _alike(one: Any, two: Any) -> bool:
    """Whether two vectors are written alike."""
    return one.ndim == two.ndim == 1 and [node(entry).mathml for entry in one] == [node(entry).mathml for entry in two]


def _entrywise(function: Callable[..., Node], *parts: Any) -> Any:
    if all(isinstance(part, Node) for part in parts):
        return function(*parts)
    return np.vectorize(function, otypes=[object])(*parts)
