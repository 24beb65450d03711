"""What every runner shares: the clock, the file of its curve, and the points at which errors are
measured.

A runner is a program of its own: `python RUNNER --problem NAME --points FILE.npz --curve FILE.jsonl
--seconds S --began T [--variant V]`. It may be started by an interpreter that knows nothing of
cordes: this file needs NumPy alone. `points` holds x (N, d) and the exact values there, which serve
to measure errors and for nothing else. The curve is one JSON object per line: first the recipe and
the seconds of the import, then one object for each measurement, then `{"end": …}`. The clock starts
when the process is started; measuring is outside of it.
"""

import argparse
import importlib
import importlib.util
import json
import os
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

# A curve has a measurement whenever the clock has gone on by this factor, beginning with the first
# seconds.
SPACING = 1.12
MISSING = 3


class Mark(NamedTuple):
    """A moment: seconds since the process was started, pauses taken out, and those of them that
    were spent compiling."""

    seconds: float
    compile: float


class Race:
    """One solver on one problem: its clock and the file of its curve."""

    def __init__(self, arguments: list[str] | None = None):
        parser = argparse.ArgumentParser()
        for name in ("problem", "points", "curve"):
            parser.add_argument(f"--{name}", required=True)
        parser.add_argument("--variant", default="")
        for name in ("seconds", "began"):
            parser.add_argument(f"--{name}", type=float, required=True)
        options = parser.parse_args(arguments)
        # The wall clock is asked once, for the time that the interpreter took to start.
        self._start = time.perf_counter() - max(time.time() - options.began, 0.0)
        self.problem, self.variant, self.budget = options.problem, options.variant, options.seconds
        self._file = open(options.curve, "w", encoding="utf-8")  # noqa: SIM115
        self._points, self._paused, self._next = options.points, 0.0, 0.0
        self._compiled: Callable[[], float] = lambda: 0.0
        self._compiled_in_pauses = 0.0
        self.import_seconds = 0.0

    def imported(
        self, recipe: str, versions: dict[str, str], compiled: Callable[[], float] | None = None
    ) -> None:
        """Said once, when everything is imported. `compiled` gives the seconds spent compiling so
        far."""
        self.import_seconds = self.mark().seconds
        self._compiled = compiled or self._compiled
        with self.paused():
            data = np.load(self._points)
            self.x, self._truth = data["x"], data["truth"]
        self._write(
            {
                "recipe": recipe,
                "versions": versions,
                "budget": self.budget,
                "import": round(self.import_seconds, 3),
            }
        )

    def mark(self) -> Mark:
        return Mark(
            time.perf_counter() - self._start - self._paused,
            self._compiled() - self._compiled_in_pauses,
        )

    @property
    def over(self) -> bool:
        return self.mark().seconds >= self.budget

    def due(self) -> bool:
        """Whether it is time for the next measurement."""
        now = self.mark().seconds
        if now < self._next and now < self.budget:
            return False
        self._next = SPACING * now
        return True

    @contextmanager
    def paused(self) -> Iterator[None]:
        """The clock stands still."""
        start, compiled = time.perf_counter(), self._compiled()
        try:
            yield
        finally:
            self._paused += time.perf_counter() - start
            self._compiled_in_pauses += self._compiled() - compiled

    def record(self, values: Any, mark: Mark, **facts: Any) -> float:
        """One measurement: the values at `x` as they were at that moment. Call it while the clock
        is paused, or at the end."""
        error = np.asarray(values, np.float64).reshape(-1) - self._truth
        l2 = float(np.sqrt(np.mean(error**2)))
        solve = mark.seconds - mark.compile - self.import_seconds
        if np.isfinite(l2):
            self._write(
                {
                    "seconds": mark.seconds,
                    "compile": mark.compile,
                    "solve": solve,
                    "l2": l2,
                    "linf": float(np.max(np.abs(error))),
                    **facts,
                }
            )
        return l2

    def end(self, **facts: Any) -> None:
        """The last line. `load` tells how busy the machine was: more than the number of cores means
        that the solver was not alone."""
        mark = self.mark()
        load = round(os.getloadavg()[0], 1) if hasattr(os, "getloadavg") else None
        self._write(
            {
                "end": {
                    "seconds": round(mark.seconds, 3),
                    "compile": round(mark.compile, 3),
                    "load": load,
                    **facts,
                }
            }
        )
        self._file.close()

    def _write(self, line: dict[str, Any]) -> None:
        self._file.write(json.dumps(line) + "\n")
        self._file.flush()


def compile_timer() -> Callable[[], float]:
    """Seconds that JAX has spent compiling since this call. The library's own timer, loaded without
    the library."""
    path = Path(__file__).resolve().parents[2] / "cordes" / "runtime" / "compilation.py"
    specification = importlib.util.spec_from_file_location("compilation", path)
    assert specification is not None
    assert specification.loader is not None
    module = importlib.util.module_from_spec(specification)
    specification.loader.exec_module(module)
    timer = module.CompileTimer().__enter__()
    return lambda: timer.seconds


def start_cordes(race: Race, recipe: str, *packages: str) -> Any:
    """Import the library and the packages whose versions count, and say so."""
    try:
        modules = {name: importlib.import_module(name) for name in ("cordes", *packages)}
    except ImportError as error:
        return not_installed(
            str(error.name), "pip install cordes (or pip install -e . in the checkout)"
        )
    race.imported(
        recipe, {name: module.__version__ for name, module in modules.items()}, compile_timer()
    )
    return modules["cordes"]


def not_installed(package: str, command: str) -> None:
    """Ends the process in a way that the whole benchmark understands."""
    print(f"not installed: {package}. {command}", file=sys.stderr)
    sys.exit(MISSING)
