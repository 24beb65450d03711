"""Signals: remembered when they come, heeded at the next pause.

Python would raise KeyboardInterrupt wherever it happens to be: in a callback of the compiler, which
swallows it, or in the middle of a table of Sobol numbers, which stays half filled. So a handler
only notes the signal, and `pause`, which all long work calls between its steps, raises. The second
signal does not wait, not even for compiled code that is running, during which Python calls no
handler: in a command a thread listens, too.
"""

import contextlib
import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from types import FrameType

HEEDED = tuple(
    # A terminal that is closed sends SIGHUP; Windows has none.
    getattr(signal, name)
    for name in ("SIGINT", "SIGTERM", "SIGHUP")
    if hasattr(signal, name)
)
# Seconds within which a second signal is the first one again: `timeout` sends two, to the process
# and to its group.
AGAIN = 0.5
NEWS = b"\nStopping at the next pause, with what there is. Another signal ends at once.\n"
# No signal has this number: the thread that listens may end.
DONE = b"\0"
Handler = Callable[[int, FrameType | None], None]


class _Signals:
    """The first signal that came, whether it still is to be raised, and how many parts of the
    program that must not be cut are under way; whether people were told of it."""

    first: signal.Signals | None = None
    since = 0.0
    waiting = False
    told = False
    held = 0


_STATE = _Signals()


def pause() -> None:
    """To be called between the steps of long work: raises KeyboardInterrupt, once, if a signal
    came. Only the main thread, which gets the signals, heeds them."""
    if _STATE.waiting and not _STATE.held and _in_main_thread():
        _STATE.waiting = False
        raise KeyboardInterrupt


def taken() -> bool:
    """Whether a signal came that no pause has raised; it is heeded by whoever asks."""
    waiting, _STATE.waiting = _STATE.waiting, False
    return waiting


def rearm() -> None:
    """The next pause raises again: for whoever has caught an interrupt, and is not the last who
    must know of it."""
    _STATE.waiting = _STATE.first is not None


def received() -> signal.Signals | None:
    """The first signal since the program began to listen, heeded or not."""
    return _STATE.first


@contextlib.contextmanager
def held() -> Iterator[None]:
    """Within this context pauses do not raise: what is under way is finished first."""
    _STATE.held += 1
    try:
        yield
    finally:
        _STATE.held -= 1


@contextlib.contextmanager
def heeded_by_commands() -> Iterator[None]:
    """For the process of a command: the signals are remembered, and the second ends it at once. A
    folder that it has claimed is then as after a kill."""
    with _listening(HEEDED, _end_at_once), _watched():
        yield


@contextlib.contextmanager
def heeded_by_solves() -> Iterator[None]:
    """For a solve in a program of somebody else: Ctrl-C alone, and only where it would raise
    KeyboardInterrupt; the second one does."""
    theirs = signal.getsignal(signal.SIGINT) is not signal.default_int_handler
    if theirs or not _in_main_thread():
        yield
        return
    with _listening((signal.SIGINT,), signal.default_int_handler):
        yield


def listen_early() -> None:
    """From the first import of a command on, before it can do more than remember."""
    if _in_main_thread():
        for number in HEEDED:
            if signal.getsignal(number) in (signal.default_int_handler, signal.SIG_DFL):
                signal.signal(number, _noting(_end_at_once))


@contextlib.contextmanager
def _listening(numbers: tuple[signal.Signals, ...], second: Handler) -> Iterator[None]:
    if not _in_main_thread():
        yield
        return
    # Whoever started the program with a signal ignored (nohup, a shell's background job) meant it.
    numbers = tuple(each for each in numbers if signal.getsignal(each) is not signal.SIG_IGN)
    before = {number: signal.signal(number, _noting(second)) for number in numbers}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
        _STATE.first, _STATE.waiting, _STATE.told = None, False, False


@contextlib.contextmanager
def _watched() -> Iterator[None]:
    """Within this context a thread ends the process at the second signal. The system wakes it
    whatever the main thread is doing."""
    if not _in_main_thread():
        yield
        return
    reads, writes = os.pipe()
    os.set_blocking(writes, False)
    before = signal.set_wakeup_fd(writes, warn_on_full_buffer=False)
    watcher = threading.Thread(target=_watch, args=(reads,), name="signals", daemon=True)
    watcher.start()
    try:
        yield
    finally:
        signal.set_wakeup_fd(before)
        # Not by its end, which a child of this process may hold open.
        os.write(writes, DONE)
        watcher.join()
        os.close(reads)
        os.close(writes)


def _watch(reads: int) -> None:
    """Read the numbers of signals as they come. It counts for itself, since the handler of the
    first one may be called long after it came."""
    since = None if _STATE.first is None else _STATE.since
    while (number := os.read(reads, 1)) != DONE:
        if number[0] not in HEEDED:
            continue
        now = time.monotonic()
        if since is None:
            since = now
            _tell()
        elif now - since > AGAIN:
            _end_at_once(number[0], None)


def _tell() -> None:
    """Say once that a signal has come, and not through Python's buffer, which may be in use."""
    if not _STATE.told:
        _STATE.told = True
        with contextlib.suppress(OSError):
            os.write(2, NEWS)


def _noting(second: Handler) -> Handler:
    def note(number: int, frame: FrameType | None) -> None:
        now = time.monotonic()
        if _STATE.first is None:
            _STATE.first, _STATE.since, _STATE.waiting = signal.Signals(number), now, True
            if second is _end_at_once:
                _tell()
        elif now - _STATE.since > AGAIN:
            second(number, frame)

    return note


def _end_at_once(number: int, _: FrameType | None) -> None:
    os._exit(128 + number)


def _in_main_thread() -> bool:
    return threading.current_thread() is threading.main_thread()
