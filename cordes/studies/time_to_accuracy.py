"""The paper's tables: how many epochs, and seconds, a method needs to reach a target error, over
several seeds."""

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from cordes.gallery.paper_tables import TABLES, Row
from cordes.problems.problem import AbstractProblem
from cordes.studies.ensemble import INNER_EPOCHS, warm_up_of
from cordes.studies.runs import Run

# Targets of problems for which the paper has no table.
DECADES = (1e-1, 1e-2, 1e-3, 1e-4, 1e-5)


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
    facts: dict[str, list[Any]] = {"epochs": [], "seconds": [], "l2": [], "linf": []}
    frozen = not problem.linear and method != "PINN"
    if frozen:
        facts["newton"] = []
    for lane in range(run.seeds):
        met = np.flatnonzero(run.measured.l2[:, lane] <= target)
        k = int(met[0]) if len(met) else None
        epochs = int(run.epochs[k]) if k is not None else None
        facts["epochs"].append(epochs)
        facts["seconds"].append(epochs * run.seconds_per_epoch if epochs is not None else None)
        facts["l2"].append(float(run.measured.l2[k, lane]) if k is not None else None)
        facts["linf"].append(float(run.measured.linf[k, lane]) if k is not None else None)
        if frozen:
            facts["newton"].append(outer_steps(problem, epochs) if epochs is not None else None)
    return facts


def outer_steps(problem: AbstractProblem, epochs: int) -> int:
    """How often a nonlinear equation was frozen within so many epochs."""
    return max(0, -(-(epochs - warm_up_of(problem)) // INNER_EPOCHS))


def finals(problem: AbstractProblem, runs: Mapping[str, Run]) -> dict[str, dict[str, Any]]:
    """Where each seed ended: at its last milestone, or at its last epoch."""
    last = targets_of(problem)[-1]
    facts = {}
    for name, run in runs.items():
        ends = [
            int(np.flatnonzero(lane <= last)[0]) if np.any(lane <= last) else len(lane) - 1
            for lane in run.measured.l2.T
        ]
        facts[name] = {
            "epochs": [int(run.epochs[k]) for k in ends],
            "l2": [float(run.measured.l2[k, lane]) for lane, k in enumerate(ends)],
            "linf": [float(run.measured.linf[k, lane]) for lane, k in enumerate(ends)],
            "best_l2": [
                float(np.min(np.nan_to_num(run.measured.l2[: k + 1, lane], nan=np.inf)))
                for lane, k in enumerate(ends)
            ],
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
        return (
            (format(self.median, form) if self.median is not None else missing) + spread + reached
        )


def speed_up(found: Sequence[Mapping[str, Any]], rival: str = "PINN") -> dict[str, Any] | None:
    """How many times more epochs the rival takes than C-PINN at the tightest target that at least
    half of the seeds of both reached: the median of the ratios seed by seed, which share weights
    and points. A rival that never arrives counts as infinitely slow (None), C-PINN that never
    arrives as 0; a pair of which neither does is left out. `last` counts the seeds at the tightest
    target that any seed of either met."""
    targets = sorted({row["target"] for row in found})
    for target in targets:
        ours, theirs = (_epochs(found, target, method) for method in ("C-PINN", rival))
        if ours is None or theirs is None:
            return None
        if 2 * min(len(ours) - ours.count(None), len(theirs) - theirs.count(None)) < len(ours):
            continue
        pairs = [
            (a, b) for a, b in zip(ours, theirs, strict=True) if a is not None or b is not None
        ]
        ratios = [0.0 if a is None else math.inf if b is None else b / a for a, b in pairs]
        facts = {
            "target": target,
            "rival": rival,
            "ratios": [_finite(ratio) for ratio in ratios],
            "median": _finite(float(np.median(ratios))),
        }
        return {**facts, "last": _arrivals(found, targets, rival)}
    return None


def _arrivals(
    found: Sequence[Mapping[str, Any]], targets: Sequence[float], rival: str
) -> dict[str, Any]:
    for target in targets:
        ours, theirs = (
            sum(epochs is not None for epochs in _epochs(found, target, method) or ())
            for method in ("C-PINN", rival)
        )
        if ours or theirs:
            return {"target": target, "ours": ours, "theirs": theirs}
    return {}


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None


def _epochs(
    found: Sequence[Mapping[str, Any]], target: float, method: str
) -> list[int | None] | None:
    for row in found:
        if row["target"] == target and row["method"] == method:
            return row["epochs"]
    return None


def _paper_facts(row: Row | None) -> dict[str, Any] | None:
    return (
        None
        if row is None
        else {
            "epochs": row.epochs,
            "seconds": row.seconds,
            "l2": row.l2,
            "linf": row.linf,
            "newton": row.newton,
        }
    )
