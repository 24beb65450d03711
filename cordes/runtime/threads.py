"""BLAS and XLA have a pool of threads each; two that fight for cores were ten times slower."""

import os
from contextlib import AbstractContextManager, nullcontext

try:
    from threadpoolctl import threadpool_limits
except ImportError:
    # A checkout where nothing is installed still works, only slower on a busy machine.
    threadpool_limits = None


def share_cores() -> AbstractContextManager:
    """Within this context BLAS uses at most half of the cores."""
    if threadpool_limits is None:
        return nullcontext()
    return threadpool_limits(max(1, (os.cpu_count() or 2) // 2), user_api="blas")
