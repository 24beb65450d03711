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
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NoReturn

import jax.numpy as jnp
import numpy as np

from cordes.errors import FileError
from cordes.formulas import vocabulary
from cordes.formulas.vocabulary import FUNCTIONS, Expression, Part, Scope, described, is_reserved
from cordes.readers.toml_text import MAX_LENGTH

__all__ = ["FUNCTIONS", "MAX_LENGTH", "Expression", "is_reserved", "parse"]

MAX_DEPTH = 60
MAX_EXPONENT = 1000.0
# Characters of a refused text that are shown.
_EXCERPT = 100


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
    known = definitions or {}
    return ExpressionParser(text, dimension, known, label, tuple(controls), fixed).parse()


@dataclasses.dataclass
class ExpressionParser:
    """Walks the syntax tree of an expression and composes functions of the list; `label` begins
    every message. See `parse`."""

    given: str
    dimension: int
    definitions: Mapping[str, float | Expression]
    label: str
    controls: tuple[str, ...]
    fixed: bool

    def __post_init__(self) -> None:
        # Line ends of a TOML multi-line string mean nothing here.
        self.text = re.sub(r"[\n\r\t]", " ", self.given).strip()
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
        for place, character in enumerate(self.text):
            if character == "^":
                self.refuse(place, "a power is written with **, not ^.")
            # A comment would swallow the lines after it, which have become one line.
            if character == "#" or not character.isprintable():
                self.refuse(place, f"the character {character!r} is not allowed.")
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

    def coordinates(self) -> list[str]:
        return [f"x{i + 1}" for i in range(self.dimension)]

    def names(self) -> list[str]:
        return [
            *self.coordinates(),
            *(["r"] if self.dimension else []),
            *(() if self.fixed else self.controls),
            *vocabulary.CONSTANTS,
            *self.definitions,
        ]

    def refuse(self, place: ast.expr | int, message: str) -> NoReturn:
        """Raises the error with the expression and a caret under the place (a node, or a column
        counted from 0)."""
        if not isinstance(place, int):
            place = len(self.text.encode()[: place.col_offset].decode(errors="ignore"))
        column = place
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

    def limit(self, node: ast.expr, depth: int) -> None:
        if depth > MAX_DEPTH:
            self.refuse(
                node,
                f"the expression is nested more than {MAX_DEPTH} levels deep. Split it with "
                "the table [definitions].",
            )

    def part(self, node: ast.expr, depth: int) -> Part:
        """The meaning of a numerical part of the tree."""
        self.limit(node, depth)
        match node:
            case ast.Constant(value=int() | float() as value) if not isinstance(value, bool):
                return self.number(node, value)
            case ast.Name(id=name):
                return self.name(node, name)
            case ast.UnaryOp(op=ast.UAdd(), operand=operand):
                return self.part(operand, depth + 1)
            case ast.UnaryOp(op=ast.USub(), operand=operand):
                value = self.part(operand, depth + 1)
                return self.combine(node, lambda module, value: -value, [value])
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
                self.refuse(node, f"this is not allowed here ({described(node)}).")

    def number(self, node: ast.expr, value: float) -> float:
        try:
            number = float(value)
        except OverflowError:
            number = math.inf
        if not math.isfinite(number):
            self.refuse(node, "this number is too large.")
        return number

    def name(self, node: ast.expr, name: str) -> Part:
        if name in vocabulary.CONSTANTS:
            return vocabulary.CONSTANTS[name]
        if name in self.definitions:
            return self.definition(node, name)
        if name in self.controls:
            return self.component(node, name)
        coordinates = self.coordinates()
        if name in coordinates:
            index = coordinates.index(name)
            return lambda scope: scope.x[index]
        if name == "r" and self.dimension:
            return _radius
        if name == "x" and self.dimension:
            self.refuse(
                node,
                "x is the whole point. Write x1, x2, … for its coordinates and norm(x) or r "
                "for its length.",
            )
        if name in FUNCTIONS:
            self.refuse(node, f"{name} is a function and needs its arguments in parentheses.")
        if self.controls and vocabulary.CONTROL.fullmatch(name):
            self.refuse(node, f"there is no {name}: the control is {', '.join(self.controls)}.")
        coordinate = vocabulary.COORDINATE.fullmatch(name)
        if (coordinate or name in ("x", "r")) and not self.dimension:
            self.refuse(node, f"{name} depends on the point, and here a constant is needed.")
        if coordinate:
            self.refuse(
                node,
                f"there is no coordinate {name}: the domain has dimension "
                f"{self.dimension}, its coordinates are {', '.join(coordinates)}.",
            )
        self.refuse(node, f"there is no name '{name}'.{_nearest(name, self.names())}")

    def component(self, node: ast.expr, name: str) -> Part:
        self.depend_on_control(node, name)
        index = self.controls.index(name)
        return lambda scope: scope.a[index]

    def depend_on_control(self, node: ast.expr, name: str) -> None:
        if self.fixed:
            self.refuse(
                node,
                f"{name} {'is' if name in self.controls else 'depends on'} the control, "
                "and here only the point counts.",
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
            function = vocabulary.OPERATORS.get(type(operation.op))
            if function is None:
                self.refuse(
                    operation, f"this operation is not allowed ({described(operation.op)})."
                )
            right = self.part(operation.right, depth + 1)
            if (
                function is vocabulary.raised
                and isinstance(right, float)
                and abs(right) > MAX_EXPONENT
            ):
                self.refuse(
                    operation.right,
                    f"the exponent {right:g} is too large; at most {MAX_EXPONENT:g} is allowed.",
                )
            if steps or callable(value) or callable(right):
                steps.append((function, right))
            else:
                value = self.combine(operation, function, [value, right])
        if not steps:
            return value

        def run(scope: Scope) -> Any:
            found = _at(value, scope)
            for function, right in steps:
                found = function(jnp, found, _at(right, scope))
            return found

        return run

    def call(self, node: ast.Call, depth: int) -> Part:
        if not isinstance(node.func, ast.Name):
            self.refuse(
                node.func,
                f"only functions of the list below can be called ({described(node.func)}).",
            )
        name = node.func.id
        if name not in FUNCTIONS:
            self.refuse(node.func, f"there is no function '{name}'.{_nearest(name, FUNCTIONS)}")
        if node.keywords:
            self.refuse(node.keywords[0].value, f"{name} takes no arguments by name.")
        function = FUNCTIONS[name]
        given = len(node.args)
        if given < function.least or (function.most is not None and given > function.most):
            more = "" if function.most == function.least else " or more"
            needed = f"{function.least}{more}"
            self.refuse(
                node,
                f"{name} takes {needed} argument{'s' if needed != '1' else ''}, and has "
                f"{given} here.",
            )
        if (
            name == "norm"
            and self.dimension
            and isinstance(node.args[0], ast.Name)
            and node.args[0].id == "x"
            and given == 1
        ):
            return _radius
        arguments = list(node.args)
        parts = [self.condition(arguments.pop(0), depth + 1)] if name == "where" else []
        parts += [self.part(argument, depth + 1) for argument in arguments]
        return self.combine(node, function.call, parts)

    def condition(self, node: ast.expr, depth: int) -> Part:
        """The first argument of `where`: comparisons, joined by and, or, not."""
        self.limit(node, depth)
        match node:
            case ast.Compare(left=left, ops=kinds, comparators=others):
                values = [self.part(value, depth + 1) for value in (left, *others)]
                pairs = []
                for kind, before, after in zip(kinds, values, values[1:], strict=False):
                    compared = vocabulary.COMPARISONS.get(type(kind))
                    if compared is None:
                        self.refuse(node, f"this comparison is not allowed ({described(kind)}).")
                    pairs.append(self.combine(node, compared, [before, after]))
                return self.combine(node, vocabulary.all_of, pairs)
            case ast.BoolOp(op=join, values=values):
                joined = vocabulary.all_of if isinstance(join, ast.And) else vocabulary.any_of
                parts = [self.condition(value, depth + 1) for value in values]
                return self.combine(node, joined, parts)
            case ast.UnaryOp(op=ast.Not(), operand=operand):
                value = self.condition(operand, depth + 1)
                return self.combine(node, lambda module, value: module.logical_not(value), [value])
            case _:
                self.refuse(
                    node, "the first argument of where must be a comparison, such as x1 > 0."
                )

    def combine(self, node: ast.expr, operation: Callable[..., Any], parts: list[Part]) -> Part:
        """The operation on parts: worked out now where all are constant, a function of the scope
        otherwise."""
        if any(callable(part) for part in parts):
            return lambda scope: operation(jnp, *(_at(part, scope) for part in parts))
        with np.errstate(all="ignore"):
            value = operation(np, *(np.asarray(part) for part in parts))
        if value.dtype == bool:
            return bool(value)
        if not np.isfinite(value):
            self.refuse(node, f"this has the value {float(value)}.")
        return float(value)


def _at(part: Part, scope: Scope) -> Any:
    return part(scope) if callable(part) else part


def _radius(scope: Scope) -> Any:
    return vocabulary.length(jnp, *scope.x)


def _nearest(name: str, known: Iterable[str]) -> str:
    near = difflib.get_close_matches(name, [*known], n=3, cutoff=0.5)
    return f" Did you mean {' or '.join(near)}?" if near else ""
