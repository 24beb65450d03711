"""python -m cordes_check FILE.proof [--json]: prints the theorem and exits with 0, or says which
step fails and exits with 1; a file that is no proof: 2; interrupted: 130; what is printed cannot be
written: 1."""

import contextlib
import json
import os
import signal
import sys
from pathlib import Path

from cordes_check.balls import NotAProof, Refused
from cordes_check.proofs import check

PROVED, REFUSED, NO_PROOF, INTERRUPTED = 0, 1, 2, 130


def main(words: list[str]) -> int:
    as_json, paths = "--json" in words, [word for word in words if word != "--json"]
    if len(paths) != 1:
        print(__doc__, file=sys.stderr)
        return NO_PROOF
    status, sentence, facts = outcome(Path(paths[0]))
    print(json.dumps(facts) if as_json else sentence)
    return status


def outcome(path: Path) -> tuple[int, str, dict]:
    """The status, and what is said to people and to programs."""
    try:
        sentence, facts = check(path)
        return PROVED, sentence, facts
    except Refused as refused:
        kind, why, status = "refused", str(refused), REFUSED
    except NotAProof as error:
        kind, why, status = "no proof", str(error), NO_PROOF
    except Exception as error:
        # Lists where numbers should be, too deep formulas, a file that cannot be read.
        kind, why, status = "no proof", f"{type(error).__name__}: {error}"[:300], NO_PROOF
    return status, f"{kind.upper()}: {why}", {kind: why}


def run(words: list[str]) -> int:
    """With the manners of a program: a terminal may not have the letters of the theorem, its reader
    may be gone, a disk full."""
    with contextlib.suppress(AttributeError, ValueError):
        sys.stdout.reconfigure(errors="replace")  # pyright: ignore
    with contextlib.suppress(AttributeError):
        # Whoever prints to nobody ends, as other programs do.
        signal.signal(signal.SIGPIPE, signal.SIG_DFL)
    try:
        status = main(words)
        print(end="", flush=True)
        return status
    except KeyboardInterrupt:
        return INTERRUPTED
    except OSError as error:
        print(error, file=sys.stderr)
        # Python would try again at its end.
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        return REFUSED


if __name__ == "__main__":
    sys.exit(run(sys.argv[1:]))
