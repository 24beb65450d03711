"""Damaged and forged states of a study: each is refused, or a page comes out.

    python benchmarks/faults/studies.py FINISHED STATES [SEED]

FINISHED are objects of finished studies of which something is missing or something else; STATES
are archives of training whose bytes or arrays were changed, from which training goes on.
"""

import io
import json
import random
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from forging import damaged, forged_arrays, forged_facts
from judging import Tally
from rich.console import Console

import cordes
from cordes.readers.schema import check_file
from cordes.runtime.progress import Progress
from cordes.solutions.errors import error_points
from cordes.solvers.adam import PAPER
from cordes.studies.ensemble import methods_of
from cordes.studies.kept import judged
from cordes.studies.pages.study import write_study_report
from cordes.studies.pages.tables import study_table
from cordes.studies.runs import TrainingRun
from cordes.studies.study import Study

RESULTS = Path(__file__).parents[2] / "docs" / "reproduction"
# A linear problem, and one of three methods.
FINISHED, TRAINED = ("ex4.2-continuous", "ex4.5-hjb"), "ex4.5-hjb"
SMALL = {**PAPER, "width": 8, "depth": 2, "points": 100}
PARTS = ("multiplier", "landscape", "conditioning", "auto")
QUIET = Progress("", False)


def finished(tally: Tally, count: int, chance: random.Random, folder: Path) -> None:
    studies = {
        name: Study(cordes.gallery[name], folder / name, seeds=5, epochs=40_000)
        for name in FINISHED
    }
    whole = {name: json.loads((RESULTS / f"{name}.json").read_text()) for name in FINISHED}

    def shown(facts: dict, place: Path) -> None:
        write_study_report(place / "report.html", facts, place, ["study"])
        Console(file=io.StringIO()).print(study_table(facts))

    for k in range(count + len(FINISHED)):
        name = FINISHED[k % len(FINISHED)]
        study, facts = studies[name], whole[name]
        study.folder.mkdir(exist_ok=True)
        forged = forged_facts(facts, chance) if k >= len(FINISHED) else facts

        def read(study: Study = study, forged: dict = forged) -> None:
            (study.folder / "study.json").write_text(json.dumps(forged))
            found = study.finished()
            if found is not None:
                shown(found, study.folder)

        outcome = tally.judge("finished", _difference(facts, forged), read)
        assert k >= len(FINISHED) or outcome == "accepted", tally.failures
        parts = {part: facts[part] for part in PARTS}
        forged = {**forged_facts(parts, chance), "epochs": {}}

        def read_parts(study: Study = study, forged: dict = forged, facts: dict = facts) -> None:
            methods = [method.name for method in methods_of(study.problem)]
            check_file(judged(methods), json.loads(json.dumps(forged)), "judged.json", "")
            shown(facts | forged | {"epochs": facts["epochs"]}, study.folder)

        tally.judge("judged", _difference(parts, forged), read_parts)


def states(tally: Tally, count: int, chance: random.Random, folder: Path) -> None:
    problem, path = cordes.gallery[TRAINED], folder / "run.npz"
    method, truth = methods_of(problem)[0], np.zeros(len(error_points(problem.domain)))

    def run() -> TrainingRun:
        return TrainingRun(problem, method, (0, 1), truth, SMALL, path)

    run().train(20, None, QUIET)
    whole = path.read_bytes()
    with np.load(path) as archive:
        arrays = dict(archive)

    def go_on() -> None:
        resumed = run()
        # The rows are looked at when they are needed.
        resumed._data()
        assert resumed.done in (0, 20)
        resumed.solution(), resumed.run.seconds_per_epoch

    def judge(kind: str, write: Callable[[], object]) -> None:
        write()
        tally.judge(kind, "", go_on)

    judge("whole state", lambda: path.write_bytes(whole))
    assert not tally.failures
    for k in range(count):
        if k % 4 == 0:
            judge("damaged state", lambda: path.write_bytes(damaged(whole, chance)))
        else:
            forged: dict[str, Any] = forged_arrays(arrays, chance)
            judge("forged state", lambda forged=forged: np.savez(path, **forged))


def _difference(whole: object, forged: object, place: str = "") -> str:
    """Where two objects differ first, and what is there."""
    if isinstance(whole, dict) and isinstance(forged, dict):
        for key in whole:
            if key not in forged:
                return f"{place}.{key} is missing"
            if found := _difference(whole[key], forged[key], f"{place}.{key}"):
                return found
        return ""
    if isinstance(whole, list) and isinstance(forged, list) and len(whole) == len(forged):
        pairs = enumerate(zip(whole, forged, strict=True))
        differences = (_difference(a, b, f"{place}[{k}]") for k, (a, b) in pairs)
        return next(filter(None, differences), "")
    return "" if whole == forged else f"{place} = {repr(forged)[:80]}"


def fuzz(objects: int, archives: int, seed: int = 1) -> Tally:
    chance, tally = random.Random(seed), Tally()
    with tempfile.TemporaryDirectory() as place:
        finished(tally, objects, chance, Path(place))
        states(tally, archives, chance, Path(place))
    return tally


if __name__ == "__main__":
    sys.exit(min(1, fuzz(*map(int, sys.argv[1:])).report()))
