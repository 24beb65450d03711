"""What a user wrote, as a formula: the syntax tree of a function or of an expression is walked with symbols in place of numbers.

Nothing of it is executed. Functions that a coefficient calls are followed into their own source; names of numbers and of small arrays become their values.
Whatever is not understood ends in `Untypeset`, and the caller shows the source text.
"""

import ast
import linecache
import textwrap
import types
from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from cordes.reports.html.functions import library, operand
from cordes.reports.html.mathml import APPLY, POWER, Node, Untypeset, array, brackets, constant, node, symbol

# Calls that are followed into each other, entries of an array that are shown, and characters of a formula: beyond, the source says more.
DEPTH, ENTRIES, LONGEST = 8, 64, 7_000
COMPARISONS = {ast.Lt: "&lt;", ast.LtE: "≤", ast.Gt: "&gt;", ast.GtE: "≥", ast.Eq: "=", ast.NotEq: "≠"}


class Local(NamedTuple):
    """A function that is defined inside another one."""

    syntax: Any
    scope: dict[str, Any]


class Written(NamedTuple):
    """The value, a node or an array of nodes, and the names that were given to parts of it, in their order."""

    value: Any
    definitions: dict[str, Node]


def from_function(function: Callable, *arguments: Any) -> Written:
    """The value of a function for symbolic arguments."""
    reader = Reader()
    value = reader.call(function, list(arguments), {}, 0)
    return _checked(value, reader.definitions)


def from_text(text: str, names: Mapping[str, Any]) -> Written:
    """The value of an expression in a problem file."""
    reader = Reader()
    value = reader.expression(ast.parse(text.strip(), mode="eval").body, dict(names), 0)
    return _checked(value, {})


def _checked(value: Any, definitions: dict[str, Node]) -> Written:
    entries = value.ravel().tolist() if isinstance(value, np.ndarray) else [node(value)]
    size = sum(len(node(entry).mathml) for entry in entries) + sum(len(each.mathml) for each in definitions.values())
    if len(entries) > ENTRIES or size > LONGEST:
        raise Untypeset("a long formula")
    return Written(value, definitions)


def source_text(function: Any) -> str | None:
    """The text of a function as its author wrote it, or None where there is none."""
    try:
        syntax, lines = _syntax(function)
    except Untypeset:
        return None
    if isinstance(syntax, ast.Lambda):
        return ast.get_source_segment("".join(lines), syntax)
    first = min([syntax.lineno, *(each.lineno for each in syntax.decorator_list)])
    return textwrap.dedent("".join(lines[first - 1 : syntax.end_lineno])).rstrip()


def _syntax(function: Any) -> tuple[Any, list[str]]:
    """The syntax tree of a Python function, found by its place in its file; several on one line are told apart by their columns."""
    code = getattr(plain(function), "__code__", None)
    if code is None:
        raise Untypeset("no Python function")
    lines = tuple(linecache.getlines(code.co_filename))
    kinds = (ast.Lambda,) if code.co_name == "<lambda>" else (ast.FunctionDef,)
    wanted = list(code.co_varnames[: code.co_argcount])
    spots = [place for place in code.co_positions() if None not in place and place[1] >= place[0]]  # pyright: ignore[reportOptionalOperand]
    found = []
    for each in ast.walk(_tree(lines)):
        if not isinstance(each, kinds) or [argument.arg for argument in (*each.args.posonlyargs, *each.args.args)] != wanted:
            continue
        first = min([each.lineno, *(mark.lineno for mark in getattr(each, "decorator_list", []))])
        if first == code.co_firstlineno and (isinstance(each, ast.FunctionDef) or _covers(each.body, spots)):
            found.append(each)
    if len(found) != 1:
        raise Untypeset("the source is not known")
    return found[0], list(lines)


def plain(function: Any) -> Any:
    """The function itself below `jax.jit`. Other wrappers, `jax.grad` above all, have values of their own, though they tell what they wrap."""
    while type(function).__name__ in ("PjitFunction", "_lru_cache_wrapper"):
        function = function.__wrapped__
    if hasattr(function, "__wrapped__"):
        raise Untypeset("a wrapped function")
    return function


def _covers(body: ast.expr, spots: list) -> bool:
    """Whether instructions at (line, end line, column, end column) come from this expression."""
    spots = [spot for spot in spots if spot[3] > spot[2] or spot[1] > spot[0]]
    start, end = (body.lineno, body.col_offset), (body.end_lineno, body.end_col_offset)
    return bool(spots) and all(start <= (spot[0], spot[2]) and (spot[1], spot[3]) <= end for spot in spots)  # pyright: ignore[reportOperatorIssue]


@lru_cache(maxsize=32)
def _tree(lines: tuple[str, ...]) -> ast.AST:
    try:
        return ast.parse("".join(lines))
    except SyntaxError:
        raise Untypeset("the source cannot be read") from None


class Reader:
    """Walks syntax trees; names that functions give to scalars on the way are kept in `definitions` and stand as symbols from there on, and so do functions
    of one number, under their MathML."""

    def __init__(self) -> None:
        self.definitions: dict[str, Node] = {}

    # Functions ------------------------------------------------------------------------------------------------------------------------------------

    def call(self, function: Any, arguments: list, named: dict[str, Any], depth: int) -> Any:
        if depth > DEPTH:
            raise Untypeset("calls that are nested too deeply")
        if depth > 0 and len(arguments) == 1 and isinstance(arguments[0], Node) and not named:
            found = self._function_of_a_number(function, arguments[0], depth)
            if found is not None:
                return found
        return self._followed(function, arguments, named, depth)

    def _function_of_a_number(self, function: Any, argument: Node, depth: int) -> Node | None:
        """A function of one number that has a name keeps it, q(x₁), and is written down once; derivatives by `jax.grad` get their primes."""
        primes, function = _differentiated(function)
        name = function.syntax.name if isinstance(function, Local) else getattr(function, "__name__", "<lambda>")
        if name == "<lambda>":
            if primes:
                raise Untypeset("the derivative of a function without a name")
            return None
        syntax = function.syntax if isinstance(function, Local) else _syntax(function)[0]
        variable = symbol(syntax.args.args[0].arg)
        head = symbol(name.lstrip("_")).mathml
        heading = f"{head}{APPLY}{brackets(variable.mathml)}"
        value = self._followed(function, [variable], {}, depth)
        if not isinstance(value, Node):
            raise Untypeset("a function of a number that is none")
        if self.definitions.setdefault(heading, value).mathml != value.mathml:
            if primes:
                raise Untypeset("two functions of one name")
            return None
        marked = f"<msup>{head}<mo>{'′' * primes}</mo></msup>" if primes else head
        return Node(f"{marked}{APPLY}{brackets(argument.mathml)}", POWER)

    def _followed(self, function: Any, arguments: list, named: dict[str, Any], depth: int) -> Any:
        """The body of a function with its arguments put in."""
        if isinstance(function, Local):
            syntax, scope = function
        else:
            syntax, _ = _syntax(function)
            inner = plain(function)
            cells = dict(zip(inner.__code__.co_freevars, (cell.cell_contents for cell in inner.__closure__ or ()), strict=True))
            scope = {**inner.__globals__, **cells}
            defaults = inner.__defaults__ or ()
            names = [argument.arg for argument in syntax.args.args]
            scope |= {name: _known(value) for name, value in zip(names[len(names) - len(defaults) :], defaults, strict=True)}
        names = [argument.arg for argument in syntax.args.args]
        if len(arguments) > len(names) or syntax.args.vararg or syntax.args.kwarg:
            raise Untypeset("other arguments than expected")
        scope = {**scope, **dict(zip(names, arguments, strict=False)), **named}
        if isinstance(syntax, ast.Lambda):
            return self.expression(syntax.body, scope, depth)
        return self._body(syntax.body, scope, depth)

    def _body(self, statements: list[ast.stmt], scope: dict[str, Any], depth: int) -> Any:
        for statement in statements:
            match statement:
                case ast.Expr(value=ast.Constant()):
                    continue
                case ast.FunctionDef():
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
        """A compound scalar keeps the name that it was given; numbers, single symbols and arrays are passed on, and so is a second one of the same name."""
        if not isinstance(value, Node) or value.number is not None or (value.mathml.count("<mi>") <= 1 and value.rank > POWER):
            return value
        known = self.definitions.get(name)
        if known is not None and known.mathml != value.mathml:
            return value
        self.definitions[name] = value
        return symbol(name)

    # Expressions ----------------------------------------------------------------------------------------------------------------------------------

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
            case ast.ListComp(elt=part, generators=[loop]) | ast.GeneratorExp(elt=part, generators=[loop]) if not loop.ifs:
                return self._loop(part, loop, scope, depth)
            case ast.UnaryOp(op=ast.USub(), operand=part):
                return -operand(at(part))
            case ast.UnaryOp(op=ast.UAdd(), operand=part):
                return at(part)
            case ast.BinOp(left=left, op=operator, right=right):
                return _binary(operator, operand(at(left)), operand(at(right)))
            case ast.Compare(left=first, ops=operators, comparators=others):
                parts = [node(at(first)).mathml]
                for operator, other in zip(operators, others, strict=True):
                    parts.append(f"<mo>{COMPARISONS[type(operator)]}</mo>{node(at(other)).mathml}")
                return Node("".join(parts), 0)
            case ast.BoolOp(op=operator, values=parts):
                word = "and" if isinstance(operator, ast.And) else "or"
                return Node(f"<mtext> {word} </mtext>".join(node(at(part)).mathml for part in parts), 0)
            case ast.Subscript(value=value, slice=place):
                return operand(at(value))[self._place(place, scope, depth)]
            case ast.Attribute(value=value, attr="T"):
                return operand(at(value)).T
            case ast.Attribute(value=ast.Name(id=name), attr="pi") if isinstance(scope.get(name), types.ModuleType):
                return symbol("pi")
            case ast.Call(func=function, args=arguments, keywords=keywords):
                return self._call(function, [at(argument) for argument in arguments], {each.arg: at(each.value) for each in keywords}, scope, depth)
        raise Untypeset(f"an expression, {type(tree).__name__}")

    def _loop(self, part: ast.expr, loop: ast.comprehension, scope: dict[str, Any], depth: int) -> list:
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
                return slice(*(None if end is None else self._place(end, scope, depth) for end in (lower, upper)))
            case ast.Tuple(elts=parts):
                return tuple(self._place(part, scope, depth) for part in parts)
            case ast.Constant(value=None):
                return None
        return node(self.expression(tree, scope, depth)).__index__()

    def _call(self, function: ast.expr, arguments: list, named: dict, scope: dict[str, Any], depth: int) -> Any:
        match function:
            case ast.Name(id=name) if name in scope and not isinstance(scope[name], types.ModuleType):
                return self.call(scope[name], arguments, named, depth + 1)
            case ast.Name(id=name):
                pass
            case ast.Attribute(attr=name, value=owner) if _root(owner, scope) is not None:
                pass
            case ast.Attribute(attr=name, value=value):
                # A method of an array: x.sum(), x.dot(y).
                arguments = [self.expression(value, scope, depth), *arguments]
            case _:
                raise Untypeset("a call of something that has no name")
        if named:
            raise Untypeset("named arguments")
        return library(name, arguments)


def _matched(target: ast.expr, value: Any) -> list[tuple[str, Any]]:
    """Names and what they stand for in one round of a loop."""
    match target:
        case ast.Name(id=name):
            return [(name, value)]
        case ast.Tuple(elts=targets):
            return [pair for each, part in zip(targets, list(value), strict=True) for pair in _matched(each, part)]
    raise Untypeset("a loop over something that has no name")


def _differentiated(function: Any) -> tuple[int, Any]:
    """How often `jax.grad` was applied, and to what. It is known by the name of its inner function; where that changes, the source is shown instead."""
    count = 0
    while hasattr(function, "__wrapped__") and "grad_f" in {
        getattr(getattr(cell.cell_contents, "__code__", None), "co_name", "") for cell in getattr(function, "__closure__", None) or ()
    }:
        count, function = count + 1, function.__wrapped__
    return count, function


def _root(owner: ast.expr, scope: dict[str, Any]) -> types.ModuleType | None:
    """The module at the root of a dotted name."""
    while isinstance(owner, ast.Attribute):
        owner = owner.value
    found = scope.get(owner.id) if isinstance(owner, ast.Name) else None
    return found if isinstance(found, types.ModuleType) else None


def _known(value: Any) -> Any:
    """What a name of the surroundings stands for: numbers and small arrays their values, functions themselves."""
    if isinstance(value, Node | Local | list | types.ModuleType) or (isinstance(value, np.ndarray) and value.dtype == object) or callable(value):
        return value
    shape = getattr(value, "shape", None)
    if isinstance(value, int | float) or shape == ():
        return constant(float(value))
    if shape is not None and 0 < np.prod(shape) <= ENTRIES:
        return array(np.asarray(value, dtype=float))
    raise Untypeset(f"a value of type {type(value).__name__}")


def _binary(operator: ast.operator, left: Any, right: Any) -> Any:
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
