"""`cordes study`: C-PINN against PINN on one problem. Trains, counts, and asks what the multiplier
changed.

A study lives in a folder: one state for each method, written after every chunk of epochs, then
`judged.json` with the parts of the analysis that are done, at last `study.json`; figures as they
are drawn. Called again, it goes on where it was.
"""

import json
import os
import platform
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

import cordes
from cordes.arguments import check_arguments, whole
from cordes.errors import OptionError
from cordes.problems.coefficients import sample
from cordes.problems.problem import AbstractProblem
from cordes.readers.archive import read_json
from cordes.readers.schema import check_file
from cordes.runtime.files import write_file
from cordes.runtime.progress import Progress
from cordes.runtime.threads import share_cores
from cordes.solutions.errors import error_points
from cordes.solutions.solution import Solution
from cordes.solvers.adam import PAPER
from cordes.solvers.solve import solve
from cordes.studies.bench import bench
from cordes.studies.conditioning import multiplier_spread, spectra
from cordes.studies.ensemble import EVERY, choices_of, methods_of
from cordes.studies.kept import judged, studied
from cordes.studies.landscape import Landscape, LossSquare, Measures, landscape
from cordes.studies.pages.plots import plot_landscape, plot_spectra
from cordes.studies.runs import Run, TrainingRun, device_name, probe, same_equation
from cordes.studies.time_to_accuracy import (
    contraction_facts,
    curves,
    finals,
    finite,
    milestones,
    speed_up,
    targets_of,
)
from cordes.studies.trained import initial_solution

# The landscape that is drawn, and those over several pairs of directions that are only measured.
RESOLUTION, POINTS = 31, 5000
DIRECTIONS, COARSE, COARSE_POINTS = 5, 17, 2000
ANEW = " Delete it, and that part of the study is done anew."
Say = Callable[[str], None]


class Study:
    """Training and judging of one problem in one folder."""

    def __init__(
        self,
        problem: AbstractProblem,
        folder: Path,
        seeds: int = 5,
        epochs: int = PAPER["epochs"],
        preset: Mapping[str, Any] = PAPER,
    ):
        if not problem.takes_boundary_values:
            raise OptionError(
                f"{problem.name} is a transport problem: the paper's tables compare losses of "
                "equations, study one of those."
            )
        # After so many epochs the error is first looked at.
        rules = {"seeds": whole(1, 10_000), "epochs": whole(EVERY)}
        check_arguments(rules, {"seeds": seeds, "epochs": epochs})
        self.problem, self.folder, self.preset = problem, folder, dict(preset)
        self.seeds, self.epochs = tuple(range(seeds)), epochs - epochs % EVERY
        self.trained: dict[str, TrainingRun] = {}
        self._settled: dict[str, Solution] = {}

    def train(self, show: bool | None = None) -> dict[str, Run]:
        """All methods; those that are finished already are read."""
        self.folder.mkdir(parents=True, exist_ok=True)
        truth, target = self._truth(), targets_of(self.problem)[-1]
        with share_cores():
            for method in methods_of(self.problem):
                name = method.name
                path, answer = (self.folder / f"{name}.{kind}" for kind in ("npz", "cordes"))
                training = TrainingRun(self.problem, method, self.seeds, truth, self.preset, path)
                before = training.done
                words = f"{self.problem.name}: {name}, {len(self.seeds)} seeds"
                with Progress(words, show, self.epochs) as progress:
                    training.train(self.epochs, target, progress)
                self.trained[name] = training
                if self.problem.source and (training.done > before or not answer.exists()):
                    training.solution().save(answer)
        return {name: training.run for name, training in self.trained.items()}

    def _truth(self) -> np.ndarray:
        points = error_points(self.problem.domain)
        if self.problem.exact is not None:
            return sample(self.problem.exact, points)
        return solve(self.problem, certify=False)(points)

    def costs(self, runs: Mapping[str, Run]) -> dict[str, Any]:
        """What is told of runs that are not judged."""
        trained = {
            name: {
                "epochs": int(run.epochs[-1]),
                "ms_per_epoch_and_seed": 1e3 * run.seconds_per_epoch,
            }
            for name, run in runs.items()
        }
        told = {"problem": self.problem.name, "seeds": list(self.seeds), "trained": trained}
        return {**told, "files": [str(self.folder)]}

    # Judging --------------------------------------------------------------------------------------

    def judge(self, runs: Mapping[str, Run], say: Say = lambda _: None) -> dict[str, Any]:
        """Facts for the JSON file. What takes long is kept as soon as it is done."""
        problem, found = self.problem, milestones(self.problem, runs)
        parts = self._parts(runs, say)
        return {
            "problem": problem.name,
            "reference": "exact solution" if problem.exact is not None else "auto",
            "probe": probe(problem).tolist(),
            **self._settings(),
            "devices": sorted({device for run in runs.values() for device in run.devices}),
            "milestones": found,
            "final": finals(problem, runs),
            "speed_up": [
                ratio for rival in list(runs)[1:] if (ratio := speed_up(found, rival)) is not None
            ],
            "cost": {
                name: {
                    "ms_per_epoch_and_seed": 1e3 * run.seconds_per_epoch,
                    "seconds": run.seconds,
                    "compile_seconds": run.compile_seconds,
                }
                for name, run in runs.items()
            },
            "contraction": {name: contraction_facts(run) for name, run in runs.items()},
            "curves": {name: curves(run) for name, run in runs.items()},
            **parts,
        }

    def _settings(self) -> dict[str, Any]:
        return {
            "seeds": list(self.seeds),
            "epochs": self.epochs,
            "preset": self.preset,
            "version": cordes.__version__,
        }

    def _parts(self, runs: Mapping[str, Run], say: Say) -> dict[str, Any]:
        """The parts of the analysis, each from the file where it belongs to the same runs."""
        path = self.folder / "judged.json"
        lengths = {method: int(run.epochs[-1]) for method, run in runs.items()}
        kept = read_json(path, str(path), ANEW) if path.exists() else {}
        if kept.get("epochs") != lengths:
            kept = {"epochs": lengths}
        check_file(judged(list(runs)), kept, str(path), ANEW)
        makers: dict[str, tuple[str, Callable[[], Any]]] = {
            "multiplier": ("the spread of the multiplier", self._multiplier),
            "landscape": ("the landscape around the minima", lambda: self._landscapes(list(runs))),
            "conditioning": ("the spectra of the Gauss–Newton matrix", self._conditioning),
            "auto": ("what `auto` reaches", self._auto),
        }
        for name, (words, make) in makers.items():
            if name not in kept:
                say(f"{self.problem.name}: {words}")
                kept[name] = make()
                write_json(path, kept)
        return {name: kept[name] for name in makers}

    def settled(self, method: str) -> Solution:
        """The minimum that a method found, for seed 0: see `TrainingRun.settled`."""
        if method not in self._settled:
            self._settled[method] = self.trained[method].settled()
        return self._settled[method]

    def _multiplier(self) -> dict[str, float]:
        return multiplier_spread(self.problem, self.settled("C-PINN"), choices_of(self.problem))

    def _auto(self) -> dict[str, Any]:
        return bench(self.problem, repeats=1, steps=5) | {"machine": machine()}

    def _landscapes(self, methods: list[str]) -> dict[str, Any]:
        surfaces = {name: self._surface(name, 0, RESOLUTION, POINTS) for name in methods}
        plot_landscape(surfaces, self.folder / "landscape.png", title=self.problem.name)
        return {
            name: {
                "form": self._form(name),
                "picture": surface.as_data(),
                "directions": self._over_directions(name),
            }
            for name, surface in surfaces.items()
        }

    def _over_directions(self, method: str) -> dict[str, Any]:
        """Each measure over several pairs of directions, median and range: one pair decides
        nothing."""
        pairs = [self._surface(method, seed, COARSE, COARSE_POINTS) for seed in range(DIRECTIONS)]
        facts: dict[str, Any] = {"pairs": len(pairs)}
        for name in Measures._fields:
            values = [float(getattr(pair.measures, name)) for pair in pairs]
            found = (float(np.median(values)), min(values), max(values))
            facts[name] = [finite(value) for value in found]
        return facts

    def _form(self, method: str) -> str:
        return "direct" if not self.problem.linear and method == "PINN" else "frozen"

    def _surface(self, method: str, seed: int, resolution: int, points: int) -> Landscape:
        form, state = self._form(method), self.settled(method)
        choices = choices_of(self.problem) if form == "frozen" else None
        options = {"points": points, "form": form, "choices": choices}
        return landscape(
            self.problem, state, method == "C-PINN", seed, LossSquare(resolution), **options
        )

    def _conditioning(self) -> dict[str, Any]:
        problem, choices = self.problem, choices_of(self.problem)
        found = {"end": spectra(problem, self.settled("C-PINN"), choices=choices)}
        if problem.linear or not problem.convex:
            # The warm-up of Monge–Ampère problems begins with the Laplacian, whose multiplier is
            # constant: there is nothing to compare.
            start = initial_solution(problem, self.seeds[0])
            found = {"start": spectra(problem, start, choices=choices), **found}
        plot_spectra(found, self.folder / "spectra.png", title=problem.name)
        return {
            when: {name: one.as_data() for name, one in three.items()}
            for when, three in found.items()
        }

    def finished(self) -> dict[str, Any] | None:
        """The facts of a study of this equation with the same settings that was judged already."""
        path = self.folder / "study.json"
        if not path.exists():
            return None
        facts = read_json(path, str(path), ANEW)
        if any(facts.get(key) != value for key, value in self._settings().items()):
            return None
        methods = [method.name for method in methods_of(self.problem)]
        check_file(studied(methods, len(self.seeds)), facts, str(path), ANEW)
        return facts if same_equation(facts["probe"], self.problem) else None


def write_json(path: Path, facts: Mapping[str, Any]) -> None:
    """One object, replaced in one step."""
    write_file(path, json.dumps(facts, allow_nan=False) + "\n")


def machine() -> str:
    """What the analysis ran on."""
    return f"{device_name(platform.machine())}, {os.cpu_count()} cores"
