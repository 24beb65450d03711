"""What a user wrote, as a formula: the syntax tree of a function or of an expression is walked with
symbols in place of numbers.

Functions that a coefficient calls are followed into their own source; names of numbers and of small
arrays become their values. Whatever is not understood ends in `Untypeset`, and so does a formula
that, read back, has other values than the function (reading.py): the caller shows the source text
then.
"""

import ast
import builtins
import types
from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple

import jax
import numpy as np

from cordes.reports.pages.functions import (
    SAME,
    binary,
    joint,
    known_function,
    library,
    number,
    operand,
)
from cordes.reports.pages.mathml import (
    APPLY,
    POWER,
    SUM,
    Condition,
    Node,
    Untypeset,
    array,
    brackets,
    constant,
    node,
    symbol,
)
from cordes.reports.pages.reading import any_samples, verify
from cordes.reports.pages.sources import differentiated, plain, syntax_of

# Calls that are followed into each other, entries of an array that are shown, and characters of a
# formula: beyond, the source says more.
DEPTH, ENTRIES, LONGEST = 8, 64, 7_000
# What letters stand for on the page; user's names that look the same get an accent.
RESERVED = (
    "x",
    "u",
    "a",
    "pi",
    "e",
    "I",
    "D",
    "A",
    "b",
    "c",
    "f",
    "g",
    "mu",
    "nu",
    "X",
    "Y",
    "T",
    "Ω",
    "max",
    "min",
    "arctan2",
    "det",
    *SAME,
)
VARIABLES = ("t", "s", "z", "y", "v", "w")
METHODS = ("sum", "prod", "dot", "trace", "min", "max")
COMPARISONS = {
    ast.Lt: "&lt;",
    ast.LtE: "≤",
    ast.Gt: "&gt;",
    ast.GtE: "≥",
    ast.Eq: "=",
    ast.NotEq: "≠",
}


class Local(NamedTuple):
    """A function that is defined inside another one."""

    syntax: Any
    scope: dict[str, Any]


class Written(NamedTuple):
    """The value, a node or an array of nodes, and what was given a name, in the order of
    definition, by the MathML of the name: s, or q(t)."""

    value: Any
    definitions: dict[str, Node]


class Names:
    """What names look like on a page, and what they stand for: no two things may look the same.
    Coefficients of one problem share one."""

    def __init__(self, taken: Iterable[str] = ()):
        self.reserved = {symbol(name).mathml for name in RESERVED} | set(taken)
        self.given: dict[str, str] = {}

    def free(self, look: str) -> bool:
        return look not in self.reserved and look not in self.given

    def give(self, name: str, meaning: str) -> Node | None:
        """The symbol of a name, with an accent where its letter is taken; None where that is taken
        too."""
        for accent in (False, True):
            made = symbol(name, accent=accent)
            if (
                made.mathml not in self.reserved
                and self.given.setdefault(made.mathml, meaning) == meaning
            ):
                return made
        return None


def from_function(
    function: Callable,
    *arguments: Any,
    samples: list[np.ndarray] | None = None,
    names: Names | None = None,
) -> Written:
    """The value of a function for symbolic arguments; checked at samples (N, …) of each argument,
    which are any numbers if they are not given."""
    names = Names() if names is None else names
    names.reserved |= {
        entry.mathml
        for argument in arguments
        for entry in np.ravel(np.array(argument, dtype=object))
    }
    reader = Reader(names)
    value = reader.call(function, list(arguments), {}, 0)
    written = checked(value, reader.definitions)
    verify(
        *written, list(arguments), any_samples(arguments) if samples is None else samples, function
    )
    return written


def from_text(text: str, names: Mapping[str, Any]) -> Any:
    """The value of an expression in a problem file."""
    return Reader(Names(), file=True).expression(
        ast.parse(text.strip(), mode="eval").body, dict(names), 0
    )


def checked(value: Any, definitions: dict[str, Node]) -> Written:
    """Not too long, and made of numbers."""
    entries = value.ravel().tolist() if isinstance(value, np.ndarray) else [node(value)]
    size = sum(len(node(entry).mathml) for entry in entries) + sum(
        len(each.mathml) for each in definitions.values()
    )
    if len(entries) > ENTRIES or size > LONGEST:
        raise Untypeset("a long formula")
    return Written(value, definitions)


class Reader:
    """Walks syntax trees; names that functions give to scalars on the way are kept in `definitions`
    and stand as symbols from there on, and so do functions of one number, under their MathML."""

    def __init__(self, names: Names, file: bool = False) -> None:
        self.definitions: dict[str, Node] = {}
        self.names, self.file = names, file
        # Inside a function of a number nothing gets a name: it would depend on the variable.
        self.naming = True

    # Functions ------------------------------------------------------------------------------------

    def call(self, function: Any, arguments: list, named: dict[str, Any], depth: int) -> Any:
        if depth > DEPTH:
            raise Untypeset("calls that are nested too deeply")
        if depth > 0 and len(arguments) == 1 and isinstance(arguments[0], Node) and not named:
            found = self._function_of_a_number(function, arguments[0], depth)
            if found is not None:
                return found
        return self._followed(function, arguments, named, depth)

    def _function_of_a_number(self, function: Any, argument: Node, depth: int) -> Node | None:
        """A function of one number that has a name keeps it, q(x₁), and is written down once;
        derivatives by `jax.grad` get their primes."""
        primes, function = differentiated(function)
        name = (
            function.syntax.name
            if isinstance(function, Local)
            else getattr(function, "__name__", "<lambda>")
        )
        if name == "<lambda>":
            if primes:
                raise Untypeset("the derivative of a function without a name")
            return None
        head = symbol(name.lstrip("_")).mathml
        variable = self._variable(
            (function.syntax if isinstance(function, Local) else syntax_of(function)[0]).args
        )
        heading = f"{head}{APPLY}{brackets(variable.mathml)}"
        naming, self.naming = self.naming, False
        value = self._followed(function, [variable], {}, depth)
        self.naming = naming
        if not isinstance(value, Node):
            raise Untypeset("a function of a number that is none")
        meaning = f"{heading}={value.mathml}"
        if head in self.names.reserved or self.names.given.setdefault(head, meaning) != meaning:
            if primes:
                raise Untypeset("two functions of one name")
            return None
        self.definitions[heading] = value
        marked = f"<msup>{head}<mo>{'′' * primes}</mo></msup>" if primes else head
        return Node(f"{marked}{APPLY}{brackets(argument.mathml)}", POWER)

    def _variable(self, parameters: ast.arguments) -> Node:
        """The variable of a function of a number under its own name, or under another one where
        that stands for something else."""
        for name in (
            *(each.arg for each in (*parameters.posonlyargs, *parameters.args)[:1]),
            *VARIABLES,
        ):
            if self.names.free(symbol(name).mathml):
                return symbol(name)
        raise Untypeset("no letter for a variable")

    def _followed(self, function: Any, arguments: list, named: dict[str, Any], depth: int) -> Any:
        """The body of a function with its arguments put in."""
        if isinstance(function, Local):
            syntax, scope = function
            defaults = [self.expression(each, scope, depth) for each in syntax.args.defaults]
            by_name = {
                each.arg: self.expression(value, scope, depth)
                for each, value in zip(syntax.args.kwonlyargs, syntax.args.kw_defaults, strict=True)
                if value is not None
            }
        else:
            syntax, _ = syntax_of(function)
            inner = plain(function)
            cells = dict(
                zip(
                    inner.__code__.co_freevars,
                    (cell.cell_contents for cell in inner.__closure__ or ()),
                    strict=True,
                )
            )
            scope = {**inner.__globals__, **cells}
            defaults, by_name = (
                [_known(each) for each in inner.__defaults__ or ()],
                {name: _known(each) for name, each in (inner.__kwdefaults__ or {}).items()},
            )
        scope = {**scope, **_bound(syntax.args, arguments, named, defaults, by_name)}
        if isinstance(syntax, ast.Lambda):
            return self.expression(syntax.body, scope, depth)
        return self._body(syntax.body, scope, depth)

    def _body(self, statements: list[ast.stmt], scope: dict[str, Any], depth: int) -> Any:
        for statement in statements:
            match statement:
                case ast.Expr(value=ast.Constant()):
                    continue
                case ast.FunctionDef():
                    if any(
                        _resolved(each, scope) is not jax.jit for each in statement.decorator_list
                    ):
                        raise Untypeset("a decorated function")
                    scope[statement.name] = Local(statement, scope)
                case ast.Return(value=ast.expr() as value):
                    return self.expression(value, scope, depth)
                case ast.Assign(targets=[target], value=value):
                    self._assign(target, self.expression(value, scope, depth), scope)
                case _:
                    raise Untypeset(f"a statement, {type(statement).__name__}")
        raise Untypeset("a function without a value")

    def _assign(self, target: ast.expr, value: Any, scope: dict[str, Any]) -> None:
        match target:
            case ast.Name(id=name):
                scope[name] = self._named(name, value)
            case ast.Tuple(elts=targets):
                parts = list(value)
                if len(parts) != len(targets):
                    raise Untypeset("an assignment of another length")
                for each, part in zip(targets, parts, strict=True):
                    self._assign(each, part, scope)
            case _:
                raise Untypeset("an assignment to something that is no name")

    def _named(self, name: str, value: Any) -> Any:
        """A compound scalar keeps the name that it was given; numbers, single symbols and arrays
        are passed on, and so is a second one of the same name."""
        simple = isinstance(value, Node) and (
            value.number is not None or (value.mathml.count("<mi>") <= 1 and value.rank > POWER)
        )
        made = (
            self.names.give(name, value.mathml)
            if isinstance(value, Node) and not simple and self.naming
            else None
        )
        if made is None:
            return value
        self.definitions[made.mathml] = value
        return made

    # Expressions ----------------------------------------------------------------------------------

    def expression(self, tree: ast.expr, scope: dict[str, Any], depth: int) -> Any:
        def at(part: ast.expr) -> Any:
            return self.expression(part, scope, depth)

        match tree:
            case ast.Constant(value=bool() | str() | None):
                raise Untypeset("a constant that is no number")
            case ast.Constant(value=int() | float() as value):
                return constant(value)
            case ast.Name(id=name):
                return self._name(name, scope)
            case ast.List(elts=parts) | ast.Tuple(elts=parts):
                return [at(part) for part in parts]
            case (
                ast.ListComp(elt=part, generators=[loop])
                | ast.GeneratorExp(elt=part, generators=[loop])
            ) if not loop.ifs:
                return self._loop(part, loop, scope, depth)
            case ast.UnaryOp(op=ast.USub(), operand=part):
                return -number(at(part))
            case ast.UnaryOp(op=ast.UAdd(), operand=part):
                return number(at(part))
            case ast.BinOp(left=left, op=operator, right=right):
                return binary(operator, at(left), at(right))
            case ast.Compare(left=first, ops=operators, comparators=others):
                parts = [node(at(first)).within(SUM)]
                for operator, other in zip(operators, others, strict=True):
                    parts.append(
                        f"<mo>{COMPARISONS[type(operator)]}</mo>{node(at(other)).within(SUM)}"
                    )
                return Condition("".join(parts))
            case ast.BoolOp(op=operator, values=parts):
                return joint(
                    "and" if isinstance(operator, ast.And) else "or", [at(part) for part in parts]
                )
            case ast.Subscript(value=value, slice=place):
                return operand(at(value))[self._place(place, scope, depth)]
            case ast.Attribute(value=owner) if isinstance(
                _resolved(owner, scope), types.ModuleType
            ):
                return _known(_resolved(tree, scope))
            case ast.Attribute(value=value, attr="T"):
                return number(at(value)).T
            case ast.Call(func=function, args=arguments, keywords=keywords):
                kept = [
                    each
                    for each in keywords
                    if not (each.arg == "dtype" and _is_float(_resolved(each.value, scope)))
                ]
                return self._call(
                    function,
                    [at(argument) for argument in arguments],
                    {str(each.arg): at(each.value) for each in kept},
                    scope,
                    depth,
                )
        raise Untypeset(f"an expression, {type(tree).__name__}")

    def _loop(
        self, part: ast.expr, loop: ast.comprehension, scope: dict[str, Any], depth: int
    ) -> list:
        """One entry for each round of a comprehension."""
        made = []
        for value in self.expression(loop.iter, scope, depth):
            inner = dict(scope)
            for name, each in _matched(loop.target, value):
                inner[name] = each
            made.append(self.expression(part, inner, depth))
        return made

    def _name(self, name: str, scope: dict[str, Any]) -> Any:
        if name not in scope:
            raise Untypeset(f"the name {name}")
        return _known(scope[name])

    def _place(self, tree: ast.expr, scope: dict[str, Any], depth: int) -> Any:
        """An index: whole numbers and slices of them."""
        match tree:
            case ast.Slice(lower=lower, upper=upper, step=None):
                return slice(
                    *(
                        None if end is None else self._place(end, scope, depth)
                        for end in (lower, upper)
                    )
                )
            case ast.Tuple(elts=parts):
                return tuple(self._place(part, scope, depth) for part in parts)
            case ast.Constant(value=None):
                return None
        return node(self.expression(tree, scope, depth)).__index__()

    def _call(
        self, function: ast.expr, arguments: list, named: dict, scope: dict[str, Any], depth: int
    ) -> Any:
        if self.file:
            if not isinstance(function, ast.Name) or named:
                raise Untypeset("a call of something that has no name")
            return library(function.id, arguments, "file")
        target = _resolved(function, scope)
        if target is range:
            return [constant(k) for k in range(*(argument.__index__() for argument in arguments))]
        if target is not None:
            known = known_function(target)
            if known is None:
                return self.call(target, arguments, named, depth + 1)
            if named:
                raise Untypeset("named arguments")
            return library(known[1], arguments, known[0])
        if isinstance(function, ast.Attribute) and function.attr in METHODS and not named:
            # A method of an array: x.sum(), x.dot(y).
            value = self.expression(function.value, scope, depth)
            if isinstance(value, np.ndarray):
                return library(function.attr, [value, *arguments], "array")
        raise Untypeset("a call of something that has no name")


def _bound(
    parameters: ast.arguments,
    arguments: list,
    named: dict[str, Any],
    defaults: list,
    by_name: dict[str, Any],
) -> dict[str, Any]:
    """What each parameter of a function stands for; all of them must be known."""
    names = [each.arg for each in (*parameters.posonlyargs, *parameters.args)]
    every = [*names, *(each.arg for each in parameters.kwonlyargs)]
    if (
        len(arguments) > len(names)
        or parameters.vararg
        or parameters.kwarg
        or not set(named) <= set(every[len(arguments) :])
    ):
        raise Untypeset("other arguments than expected")
    given = (
        dict(zip(names[len(names) - len(defaults) :], defaults, strict=True))
        | by_name
        | dict(zip(names, arguments, strict=False))
        | named
    )
    if set(given) != set(every):
        raise Untypeset("an argument that is missing")
    return given


def _matched(target: ast.expr, value: Any) -> list[tuple[str, Any]]:
    """Names and what they stand for in one round of a loop."""
    match target:
        case ast.Name(id=name):
            return [(name, value)]
        case ast.Tuple(elts=targets):
            return [
                pair
                for each, part in zip(targets, list(value), strict=True)
                for pair in _matched(each, part)
            ]
    raise Untypeset("a loop over something that has no name")


def _resolved(tree: ast.expr, scope: dict[str, Any]) -> Any:
    """The object behind a name or a dotted name of a module; None where there is none."""
    match tree:
        case ast.Name(id=name):
            return scope[name] if name in scope else getattr(builtins, name, None)
        case ast.Attribute(value=owner, attr=name):
            module = _resolved(owner, scope)
            return getattr(module, name, None) if isinstance(module, types.ModuleType) else None
    return None


def _is_float(kind: Any) -> bool:
    """Whether this is the type of all computations: others round."""
    try:
        return kind is not None and np.dtype(kind) == np.float64
    except TypeError:
        return False


def _known(value: Any) -> Any:
    """What a name of the surroundings stands for: numbers and small arrays their values, functions
    themselves."""
    if isinstance(value, bool | np.bool_):
        raise Untypeset("a value that is no number")
    if (
        isinstance(value, Node | Condition | Local | list | types.ModuleType)
        or (isinstance(value, np.ndarray) and value.dtype == object)
        or callable(value)
    ):
        return value
    shape = getattr(value, "shape", None)
    if isinstance(value, int | float) or shape == ():
        return constant(float(value))
    if shape is not None and 0 < np.prod(shape) <= ENTRIES:
        return array(np.asarray(value, dtype=float))
    raise Untypeset(f"a value of type {type(value).__name__}")
