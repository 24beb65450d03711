"""What a solve costs, in plain training epochs of the same machine: a measure that can be compared
between machines.

Epochs and solves are measured in turn, so that a machine that slows down slows down both.
"""

import statistics
from typing import Any

from cordes.gallery.paper_tables import tightest
from cordes.problems.problem import AbstractProblem
from cordes.solutions.solution import Solution
from cordes.solvers.solve import solve
from cordes.studies.yardstick import epoch_seconds

REPEATS = 3
# From this dimension on a solve takes minutes: one is measured, without a warm-up, since
# compilation is counted apart anyway.
LONG_DIMENSION = 4


def bench(
    problem: AbstractProblem, seed: int = 0, repeats: int | None = None, steps: int = 20
) -> dict[str, Any]:
    """Facts for the JSON output. `solve_s` is the median of the repeats, without compilation;
    `epoch_s` the fastest of the epochs between them, each measured over so many steps."""
    dimension = problem.domain.dimension
    repeats = repeats or (1 if dimension >= LONG_DIMENSION else REPEATS)
    if repeats > 1:
        solve(problem, seed=seed, certify=False)
    epochs, solutions = [], []
    for _ in range(repeats):
        epochs.append(epoch_seconds(dimension, steps=steps, repeats=1))
        solutions.append(solve(problem, seed=seed, certify=False))
    if repeats == 1:
        epochs.append(epoch_seconds(dimension, steps=steps, repeats=1))
    return _facts(problem, seed, min(epochs), solutions)


def _facts(
    problem: AbstractProblem, seed: int, epoch: float, solutions: list[Solution]
) -> dict[str, Any]:
    seconds = statistics.median(solution.seconds["solve"] for solution in solutions)
    last = solutions[-1]
    error = last.error()
    row = tightest((problem.source or {}).get("gallery", ""))
    return {
        "problem": problem.name,
        "method": last.method,
        "result": last.result.value,
        "repeats": len(solutions),
        "seed": seed,
        "epoch_s": epoch,
        "solve_s": seconds,
        "epochs_equivalent": seconds / epoch,
        "l2": error.l2 if error else None,
        "linf": error.linf if error else None,
        "paper": {"l2": row.l2, "epochs": row.epochs, "seconds": row.seconds} if row else None,
    }
