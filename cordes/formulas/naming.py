"""Which parts of a formula deserve a name: what is long and occurs several times, as it stands or
as one function of different coordinates."""

from collections.abc import Sequence
from typing import NamedTuple

from cordes.formulas.terms import FormulaTerm, replaced, symbol, symbols_of

# The variable of functions, and how many symbols one must have.
VARIABLE = symbol("t")
LONG = 12


class NamedPart(NamedTuple):
    """A term, or a function of `VARIABLE` with its instances: their terms and arguments."""

    term: FormulaTerm
    instances: dict[FormulaTerm, FormulaTerm]


def parts_of(entries: Sequence[FormulaTerm]) -> dict[FormulaTerm, None]:
    """All parts of terms, inner ones first."""
    found: dict[FormulaTerm, None] = {}

    def visit(one: FormulaTerm) -> None:
        if one not in found:
            for argument in one.arguments:
                visit(argument)
            found[one] = None

    for entry in entries:
        visit(entry)
    return found


def shared(
    entries: Sequence[FormulaTerm], saving: int, coordinates: Sequence[FormulaTerm] = ()
) -> list[NamedPart]:
    """The parts of terms that deserve a name, the inner ones first: each saves at least so many
    symbols. Functions are of one of the coordinates."""
    functions = _functions(entries, coordinates)
    of = {each: part for part, instances in functions.items() for each in instances}
    counts: dict[FormulaTerm, int] = {}

    def visit(one: FormulaTerm) -> None:
        one = of.get(one, one)
        if one not in counts:
            for argument in one.arguments:
                visit(argument)
        counts[one] = counts.get(one, 0) + 1

    for entry in entries:
        visit(entry)
    weights: dict[FormulaTerm, int] = {}
    chosen = []
    for one, count in counts.items():
        weights[one] = 1 + sum(weights[of.get(each, each)] for each in one.arguments)
        plain = one.head not in ("number", "symbol", "neg", "length") and not one.truth
        if plain and (count - 1) * (weights[one] - 1) >= saving:
            chosen.append(NamedPart(one, functions.get(one, {})))
            weights[one] = 1
    return chosen


def _functions(
    entries: Sequence[FormulaTerm], coordinates: Sequence[FormulaTerm]
) -> dict[FormulaTerm, dict[FormulaTerm, FormulaTerm]]:
    """The functions of one variable that occur with several coordinates, and their instances."""
    symbols: dict[FormulaTerm, frozenset[FormulaTerm]] = {}
    known = {x: {x: VARIABLE} for x in coordinates}
    found: dict[FormulaTerm, dict[FormulaTerm, FormulaTerm]] = {}
    for part in parts_of(entries):
        used = symbols_of(part, symbols)
        if part.size >= LONG and len(used) == 1 and (x := next(iter(used))) in known:
            found.setdefault(replaced(part, x, VARIABLE, known[x]), {})[part] = x
    return {part: instances for part, instances in found.items() if len(instances) > 1}
