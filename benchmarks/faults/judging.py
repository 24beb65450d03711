"""One hostile input: whether it was accepted, refused with a message, or did what no input may:
raise something else, take too long, or fill the memory."""

import collections
import resource
import signal
import time
import traceback
import warnings
from collections.abc import Callable

import cordes

# Seconds of the processor, and of the clock for what waits: a busy machine is nobody's fault.
MOST_SECONDS, MOST_WAIT, MOST_MEGABYTES, MOST_MESSAGE = 20.0, 120.0, 2000, 5000
WANTED = ("accepted", "refused")


class SlowInput(BaseException):
    """Raised by the alarm, through every `except Exception`."""


def _ring(*_: object) -> None:
    raise SlowInput


def peak_megabytes() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024


class Tally:
    """Counts by kind and outcome, the slowest input of each kind, and what failed."""

    def __init__(self) -> None:
        self.counts: collections.Counter[tuple[str, str]] = collections.Counter()
        self.slowest: dict[str, float] = {}
        self.failures: list[str] = []
        for number in (signal.SIGALRM, signal.SIGPROF):
            signal.signal(number, _ring)

    def judge(self, kind: str, note: str, action: Callable[[], object]) -> str:
        """Run one input; a wrong answer is told by an AssertionError of the action."""
        start, before, detail = time.process_time(), peak_megabytes(), ""
        self._patience(MOST_SECONDS, MOST_WAIT)
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                action()
            outcome = "accepted"
        except cordes.CordesError as error:
            outcome = "refused" if 0 < len(str(error)) <= MOST_MESSAGE else "message"
        except SlowInput:
            outcome = "hang"
        except BaseException as error:
            place = traceback.extract_tb(error.__traceback__)[-1]
            outcome, detail = "fault", f"{type(error).__name__}: {str(error)[:100]} @ {place}"
        finally:
            self._patience(0, 0)
        outcome = "memory" if peak_megabytes() - before > MOST_MEGABYTES else outcome
        seconds = time.process_time() - start
        self.counts[kind, outcome] += 1
        self.slowest[kind] = max(self.slowest.get(kind, 0.0), seconds)
        if outcome not in WANTED:
            self.failures.append(f"{kind}: {outcome} {note[:200]!r} {detail}")
        return outcome

    def _patience(self, working: float, waiting: float) -> None:
        signal.setitimer(signal.ITIMER_PROF, working)
        signal.setitimer(signal.ITIMER_REAL, waiting)

    def report(self, shown: int = 20) -> int:
        """Print the table; how many inputs did what none may."""
        for (kind, outcome), count in sorted(self.counts.items()):
            print(f"{kind:<28} {outcome:<9} {count:>7}   slowest {self.slowest[kind]:.2f} s")
        for failure in self.failures[:shown]:
            print(failure)
        print(f"{sum(self.counts.values())} inputs, {len(self.failures)} failures, peak", end=" ")
        print(f"{peak_megabytes()} MB")
        return len(self.failures)
