"""What runs say. The paper's tables: how many epochs, and seconds, a method needs to reach a target
error, over several seeds; and what happens along a run: error, gradient norm, the paper's proxy of
the largest curvature, and the contraction of its theorem.

A loss that is multiplied with a constant c has c times the gradient and c times the curvature, and
Adam does not notice. C-PINN multiplies the squared residual with γ², so its gradient norm and its
proxy are smaller by about the mean of γ² for no other reason; `mean_square` tells by how much.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from cordes.gallery.paper_tables import TABLES, Row
from cordes.problems.problem import AbstractProblem
from cordes.studies.ensemble import INNER_EPOCHS, warm_up_of
from cordes.studies.runs import Run

# Targets of problems for which the paper has no table.
DECADES = (1e-1, 1e-2, 1e-3, 1e-4, 1e-5)
# A curve of a JSON file has about so many points, evenly spread over the logarithm of the epoch.
CURVE_POINTS = 40
# The second half of a run, over which diagnostics are averaged, leaves the start out.
LATE = 0.5


def paper_rows(problem: AbstractProblem) -> tuple[Row, ...]:
    """The paper's table for a gallery problem; empty where it has none."""
    return TABLES.get((problem.source or {}).get("gallery", ""), ())


def targets_of(problem: AbstractProblem) -> tuple[float, ...]:
    """Target errors, from the loosest to the tightest."""
    return tuple(sorted({row.target for row in paper_rows(problem)}, reverse=True)) or DECADES


def milestones(problem: AbstractProblem, runs: Mapping[str, Run]) -> list[dict[str, Any]]:
    """For each target and method what each seed needed, with the paper's row beside it."""
    rows = {(row.target, row.method): row for row in paper_rows(problem)}
    return [
        {
            "target": target,
            "method": name,
            "paper": _paper_facts(rows.get((target, name))),
            **_reached(problem, name, run, target),
        }
        for target in targets_of(problem)
        for name, run in runs.items()
    ]


def _reached(problem: AbstractProblem, method: str, run: Run, target: float) -> dict[str, Any]:
    """Epochs, seconds and errors at the first record at which a seed met the target; None where it
    never did."""
    names = ["epochs", "seconds", "l2", "linf"]
    if not problem.linear and method != "PINN":
        names.append("newton")
    facts: dict[str, list[Any]] = {name: [None] * run.seeds for name in names}
    for lane, l2 in enumerate(run.measured.l2.T):
        if np.any(l2 <= target):
            k = int(np.argmax(l2 <= target))
            epochs = int(run.epochs[k])
            found = {
                "epochs": epochs,
                "seconds": epochs * run.seconds_per_epoch,
                "l2": float(l2[k]),
                "linf": float(run.measured.linf[k, lane]),
                "newton": outer_steps(problem, epochs),
            }
            for name in names:
                facts[name][lane] = found[name]
    return facts


def outer_steps(problem: AbstractProblem, epochs: int) -> int:
    """How often a nonlinear equation was frozen within so many epochs."""
    return max(0, -(-(epochs - warm_up_of(problem)) // INNER_EPOCHS))


def finals(problem: AbstractProblem, runs: Mapping[str, Run]) -> dict[str, dict[str, Any]]:
    """Where each seed ended: at its last milestone, or at its last epoch. None where its training
    has left the numbers."""
    last = targets_of(problem)[-1]
    facts = {}
    for name, run in runs.items():
        l2, linf = run.measured.l2, run.measured.linf
        met = l2 <= last
        ends = np.where(np.any(met, axis=0), np.argmax(met, axis=0), len(l2) - 1)
        lanes = np.arange(run.seeds)
        best = np.fmin.accumulate(l2)
        facts[name] = {
            "epochs": run.epochs[ends].tolist(),
            **{
                key: [finite(value) for value in values[ends, lanes].tolist()]
                for key, values in (("l2", l2), ("linf", linf), ("best_l2", best))
            },
        }
    return facts


class Summary:
    """The median of numbers of which some may be missing (never reached, which is worse than any
    number), and their range."""

    def __init__(self, values: Sequence[float | None]):
        self.count = len(values)
        self.numbers = sorted(
            float(value) for value in values if value is not None and math.isfinite(value)
        )
        self.missing = self.count - len(self.numbers)
        # The upper one of two middle values: a median of an even number of seeds is then one that
        # was seen, and never flatters.
        middle = self.count // 2
        self.median = self.numbers[middle] if middle < len(self.numbers) else None

    def text(self, form: str, missing: str = "not reached") -> str:
        """Median (range), and how many got there."""
        if not self.numbers:
            return missing
        low, high = format(self.numbers[0], form), format(self.numbers[-1], form)
        spread = f" ({low}–{high})" if low != high else ""
        reached = f", {len(self.numbers)} of {self.count}" if self.missing else ""
        median = missing if self.median is None else format(self.median, form)
        return median + spread + reached


def speed_up(found: Sequence[Mapping[str, Any]], rival: str = "PINN") -> dict[str, Any] | None:
    """How many times more epochs the rival takes than C-PINN at the tightest target that at least
    half of the seeds of both reached: the median of the ratios seed by seed, which share weights
    and points. A rival that never arrives counts as infinitely slow (None), C-PINN that never
    arrives as 0; a pair of which neither does is left out. `last` counts the seeds at the tightest
    target that any seed of either met."""
    needed = {(row["target"], row["method"]): row["epochs"] for row in found}
    last: dict[str, Any] = {}
    for target in sorted({row["target"] for row in found}):
        ours, theirs = (needed.get((target, method)) for method in ("C-PINN", rival))
        if ours is None or theirs is None:
            return None
        arrived, there = (len(epochs) - epochs.count(None) for epochs in (ours, theirs))
        if not last and (arrived or there):
            last = {"target": target, "ours": arrived, "theirs": there}
        if 2 * min(arrived, there) < len(ours):
            continue
        ratios = [
            0.0 if a is None else math.inf if b is None else b / a
            for a, b in zip(ours, theirs, strict=True)
            if a is not None or b is not None
        ]
        return {
            "target": target,
            "rival": rival,
            "ratios": [finite(ratio) for ratio in ratios],
            "median": finite(float(np.median(ratios))),
            "last": last,
        }
    return None


def finite(value: float) -> float | None:
    return value if math.isfinite(value) else None


def paper_epochs(paper: Mapping[str, Any] | None, none: str, shown: Callable[[int], str]) -> str:
    """The epochs of a row of the paper, in words where it has none."""
    if paper is None:
        return none
    return "not reached" if paper["epochs"] is None else shown(paper["epochs"])


def _paper_facts(row: Row | None) -> dict[str, Any] | None:
    if row is None:
        return None
    names = ("epochs", "seconds", "l2", "linf", "newton")
    return {name: getattr(row, name) for name in names}


# Along a run --------------------------------------------------------------------------------------


def curves(run: Run) -> dict[str, Any]:
    """A few points of each curve: medians over the seeds, and the range of the error."""
    chosen = np.unique(np.round(np.geomspace(1, len(run.epochs), CURVE_POINTS)).astype(int)) - 1
    facts: dict[str, Any] = {"epochs": run.epochs[chosen].tolist()}
    for name, values in run.measured._asdict().items():
        facts[name] = [_significant(value) for value in np.median(values[chosen], axis=1)]
    facts["l2_range"] = [
        [_significant(value) for value in edge(run.measured.l2[chosen], axis=1)]
        for edge in (np.min, np.max)
    ]
    late = slice(int(LATE * len(run.epochs)), None)
    facts["late"] = {
        name: _significant(np.median(values[late]))
        for name, values in run.measured._asdict().items()
    }
    return facts


def contraction_facts(run: Run) -> dict[str, Any]:
    """The largest and the median ‖Δw - γA:D²w‖/‖Δw‖ over chunks and seeds, the bound √(1-ε) of the
    theorem, and how often it was exceeded or not defined."""
    ratio, bound = run.contraction, run.contraction_bound
    if not ratio.size:
        return {"records": 0}
    defined = np.isfinite(bound)
    return {
        "records": int(ratio.size),
        "first": _significant(np.median(ratio[0])),
        "last": _significant(np.median(ratio[-1])),
        "largest": _significant(np.max(ratio)),
        "bound": _significant(np.max(bound[defined])) if np.any(defined) else None,
        "exceeded": int(np.sum(ratio[defined] > bound[defined])),
        "without_condition": int(np.sum(~defined)),
    }


def _significant(value: Any) -> float | None:
    """Four digits: these are curves to look at."""
    return finite(float(f"{value:.4g}"))
