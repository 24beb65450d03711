"""Which elements of lookups are equal: the numbers that a trace gives them."""

import hashlib
import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from cordes.formulas.lookups.lookup import Lookup
from cordes.formulas.numbering import Numbering

Array = np.ndarray


# Entries times results beyond which one of several numbers that depend on x is not picked.
MOST_PICKED = 1 << 12


def lookup_kind(equation: Any, constants: Sequence[Array | None]) -> str | None:
    """The kind of step that an operation makes if it looks up constants by an index that depends
    on x ("lookup"), picks one of the numbers that depend on x so ("pick"), or is one of ours; a
    constant index only moves elements."""
    name = equation.primitive.name
    if name in ("search", "smooth"):
        return name if name == "smooth" or constants[0] is not None else None
    if name not in ("gather", "dynamic_slice") or all(index is not None for index in constants[1:]):
        return None
    if constants[0] is not None:
        return "lookup"
    sizes = [math.prod(v.aval.shape) for v in (equation.invars[0], equation.outvars[0])]
    return "pick" if math.prod(sizes) <= MOST_PICKED else None


def _contents(table: Array) -> tuple:
    """The same for equal tables."""
    digest = hashlib.blake2b(np.ascontiguousarray(table).tobytes()).hexdigest()
    return digest, table.shape, table.dtype.str


def _looked_up(numbering: Numbering, equation: Any, inputs: Sequence[Any]) -> Array:
    """An entry is known by the table, the offset and the numbers of the index it depends on."""
    given = inputs[0]
    lookup = Lookup(equation, np.zeros(given.shape) if given.constant is None else given.constant)
    table = (*_contents(lookup.table), str(lookup.fill), lookup.limits)
    index = np.concatenate([value.numbers.ravel() for value in inputs[1:]])
    own = [] if given.constant is not None else given.numbers.ravel().tolist()
    name = "pick" if own else "lookup"
    found = [
        numbering.number(name, (*table, *offset), own + index[source[source >= 0]].tolist())
        for offset, source in zip(lookup.offsets.T.tolist(), lookup.sources.T, strict=True)
    ]
    return np.array(found, dtype=np.int64).reshape(lookup.shape)


def _searched(numbering: Numbering, equation: Any, inputs: Sequence[Any]) -> Array:
    knots = (*_contents(inputs[0].constant), equation.params["side"])
    query = inputs[1].numbers
    found = [numbering.number("search", knots, (number,)) for number in query.ravel().tolist()]
    return np.array(found, dtype=np.int64).reshape(query.shape)


def _marked(numbering: Numbering, equation: Any, inputs: Sequence[Any]) -> Array:
    """A smooth value as an operation of its arguments alone: what it is made of does not matter to
    those who ask how smooth it is."""
    values, order = inputs[0].numbers, equation.params["order"]
    first = 2 if equation.params["between"] else 1
    arguments = [number for value in inputs[first:] for number in value.numbers.ravel().tolist()]
    found = [numbering.number("smooth", (order, n), arguments) for n in values.ravel().tolist()]
    return np.array(found, dtype=np.int64).reshape(values.shape)


NUMBERED: dict[str, Callable[[Numbering, Any, Sequence[Any]], Array]] = {
    "gather": _looked_up,
    "dynamic_slice": _looked_up,
    "search": _searched,
    "smooth": _marked,
}
