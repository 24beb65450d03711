"""python -m cordes_check FILE.proof [--json] [--seconds N]: prints the theorem and exits with 0, or
says which step fails and exits with 1; a file that is no proof: 2. More than N = 600 seconds of the
processor are refused. Interrupted: 130; what is said cannot be written: 1."""

import argparse
import contextlib
import json
import os
import signal
import sys
import threading
import time
from pathlib import Path

from cordes_check.balls import NotAProof, Refused
from cordes_check.proofs import check

PROVED, REFUSED, NO_PROOF, INTERRUPTED = 0, 1, 2, 130


def main(words: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser("cordes_check", None, __doc__)
    parser.add_argument("path", metavar="FILE.proof")
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--seconds", type=float, default=600.0)
    given = parser.parse_args(words)
    threading.Thread(target=watch, args=(given.seconds, given.json), daemon=True).start()
    status, sentence, facts = outcome(Path(given.path))
    print(json.dumps(facts) if given.json else sentence, flush=True)
    return status


def outcome(path: Path) -> tuple[int, str, dict]:
    """The status, and what is said to people and to programs."""
    try:
        return PROVED, *check(path)
    except Refused as refused:
        kind, why, status = "refused", str(refused), REFUSED
    except NotAProof as error:
        kind, why, status = "no proof", str(error), NO_PROOF
    except Exception as error:
        # Lists where numbers should be, too deep formulas, a file that cannot be read.
        kind, why, status = "no proof", f"{type(error).__name__}: {error}"[:300], NO_PROOF
    # Whatever a file makes it say stays on this line.
    why = "".join(c if c.isprintable() else " " for c in why)[:500]
    return status, f"{kind.upper()}: {why}", {kind: why}


def watch(seconds: float, as_json: bool) -> None:
    """Ends the program, whatever it is doing."""
    while time.process_time() < seconds:
        time.sleep(0.2)
    why = f"more than {seconds:g} seconds of the processor"
    with contextlib.suppress(OSError):
        print(json.dumps({"refused": why}) if as_json else f"REFUSED: {why}", flush=True)
    os._exit(REFUSED)


def run() -> int:
    """With the manners of a program: a terminal may not have the letters of the theorem, its reader
    may be gone, a disk full."""
    with contextlib.suppress(AttributeError, ValueError):
        sys.stdout.reconfigure(errors="replace")  # pyright: ignore
    with contextlib.suppress(AttributeError):
        # Whoever prints to nobody ends, as other programs do.
        signal.signal(signal.SIGPIPE, signal.SIG_DFL)
    try:
        return main()
    except KeyboardInterrupt:
        return INTERRUPTED
    except OSError as error:
        print(error, file=sys.stderr)
        # Python would try again at its end.
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        return REFUSED


if __name__ == "__main__":
    sys.exit(run())
