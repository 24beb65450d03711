"""What the benchmark programs share: a clock for compiled functions, the machine in one line,
tables and JSON."""

import atexit
import json
import os
import platform
import shutil
import statistics
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import jax
import numpy as np

# A clock cannot be read to better than a few microseconds, and a launch on a GPU takes about ten:
# short calls are timed many at a time.
SHORTEST = 0.02
# A call that takes longer than this is timed once.
LONG = 2.0
ROUNDS = 5


class Compiled(NamedTuple):
    """A compiled function, what its compilation took (tracing included), and the operations and
    bytes that the compiler counts, where it does."""

    call: Callable[..., Any]
    seconds: float
    operations: float | None
    bytes: float | None


def compiled(function: Callable[..., Any], *arguments: Any) -> Compiled:
    """Compile for these arguments. A new function each time: JAX remembers the old ones."""
    start = time.perf_counter()
    call = jax.jit(lambda *given: function(*given)).lower(*arguments).compile()
    seconds = time.perf_counter() - start
    facts = call.cost_analysis() or {}
    facts = facts[0] if isinstance(facts, list) else facts
    return Compiled(call, seconds, facts.get("flops"), facts.get("bytes accessed"))


def seconds_of(
    function: Callable[..., Any], *arguments: Any, rounds: int = ROUNDS, limit: float = 20.0
) -> float:
    """The median over rounds of the seconds for one call. The first call is not counted, a long one
    is timed once; after `limit` seconds no further round begins.

    Calls of one round are sent one after the other without waiting, so that a GPU's launches hide
    behind its work as they do inside a solver.
    """
    jax.block_until_ready(function(*arguments))
    begun = time.perf_counter()
    jax.block_until_ready(function(*arguments))
    once = time.perf_counter() - begun
    if once > LONG:
        return once
    calls = max(1, int(SHORTEST / max(once, 1e-9)))
    found = []
    while len(found) < rounds and (not found or time.perf_counter() - begun < limit):
        start = time.perf_counter()
        for _ in range(calls):
            result = function(*arguments)
        jax.block_until_ready(result)
        found.append((time.perf_counter() - start) / calls)
    return statistics.median(found)


def machine() -> dict[str, Any]:
    device = jax.devices()[0]
    return {
        "device": device.device_kind,
        "backend": jax.default_backend(),
        "devices": jax.device_count(),
        "cores": len(os.sched_getaffinity(0))
        if hasattr(os, "sched_getaffinity")
        else os.cpu_count(),
        "processor": platform.processor() or platform.machine(),
        "jax": jax.__version__,
        "python": platform.python_version(),
    }


def machine_line() -> str:
    facts = machine()
    return (
        f"{facts['devices']} × {facts['device']} ({facts['backend']}), {facts['cores']} cores, "
        f"JAX {facts['jax']}, Python {facts['python']}"
    )


def begin() -> None:
    """Say where this runs. Compiled programs of earlier runs are not used, or compile times would
    be theirs; those of this run are."""
    folder = tempfile.mkdtemp(prefix="cordes-benchmark-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    jax.config.update("jax_compilation_cache_dir", folder)
    say(machine_line())


def say(text: str = "") -> None:
    print(text, flush=True)


def shown(value: Any) -> str:
    """A number with three digits, a dash for nothing, anything else as it is."""
    if value is None:
        return "-"
    if isinstance(value, bool) or not isinstance(value, int | float | np.floating | np.integer):
        return str(value)
    if isinstance(value, int | np.integer):
        return str(value)
    return f"{value:.3g}"


def table(columns: Sequence[str], rows: Sequence[Sequence[Any]]) -> str:
    """Columns under their names: text to the left, numbers to the right."""
    cells = [[shown(value) for value in row] for row in rows]
    widths = [
        max(len(name), *(len(row[k]) for row in cells)) if cells else len(name)
        for k, name in enumerate(columns)
    ]
    text = [
        all(isinstance(row[k], str) or row[k] is None for row in rows) for k in range(len(columns))
    ]

    def line(row: Sequence[str]) -> str:
        return "  ".join(
            cell.ljust(width) if left else cell.rjust(width)
            for cell, width, left in zip(row, widths, text, strict=True)
        ).rstrip()

    return "\n".join([line(list(columns)), *(line(row) for row in cells)])


def write_json(path: Path | None, facts: dict[str, Any]) -> None:
    """The facts with the machine; numbers of NumPy become plain ones."""
    if path is not None:
        path.parent.mkdir(parents=True, exist_ok=True)

        def plain(value: Any) -> Any:
            return value.item() if isinstance(value, np.generic) else np.asarray(value).tolist()

        path.write_text(json.dumps({"machine": machine(), **facts}, indent=1, default=plain) + "\n")
