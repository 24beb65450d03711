"""One method trained on all seeds, in chunks. After each chunk everything is written, so that a run
which is killed goes on where it was.

On a CPU a resumed run gives the same numbers, bit for bit, as one that was never stopped: the same
compiled chunks see the same states.
"""

import io
import json
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import jax
import numpy as np

import cordes
from cordes.errors import FileError, shown
from cordes.problems.problem import AbstractProblem
from cordes.readers.archive import read_arrays, read_json
from cordes.readers.schema import check_file
from cordes.results import Result
from cordes.runtime.files import write_file
from cordes.runtime.progress import Progress
from cordes.solutions.answer import Answer
from cordes.solutions.kinds import make_solution
from cordes.solutions.solution import Solution
from cordes.studies.ensemble import (
    EVERY,
    INNER_EPOCHS,
    Ensemble,
    Measured,
    Method,
    choices_of,
    warm_up_of,
)
from cordes.studies.kept import arrays_like, check_run
from cordes.studies.trained import facts_of

# Epochs between two writings: some seconds on a CPU, less than one on an accelerator.
CHUNK, CHUNK_ACCELERATOR = 100, 500
# Epochs in which a network comes to rest.
SETTLING = 500
PROBES = 4
ANEW = " Delete it, and its run starts anew."


class Run(NamedTuple):
    """What is known of a method: the epochs of the records (R,), arrays (R, seeds) measured there,
    and the contraction, (chunks, seeds), at epochs (chunks,)."""

    epochs: np.ndarray
    measured: Measured
    contraction_epochs: np.ndarray
    contraction: np.ndarray
    contraction_bound: np.ndarray
    seconds: float
    compile_seconds: float
    devices: tuple[str, ...] = ()

    @property
    def seeds(self) -> int:
        return self.measured.l2.shape[1]

    @property
    def seconds_per_epoch(self) -> float:
        """Seconds of one epoch of one seed, all seeds having run together."""
        return self.seconds / max(int(self.epochs[-1]), 1) / self.seeds


class TrainingRun:
    """A run and the file in which it lives."""

    def __init__(
        self,
        problem: AbstractProblem,
        method: Method,
        seeds: Sequence[int],
        truth: np.ndarray,
        preset: dict[str, Any],
        path: Path,
    ):
        self.problem, self.method, self.seeds = problem, method, tuple(seeds)
        self.preset, self.path = preset, path
        self._outer = not problem.linear and method.frozen
        self.ensemble = Ensemble(problem, method, seeds, truth, preset)
        self.state = self.ensemble.start()
        empty, none = np.zeros((0, len(self.seeds))), np.zeros(0, int)
        measured = Measured(*(empty for _ in Measured._fields))
        self.run = Run(none, measured, none, empty, empty, 0.0, 0.0)
        self.resumed = self._read()

    @property
    def done(self) -> int:
        """Epochs so far."""
        return int(self.run.epochs[-1]) if len(self.run.epochs) else 0

    def train(
        self,
        epochs: int,
        target: float | None,
        progress: Progress,
        after: Callable[[], None] = lambda: None,
    ) -> Run:
        """Train until every seed has met the target once, has left the numbers, or has had its
        epochs; `after` is called after each chunk."""
        if self.done > epochs:
            raise FileError(
                f"{self.path} holds {self.done} epochs already, {epochs} are asked for: ask "
                "for at least as many, or choose another --out."
            )
        data, functions = None, {}
        chunk = CHUNK if jax.default_backend() == "cpu" else CHUNK_ACCELERATOR
        while self.done < epochs and not self._finished(target):
            if data is None or self._outer_step():
                data = self._data()
            records = min(chunk - self.done % chunk, epochs - self.done) // EVERY
            if records not in functions:
                start = time.perf_counter()
                functions[records] = self.ensemble.compiled(self.state, data, records)
                spent = self.run.compile_seconds + time.perf_counter() - start
                self.run = self.run._replace(compile_seconds=spent)
            self._chunk(functions[records], data)
            self._write(data)
            best, ms = np.median(np.min(self.run.measured.l2, axis=0)), self.run.seconds_per_epoch
            progress.update(step=self.done, total=epochs, l2=float(best), ms=1e3 * ms)
            after()
        return self.run

    def _finished(self, target: float | None) -> bool:
        l2 = self.run.measured.l2
        if not len(l2):
            return False
        reached = np.zeros(l2.shape[1], bool) if target is None else np.any(l2 <= target, axis=0)
        return bool(np.all(reached | ~np.isfinite(l2[-1])))

    def _outer_step(self) -> bool:
        """Whether the equation is frozen anew at this epoch."""
        due = self.done >= warm_up_of(self.problem) and self.done % INNER_EPOCHS == 0
        return self._outer and due

    def _data(self) -> Any:
        """Rows for the next epochs. Those of an outer step that was interrupted in its middle
        belong to an earlier state, and were kept."""
        if self._outer_step():
            return self.ensemble.linearised(self.state)
        data = self.ensemble.data()
        if not self._outer or self._kept is None:
            return data
        leaves, structure = jax.tree.flatten(data)
        check_file(arrays_like("rows", leaves), self._kept, str(self.path), ANEW)
        kept = [self._kept[f"rows{k}"] for k in range(len(leaves))]
        return jax.tree.unflatten(structure, kept)

    def _chunk(self, function: Any, data: Any) -> None:
        start = time.perf_counter()
        self.state, measured = self.ensemble.advance(function, self.state, data)
        seconds = time.perf_counter() - start
        ratio, bound = self.ensemble.contraction(self.state)
        run, records = self.run, len(measured.l2)
        both = zip(run.measured, measured, strict=True)
        self.run = Run(
            np.concatenate([run.epochs, self.done + EVERY * np.arange(1, records + 1)]),
            Measured(*(np.concatenate([old, np.asarray(new, np.float64)]) for old, new in both)),
            np.append(run.contraction_epochs, self.done + EVERY * records),
            np.concatenate([run.contraction, ratio[None]]),
            np.concatenate([run.contraction_bound, bound[None]]),
            run.seconds + seconds,
            run.compile_seconds,
            tuple(sorted({*run.devices, device_name("CPU")})),
        )

    # The file -------------------------------------------------------------------------------------

    def _fingerprint(self) -> dict[str, Any]:
        problem = self.problem
        loop = {"inner_epochs": INNER_EPOCHS, "warm_up": warm_up_of(problem), **choices_of(problem)}
        return {
            "problem": problem.name,
            "method": self.method.name,
            "seeds": list(self.seeds),
            "preset": self.preset,
            "every": EVERY,
            "loop": {} if problem.linear else loop,
            "version": cordes.__version__,
        }

    def _write(self, data: Any) -> None:
        trees = {"state": self.state, "rows": data if self._outer else ()}
        arrays = {
            f"{name}{k}": np.asarray(leaf)
            for name, tree in trees.items()
            for k, leaf in enumerate(jax.tree.leaves(tree))
        }
        facts = self.run._asdict()
        arrays |= {
            f"measured_{name}": part for name, part in facts.pop("measured")._asdict().items()
        }
        arrays |= {name: np.asarray(part) for name, part in facts.items()}
        arrays["probe"] = probe(self.problem)
        text = json.dumps(self._fingerprint(), sort_keys=True)
        arrays["fingerprint"] = np.frombuffer(text.encode(), np.uint8)
        file = io.BytesIO()
        np.savez(file, allow_pickle=False, **arrays)
        # A kill in the middle leaves the state of the last chunk.
        write_file(self.path, file.getvalue())

    def _read(self) -> bool:
        self._kept: dict[str, np.ndarray] | None = None
        if not self.path.exists():
            return False
        arrays = read_arrays(
            self.path, f"{self.path} cannot be read: delete it, and its run starts anew"
        )
        marked = arrays.get("fingerprint", np.zeros(0, np.uint8)).tobytes()
        found = read_json(marked, str(self.path), ANEW)
        wanted = json.loads(json.dumps(self._fingerprint()))
        if found != wanted:
            other = ", ".join(
                f"{key} {shown(found.get(key))}" for key in wanted if found.get(key) != wanted[key]
            )
            raise FileError(
                f"{self.path} holds a run with other settings ({other}): choose another "
                "--out, or delete it."
            )
        leaves, structure = jax.tree.flatten(self.state)
        check_run(arrays, leaves, len(self.seeds), str(self.path), ANEW)
        if not same_equation(arrays["probe"], self.problem):
            raise FileError(
                f"{self.path} was trained on a problem of the same name with other data: "
                "choose another --out, or delete it."
            )
        states = [jax.numpy.asarray(arrays[f"state{k}"]) for k in range(len(leaves))]
        self.state = jax.tree.unflatten(structure, states)
        self._kept = {name: part for name, part in arrays.items() if name.startswith("rows")}
        self.run = self._run_of(arrays)
        return True

    def _run_of(self, arrays: Mapping[str, np.ndarray]) -> Run:
        """What was written, which has been checked."""
        parts: dict[str, Any] = {name: arrays[name] for name in Run._fields if name != "measured"}
        parts |= {name: float(parts[name]) for name in ("seconds", "compile_seconds")}
        parts["devices"] = tuple(str(device) for device in parts["devices"])
        measured = Measured(*(arrays[f"measured_{name}"] for name in Measured._fields))
        return Run(measured=measured, **parts)

    # The answer -----------------------------------------------------------------------------------

    def settled(self, lane: int = 0, epochs: int | None = None) -> Solution:
        """Where one seed would come to rest: after further epochs, counted nowhere, at a learning
        rate that falls to zero."""
        epochs = min(SETTLING, max(self.done // 2, EVERY)) if epochs is None else epochs
        data = self.ensemble.linearised(self.state) if self._outer else self.ensemble.data()
        return self.solution(lane, self.ensemble.settled(self.state, data, lane, epochs))

    def solution(self, lane: int = 0, parameters: Any = None) -> Solution:
        """Where one seed ended, as an answer that can be drawn, measured and saved."""
        run, system = self.run, self.ensemble.system
        parameters = self.state.parameters[lane] if parameters is None else parameters
        network = self.ensemble.network(parameters, np.float64)
        loss = float(run.measured.loss[-1, lane])
        history = [
            {"epoch": int(epoch), "l2": float(l2[lane])}
            for epoch, l2 in zip(run.epochs[9::10], run.measured.l2[9::10], strict=True)
        ]
        points, spent = self.preset["points"], run.seconds_per_epoch * self.done
        answer = Answer(network, np.zeros(0), Result.finished, loss**0.5, points, history)
        seconds = {"total": spent, "compile": run.compile_seconds, "solve": spent, "certify": 0.0}
        facts = facts_of(system, self.seeds[lane], self.method.multiplier)
        return make_solution(self.problem, system.ansatz, answer, seconds, facts)


def probe(problem: AbstractProblem) -> np.ndarray:
    """The equation and the boundary values at a few points: two problems of one name are told apart
    by them."""
    x = problem.domain.interior_points(PROBES, 2025)
    boundary = problem.domain.boundary_at(np.random.default_rng(2025).standard_normal(x.shape))
    parts = [*problem.coefficients(x), jax.vmap(problem.g)(boundary)]
    return np.concatenate([np.asarray(part).reshape(PROBES, -1) for part in parts], axis=1)


def same_equation(found: Any, problem: AbstractProblem) -> bool:
    """Up to the rounding of another device."""
    wanted = probe(problem)
    return (
        found is not None
        and np.shape(found) == wanted.shape
        and np.allclose(found, wanted, rtol=1e-6, atol=1e-9)
    )


def device_name(processor: str) -> str:
    """The accelerator, or what the processor is called where there is none."""
    device = jax.devices()[0]
    return device.device_kind if device.platform != "cpu" else processor
