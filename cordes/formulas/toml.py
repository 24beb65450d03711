"""Arithmetic expressions of problem files, such as "2 + sin(pi*x1)*abs(x2)".

The text is parsed into Python's syntax tree and nothing of it is ever executed: `parse` walks the
tree and composes functions of a fixed list. What is not on that list (attributes, subscripts, other
calls, strings, lambdas, …) is refused with the place marked. Numbers are floats from the start, so
that no power of integers can fill the memory; length, nesting and exponents are limited. What does
not depend on the point is worked out at once and returned as a plain float, so that a problem can
tell a constant coefficient from a variable one.
"""

import ast
import dataclasses
import difflib
import math
import re
import warnings
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NoReturn

import jax.numpy as jnp
import numpy as np
from jax import Array

from cordes.errors import FileError

MAX_LENGTH = 2000
MAX_DEPTH = 60
MAX_EXPONENT = 1000.0
_EXCERPT = 100
_COORDINATE, _CONTROL = re.compile(r"x[0-9]+"), re.compile(r"a[0-9]*")


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


def _length(module: Any, *components: Any) -> Any:
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


_ELEMENTARY = [
    "sin",
    "cos",
    "tan",
    "arcsin",
    "arccos",
    "arctan",
    "sinh",
    "cosh",
    "tanh",
    "exp",
    "log",
    "sqrt",
    "cbrt",
    "abs",
    "sign",
    "floor",
]
FUNCTIONS = {
    name: Function(lambda module, value, name=name: getattr(module, name)(value))
    for name in _ELEMENTARY
} | {
    "arctan2": Function(lambda module, y, x: module.arctan2(y, x), 2, 2),
    "min": Function(_fold("minimum"), 2, None),
    "max": Function(_fold("maximum"), 2, None),
    "where": Function(lambda module, condition, yes, no: module.where(condition, yes, no), 3, 3),
    "norm": Function(_length, 1, None),
}
_all, _any = _fold("logical_and"), _fold("logical_or")
CONSTANTS = {"pi": math.pi, "e": math.e}


def _power(module: Any, base: Any, exponent: Any) -> Any:
    # A whole exponent known in advance is a product: it has derivatives for negative bases too.
    if module is jnp and isinstance(exponent, float) and exponent.is_integer():
        return base ** int(exponent)
    return module.power(base, exponent)


_ARITHMETIC = {ast.Add: "add", ast.Sub: "subtract", ast.Mult: "multiply", ast.Div: "divide"}
_OPERATORS: dict[type, Callable[..., Any]] = {
    kind: _fold(name) for kind, name in _ARITHMETIC.items()
} | {ast.Pow: _power}
_ORDER = {
    ast.Lt: "less",
    ast.LtE: "less_equal",
    ast.Gt: "greater",
    ast.GtE: "greater_equal",
    ast.Eq: "equal",
    ast.NotEq: "not_equal",
}
_COMPARISONS: dict[type, Callable[..., Any]] = {kind: _fold(name) for kind, name in _ORDER.items()}


def is_reserved(name: str, controlled: bool = False) -> bool:
    """Whether a definition may not have this name, because expressions already use it; a, a1, a2, …
    only where there are controls."""
    variable = _COORDINATE.fullmatch(name) or (controlled and _CONTROL.fullmatch(name))
    return name in FUNCTIONS or name in CONSTANTS or name in ("x", "r") or bool(variable)


def parse(
    text: str,
    dimension: int,
    definitions: Mapping[str, "float | Expression"] | None = None,
    label: str = "expression",
    controls: Sequence[str] = (),
    fixed: bool = False,
) -> "float | Expression":
    """The float or the function of one point that `text` stands for; FileError, beginning with
    `label`, where it is refused.

    `dimension` is the number of coordinates x1, x2, …; with 0 only constants are allowed.
    `definitions` are earlier results by name. `controls` are the names of the control's components;
    `fixed` says that they exist, but that this expression may not depend on them. Checked: length,
    nesting, every name and call, the number of arguments, constants finite. Not checked: values
    that depend on the point.
    """
    return _Parser(text, dimension, definitions or {}, label, tuple(controls), fixed).parse()


class _Parser:
    def __init__(
        self,
        text: str,
        dimension: int,
        definitions: Mapping[str, "float | Expression"],
        label: str,
        controls: tuple[str, ...],
        fixed: bool,
    ):
        # Line ends of a TOML multi-line string mean nothing here.
        self.text = re.sub(r"[\n\r\t]", " ", text).strip()
        self.dimension = dimension
        self.definitions = definitions
        self.label = label
        self.controls, self.fixed = controls, fixed
        self.used: set[str] = set()
        self.controlled = False

    def parse(self) -> "float | Expression":
        part = self.part(self.tree(), 0)
        if not callable(part):
            return float(part)
        used = {
            name: definition
            for name, definition in self.definitions.items()
            if name in self.used and isinstance(definition, Expression)
        }
        return Expression(self.text, used, part, self.controlled)

    def tree(self) -> ast.expr:
        if not self.text:
            raise FileError(f"{self.label}: the expression is empty.")
        if len(self.text) > MAX_LENGTH:
            raise FileError(
                f"{self.label}: the expression has {len(self.text)} characters, {MAX_LENGTH} "
                "are allowed. Split it with [definitions]."
            )
        # A comment would swallow the lines after it, which have become one line.
        odd = next(
            (
                i
                for i, character in enumerate(self.text)
                if character in "#^" or not character.isprintable()
            ),
            None,
        )
        if odd is not None:
            power = self.text[odd] == "^"
            self.refuse(
                odd,
                "a power is written with **, not ^."
                if power
                else f"the character {self.text[odd]!r} is not allowed.",
            )
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                return ast.parse(self.text, mode="eval").body
        except SyntaxError as error:
            # Where something is missing at the end, Python gives no column.
            column = (error.offset or len(self.text) + 1) - 1
            self.refuse(
                min(column, len(self.text)), f"this is not an arithmetic expression ({error.msg})."
            )
        except (MemoryError, RecursionError, ValueError):
            raise FileError(
                f"{self.label}: the expression is nested too deeply. Split it with the table "
                "[definitions]."
            ) from None

    def part(self, node: ast.expr, depth: int) -> Part:
        """The meaning of a numerical part of the tree."""
        if depth > MAX_DEPTH:
            self.refuse(
                node,
                (
                    f"the expression is nested more than {MAX_DEPTH} levels deep. Split it with "
                    "the table [definitions]."
                ),
            )
        match node:
            case ast.Constant(value=int() | float() as value) if not isinstance(value, bool):
                return self.number(node, value)
            case ast.Name(id=name):
                return self.name(node, name)
            case ast.UnaryOp(op=ast.UAdd(), operand=operand):
                return self.part(operand, depth + 1)
            case ast.UnaryOp(op=ast.USub(), operand=operand):
                return self.combine(
                    node, lambda module, value: -value, [self.part(operand, depth + 1)]
                )
            case ast.BinOp():
                return self.chain(node, depth)
            case ast.Call():
                return self.call(node, depth)
            case ast.Compare() | ast.BoolOp() | ast.UnaryOp(op=ast.Not()):
                self.refuse(
                    node,
                    "a comparison is allowed only as the first argument of where(condition, a, b).",
                )
            case ast.Subscript():
                self.refuse(node, "subscripts are not allowed. The coordinates are x1, x2, …")
            case _:
                self.refuse(node, f"this is not allowed here ({_describe(node)}).")

    def number(self, node: ast.expr, value: float) -> float:
        try:
            number = float(value)
        except OverflowError:
            number = math.inf
        if not math.isfinite(number):
            self.refuse(node, "this number is too large.")
        return number

    def name(self, node: ast.expr, name: str) -> Part:
        if name in CONSTANTS:
            return CONSTANTS[name]
        if name in self.definitions:
            return self.definition(node, name)
        if name in self.controls:
            return self.component(node, name)
        coordinates = self.coordinates()
        if name in coordinates:
            index = coordinates.index(name)
            return lambda scope: scope.x[index]
        if name == "r" and self.dimension:
            return lambda scope: _length(jnp, *scope.x)
        if name == "x" and self.dimension:
            self.refuse(
                node,
                (
                    "x is the whole point. Write x1, x2, … for its coordinates and norm(x) or r "
                    "for its length."
                ),
            )
        if name in FUNCTIONS:
            self.refuse(node, f"{name} is a function and needs its arguments in parentheses.")
        if self.controls and _CONTROL.fullmatch(name):
            self.refuse(node, f"there is no {name}: the control is {', '.join(self.controls)}.")
        if (_COORDINATE.fullmatch(name) or name in ("x", "r")) and not self.dimension:
            self.refuse(node, f"{name} depends on the point, and here a constant is needed.")
        if _COORDINATE.fullmatch(name):
            self.refuse(
                node,
                (
                    f"there is no coordinate {name}: the domain has dimension {self.dimension}, "
                    f"its coordinates are {', '.join(coordinates)}."
                ),
            )
        self.refuse(node, f"there is no name '{name}'.{self.nearest(name, self.names())}")

    def component(self, node: ast.expr, name: str) -> Part:
        self.depend_on_control(node, name)
        index = self.controls.index(name)
        return lambda scope: scope.a[index]

    def depend_on_control(self, node: ast.expr, name: str) -> None:
        if self.fixed:
            self.refuse(
                node,
                (
                    f"{name} {'is' if name in self.controls else 'depends on'} the control, and "
                    "here only the point counts."
                ),
            )
        self.controlled = True

    def definition(self, node: ast.expr, name: str) -> Part:
        definition = self.definitions[name]
        if not isinstance(definition, Expression):
            return definition
        if definition.controlled:
            self.depend_on_control(node, name)
        self.used |= {name, *definition.definitions}
        return lambda scope: scope.values[name]

    def chain(self, node: ast.BinOp, depth: int) -> Part:
        """Binary operations. A long sum or product is a tree that leans to the left; walking along
        that side keeps it one level deep."""
        operations: list[ast.BinOp] = []
        first: ast.expr = node
        while isinstance(first, ast.BinOp):
            operations.append(first)
            first = first.left
        value = self.part(first, depth + 1)
        steps: list[tuple[Callable[..., Any], Part]] = []
        for operation in reversed(operations):
            function = _OPERATORS.get(type(operation.op))
            if function is None:
                power = isinstance(operation.op, ast.BitXor)
                self.refuse(
                    operation,
                    "a power is written with **, not ^."
                    if power
                    else f"this operation is not allowed ({_describe(operation.op)}).",
                )
            right = self.part(operation.right, depth + 1)
            if function is _power and isinstance(right, float) and abs(right) > MAX_EXPONENT:
                self.refuse(
                    operation.right,
                    f"the exponent {right:g} is too large; at most {MAX_EXPONENT:g} is allowed.",
                )
            if steps or callable(value) or callable(right):
                steps.append((function, right))
            else:
                value = self.combine(operation, function, [value, right])
        return _run(value, steps) if steps else value

    def call(self, node: ast.Call, depth: int) -> Part:
        if not isinstance(node.func, ast.Name):
            self.refuse(
                node.func,
                f"only functions of the list below can be called ({_describe(node.func)}).",
            )
        name = node.func.id
        if name not in FUNCTIONS:
            self.refuse(node.func, f"there is no function '{name}'.{self.nearest(name, FUNCTIONS)}")
        if node.keywords:
            self.refuse(node.keywords[0].value, f"{name} takes no arguments by name.")
        function = FUNCTIONS[name]
        given = len(node.args)
        if given < function.least or (function.most is not None and given > function.most):
            needed = (
                f"{function.least}"
                if function.most == function.least
                else f"{function.least} or more"
            )
            self.refuse(
                node,
                (
                    f"{name} takes {needed} argument{'s' if needed != '1' else ''}, and has "
                    f"{given} here."
                ),
            )
        if (
            name == "norm"
            and self.dimension
            and isinstance(node.args[0], ast.Name)
            and node.args[0].id == "x"
            and given == 1
        ):
            return lambda scope: _length(jnp, *scope.x)
        arguments = list(node.args)
        parts = [self.condition(arguments.pop(0), depth + 1)] if name == "where" else []
        return self.combine(
            node,
            function.call,
            [*parts, *(self.part(argument, depth + 1) for argument in arguments)],
        )

    def condition(self, node: ast.expr, depth: int) -> Part:
        """The first argument of `where`: comparisons, joined by and, or, not."""
        if depth > MAX_DEPTH:
            self.refuse(
                node,
                (
                    f"the expression is nested more than {MAX_DEPTH} levels deep. Split it with "
                    "the table [definitions]."
                ),
            )
        match node:
            case ast.Compare(left=left, ops=kinds, comparators=others):
                values = [self.part(value, depth + 1) for value in (left, *others)]
                pairs = []
                for kind, before, after in zip(kinds, values, values[1:], strict=False):
                    if type(kind) not in _COMPARISONS:
                        self.refuse(node, f"this comparison is not allowed ({_describe(kind)}).")
                    pairs.append(self.combine(node, _COMPARISONS[type(kind)], [before, after]))
                return self.combine(node, _all, pairs)
            case ast.BoolOp(op=join, values=values):
                return self.combine(
                    node,
                    _all if isinstance(join, ast.And) else _any,
                    [self.condition(value, depth + 1) for value in values],
                )
            case ast.UnaryOp(op=ast.Not(), operand=operand):
                return self.combine(
                    node,
                    lambda module, value: module.logical_not(value),
                    [self.condition(operand, depth + 1)],
                )
            case _:
                self.refuse(
                    node, "the first argument of where must be a comparison, such as x1 > 0."
                )

    def combine(self, node: ast.expr, operation: Callable[..., Any], parts: list[Part]) -> Part:
        """The operation on parts: worked out now where all are constant, a function of the scope
        otherwise."""
        if any(callable(part) for part in parts):
            return lambda scope: operation(
                jnp, *(part(scope) if callable(part) else part for part in parts)
            )
        with np.errstate(all="ignore"):
            value = operation(np, *(np.asarray(part) for part in parts))
        if value.dtype == bool:
            return bool(value)
        if not np.isfinite(value):
            self.refuse(node, f"this has the value {float(value)}.")
        return float(value)

    def coordinates(self) -> list[str]:
        return [f"x{i + 1}" for i in range(self.dimension)]

    def names(self) -> list[str]:
        return [
            *self.coordinates(),
            *(["r"] if self.dimension else []),
            *(() if self.fixed else self.controls),
            *CONSTANTS,
            *self.definitions,
        ]

    def nearest(self, name: str, known: Any) -> str:
        near = difflib.get_close_matches(name, [*known], n=3, cutoff=0.5)
        return f" Did you mean {' or '.join(near)}?" if near else ""

    def refuse(self, place: ast.expr | int, message: str) -> NoReturn:
        """Raises the error with the expression and a caret under the place (a node, or a column
        counted from 0)."""
        column = (
            place
            if isinstance(place, int)
            else len(self.text.encode()[: place.col_offset].decode(errors="ignore"))
        )
        start = max(0, column - _EXCERPT // 2) if len(self.text) > _EXCERPT else 0
        excerpt = "".join(
            character if character.isprintable() else "?"
            for character in self.text[start : start + _EXCERPT]
        )
        names = self.names()
        shown = names if len(names) <= 24 else [*names[:20], "…", names[-1]]
        raise FileError(
            f"{self.label}, column {column + 1}: {message}\n    {excerpt}\n    "
            f"{' ' * (column - start)}^\nAllowed: numbers, {', '.join(shown)}, + - * / **, "
            "parentheses, comparisons inside where(condition, a, b), and the functions "
            f"{', '.join(sorted(FUNCTIONS))}."
        )


def _run(first: Part, steps: list[tuple[Callable[..., Any], Part]]) -> Evaluator:
    def run(scope: Scope) -> Any:
        value = first(scope) if callable(first) else first
        for function, right in steps:
            value = function(jnp, value, right(scope) if callable(right) else right)
        return value

    return run


def _describe(node: ast.AST) -> str:
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
