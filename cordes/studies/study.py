"""`cordes study`: C-PINN against PINN on one problem. Trains, counts, and asks what the multiplier changed.

A study lives in a folder: one state for each method, written after every chunk of epochs, then `study.json` and the figures. Called again, it goes on where
it was.
"""

import json
import os
import platform
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import jax
import numpy as np

import cordes
from cordes.bench import bench
from cordes.errors import OptionError
from cordes.problems.transport import Transport
from cordes.solution import Solution, error_points
from cordes.solvers.adam import PAPER
from cordes.solvers.choose import solve
from cordes.solvers.progress import Progress
from cordes.studies.conditioning import initial_solution, multiplier_spread, spectra
from cordes.studies.dynamics import contraction_facts, curves
from cordes.studies.ensemble import CHOICES, EVERY, methods_of
from cordes.studies.landscape import Landscape, Measures, landscape
from cordes.studies.runs import Run, TrainingRun
from cordes.studies.time_to_accuracy import finals, milestones, speed_up, targets_of
from cordes.threads import share_cores

# The landscape that is drawn, and those over several pairs of directions that are only measured.
RESOLUTION, POINTS = 31, 5000
DIRECTIONS, COARSE, COARSE_POINTS = 5, 17, 2000


class Study:
    """Training and judging of one problem in one folder."""

    def __init__(self, problem: Any, folder: Path, seeds: int = 5, epochs: int = PAPER["epochs"], preset: Mapping[str, Any] = PAPER):
        if isinstance(problem, Transport):
            raise OptionError(f"{problem.name} is a transport problem: the paper's tables compare losses of equations, study one of those.")
        if seeds < 1:
            raise OptionError(f"seeds = {seeds}: at least one is needed.")
        if epochs < EVERY:
            raise OptionError(f"epochs = {epochs}: at least {EVERY} are needed, after which the error is first looked at.")
        self.problem, self.folder, self.preset = problem, folder, dict(preset)
        self.seeds, self.epochs = tuple(range(seeds)), epochs - epochs % EVERY
        self.reference = "exact solution" if problem.exact is not None else "auto"
        self.solutions: dict[str, Solution] = {}

    def train(self, show: bool | None = None) -> dict[str, Run]:
        """All methods; those that are finished already are read."""
        self.folder.mkdir(parents=True, exist_ok=True)
        truth, target, runs = self._truth(), targets_of(self.problem)[-1], {}
        with share_cores():
            for method in methods_of(self.problem):
                training = TrainingRun(self.problem, method, self.seeds, truth, self.preset, self.folder / f"{method.name}.npz")
                with Progress(f"{self.problem.name}: {method.name}, {len(self.seeds)} seeds", show, self.epochs) as progress:
                    runs[method.name] = training.train(self.epochs, target, progress)
                self.solutions[method.name] = training.solution()
                if self.problem.source:
                    self.solutions[method.name].save(self.folder / f"{method.name}.cordes")
        return runs

    def _truth(self) -> np.ndarray:
        points = error_points(self.problem.domain)
        if self.problem.exact is not None:
            return np.asarray(jax.jit(jax.vmap(self.problem.exact))(points))
        return solve(self.problem)(points)

    def judge(self, runs: Mapping[str, Run], report: Any = lambda line: None) -> tuple[dict[str, Any], dict[str, Any]]:
        """Facts for the JSON file, and what the figures need beside the runs."""
        problem, found = self.problem, milestones(self.problem, runs)
        choices = CHOICES.get(type(problem).__name__)
        spread = multiplier_spread(problem, self.solutions["C-PINN"], choices)
        report("the landscape around the minima")
        surfaces = {name: self._surface(name, 0, RESOLUTION, POINTS) for name in runs}
        others = {name: [self._surface(name, seed, COARSE, COARSE_POINTS).measures for seed in range(DIRECTIONS)] for name in runs}
        report("the spectra of the Gauss–Newton matrix")
        conditioning = {"end": spectra(problem, self.solutions["C-PINN"], choices=choices)}
        if not getattr(problem, "convex", False):
            # The warm-up of Monge–Ampère problems begins with the Laplacian, whose multiplier is constant: there is nothing to compare.
            conditioning = {"start": spectra(problem, initial_solution(problem, self.seeds[0]), choices=choices), **conditioning}
        report("what `auto` reaches")
        facts = {
            "problem": problem.name,
            "reference": self.reference,
            "seeds": list(self.seeds),
            "epochs": self.epochs,
            "preset": self.preset,
            "version": cordes.__version__,
            "devices": sorted({device for run in runs.values() for device in run.devices}),
            "milestones": found,
            "final": finals(problem, runs),
            "speed_up": [ratio for rival in list(runs)[1:] if (ratio := speed_up(found, rival)) is not None],
            "cost": {
                name: {"ms_per_epoch_and_seed": 1e3 * run.seconds_per_epoch, "seconds": run.seconds, "compile_seconds": run.compile_seconds}
                for name, run in runs.items()
            },
            "multiplier": spread,
            "contraction": {name: contraction_facts(run) for name, run in runs.items()},
            "curves": {name: curves(run) for name, run in runs.items()},
            "landscape": {name: {"picture": surface.as_data(), "directions": _medians(others[name])} for name, surface in surfaces.items()},
            "conditioning": {when: {name: one.as_data() for name, one in found.items()} for when, found in conditioning.items()},
            "auto": bench(problem) | {"machine": machine()},
        }
        return facts, {"surfaces": surfaces, "conditioning": conditioning}

    def _surface(self, method: str, seed: int, resolution: int, points: int) -> Landscape:
        form = "direct" if not self.problem.linear and method == "PINN" else "frozen"
        choices = CHOICES.get(type(self.problem).__name__) if form == "frozen" else None
        return landscape(self.problem, self.solutions[method], method == "C-PINN", seed, resolution, points=points, form=form, choices=choices)

    def finished(self) -> dict[str, Any] | None:
        """The facts of a study with the same settings that was judged already."""
        path = self.folder / "study.json"
        if not path.exists():
            return None
        facts = json.loads(path.read_text(encoding="utf-8"))
        same = facts["seeds"] == list(self.seeds) and facts["epochs"] == self.epochs and facts["version"] == cordes.__version__
        return facts if same else None


def _medians(measures: list[Measures]) -> dict[str, Any]:
    """Each measure over several pairs of directions: one pair decides nothing."""
    medians = {name: float(np.median([getattr(one, name) for one in measures])) for name in Measures._fields}
    return {"pairs": len(measures), **{name: value if np.isfinite(value) else None for name, value in medians.items()}}


def machine() -> str:
    """What the analysis ran on."""
    device = jax.devices()[0]
    kind = device.device_kind if device.platform != "cpu" else platform.machine()
    return f"{kind}, {os.cpu_count()} cores"
