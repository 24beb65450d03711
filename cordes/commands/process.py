"""The process of a command: whether it is its own, since when, and when it loads JAX."""

import contextlib
import importlib
import os
import sys
import time
from pathlib import Path
from typing import NamedTuple


class Call(NamedTuple):
    """How a command was called: its words, without --json, and whether the process is its own; and
    what it holds until it ends, as a folder that no other run may write to."""

    words: list[str]
    own_process: bool
    holds: contextlib.ExitStack


def is_command() -> bool:
    """Whether this process is `cordes …` or `python -m cordes …`. A script of that name would hide
    the package, so that no other program is taken for it; one that were would only have its names
    later."""
    program = Path(sys.argv[0]).stem if getattr(sys, "argv", None) else ""
    # While Python looks for the module of -m, this is the name of the program.
    if program == "-m":
        return ("-m", "cordes") in zip(sys.orig_argv, sys.orig_argv[1:], strict=False)
    return program == "cordes"


def load_names() -> None:
    """What `import cordes` does in every other process, where this does nothing."""
    names = vars(sys.modules["cordes"])
    if "__all__" not in names:
        public = importlib.import_module("cordes.public")
        names |= {name: getattr(public, name) for name in ("__all__", *public.__all__)}


def process_seconds() -> float:
    """Seconds since this process began, which is what a user waits for the imports; its processor
    time where the system does not tell."""
    with contextlib.suppress(OSError, ValueError, IndexError, AttributeError):
        began = int(
            Path("/proc/self/stat").read_text().rpartition(")")[2].split()[19]
        ) / os.sysconf("SC_CLK_TCK")
        age = float(Path("/proc/uptime").read_text().split()[0]) - began
        if 0 < age < 600:
            return age
    return time.process_time()
