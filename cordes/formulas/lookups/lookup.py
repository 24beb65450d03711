"""A table of constants that is looked up by an index: gather and dynamic_slice in one form, for
every algebra that reads a trace."""

from typing import Any

import numpy as np

from cordes.formulas.lookups.extremes import RangeExtremes
from cordes.formulas.movement import UnsupportedOperation

Array = np.ndarray


class Lookup:
    """Element e of the result is the entry of the table whose index along axis a is
    start + `offsets[a, e]`. The start is the number `sources[a, e]` among the numbers of the index
    (all operands but the table, one after the other), clamped to [0, `limits[a]`]; it is 0 where
    there is none (-1). With `fill` an index that had to be clamped gives the number `fill`."""

    def __init__(self, equation: Any, table: Array):
        self.table, self.shape = table, tuple(equation.outvars[0].aval.shape)
        made = {"dynamic_slice": _slice, "gather": _gather}[equation.primitive.name]
        self.fill: float | None = None
        self._extremes: RangeExtremes | None = None
        self.sources, self.offsets, self.limits = made(equation, self)

    def range(self, lower: Array, upper: Array) -> tuple[Array, Array]:
        """The smallest and the largest number that may be found (cells, *shape), where the numbers
        of the index lie between `lower` and `upper` (cells, numbers). Equal bounds give the entry
        itself."""
        shape = (len(lower), *self.shape)
        start, end = self._places(lower), self._places(upper)
        if self._extremes is None:
            self._extremes = RangeExtremes(self.table)
        low, high = self._extremes(*(p.reshape(len(p), -1) for p in (start, end)))
        return self._filled(low.reshape(shape), high.reshape(shape), lower, upper)

    def picked(
        self, least: Array, largest: Array, lower: Array, upper: Array
    ) -> tuple[Array, Array]:
        """The same for entries that are known to lie between `least` and `largest` (cells,
        entries): one after the other."""
        entries = np.indices(self.table.shape).reshape(self.table.ndim, -1)
        start, end = self._places(lower), self._places(upper)
        possible = np.logical_and.reduce(
            [
                (first[..., None] <= entry) & (entry <= last[..., None])
                for first, last, entry in zip(start, end, entries, strict=True)
            ]
        )
        low = np.min(np.where(possible, least[:, None], np.inf), axis=2)
        high = np.max(np.where(possible, largest[:, None], -np.inf), axis=2)
        shape = (len(lower), *self.shape)
        return self._filled(low.reshape(shape), high.reshape(shape), lower, upper)

    def _filled(self, low: Array, high: Array, lower: Array, upper: Array) -> tuple[Array, Array]:
        """With what an index outside of the table gives."""
        if self.fill is None:
            return low, high
        outside, unknown = self._outside(lower, upper).reshape(low.shape), np.isnan(self.fill)
        return (
            np.where(outside, -np.inf if unknown else np.minimum(low, self.fill), low),
            np.where(outside, np.inf if unknown else np.maximum(high, self.fill), high),
        )

    def _places(self, index: Array) -> Array:
        """The index of each element along each axis: (axes, cells, elements)."""
        kept = np.concatenate([index, np.zeros((len(index), 1))], axis=1)
        starts = np.stack(
            [
                np.clip(kept[:, source], 0, limit)
                for source, limit in zip(self.sources, self.limits, strict=True)
            ]
        )
        return starts.astype(np.int64) + self.offsets[:, None]

    def _outside(self, lower: Array, upper: Array) -> Array:
        """Whether an index may have to be clamped."""
        found = np.zeros((len(lower), self.sources.shape[1]), bool)
        for source, limit in zip(self.sources, self.limits, strict=True):
            chosen = source >= 0
            found[:, chosen] |= (lower[:, source[chosen]] < 0) | (upper[:, source[chosen]] > limit)
        return found


def _slice(equation: Any, lookup: Lookup) -> tuple[Array, Array, tuple[int, ...]]:
    sizes = equation.params["slice_sizes"]
    offsets = np.indices(sizes).reshape(len(sizes), -1)
    sources = np.broadcast_to(np.arange(len(sizes))[:, None], offsets.shape)
    return sources, offsets, _limits(lookup.table, sizes)


def _gather(equation: Any, lookup: Lookup) -> tuple[Array, Array, tuple[int, ...]]:
    parameters, numbers = equation.params, equation.params["dimension_numbers"]
    index_shape = tuple(equation.invars[1].aval.shape)
    mode = str(parameters["mode"]).rsplit(".", 1)[-1]
    if mode == "FILL_OR_DROP":
        given, kind = parameters["fill_value"], lookup.table.dtype.kind
        largest = np.iinfo(lookup.table.dtype) if kind in "iu" else None
        missing = np.nan if largest is None else largest.max if kind == "u" else largest.min
        lookup.fill = float(missing if given is None else given)
    elif mode not in ("CLIP", "PROMISE_IN_BOUNDS"):
        raise UnsupportedOperation(f"gather in the mode {mode}")
    place = np.indices(lookup.shape).reshape(len(lookup.shape), int(np.prod(lookup.shape)))
    batch = [place[k] for k in range(len(lookup.shape)) if k not in numbers.offset_dims]
    offsets = np.zeros((lookup.table.ndim, place.shape[1]), np.int64)
    sources = np.full_like(offsets, -1)
    fixed = (*numbers.collapsed_slice_dims, *numbers.operand_batching_dims)
    kept = [axis for axis in range(lookup.table.ndim) if axis not in fixed]
    for axis, dimension in zip(kept, numbers.offset_dims, strict=True):
        offsets[axis] = place[dimension]
    for axis, dimension in zip(
        numbers.operand_batching_dims, numbers.start_indices_batching_dims, strict=True
    ):
        offsets[axis] = batch[dimension]
    for number, axis in enumerate(numbers.start_index_map):
        here = (*batch, np.full(place.shape[1], number))
        sources[axis] = np.ravel_multi_index(here, index_shape)
    return sources, offsets, _limits(lookup.table, parameters["slice_sizes"])


def _limits(table: Array, sizes: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(length - size for length, size in zip(table.shape, sizes, strict=True))


def found_places(
    knots: Array, lower: Array, upper: Array, side: str, rarely: Array
) -> tuple[Array, Array]:
    """The places (`searchsorted`) of numbers between `lower` and `upper` among ascending `knots`.
    Where `rarely` is true the number equals a knot at almost no point: then an interval that ends
    at a knot does not reach beyond it."""
    before, behind = (
        (np.searchsorted(knots, bound, "left"), np.searchsorted(knots, bound, "right"))
        for bound in (lower, upper)
    )
    within = rarely & (lower < upper)
    first = np.where(within | (side == "right"), before[1], before[0])
    last = np.where(~within & (side == "right"), behind[1], behind[0])
    return first, last
