"""`solution.prove()`: from an answer to a theorem, confirmed by a program that knows neither the
solver nor JAX.

The way: the equation as text (`texts`), an answer that the checker can read, the theorem with its
parameters (`statement`, `parameters`), cells (`geometry`), a file (`contents`); then `cordes_check`,
in this process for the bounds, and in a process of its own for the file with its claims.
"""

import contextlib
import json
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import cordes_check.proofs
import numpy as np
from cordes_check.answers import BoxAnswer, Features
from cordes_check.balls import NotAProof, Refused, rational
from cordes_check.cells import Cell
from cordes_check.equations import Equation
from cordes_check.proofs import Proved, above
from cordes_check.quadrature import find_rules
from cordes_check.theorems import THEOREMS
from flint import arb, ctx

from cordes.ansatz.networks.mlp import MLP
from cordes.ansatz.networks.random_features import RandomFeatures
from cordes.certificates.certificate import Certificate
from cordes.certificates.theorem import Citation, Modifier, Theorem
from cordes.proofs.contents import Contents, make_contents
from cordes.proofs.geometry import refined
from cordes.proofs.statement import statement
from cordes.proofs.texts import NotProvedError, check_same, problem_text
from cordes.runtime.clock import Clock, OutOfTimeError, check_deadline, deadline
from cordes.runtime.files import check_writable, write_file
from cordes.runtime.progress import Progress
from cordes.solutions.solution import Solution
from cordes.solvers.solve import solve
from cordes.storage import to_bytes

# Points at which the text of a problem is compared with its functions.
COMPARED = 24
OUT_OF_TIME = "the time was up"


def prove(
    solution: Solution,
    path: str | Path = "answer.proof",
    max_seconds: float | None = None,
    progress: bool | None = None,
) -> Solution:
    """See `Solution.prove`."""
    path, problem, clock = check_writable(path), solution.problem, Clock(max_seconds)
    text = problem_text(problem)
    try:
        equation = Equation(text.toml)
    except (Refused, NotAProof) as error:
        raise NotProvedError(f"the checker does not read the equation: {error}") from None
    check_same(equation, problem, problem.domain.interior_points(COMPARED, seed=77))
    meant = solution if readable(solution) else refitted(solution, clock)
    kept = path.with_suffix(".cordes")
    kept = kept if meant is solution else kept.with_stem(f"{kept.stem}-proved")
    content, said = to_bytes(meant), statement(problem, meant)
    contents = make_contents(meant, text, equation, said, (kept.name, content))
    with Progress(f"{problem.name}: proof", progress) as bar, flint_kept():
        contents, found = shown(contents, bar, clock)
    claims = {name: above(bound) for name, bound in found.bounds.items()}
    write_file(kept, content)
    contents.with_claims(claims).write(path)
    confirm(path, clock)
    return with_proof(meant, contents, claims, path, clock)


def readable(solution: Solution) -> bool:
    """Whether the checker can read an answer as it is."""
    network, powers = solution.network, solution.network.inputs.powers
    plain = isinstance(network, RandomFeatures | MLP) and len(network.layers) == 1
    if not plain or network.activation not in ("sine", "tanh") or np.any(solution.amplitudes):
        return False
    weight, d = np.asarray(network.layers[0][0]), len(network.inputs.center)
    each = [0.0, *(0.0 if float(p).is_integer() else 1.0 for p in powers)]
    rough = np.array(each * len(network.inputs.interfaces))
    return solution.exact_boundary and not np.any(weight[d:] * rough[:, None])


def refitted(solution: Solution, clock: Clock) -> Solution:
    """Another answer of the same problem, by sines without singular functions."""
    options: dict[str, Any] = {"singular": False, "inputs": "interfaces", "certify": False}
    seed = solution.facts["seed"]
    return solve(solution.problem, "least-squares", seed=seed, max_seconds=clock.left, **options)


@contextlib.contextmanager
def flint_kept() -> Iterator[None]:
    """The precision of FLINT is one for the whole process."""
    kept = ctx.prec, ctx.cap
    try:
        yield
    finally:
        ctx.prec, ctx.cap = kept


def shown(contents: Contents, bar: Progress, clock: Clock) -> tuple[Contents, Proved]:
    """The bounds that the checker finds. Where a cell is too large for it, cells are cut first."""

    def step(done: int, count: int) -> None:
        bar.update(done, count)
        check_deadline()

    try:
        with deadline(clock):
            try:
                return contents, cordes_check.proofs.prove(contents.data, step)
            except Refused as refused:
                if not str(refused).startswith("cell "):
                    raise
                finer = _refined(contents)
                return finer, cordes_check.proofs.prove(finer.data, step)
    except Refused as refused:
        raise NotProvedError(f"the checker refuses: {refused}") from None
    except OutOfTimeError:
        raise NotProvedError(OUT_OF_TIME) from None


def _refined(contents: Contents) -> Contents:
    """With cells on which the quadrature has rules."""
    data = contents.data
    equation = Equation(data["problem"])
    network = Features(data["network"], equation.formulas, equation.interfaces)
    answer = BoxAnswer(equation.domain, equation.formulas, equation.g)
    theorem = THEOREMS[data["theorem"]["name"]](equation, data["theorem"])
    tolerance, precise = float(rational(data["tolerance"])), arb(rational(data["precise"]))

    def works(given: list) -> bool:
        check_deadline()
        cell = Cell(given[0], [[rational(c) for c in row] for row in given[1:]], "a cell")
        try:
            integrand = theorem.on(cell, answer.on(cell))
            find_rules(cell, network.on(cell, precise), integrand, tolerance)
        except Refused:
            return False
        return True

    return contents.with_cells(refined(data["cells"], works))


def confirm(path: Path, clock: Clock) -> str:
    """The theorem in words, from a process that has read nothing but the file."""
    command = [sys.executable, "-m", "cordes_check", str(path)]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=clock.left)
    except subprocess.TimeoutExpired:
        raise NotProvedError(OUT_OF_TIME) from None
    if done.returncode:
        raise NotProvedError(
            f"the checker refuses the file: {done.stdout.strip()}{done.stderr[-300:]}"
        )
    return done.stdout


def with_proof(
    solution: Solution, contents: Contents, claims: dict[str, str], path: Path, clock: Clock
) -> Solution:
    """The answer with a certificate of the level `proved`."""
    bounds: dict[str, Any] = {name: float(value) for name, value in claims.items()}
    bounds["rms"] = bounds["L2"] / float(np.sqrt(solution.problem.domain.volume))
    theorem = contents.data["theorem"]
    cited = Citation(Theorem.T4)
    if theorem["name"] == "T2":
        cited = Citation(Theorem.T2)
        matrix = np.array(theorem["M"], float)
        cited = (
            cited
            if np.array_equal(matrix, np.eye(len(matrix)))
            else cited.with_(Modifier.preconditioned)
        )
        cited = cited if theorem["transform"] is None else cited.with_(Modifier.transformed)
    largest = cited if theorem["name"] == "T4" else Citation(Theorem.green, behind=cited)
    certificate = Certificate(
        **bounds,
        citation=cited,
        maximum_citation=largest,
        contraction=float(theorem["s"]) if "s" in theorem else None,
        level="proved",
        epsilon_source="interval",
        citations={"Linf": largest} | {name: cited for name in bounds if name != "Linf"},
    )
    proof = {
        "file": str(path),
        "L2": bounds["L2"],
        "Linf": bounds["Linf"],
        "seconds": clock.seconds,
    }
    proof["command"] = f"python -m cordes_check {path.name}"
    facts = solution.facts | {"proof": proof}
    return solution.replace(certificate=certificate, facts=facts).judged()
