"""Compile time, measured apart: JAX reports each phase of a compilation when it ends; overlapping
phases are counted once."""

import time
from types import TracebackType
from typing import ClassVar

import jax

_PHASES = ("/jax/core/compile/", "/jax/compilation_cache/")


class CompileTimer:
    """Seconds that JAX spent tracing, lowering and compiling while the context was open."""

    _open: ClassVar[list["CompileTimer"]] = []
    _listening: ClassVar[bool] = False

    def __init__(self) -> None:
        self._intervals: list[tuple[float, float]] = []

    def __enter__(self) -> "CompileTimer":
        if not CompileTimer._listening:
            jax.monitoring.register_event_duration_secs_listener(_heard)
            CompileTimer._listening = True
        CompileTimer._open.append(self)
        return self

    def __exit__(
        self, kind: type | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
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
