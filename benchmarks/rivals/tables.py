"""From curves to what is said about them: the best error of each solver, the time that it needs for
the best error of a rival, and ratios of these times."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple


class Point(NamedTuple):
    """One measurement: seconds since the process was started (import and compile included), those
    of the solve alone, and the error."""

    seconds: float
    solve: float
    l2: float


class Comparison(NamedTuple):
    """How long the rival and another solver took to an error; ratios above one mean that the other
    was faster. None: not reached."""

    rival: str
    solver: str
    target: float
    rival_seconds: float
    rival_solve: float
    seconds: float | None
    solve: float | None
    ratio: float | None
    solve_ratio: float | None


Curves = Mapping[str, Sequence[Point]]


def falling(curve: Sequence[Point]) -> list[Point]:
    """The measurements that were better than all before them, in order of time."""
    kept: list[Point] = []
    for point in sorted(curve):
        if not kept or point.l2 < kept[-1].l2:
            kept.append(point)
    return kept


def reached(curve: Sequence[Point], target: float) -> Point | None:
    """The first measurement at which the error was at most the target."""
    return next((point for point in sorted(curve) if point.l2 <= target), None)


def compare(curves: Curves, rivals: Sequence[str], slack: float = 1.0) -> list[Comparison]:
    """Every solver against each rival, at `slack` times the rival's best error. A rival that creeps
    along at the end of its time is judged by its best error too kindly for the others: with a slack
    of two it is not."""
    rows = []
    for rival in rivals:
        if not curves.get(rival):
            continue
        target = slack * falling(curves[rival])[-1].l2
        own = reached(curves[rival], target)
        assert own is not None
        for solver, curve in curves.items():
            found = reached(curve, target)
            ratios = (
                (None, None)
                if found is None
                else (own.seconds / found.seconds, own.solve / max(found.solve, 1e-9))
            )
            times = (None, None) if found is None else (found.seconds, found.solve)
            rows.append(Comparison(rival, solver, target, own.seconds, own.solve, *times, *ratios))
    return rows


def _number(value: float | None, form: str) -> str:
    return "-" if value is None else format(value, form)


def best_table(results: Mapping[str, Mapping[str, Any]], labels: Mapping[str, str]) -> list[str]:
    """One line for each problem and solver; `load` is that of the machine at the end of the run,
    and more than its cores means that others were at work."""
    lines = [
        (
            f"{'problem':20} {'solver':34} {'best l2':>9} {'after s':>8} {'of s':>6} "
            f"{'import s':>9} {'compile s':>9} {'load':>5}  recipe"
        )
    ]
    for problem, solvers in results.items():
        for name, result in solvers.items():
            head = f"{problem:20} {labels.get(name, name):34}"
            if not result.get("curve"):
                lines.append(f"{head} {result['status']}")
                continue
            best = falling([Point(*point) for point in result["curve"]])[-1]
            costs = (
                f"{result['import']:9.1f} {result['compile']:9.1f} "
                f"{_number((result['end'] or {}).get('load'), '5.1f'):>5}"
            )
            lines.append(
                f"{head} {best.l2:9.1e} {best.seconds:8.1f} {result['budget']:6g} {costs}  "
                f"{result['recipe']}"
            )
    return lines


def comparison_table(
    problem: str, rows: Sequence[Comparison], labels: Mapping[str, str], title: str
) -> list[str]:
    """Seconds and ratios, import and compile included, then the solve alone."""
    lines = []
    for rival in dict.fromkeys(row.rival for row in rows):
        mine = [row for row in rows if row.rival == rival]
        first = mine[0]
        lines.append(
            f"{problem}: {title} {labels.get(rival, rival)}, l2 {first.target:.1e}, which "
            f"takes it {first.rival_seconds:.1f} s"
        )
        lines.append(f"  {'solver':34} {'total s':>8} {'ratio':>8} {'solve s':>8} {'ratio':>8}")
        for row in mine:
            if row.solver == rival:
                continue
            numbers = (
                f"{_number(row.seconds, '8.2f'):>8} {_number(row.ratio, '8.3g'):>8} "
                f"{_number(row.solve, '8.2f'):>8} {_number(row.solve_ratio, '8.3g'):>8}"
            )
            lines.append(f"  {labels.get(row.solver, row.solver):34} {numbers}")
    return lines
