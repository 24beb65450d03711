"""Memory is estimated before it is taken: what does not fit is refused with the estimate and the
largest size that would do, instead of being ended by the system after an hour."""

import contextlib
import os
from collections.abc import Callable
from pathlib import Path

from cordes.errors import MemoryLimitError

# Not on every system.
with contextlib.suppress(ImportError):
    import resource

# What the rest of the program, and whoever else works here, may still need.
SHARE = 0.9
# Addresses that JAX, its compiler and their threads take.
ADDRESSES = 1.9e9
# A container's limit and what it has taken, of the second and of the first kind of control groups.
CONTAINER = (
    ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory.current"),
    ("/sys/fs/cgroup/memory/memory.limit_in_bytes", "/sys/fs/cgroup/memory/memory.usage_in_bytes"),
)


class MemoryLimitWarning(UserWarning):
    """A solve ended early, because it would not have fitted into the memory."""


def free_memory() -> float:
    """Bytes that can be taken: the least of what the machine, the container and the limit of the
    process (`ulimit -v`) leave; infinite where nothing is known."""
    return max(0.0, min(_machine(), _container(), _process()))


def _machine() -> float:
    try:
        lines = Path("/proc/meminfo").read_text(encoding="ascii").splitlines()
        free = dict(line.split(":", 1) for line in lines)["MemAvailable"]
        return 1024.0 * int(free.split()[0])
    except (OSError, ValueError, KeyError):
        return _installed()


def _installed() -> float:
    """Where a system does not say what is free, half of what is built in is taken for it."""
    try:
        return 0.5 * os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (ValueError, OSError, AttributeError):
        return float("inf")


def _container() -> float:
    for limit, taken in CONTAINER:
        try:
            return float(Path(limit).read_text()) - float(Path(taken).read_text())
        except (OSError, ValueError):
            # There is no such file, or no limit ("max").
            continue
    return float("inf")


def _process() -> float:
    try:
        limit, size = resource.getrlimit(resource.RLIMIT_AS)[0], resource.getpagesize()
        if limit == resource.RLIM_INFINITY:
            return float("inf")
        return limit - size * int(Path("/proc/self/statm").read_text().split()[0])
    except (NameError, OSError, ValueError, IndexError):
        return float("inf")


def require_addresses() -> None:
    """Refuse a limit of addresses within which libraries would end the process, without a word to
    Python."""
    free = _process()
    if free < ADDRESSES:
        raise MemoryLimitError(
            f"The limit of this process leaves {in_words(free)} of addresses, and JAX needs "
            f"{in_words(ADDRESSES)}, most of which it never uses: raise it (ulimit -v unlimited)."
        )


def require_memory(needed: float, what: str, remedy: str) -> None:
    """Refuse what would not fit. `what` begins the message, `remedy` ends it."""
    free = SHARE * free_memory()
    if needed > free:
        raise MemoryLimitError(
            f"{what} would need about {in_words(needed)} of memory, and {in_words(free)} are free "
            f"for it: {remedy}"
        )


def largest_that_fits(estimate: Callable[[int], float], asked: int) -> int:
    """The largest size up to the one asked for whose growing estimate fits; 0 where none does."""
    free, low, high = SHARE * free_memory(), 0, asked
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if estimate(middle) <= free else (low, middle - 1)
    return low


def require_points(points: int, estimate: Callable[[int], float], rest: str) -> None:
    """Refuse so many points where they would not fit; `rest` says what else takes the memory."""
    most = largest_that_fits(estimate, points)
    remedy = f"points = {most} would fit." if most else f"{rest} is too large; take less of it."
    require_memory(estimate(points), f"points = {points} with {rest}", remedy)


def in_words(size: float) -> str:
    """Bytes as people say them."""
    for unit in ("B", "KB", "MB", "GB"):
        if size < 1000:
            return f"{size:.3g} {unit}"
        size /= 1000
    return f"{size:.3g} TB"
