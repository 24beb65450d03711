"""Which elements of lookups are equal: the numbers that a trace gives them."""

import hashlib
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from cordes.formulas.lookups.lookup import Lookup
from cordes.formulas.numbering import Numbering

Array = np.ndarray


def is_lookup(name: str, constants: Sequence[Array | None]) -> bool:
    """Whether an operation looks up constants by an index that depends on x, or is one of ours; a
    constant index only moves elements."""
    if name in ("search", "smooth"):
        return constants[0 if name == "search" else -1] is not None or name == "smooth"
    return constants[0] is not None and any(index is None for index in constants[1:])


def _contents(table: Array) -> tuple:
    """The same for equal tables."""
    digest = hashlib.blake2b(np.ascontiguousarray(table).tobytes()).hexdigest()
    return digest, table.shape, table.dtype.str


def _looked_up(numbering: Numbering, equation: Any, inputs: Sequence[Any]) -> Array:
    """An entry is known by the table, the offset and the numbers of the index it depends on."""
    lookup = Lookup(equation, inputs[0].constant)
    table = (*_contents(lookup.table), str(lookup.fill), lookup.limits)
    index = np.concatenate([value.numbers.ravel() for value in inputs[1:]])
    found = [
        numbering.number("lookup", (*table, *offset), index[source[source >= 0]].tolist())
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
