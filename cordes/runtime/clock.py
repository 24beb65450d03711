"""Time: how long a solve has taken and may take, and a deadline for what cannot show a part."""

import contextlib
import time
from collections.abc import Iterator
from contextvars import ContextVar

from cordes.runtime import distribution
from cordes.runtime.signals import pause

# How much longer than its limit something may take: a step that would take longer is not begun.
ALLOWANCE = 1.1


class Clock:
    """Seconds since the start, and whether the time is up, which process 0 says for all, unless the
    clock is its `own`."""

    def __init__(self, limit: float | None = None, own: bool = False):
        self.start = time.perf_counter()
        self.limit, self.own = limit, own

    @property
    def alone(self) -> "Clock":
        """The same, for what one process does while the others wait."""
        clock = Clock(self.limit, own=True)
        clock.start = self.start
        return clock

    @property
    def seconds(self) -> float:
        return time.perf_counter() - self.start

    @property
    def left(self) -> float | None:
        """Seconds that are left, a little at least; None where there is no limit."""
        return None if self.limit is None else max(self.limit - self.seconds, 1e-3)

    @property
    def over(self) -> bool:
        """Asked between the steps of long work, where a signal is heeded too."""
        pause()
        return self.limit is not None and self._agreed(self.seconds > self.limit)

    def allows(self, seconds: float) -> bool:
        """Whether there is time for a step that takes so long, as far as one can tell."""
        if self.limit is None:
            return True
        return self._agreed(self.seconds + seconds <= ALLOWANCE * self.limit)

    def _agreed(self, value: bool) -> bool:
        return value if self.own else distribution.agreed(value)


class OutOfTimeError(BaseException):
    """The time was up in the middle of something that is worth nothing unless it ends. No fault,
    so that, like an interrupt, it is not taken for one by those who try something else then."""


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
    """To be called between the steps of long work; costs nothing where there is no deadline and no
    signal came."""
    pause()
    clock = _DEADLINE.get()
    if clock is not None and clock.over:
        raise OutOfTimeError
