"""Progress for people: one line with residual, error and time, whatever is solved."""

import contextlib
import sys
from typing import Any, TextIO, cast

from rich.console import Console
from rich.progress import BarColumn, TextColumn, TimeElapsedColumn
from rich.progress import Progress as Bar

from cordes.runtime.signals import pause


class _Unwatched:
    """A stream that takes everything, also when nobody reads it any more: the terminal may be
    closed before the work is done."""

    def __init__(self, stream: Any):
        self._stream = stream

    def write(self, text: str) -> int:
        with contextlib.suppress(OSError, ValueError, AttributeError):
            self._stream.write(text)
        return len(text)

    def flush(self) -> None:
        with contextlib.suppress(OSError, ValueError, AttributeError):
            self._stream.flush()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


class Progress:
    """A line on standard error; `show=None` shows it where a person is watching (a terminal)."""

    def __init__(self, title: str, show: bool | None = None, total: int | None = None):
        self._bar = None
        watched = sys.stderr is not None and sys.stderr.isatty()
        if show if show is not None else watched:
            self._bar = Bar(
                TextColumn("{task.description}"),
                BarColumn(),
                TextColumn("{task.fields[facts]}"),
                TimeElapsedColumn(),
                console=Console(file=cast(TextIO, _Unwatched(sys.stderr))),
            )
            self._task = self._bar.add_task(title, total=total, facts="")

    def __enter__(self) -> "Progress":
        if self._bar is not None:
            self._bar.start()
        return self

    def __exit__(self, *_: Any) -> None:
        if self._bar is not None:
            self._bar.stop()

    def update(self, step: int | None = None, total: int | None = None, **facts: float) -> None:
        pause()
        if self._bar is None:
            return
        facts.pop("seconds", None)
        text = "  ".join(f"{name} {value:.3g}" for name, value in facts.items())
        self._bar.update(self._task, completed=step, total=total, facts=text)
