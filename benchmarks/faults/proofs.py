"""Damaged and forged proofs: the checker refuses each with a sentence, or shows what is there.

    python benchmarks/faults/proofs.py COUNT [SEED]

Forged ones are whole files, with their own check sum, that say something else; a claim that is
smaller than what can be shown is never confirmed. Then bombs and other attacks, through the
program.
"""

import hashlib
import json
import random
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path
from typing import Any

from commands import SQUARE
from forging import damaged, forged_facts
from judging import Tally

import cordes
from cordes.problems.written.toml_file import problem_from_toml
from cordes_check.__main__ import NO_PROOF, PROVED, REFUSED, outcome

# Kilobytes of addresses, and seconds, that the checker may have for one of the attacks.
MOST_ADDRESSES, PATIENCE = 4_000_000, 60
KEY = "a." * 60_000 + "a = 1\n"


def proof(folder: Path) -> tuple[bytes, str]:
    """A small proof and the name of its answer, which lies in the folder."""
    problem = problem_from_toml(SQUARE, "square.toml")
    solution = cordes.solve(
        problem, "least-squares", features=40, singular=False, inputs="coordinates", progress=False
    )
    solution.prove(folder / "a.proof", progress=False)
    return (folder / "a.proof").read_bytes(), "a.cordes"


def facts_of(data: bytes) -> dict[str, Any]:
    return json.loads(data.partition(b"\n")[2])


def packed(facts: dict[str, Any]) -> bytes:
    body = json.dumps(facts).encode()
    return b"cordes-proof 1 " + hashlib.sha256(body).hexdigest().encode() + b"\n" + body


def attacks(facts: dict[str, Any]) -> dict[str, bytes]:
    """Each with what the checker must not do: believe, hang, or fill the memory."""
    problem = facts["problem"]

    def formula(text: str, first: str = "") -> bytes:
        return packed(facts | {"problem": first + problem.replace("x1*(1 - x2)", text)})

    doubled = "".join(f'd{k} = "d{k - 1} + d{k - 1}"\n' for k in range(1, 200))
    definitions = '[definitions]\nd0 = "x1"\n' + doubled
    smaller = {name: f"{float(bound) / 10:.3e}" for name, bound in facts["claims"].items()}
    return {
        "smaller claims": packed(facts | {"claims": smaller}),
        "key of many parts": formula("x1", KEY),
        "quoted key of many parts": formula("x1", '"a".' * 30_000 + "a = 1\n"),
        "doubled definitions": packed(
            facts
            | {
                "problem": problem.replace("[equation]", f"{definitions}[equation]").replace(
                    "x1*(1 - x2)", "d199"
                )
            }
        ),
        "many signs": formula("-" * 50_000 + "x1"),
        "long sum": formula("+".join(["x1"] * 30_000)),
        "brackets": formula("(" * 9000 + "x1" + ")" * 9000),
        "power of powers": formula("9**9**9**9"),
        "call": formula("__import__('os').system('touch executed')"),
        "attribute": formula("x1.__class__"),
        "long text": packed(facts | {"problem": problem + "#" * 10_000_000}),
        "lists in lists": packed(facts).replace(b'"cells": [', b'"cells": [' + b"[" * 10_000),
        "cells without an end": packed(facts | {"cells": facts["cells"] * 5000}),
        "strange precision": packed(facts | {"precision": 10**9}),
        "number of many digits": packed(facts | {"tolerance": "9" * 100_000}),
        "huge exponent": packed(facts | {"precise": "1e-999999999"}),
        "empty": b"",
    }


def fuzz(count: int, seed: int = 1) -> Tally:
    chance, tally = random.Random(seed), Tally()
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        whole, answer = proof(folder)
        path, facts = folder / "b.proof", facts_of(whole)

        def judge(kind: str, note: str, data: bytes, believed: bool) -> None:
            def read() -> None:
                path.write_bytes(data)
                status, sentence, _ = outcome(path)
                if status != PROVED:
                    assert status in (REFUSED, NO_PROOF)
                    raise cordes.FileError(sentence)
                assert believed, "it is confirmed"

            tally.judge(kind, note, read)

        judge("whole", "", whole, True)
        assert not tally.failures
        for k in range(count):
            if k % 4 == 0:
                data = damaged(whole, chance)
                # Claims and numbers that are what they were.
                judge("damaged", "", data, data == whole)
            else:
                # What is confirmed was shown, whatever is said.
                judge("forged", "", packed(forged_facts(facts, chance)), True)
        for note, data in attacks(facts).items():
            path.write_bytes(data)
            tally.judge("attack", note, lambda: _refused_by_the_program(path))
        with zipfile.ZipFile(folder / answer, "w", zipfile.ZIP_DEFLATED) as archive:
            archive.writestr("weight0.npy", bytes(700 << 20))
        sha = hashlib.sha256((folder / answer).read_bytes()).hexdigest()
        path.write_bytes(packed(facts | {"answer": {"file": answer, "sha256": sha}}))
        tally.judge("attack", "an answer of 700 MB", lambda: _refused_by_the_program(path))
        assert not (folder / "executed").exists()
    assert not Path("executed").exists()
    return tally


def _refused_by_the_program(path: Path) -> None:
    words = f"ulimit -v {MOST_ADDRESSES}; exec {sys.executable} -m cordes_check {path}"
    done = subprocess.run(
        ["bash", "-c", words], capture_output=True, text=True, timeout=PATIENCE, check=False
    )
    assert done.returncode in (REFUSED, NO_PROOF), (done.returncode, done.stdout[-300:])
    assert not done.stderr, done.stderr[-300:]
    assert "MemoryError" not in done.stdout, done.stdout
    raise cordes.FileError(done.stdout)


if __name__ == "__main__":
    sys.exit(min(1, fuzz(*map(int, sys.argv[1:])).report()))
