"""Coefficients as formulas, read from their traces; what has none is shown as source text."""

import html
from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from cordes.domains.domain import AbstractDomain
from cordes.formulas.elementary import ELEMENTARY
from cordes.formulas.naming import VARIABLE, NamedPart, parts_of, shared
from cordes.formulas.terms import FormulaTerm, Unwritable, number, symbol, symbols_of
from cordes.formulas.written.mathml import (
    APPLY,
    ROUNDED,
    brackets,
    constant,
    letter,
    mathml,
    multiple_of_identity,
    relation,
    typeset,
    words,
)
from cordes.formulas.written.writing import Written, verify, write
from cordes.problems.coefficients import DiagonalPlusRank
from cordes.reports.pages.sources import source_text

# Controls that get a formula each.
LISTED = 4
# Entries of an array that are shown, those that are looked at (a multiple of the identity has
# many), names in a formula, and its characters: beyond, the source says more.
ENTRIES, MOST_ENTRIES, MOST_NAMES, LONGEST = 64, 2_500, 6, 7_000
# Symbols that a name must save.
SAVING = 8
# Points at which a formula is compared with its function.
SAMPLES, SEED = 24, 23
# What goes wrong while a function becomes a formula, and is no error of the problem.
UNREADABLE = (
    *(Unwritable, ArithmeticError, AttributeError, LookupError),
    *(NotImplementedError, RecursionError, TypeError, ValueError),
)
WHERE = words("where ")
LETTERS = {
    "source": "<mi>μ</mi>",
    "target": "<mi>ν</mi>",
    "exact": "<msup><mi>u</mi><mo>∗</mo></msup>",
    "map": "<msup><mi>T</mi><mo>∗</mo></msup>",
}
# What letters stand for on the page, and those that are free.
RESERVED = (
    *"xuaeiIDAbcfgXYTtΩψΨ",
    *("pi", "mu", "nu", "max", "min", "arctan2", "det"),
    *(each.written for each in ELEMENTARY.values()),
)
FREE = "sqpvwyzhkmn"


class Coefficient(NamedTuple):
    """A name, its value if it is a constant number, and its formulas, else its source."""

    name: str
    value: float | None = None
    lines: tuple[str, ...] = ()
    source: str | None = None


class Looks(NamedTuple):
    """The MathML of terms that have a name, and the lines that say what the names mean."""

    names: dict[FormulaTerm, str]
    where: list[str]


class Names:
    """What names look like on a page, and what they stand for: no two things may look the same.
    Coefficients of one problem share one."""

    def __init__(self):
        self.reserved = {letter(name) for name in RESERVED}
        self.given: dict[str, str] = {}

    def give(self, meaning: str, name: str | None = None) -> str:
        """The look of a name, with an accent if its letter is taken; without one, a free letter."""
        for look in self._candidates(name):
            if look not in self.reserved and self.given.setdefault(look, meaning) == meaning:
                return look
        raise Unwritable("no letter is left")

    def _candidates(self, name: str | None) -> Iterator[str]:
        if name is not None:
            yield letter(name)
            yield letter(name, accent=True)
            return
        yield from (letter(free) for free in FREE)
        yield from (letter("s", k) for k in range(1, 100))


class FormulaReader(NamedTuple):
    """What the formulas of one problem have in common: its domain (and that of coefficients which
    live elsewhere), its controls if there are any and whether each is listed, what its author named
    (functions of the point and the control), and the names on the page."""

    domain: AbstractDomain
    elsewhere: Mapping[str, AbstractDomain]
    controls: np.ndarray | None
    listed: bool
    definitions: Mapping[str, Callable[..., Any]]
    names: Names
    # Whether the last coordinate is the time.
    timed: bool = False

    def lines(self, name: str, function: Callable[..., Any]) -> tuple[str, ...]:
        """The formulas of a coefficient: one, or one for each control where there are few."""
        if self.controls is None or name not in ("A", "b", "c", "f"):
            return self._set(self.of(name), name, *self._written(function, name))
        if not self.listed:
            return self._set(self.of(name), name, *self._written(function, name, self.controls))
        lines: dict[str, None] = {}
        for control in self.controls:
            fixed = jnp.asarray(control)
            written = self._written(lambda x, fixed=fixed: function(x, fixed), name)
            lines |= dict.fromkeys(
                self._set(self.of(name, constant(float(control)).mathml), name, *written)
            )
        return tuple(lines)

    def of(self, name: str, control: str | None = None) -> str:
        """A(x), or A(x, a) where there is a control."""
        at_start = name in ("initial", "terminal")
        arguments = (
            "<mi>x</mi><mo>,</mo><mi>t</mi>" if self.timed and not at_start else "<mi>x</mi>"
        )
        if control is not None:
            arguments += f"<mo>,</mo>{control}"
        elif self.controls is not None and name in ("A", "b", "c", "f"):
            arguments += "<mo>,</mo><mi>a</mi>"
        return shown_name(name) + brackets(arguments)

    def interfaces(self, functions: list[Callable[..., Any]]) -> Coefficient:
        """The lines across which second derivatives may jump."""
        try:
            found = [self._written(phi, "interfaces") for phi in functions]
            shown = "<mo>,</mo><mspace width='0.5em'/>".join(
                f"{typeset(written.entries, looks.names)}<mo>=</mo><mn>0</mn>"
                for written, looks in found
            )
            where = dict.fromkeys(line for _, looks in found for line in looks.where)
            several = words("interfaces " if len(found) > 1 else "interface ")
            return Coefficient("interfaces", None, (f"{several}{shown}", *where))
        except UNREADABLE:
            sources = [source_text(phi) or repr(phi)[:300] for phi in functions]
            return Coefficient("interfaces", None, (), "\n".join(sources))

    def _written(
        self, function: Callable[..., Any], name: str, controls: np.ndarray | None = None
    ) -> tuple[Written, Looks]:
        """The terms of a function, compared with its values, and the names of their parts."""
        d = self.domain.dimension
        names = self._coordinates
        samples = self.elsewhere.get(name, self.domain).interior_points(SAMPLES, seed=SEED)
        shape = () if self.controls is None else self.controls.shape[1:]
        if controls is not None:
            size = int(np.prod(shape))
            names += ["a"] if shape == () else [f"a{i + 1}" for i in range(size)]
            chosen = np.random.default_rng(SEED).integers(len(controls), size=SAMPLES)
            samples = np.concatenate([samples, controls[chosen].reshape(SAMPLES, size)], axis=1)

        def joint(given: Callable[..., Any]) -> Callable[..., Any]:
            if controls is None:
                return given
            return lambda z: given(z[:d], z[d:].reshape(shape))

        # A definition that needs the control has no meaning where there is none.
        definitions = {
            key: joint(each)
            for key, each in self.definitions.items()
            if controls is not None or not getattr(each, "controlled", False)
        }
        result = jax.eval_shape(joint(function), jnp.zeros(len(names)))
        if result.size > MOST_ENTRIES:
            raise Unwritable("a large array")
        written = write(joint(function), names, d, definitions)
        if written.entries.size > ENTRIES and multiple_of_identity(written.entries) is None:
            raise Unwritable("a large array")
        verify(written, names, samples, joint(function))
        return written, self._looks(written)

    @property
    def _coordinates(self) -> list[str]:
        names = [f"x{i + 1}" for i in range(self.domain.dimension)]
        return [*names[:-1], "t"] if self.timed else names

    def _looks(self, written: Written) -> Looks:
        """Names of the author, and of what occurs several times."""
        factor = multiple_of_identity(written.entries)
        entries = written.entries.ravel().tolist() if factor is None else [factor]
        inside = parts_of(entries)
        given = {each: name for name, each in written.definitions.items()}
        parts = [
            NamedPart(each, {})
            for each in given
            if each in inside and each.head not in ("number", "symbol", "length")
        ]
        coordinates = [symbol(each) for each in self._coordinates]
        found = shared(entries, SAVING, coordinates)
        parts += [part for part in found if part.term not in given]
        looks = Looks({}, [])
        # What is inside of another has a smaller size.
        for part in sorted(parts, key=lambda part: part.term.size):
            meaning = mathml(part.term, looks.names)
            look = self.names.give(meaning, given.get(part.term))
            looks.names[part.term] = look
            if VARIABLE in symbols_of(part.term, {}):
                for each, x in (*part.instances.items(), (part.term, VARIABLE)):
                    looks.names[each] = f"{look}{APPLY}{brackets(mathml(x))}"
            looks.where.append(f"{WHERE}{looks.names[part.term]}{relation(meaning)}{meaning}")
        return looks

    def _set(self, left: str, name: str, written: Written, looks: Looks) -> tuple[str, ...]:
        value, where = _value(written.entries, looks.names), looks.where
        if len(where) > MOST_NAMES or len(value) + sum(map(len, where)) > LONGEST:
            raise Unwritable("a long formula")
        sign = relation(value)
        if name in ("source", "target"):
            value, sign = value + (words(", rounded") if ROUNDED in value else ""), "<mo>∝</mo>"
        return (f"{left}{sign}{value}", *where)


def _value(entries: np.ndarray, names: Mapping[FormulaTerm, str]) -> str:
    point = [symbol(f"x{i + 1}") for i in range(entries.size)]
    is_point = entries.ndim == 1 and entries.size > 1 and list(entries) == point
    return "<mi>x</mi>" if is_point else typeset(entries, names)


def shown_name(name: str) -> str:
    return LETTERS.get(name, f"<mi>{html.escape(name)}</mi>")


def coefficient(reader: FormulaReader, name: str, given: Any) -> Coefficient:
    """A coefficient that is an array of numbers or a function."""
    if isinstance(given, np.ndarray):
        return _fixed(name, given)
    try:
        return Coefficient(name, None, reader.lines(name, given), written_source(given))
    except UNREADABLE:
        return Coefficient(name, None, (), written_source(given) or repr(given)[:300])


def _fixed(name: str, value: np.ndarray) -> Coefficient:
    """A number stands in the equation, unless digits of it are left out; an array gets a line."""
    if value.ndim == 0 and name in ("f", "g", "c") and ROUNDED not in constant(float(value)).mathml:
        return Coefficient(name, float(value))
    entries = np.vectorize(number, otypes=[object])(value)
    if value.size > 36 and multiple_of_identity(entries) is None:
        size = "×".join(map(str, value.shape))
        line = f"{shown_name(name)}{words(f' constant, with {size} entries')}"
        return Coefficient(name, None, (line,))
    shown = typeset(entries)
    return Coefficient(name, None, (f"{shown_name(name)}{relation(shown)}{shown}",))


def written_source(function: Any) -> str | None:
    if isinstance(function, DiagonalPlusRank):
        parts = [source_text(function.diagonal), source_text(function.columns)]
        return None if None in parts else f"DiagonalPlusRank(\n    {parts[0]},\n    {parts[1]},\n)"
    return source_text(function)
