"""How fast is the paper's example 4.1 if the lift of the boundary values is the exact solution
itself?

The paper shows u = D·N, which has zero boundary values, for solutions that have none, and does not
say how the boundary data enter. With the lift G = u the right-hand side is gone and N = 0 is the
answer: the network only has to unlearn its start, and the numbers say nothing about the method.
This program counts the epochs of that worthless variant, so that the paper's table can be compared
with it. Nothing in the library lifts like this.

    python benchmarks/exact_lift.py [--seeds 5] [--epochs 40000] [--json PATH]
"""

import argparse
import json
import tempfile
from pathlib import Path

import numpy as np

import cordes
from cordes.gallery.paper_tables import TABLES
from cordes.runtime.progress import Progress
from cordes.solutions.errors import error_points
from cordes.solvers.adam import PAPER
from cordes.studies.ensemble import methods_of
from cordes.studies.runs import TrainingRun
from cordes.studies.time_to_accuracy import Summary

NAMES = ("ex4.1-smooth", "ex4.1-singular")


def unlearning(name: str) -> cordes.Linear:
    """The equation of u - G for G = u: no data are left, and zero solves it."""
    problem = cordes.gallery[name]
    return cordes.Linear(
        problem.domain,
        problem.A,
        0.0,
        interfaces=problem.interfaces,
        name=f"{name}, lifted by its solution",
    )


def count(name: str, seeds: int, epochs: int, folder: Path) -> list[dict]:
    problem = unlearning(name)
    truth = np.zeros(len(error_points(problem.domain)))
    targets = sorted({row.target for row in TABLES[name]}, reverse=True)
    rows = []
    for method in methods_of(problem):
        training = TrainingRun(
            problem, method, range(seeds), truth, PAPER, folder / f"{name}-{method.name}.npz"
        )
        run = training.train(
            epochs, targets[-1], Progress(f"{problem.name}: {method.name}", None, epochs)
        )
        for target in targets:
            met = [np.flatnonzero(lane <= target) for lane in run.measured.l2.T]
            reached = [int(run.epochs[found[0]]) if len(found) else None for found in met]
            paper = next(
                row.epochs
                for row in TABLES[name]
                if (row.target, row.method) == (target, method.name)
            )
            rows.append(
                {
                    "problem": name,
                    "target": target,
                    "method": method.name,
                    "epochs": reached,
                    "paper": paper,
                }
            )
            print(
                (
                    f"{name:16} {target:7.0e} {method.name:7} paper "
                    f"{paper or 'not reached'!s:>12}   here {Summary(reached).text('.0f')}"
                ),
                flush=True,
            )
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--epochs", type=int, default=PAPER["epochs"])
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        rows = [
            row
            for name in NAMES
            for row in count(name, options.seeds, options.epochs, Path(folder))
        ]
    if options.json:
        options.json.write_text(
            json.dumps({"seeds": options.seeds, "epochs": options.epochs, "rows": rows}, indent=1)
            + "\n",
            encoding="utf-8",
        )


if __name__ == "__main__":
    main()
