"""BLAS and XLA have a pool of threads each; two that fight for cores were ten times slower, and a
fork has none of them."""

import os
from contextlib import AbstractContextManager, nullcontext
from typing import Any

from cordes.runtime.roll_call import ProcessError

try:
    from threadpoolctl import threadpool_limits
except ImportError:
    # A checkout where nothing is installed still works, only slower on a busy machine.
    threadpool_limits = None


def share_cores() -> AbstractContextManager[Any]:
    """Within this context BLAS uses at most half of the cores. What computes asks for it first."""
    refuse_forks()
    if threadpool_limits is None:
        return nullcontext()
    return threadpool_limits(max(1, (os.cpu_count() or 2) // 2), user_api="blas")


class _Use:
    """The process that first computed something."""

    process: int | None = None


def refuse_forks() -> None:
    """To be called before JAX computes. In a fork of a process that has computed already it would
    wait for ever: for threads that were not copied."""
    process = os.getpid()
    if _Use.process is None:
        _Use.process = process
    if _Use.process != process:
        raise ProcessError(
            "This process was made by fork after its parent had computed, and would wait for ever "
            "for threads that a fork does not have: start processes with "
            'multiprocessing.get_context("spawn"), or fork before anything is computed.'
        )
