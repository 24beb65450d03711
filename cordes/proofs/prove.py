"""`solution.prove()`: from an answer to a theorem, confirmed by a program that knows neither the
solver nor JAX.

The way: the equation as text (`texts`), an answer that the checker can read, the theorem with its
parameters (`statement`, `parameters`), cells (`geometry`), a file (`contents`); then
`cordes_check`, in this process for the bounds, and in a process of its own for the file with its
claims.
"""

import contextlib
import math
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any, NamedTuple

import jax
import numpy as np
from flint import arb

import cordes_check.proofs
from cordes.ansatz.networks.mlp import MLP
from cordes.ansatz.networks.random_features import RandomFeatures
from cordes.certificates.certificate import Certificate, Proof
from cordes.certificates.theorem import Citation, Modifier, Theorem
from cordes.problems.problem import AbstractProblem
from cordes.proofs.contents import ProofDraft, flint_kept, make_contents
from cordes.proofs.geometry import refined
from cordes.proofs.needed import NotProvedError
from cordes.proofs.singular import writable
from cordes.proofs.statement import statement
from cordes.proofs.texts import check_same, problem_text
from cordes.runtime.clock import Clock, OutOfTimeError, check_deadline, deadline
from cordes.runtime.files import check_writable, write_file
from cordes.runtime.progress import Progress
from cordes.solutions.solution import Solution
from cordes.solvers.solve import solve
from cordes.storage import to_bytes
from cordes_check.answers import BoxAnswer, Features
from cordes_check.balls import NotAProof, Refused, rational
from cordes_check.cells import Cell
from cordes_check.corners import Corner
from cordes_check.equations import Equation
from cordes_check.proofs import Proved, above
from cordes_check.quadrature import find_rules
from cordes_check.theorems import THEOREMS

# Points at which the text of a problem is compared with its functions.
COMPARED = 24
OUT_OF_TIME = "the time was up"
# Seconds after which the clock is asked, and signals are heeded, while the checker works.
LOOKED = 0.2


class Proven(NamedTuple):
    """An answer with a certificate of the level `proved`, and the files of the proof by their
    names: the proof, and the answer that it is about, which may be another one."""

    solution: Solution
    files: dict[str, bytes]


def prove(
    solution: Solution,
    path: str | Path = "answer.proof",
    max_seconds: float | None = None,
    progress: bool | None = None,
) -> Solution:
    """See `Solution.prove`."""
    path = check_writable(path)
    found = proven(solution, path.name, Clock(max_seconds), progress)
    # The answer first: there is never a proof of one that is not there.
    for name, content in reversed(found.files.items()):
        write_file(path.with_name(name), content)
    return found.solution


def proven(
    solution: Solution, name: str, clock: Clock, progress: bool | None = None, given: bytes = b""
) -> Proven:
    """An answer proved: `name` is that of the proof, `given` the contents of the answer's file, if
    there is one already. Nothing is written but into a folder of its own, where the checker looks
    at it."""
    problem, stem = solution.problem, name.removesuffix(".proof")
    text = problem_text(problem)
    try:
        equation = Equation(text.toml)
    except (Refused, NotAProof) as error:
        raise NotProvedError(f"the checker does not read the equation: {error}") from None
    check_same(equation, problem, problem.domain.interior_points(COMPARED, seed=77))
    kinks = readable_interfaces(equation, problem)
    own = readable(solution, kinks)
    meant = solution if own else refitted(solution, clock, kinks)
    answer = f"{stem}.cordes" if own else f"{stem}-proved.cordes"
    content, said = (own and given) or to_bytes(meant), statement(problem, meant)
    contents = make_contents(meant, text, equation, said, (answer, content))
    with Progress(f"{problem.name}: proof", progress) as bar, flint_kept():
        contents, found = shown(contents, bar, clock)
    claims = {norm: above(bound) for norm, bound in found.bounds.items()}
    files = {name: contents.with_claims(claims).file, answer: content}
    found_in, began = clock.seconds, time.perf_counter()
    words = confirmed(files, clock)
    proof = Proof(
        name, f"python -m cordes_check {name}", words, found_in, time.perf_counter() - began
    )
    return Proven(with_proof(meant, contents, claims, proof), files)


def readable_interfaces(equation: Equation, problem: AbstractProblem) -> bool:
    """Whether inputs for interfaces can be read: their functions are those of the text, and
    affine."""
    formulas, trees = equation.formulas, equation.interfaces
    affine = [formulas.affine(tree) for tree in trees]
    if len(trees) != len(problem.interfaces) or None in affine:
        return False
    x = problem.domain.interior_points(COMPARED, seed=79)
    for phi, found in zip(problem.interfaces, affine, strict=True):
        start, *slopes = map(float, found or [])
        if not np.allclose(
            np.asarray(jax.vmap(phi)(jax.numpy.asarray(x))),
            start + x @ np.array(slopes),
            rtol=1e-12,
        ):
            return False
    return True


def readable(solution: Solution, kinks: bool) -> bool:
    """Whether the checker can read an answer as it is."""
    network, powers = solution.network, solution.network.inputs.powers
    plain = isinstance(network, RandomFeatures | MLP) and len(network.layers) == 1
    if not plain or network.activation not in ("sine", "tanh"):
        return False
    if np.any(solution.amplitudes) and not (solution.problem.linear and writable(solution)):
        return False
    weight, d = np.asarray(network.layers[0][0]), len(network.inputs.center)
    each = [0.0, *(0.0 if float(p).is_integer() else 1.0 for p in powers)]
    each = each if kinks else [1.0] * len(each)
    rough = np.array(each * len(network.inputs.interfaces))
    return solution.exact_boundary and not np.any(weight[d:] * rough[:, None])


def refitted(solution: Solution, clock: Clock, kinks: bool) -> Solution:
    """Another answer of the same problem, by sines without singular functions."""
    inputs = "interfaces" if kinks else "coordinates"
    options: dict[str, Any] = {"singular": False, "inputs": inputs, "certify": False}
    seed = solution.facts["seed"]
    return solve(solution.problem, "least-squares", seed=seed, max_seconds=clock.left, **options)


def shown(contents: ProofDraft, bar: Progress, clock: Clock) -> tuple[ProofDraft, Proved]:
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


def _refined(contents: ProofDraft) -> ProofDraft:
    """With cells on which the quadrature has rules."""
    data = contents.data
    equation = Equation(data["problem"])
    network = Features(data["network"], equation.formulas, equation.interfaces)
    corners = [Corner(each, equation.domain.outline) for each in data["corners"]]
    answer = BoxAnswer(equation.domain, equation.formulas, equation.g, corners)
    theorem = THEOREMS[data["theorem"]["name"]](equation, data["theorem"])
    tolerance, precise = float(rational(data["tolerance"])), arb(rational(data["precise"]))

    def works(given: list) -> bool:
        check_deadline()
        cell = Cell(given[0], [[rational(c) for c in row] for row in given[1:]], "a cell")
        if cell.kind == "tip":
            return True
        try:
            integrand = theorem.on(cell, answer.on(cell))
            find_rules(cell, network.on(cell, precise), integrand, tolerance)
        except Refused:
            return False
        return True

    return contents.with_cells(refined(data["cells"], works))


def confirmed(files: dict[str, bytes], clock: Clock) -> str:
    """The theorem in words, from a process that has read nothing but the files."""
    with tempfile.TemporaryDirectory() as folder:
        for name, content in files.items():
            (Path(folder) / name).write_bytes(content)
        command = [sys.executable, "-m", "cordes_check", str(Path(folder) / next(iter(files)))]
        status, said, complained = _run(command, clock)
    if status:
        raise NotProvedError(f"the checker: {said.strip()}{complained.strip()[-300:]}")
    return said


def _run(command: list[str], clock: Clock) -> tuple[int, str, str]:
    """The status of a command and what it prints; it ends with the time, and with a signal."""
    with subprocess.Popen(
        command,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        # Whatever the letters of this terminal are.
        env=os.environ | {"PYTHONIOENCODING": "utf-8"},
        encoding="utf-8",
    ) as child:
        try:
            with deadline(clock):
                while True:
                    with contextlib.suppress(subprocess.TimeoutExpired):
                        said, complained = child.communicate(timeout=LOOKED)
                        check_deadline()
                        return child.returncode, said, complained
                    check_deadline()
        except OutOfTimeError:
            raise NotProvedError(OUT_OF_TIME) from None
        finally:
            child.kill()


def with_proof(
    solution: Solution, contents: ProofDraft, claims: dict[str, str], proof: Proof
) -> Solution:
    """The answer with a certificate of the level `proved`."""
    bounds: dict[str, Any] = {name: float(value) for name, value in claims.items()}
    # A decimal number that is read is rounded to the nearest double.
    bounds = {name: math.nextafter(value, math.inf) for name, value in bounds.items()}
    bounds["rms"] = bounds["L2"] / float(np.sqrt(solution.problem.domain.volume)) * (1 + 1e-15)
    theorem = contents.data["theorem"]
    cited = Citation(Theorem.T4)
    if theorem["name"] == "T2":
        cited, matrix = Citation(Theorem.T2), np.array(theorem["M"], float)
        plain = np.array_equal(matrix, np.eye(len(matrix)))
        cited = cited if plain else cited.with_(Modifier.preconditioned)
        cited = cited if theorem["transform"] is None else cited.with_(Modifier.transformed)
    largest = cited if theorem["name"] == "T4" else Citation(Theorem.green, behind=cited)
    certificate = Certificate(
        **bounds,
        citation=cited,
        maximum_citation=largest,
        contraction=float(theorem["s"]) if "s" in theorem else None,
        level="proved",
        epsilon_source="interval",
        citations={name: largest if name == "Linf" else cited for name in bounds},
        proof=proof,
    )
    return solution.replace(certificate=certificate).judged()
