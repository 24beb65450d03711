"""Proofs of the gallery: bounds beside those of the level before for the same answer, and seconds
of the processor.

    python benchmarks/proofs.py [NAME …]       the gallery's boxes; to results/proofs.json
"""

import json
import sys
import tempfile
import time
import warnings
from pathlib import Path

import cordes
from cordes_check.proofs import check

NAMES = (
    "ex4.2-continuous",
    "ex4.2-discontinuous",
    "smears-suli-2013",
    "ex4.5-hjb",
    "ex4.6-monge-ampere",
    "switching-control",
    "lakkis-pryer-4.1",
    "ex4.4-continuous",
    "ex4.4-discontinuous",
    "constant-3d",
    "weak-ellipticity",
    "ex4.1-smooth",
)
# These need singular functions.
SINGULAR = ("ex4.4-continuous", "ex4.4-discontinuous")
RESULTS = Path(__file__).parent / "results" / "proofs.json"


def measured(name: str, folder: Path) -> dict:
    singular = name in SINGULAR
    solution = cordes.solve(name, "least-squares", singular=singular, certify=False)
    began = time.process_time()
    try:
        proved = solution.prove(folder / f"{name}.proof", progress=False)
    except cordes.NotProvedError as error:
        return {"name": name, "reason": str(error)}
    proving = time.process_time() - began
    before, began = proved.certify(), time.process_time()
    check(folder / f"{name}.proof")
    found = {"name": name, "seconds": proving, "checking": time.process_time() - began}
    found |= {"features": len(proved.network.coefficients), "level": before.level}
    for norm in ("L2", "Linf", "H2"):
        found[norm] = [getattr(each, norm) for each in (proved.certificate, before)]
    return found


def main(names: list[str]) -> None:
    warnings.simplefilter("ignore")
    kept = json.loads(RESULTS.read_text()) if RESULTS.exists() else {}
    with tempfile.TemporaryDirectory() as folder:
        for name in names or NAMES:
            kept[name] = measured(name, Path(folder))
            print(json.dumps(kept[name]), flush=True)
            RESULTS.write_text(json.dumps(kept, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])
