"""A proof from beginning to end: a file is read, what it claims is shown, and said in words."""

import hashlib
import json
from pathlib import Path

from flint import __version__ as flint_version
from flint import arb, ctx

from cordes_check.answers import BoxAnswer, Features
from cordes_check.balls import NotAProof, need, rational, root
from cordes_check.cells import read_cells
from cordes_check.equations import Equation
from cordes_check.quadrature import integrals
from cordes_check.theorems import THEOREMS

FORMAT, MOST_BYTES = 1, 50_000_000


def read(path: Path) -> dict:
    """The contents of a proof: a line with the format and the SHA-256 of the rest, then JSON."""
    if path.stat().st_size > MOST_BYTES:
        raise NotAProof("the file is too large")
    head, _, body = path.read_bytes().partition(b"\n")
    words = head[:200].decode("ascii", "replace").split()
    if len(words) != 3 or words[0] != "cordes-proof":
        raise NotAProof("the file does not begin with the words of a proof")
    need(
        words[1] == str(FORMAT),
        f"the proof has the format {words[1]}, this program checks format {FORMAT}",
    )
    need(words[2] == hashlib.sha256(body).hexdigest(), "the file was changed after it was written")
    try:
        return json.loads(body)
    except (ValueError, RecursionError) as error:
        raise NotAProof(f"this is no JSON: {error}") from None


def prove(data: dict) -> tuple[dict[str, arb], str, int]:
    """The bounds that are proved, how, and from how many points; Refused if a step fails."""
    need(53 <= data["precision"] <= 400, "a precision out of range")
    ctx.prec, ctx.cap = data["precision"], 3
    equation = Equation(data["problem"])
    network = Features(data["network"], equation.formulas, equation.interfaces)
    answer = BoxAnswer(equation.domain, equation.formulas, equation.g)
    cells = read_cells(data["cells"], equation.domain.outline)
    theorem = THEOREMS[data["theorem"]["name"]](equation, data["theorem"])
    shown, tolerance, precise = (
        theorem.check(cells),
        float(rational(data["tolerance"])),
        arb(rational(data["precise"])),
    )
    totals, shifts, points = None, None, 0
    for cell in cells:
        N = network.on(cell, precise)
        integrand = theorem.on(cell, answer.on(cell))
        values, moved, rules, count = integrals(cell, N, integrand, tolerance)
        theorem.look(cell, N, integrand, values, moved, rules)
        moved, points = [each**2 * cell.volume for each in moved], points + count
        totals = values if totals is None else [a + b for a, b in zip(totals, values, strict=True)]
        shifts = moved if shifts is None else [a + b for a, b in zip(shifts, moved, strict=True)]
    # The norm of what is integrated, and that of what the error of N may add.
    norms = [(root(a) + root(b)).upper() for a, b in zip(totals, shifts, strict=True)]
    bounds = {name: value.upper() for name, value in theorem.bounds(norms).items()}
    return {name: value for name, value in bounds.items() if value.is_finite()}, shown, points
