"""The source of a function, as its author wrote it."""

import ast
import linecache
import textwrap
import types
from functools import lru_cache
from typing import Any


def source_text(function: Any) -> str | None:
    """The text of a function as its author wrote it, also inside of wrappers; None without one."""
    if isinstance(function, types.MethodType):
        function = function.__func__
    while _compiled(function):
        function = function.__wrapped__
    if hasattr(function, "__wrapped__"):
        inner = source_text(function.__wrapped__)
        wrapper = "jax.grad" if _is_gradient(function) else "A wrapper"
        return None if inner is None else f"# {wrapper} of\n{inner}"
    code = getattr(function, "__code__", None)
    lines = () if code is None else tuple(linecache.getlines(code.co_filename))
    syntax = _syntax(code, lines) if code is not None else None
    if syntax is None:
        return None
    if isinstance(syntax, ast.Lambda):
        return ast.get_source_segment("".join(lines), syntax)
    return textwrap.dedent("".join(lines[_first_line(syntax) - 1 : syntax.end_lineno])).rstrip()


def _syntax(code: types.CodeType, lines: tuple[str, ...]) -> ast.Lambda | ast.FunctionDef | None:
    """The syntax tree of a function, found by its place in its file; several on one line are told
    apart by their columns. None where it is not certain."""
    kinds = (ast.Lambda,) if code.co_name == "<lambda>" else (ast.FunctionDef,)
    wanted = list(code.co_varnames[: code.co_argcount])
    known = [place for place in code.co_positions() if None not in place]
    spots = [place for place in known if place[1] >= place[0]]  # pyright: ignore
    found = [
        each
        for each in ast.walk(_tree(lines))
        if isinstance(each, kinds)
        and [argument.arg for argument in (*each.args.posonlyargs, *each.args.args)] == wanted
        and _first_line(each) == code.co_firstlineno
        and (isinstance(each, ast.FunctionDef) or _covers(each.body, spots))
    ]
    return found[0] if len(found) == 1 else None


def _first_line(syntax: ast.Lambda | ast.FunctionDef) -> int:
    decorators = getattr(syntax, "decorator_list", [])
    return min([syntax.lineno, *(each.lineno for each in decorators)])


def _compiled(function: Any) -> bool:
    """Wrappers that leave the values as they are."""
    return type(function).__name__ in ("PjitFunction", "_lru_cache_wrapper")


def _covers(body: ast.expr, spots: list[Any]) -> bool:
    """Whether instructions at (line, end line, column, end column) come from this expression."""
    spots = [spot for spot in spots if spot[3] > spot[2] or spot[1] > spot[0]]
    start, end = (body.lineno, body.col_offset), (body.end_lineno, body.end_col_offset)
    return bool(spots) and all(
        start <= (spot[0], spot[2]) and (spot[1], spot[3]) <= end for spot in spots
    )  # pyright: ignore[reportOperatorIssue]


@lru_cache(maxsize=32)
def _tree(lines: tuple[str, ...]) -> ast.AST:
    """The syntax tree of a file; of one that cannot be read, an empty one."""
    try:
        return ast.parse("".join(lines))
    except SyntaxError:
        return ast.Module([], [])


def _is_gradient(function: Any) -> bool:
    """Whether this is `jax.grad` of something; it is known by the name of its inner function."""
    cells = getattr(function, "__closure__", None) or ()
    codes = (getattr(cell.cell_contents, "__code__", None) for cell in cells)
    return "grad_f" in {getattr(code, "co_name", "") for code in codes}
