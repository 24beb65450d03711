"""Where tables change their pieces: lines of a grid along the axes, read from the trace. Cells that
end there see one piece each."""

from collections.abc import Callable, Sequence

import numpy as np

from cordes.formulas.movement import UnsupportedOperation
from cordes.formulas.numbering import Numbering
from cordes.formulas.trace import Trace

Array = np.ndarray
# Lines of one grid that are told; and how far from a computed line its floor is surely decided,
# in units in the last place.
MOST_LINES, ROUNDING = 4096, 8.0


def grid_lines(
    functions: Sequence[Callable], lower: Array, upper: Array, kinks: bool = False
) -> list[Array]:
    """For each axis of a box the coordinates inside of it where a function of one point looks up
    another piece of a table: at knots that a coordinate is searched among, and on both sides of
    where the floor of an affine function of a coordinate changes, so near that what lies between
    counts for nothing. With `kinks` those of functions that are known to be smooth are left out."""
    found: list[list[float]] = [[] for _ in lower]
    for function in functions:
        try:
            trace = Trace(function, len(found))
        except UnsupportedOperation:
            continue
        orders = [p[0] for name, p, _ in trace.numbering.operations if name == "smooth"]
        if kinks and orders and min(orders) > 0:
            continue
        for axis, places in _lines(trace, lower, upper):
            inside = (places > lower[axis]) & (places < upper[axis])
            found[axis] += places[inside].tolist()
    return [np.unique(each) for each in found]


def _lines(trace: Trace, lower: Array, upper: Array) -> list[tuple[int, Array]]:
    found = []
    numbering = trace.numbering
    for step in trace.steps:
        if step.kind == "search" and step.table is not None:
            for number in step.inputs[0].numbers.ravel().tolist():
                axis, slope, shift = _affine(numbering, number)
                if slope:
                    found.append((axis, (step.table - shift) / slope))
    for name, parameter, operands in numbering.operations:
        half = 0.5 if name == "round" else 0.0
        if name in ("floor", "ceil", "round") or (name, type(parameter)) == (
            "convert_element_type",
            tuple,
        ):
            axis, slope, shift = _affine(numbering, operands[0])
            ends = sorted(slope * end[axis] + shift for end in (lower, upper)) if slope else (0, 0)
            if not slope or ends[1] - ends[0] > MOST_LINES:
                continue
            places = np.arange(np.ceil(ends[0] - half), ends[1] - half) + half
            lines = (places - shift) / slope
            size = max(abs(lower[axis]), abs(upper[axis]), abs(shift / slope))
            near = ROUNDING * np.finfo(float).eps * size
            found += [(axis, lines - near), (axis, lines + near)]
    return found


def _affine(numbering: Numbering, number: int) -> tuple[int, float, float]:
    """(axis, slope, shift) of an element that is slope·x + shift, or that cut off; slope 0 where it
    is something else."""
    nothing = (0, 0.0, 0.0)
    name, parameter, operands = numbering.operations[number]
    if name == "x":
        return parameter, 1.0, 0.0
    constants = [numbering.constants.get(operand) for operand in operands]
    if name == "neg":
        axis, slope, shift = _affine(numbering, operands[0])
        return axis, -slope, -shift
    if len(operands) != 2 or (constants[0] is None) == (constants[1] is None):
        return nothing
    first = constants[1] is not None
    axis, slope, shift = _affine(numbering, operands[0 if first else 1])
    constant = constants[1] if first else constants[0]
    assert constant is not None
    if name in ("max", "min"):
        return axis, slope, shift
    if name in ("add", "sub"):
        sign = -1.0 if name == "sub" and not first else 1.0
        other = -constant if name == "sub" and first else constant
        return axis, sign * slope, sign * shift + other
    if name == "mul":
        return axis, slope * constant, shift * constant
    if name == "div" and first and constant:
        return axis, slope / constant, shift / constant
    return nothing
