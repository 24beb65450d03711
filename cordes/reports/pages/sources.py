"""The source of a function: its text, and its syntax tree."""

import ast
import linecache
import textwrap
import types
from functools import lru_cache
from typing import Any

from cordes.formulas.terms import Unwritable


def source_text(function: Any) -> str | None:
    """The text of a function as its author wrote it, or None where there is none; of a wrapped one,
    what is wrapped and that it is."""
    if isinstance(function, types.MethodType):
        function = function.__func__
    if hasattr(function, "__wrapped__") and not _compiled(function):
        inner = source_text(function.__wrapped__)
        return (
            None
            if inner is None
            else f"# {'jax.grad' if differentiated(function)[0] else 'A wrapper'} of\n{inner}"
        )
    try:
        syntax, lines = syntax_of(function)
    except Unwritable:
        return None
    if isinstance(syntax, ast.Lambda):
        return ast.get_source_segment("".join(lines), syntax)
    first = min([syntax.lineno, *(each.lineno for each in syntax.decorator_list)])
    return textwrap.dedent("".join(lines[first - 1 : syntax.end_lineno])).rstrip()


def syntax_of(function: Any) -> tuple[Any, list[str]]:
    """The syntax tree of a Python function, found by its place in its file; several on one line are
    told apart by their columns."""
    code = getattr(plain(function), "__code__", None)
    if code is None:
        raise Unwritable("no Python function")
    lines = tuple(linecache.getlines(code.co_filename))
    kinds = (ast.Lambda,) if code.co_name == "<lambda>" else (ast.FunctionDef,)
    wanted = list(code.co_varnames[: code.co_argcount])
    spots = [place for place in code.co_positions() if None not in place and place[1] >= place[0]]  # pyright: ignore
    found = []
    for each in ast.walk(_tree(lines)):
        if (
            not isinstance(each, kinds)
            or [argument.arg for argument in (*each.args.posonlyargs, *each.args.args)] != wanted
        ):
            continue
        first = min([each.lineno, *(mark.lineno for mark in getattr(each, "decorator_list", []))])
        if first == code.co_firstlineno and (
            isinstance(each, ast.FunctionDef) or _covers(each.body, spots)
        ):
            found.append(each)
    if len(found) != 1:
        raise Unwritable("the source is not known")
    return found[0], list(lines)


def plain(function: Any) -> Any:
    """The function itself below `jax.jit`. Other wrappers, `jax.grad` above all, have values of
    their own, though they tell what they wrap; so do methods, which have an argument more."""
    if isinstance(function, types.MethodType):
        raise Unwritable("a method")
    while _compiled(function):
        function = function.__wrapped__
    if hasattr(function, "__wrapped__"):
        raise Unwritable("a wrapped function")
    return function


def _compiled(function: Any) -> bool:
    """Wrappers that leave the values as they are."""
    return type(function).__name__ in ("PjitFunction", "_lru_cache_wrapper")


def _covers(body: ast.expr, spots: list) -> bool:
    """Whether instructions at (line, end line, column, end column) come from this expression."""
    spots = [spot for spot in spots if spot[3] > spot[2] or spot[1] > spot[0]]
    start, end = (body.lineno, body.col_offset), (body.end_lineno, body.end_col_offset)
    return bool(spots) and all(
        start <= (spot[0], spot[2]) and (spot[1], spot[3]) <= end for spot in spots
    )  # pyright: ignore[reportOperatorIssue]


@lru_cache(maxsize=32)
def _tree(lines: tuple[str, ...]) -> ast.AST:
    try:
        return ast.parse("".join(lines))
    except SyntaxError:
        raise Unwritable("the source cannot be read") from None


def differentiated(function: Any) -> tuple[int, Any]:
    """How often `jax.grad` was applied, and to what. It is known by the name of its inner function;
    where that changes, the source is shown instead."""
    count = 0
    while hasattr(function, "__wrapped__") and "grad_f" in {
        getattr(getattr(cell.cell_contents, "__code__", None), "co_name", "")
        for cell in getattr(function, "__closure__", None) or ()
    }:
        count, function = count + 1, function.__wrapped__
    return count, function
