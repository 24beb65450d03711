"""python -m cordes_check FILE.proof [--json]: prints the theorem and exits with 0, or says which
step fails and exits with 1; a file that is no proof: 2."""

import json
import sys
from pathlib import Path

from cordes_check.balls import NotAProof, Refused
from cordes_check.proofs import check


def main(words: list[str]) -> int:
    as_json, paths = "--json" in words, [word for word in words if word != "--json"]
    if len(paths) != 1:
        print(__doc__, file=sys.stderr)
        return 2
    try:
        text, facts = check(Path(paths[0]))
        print(json.dumps(facts) if as_json else text)
        return 0
    except Refused as refused:
        kind, sentence, status = "refused", str(refused), 1
    except NotAProof as error:
        kind, sentence, status = "no proof", str(error), 2
    except Exception as error:
        # Lists where numbers should be, too deep formulas, a file that cannot be read.
        kind, sentence, status = "no proof", f"{type(error).__name__}: {error}"[:300], 2
    print(
        json.dumps({kind: sentence}) if as_json else f"{kind.upper()}: {sentence}", file=sys.stdout
    )
    return status


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
