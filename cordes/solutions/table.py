"""A table of values with the intervals in which the solution is certified to lie."""

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from cordes.errors import OptionError

if TYPE_CHECKING:
    from cordes.solutions.solution import AbstractSolution


class ValueTable(NamedTuple):
    """Values at points and times with limits between which u lies, (n,) each; prints as a table.
    `labels` say which row is which, `level` how the limits are known."""

    labels: np.ndarray
    values: np.ndarray
    lower: np.ndarray
    upper: np.ndarray
    level: str

    def __str__(self) -> str:
        width = float(np.max(self.upper - self.lower))
        size = max(float(np.max(np.abs(self.values))), 1e-300)
        # Two digits more than the interval has.
        digits = int(np.clip(np.ceil(-np.log10(max(width, 1e-16 * size))) + 1, 2, 15))
        rows = [["", "value", "from", "to"]]
        for label, *numbers in zip(*self[:4], strict=True):
            name = ", ".join(f"{part:.6g}" for part in np.atleast_1d(label))
            rows.append([name, *(f"{number:.{digits}f}" for number in numbers)])
        widths = [max(len(row[k]) for row in rows) for k in range(4)]
        lines = ["  ".join(f"{cell:>{widths[k]}}" for k, cell in enumerate(row)) for row in rows]
        return "\n".join([*lines, f"certified, level {self.level}"])


def limits_of(
    solution: "AbstractSolution", points: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Values at points (N, d + 1) of the cylinder, and limits between which u lies there: those of
    the largest error at each time, where it has a bound, and no farther than an obstacle."""
    certificate, clock = solution.certificate, solution.problem.clock
    if certificate is None:
        raise OptionError(
            "The answer has no certificate: ask for one with solve(…, certify=True) or "
            "solution.certified()."
        )
    if certificate.Linf is None or clock is None:
        why = certificate.reason or "its problem has no time"
        raise OptionError(f"The largest error of the answer has no bound: {why}.")
    radius = np.full(len(points), certificate.Linf)
    if certificate.in_time is not None:
        times, place = np.unique(points[:, -1], return_inverse=True)
        found = [certificate.at(float(clock.time(t))).Linf for t in times]
        largest = [certificate.Linf if each is None else each for each in found]
        radius = np.minimum(np.array(largest)[place], radius)
    values = np.asarray(solution.values(points), float)
    answered = solution.problem.answered
    return values, answered(points, values - radius), answered(points, values + radius)


def rows_of(labels: np.ndarray | None, points: np.ndarray) -> np.ndarray:
    """One label for each row: those of the user, or the points."""
    found = points if labels is None else np.asarray(labels)
    if len(found) != len(points):
        raise OptionError(
            f"labels has {len(found)} entries and there are {len(points)} points: one for each."
        )
    return found
