"""Compile time, as JAX reports it when a phase ends; overlapping phases count once."""

import time
from collections.abc import Mapping
from typing import ClassVar

import jax

from cordes.runtime.clock import check_deadline

_PHASES = ("/jax/core/compile/", "/jax/compilation_cache/")


class CompileTimer:
    """Seconds that JAX spent tracing, lowering and compiling while the context was open."""

    _open: ClassVar[list["CompileTimer"]] = []

    def __init__(self) -> None:
        self._intervals: list[tuple[float, float]] = []

    def __enter__(self) -> "CompileTimer":
        CompileTimer._open.append(self)
        return self

    def __exit__(self, *_: object) -> None:
        CompileTimer._open.remove(self)

    @property
    def seconds(self) -> float:
        total, reached = 0.0, float("-inf")
        for start, end in sorted(self._intervals):
            total += max(0.0, end - max(start, reached))
            reached = max(reached, end)
        return total


def _heard(event: str, duration_secs: float, **_: str | int) -> None:
    if event.startswith(_PHASES) and event.endswith("_duration"):
        now = time.perf_counter()
        for timer in CompileTimer._open:
            timer._intervals.append((now - duration_secs, now))
        # Processes compile at times of their own, so that they cannot agree on the time here.
        if jax.process_count() == 1:
            check_deadline()


jax.monitoring.register_event_duration_secs_listener(_heard)


class Laps:
    """The seconds of parts, compilation apart: together the time since it was entered."""

    def __init__(self) -> None:
        self._timer = CompileTimer()
        self._last, self._compiled = time.perf_counter(), 0.0
        self._parts: dict[str, float] = {}

    def __enter__(self) -> "Laps":
        self._timer.__enter__()
        return self

    def __exit__(self, *_: object) -> None:
        self._timer.__exit__()

    def lap(self, part: str) -> None:
        """What has passed since the last lap belongs to this part."""
        passed, compiling = self._since()
        self.add({part: passed - compiling, "compile": compiling})

    def lap_of(self, part: str, inside: Mapping[str, float]) -> None:
        """What has passed belongs to the parts that it names itself, and the rest to this one."""
        passed, _ = self._since()
        named = {name: seconds for name, seconds in inside.items() if name != "total"}
        self.add(named)
        self.add({part: passed - sum(named.values())})

    def add(self, parts: Mapping[str, float]) -> None:
        """Seconds that are known from elsewhere."""
        for name, seconds in parts.items():
            self._parts[name] = self._parts.get(name, 0.0) + seconds

    def _since(self) -> tuple[float, float]:
        """What has passed since the last lap, and how much of it was compilation."""
        now, compiled = time.perf_counter(), self._timer.seconds
        passed, compiling = now - self._last, compiled - self._compiled
        self._last, self._compiled = now, compiled
        return passed, min(compiling, passed)

    def seconds(self, *parts: str) -> dict[str, float]:
        """By part, compilation among them, and the total."""
        found = {name: self._parts.get(name, 0.0) for name in parts}
        return {**found, "total": sum(found.values())}
