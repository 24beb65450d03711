"""Time: how long a solve has taken and may take, and a deadline for what cannot show a part."""

import contextlib
import time
from collections.abc import Iterator
from contextvars import ContextVar

from cordes.runtime import distribution


class Clock:
    """Seconds since the start, and whether the time is up, which process 0 says for all."""

    def __init__(self, limit: float | None = None):
        self.start = time.perf_counter()
        self.limit = limit

    @property
    def seconds(self) -> float:
        return time.perf_counter() - self.start

    @property
    def over(self) -> bool:
        return self.limit is not None and distribution.agreed(self.seconds > self.limit)


class OutOfTimeError(Exception):
    """The time was up in the middle of something that is worth nothing unless it ends."""


_DEADLINE: ContextVar[Clock | None] = ContextVar("deadline", default=None)


@contextlib.contextmanager
def deadline(clock: Clock) -> Iterator[None]:
    """Inside, `check_deadline` raises `OutOfTimeError` once the clock is over."""
    token = _DEADLINE.set(clock)
    try:
        check_deadline()
        yield
    finally:
        _DEADLINE.reset(token)


def check_deadline() -> None:
    """To be called between the steps of long work; costs nothing where there is no deadline."""
    clock = _DEADLINE.get()
    if clock is not None and clock.over:
        raise OutOfTimeError
