"""The text of an arithmetic expression: its syntax tree, and refusals that mark the place."""

import ast
import dataclasses
import difflib
import re
import warnings
from collections.abc import Mapping
from typing import Any, NoReturn

from cordes.errors import FileError
from cordes.formulas.vocabulary import CONSTANTS, FUNCTIONS, Expression

MAX_LENGTH = 2000
_EXCERPT = 100


@dataclasses.dataclass(frozen=True)
class ExpressionText:
    """A text with what its names may mean; `label` begins every message. See `toml.parse`."""

    given: str
    dimension: int
    definitions: Mapping[str, float | Expression]
    label: str
    controls: tuple[str, ...]
    fixed: bool

    @property
    def text(self) -> str:
        # Line ends of a TOML multi-line string mean nothing here.
        return re.sub(r"[\n\r\t]", " ", self.given).strip()

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
