"""python -m cordes_check FILE.proof [--json] [--seconds N]: prints the theorem and exits with 0, or
says which step fails and exits with 1; a file that is no proof: 2. More than N = 600 seconds of the
processor are refused."""

import argparse
import json
import os
import sys
import threading
import time
from pathlib import Path

from cordes_check.balls import NotAProof, Refused
from cordes_check.proofs import check


def main(words: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser("cordes_check", None, __doc__)
    parser.add_argument("path", metavar="FILE.proof")
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--seconds", type=float, default=600.0)
    given = parser.parse_args(words)
    as_json = given.json
    threading.Thread(target=watch, args=(given.seconds, as_json), daemon=True).start()
    try:
        text, facts = check(Path(given.path))
        print(json.dumps(facts) if as_json else text)
        return 0
    except Refused as refused:
        return say("refused", str(refused), as_json)
    except NotAProof as error:
        return say("no proof", str(error), as_json)
    except Exception as error:
        # Lists where numbers should be, too deep formulas, a file that cannot be read.
        return say("no proof", f"{type(error).__name__}: {error}"[:300], as_json)


def say(kind: str, sentence: str, as_json: bool) -> int:
    print(json.dumps({kind: sentence}) if as_json else f"{kind.upper()}: {sentence}", flush=True)
    return 1 if kind == "refused" else 2


def watch(seconds: float, as_json: bool) -> None:
    """Ends the program, whatever it is doing."""
    while time.process_time() < seconds:
        time.sleep(0.2)
    os._exit(say("refused", f"more than {seconds:g} seconds of the processor", as_json))


if __name__ == "__main__":
    sys.exit(main())
