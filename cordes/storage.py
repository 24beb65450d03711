"""Keeping answers: arrays and facts in one file that holds data only. Nothing in it is ever
executed.

A `.cordes` file is a NumPy archive without pickled objects. Gallery and TOML problems are named or
quoted in it and come back by themselves; a problem written in Python is code, so it must be passed
in again. What its formulas compute is kept as a fingerprint, and compared when it is loaded, as are
values at a few points.
"""

import io
import json
import warnings
from itertools import pairwise
from pathlib import Path
from typing import Any

import jax
import numpy as np

import cordes
from cordes.ansatz.build import AnsatzOptions, Earlier, bare_ansatz, make_place
from cordes.ansatz.cells.levels import levels_of
from cordes.ansatz.cells.network import CellPolynomials, from_arrays
from cordes.ansatz.cells.pieces import Pieces, from_pieces
from cordes.ansatz.networks.exercise_potential import ExercisePotential
from cordes.ansatz.networks.mlp import MLP
from cordes.ansatz.networks.network import AbstractNetwork
from cordes.ansatz.networks.random_features import RandomFeatures
from cordes.ansatz.plane.network import Expansion
from cordes.ansatz.singular import SingularPoint
from cordes.arguments import as_path
from cordes.domains.box import Box
from cordes.domains.domain import AbstractDomain, Basis, Fit
from cordes.domains.walls import Walled, directions_of
from cordes.errors import CordesError, FileError, OptionError, shown
from cordes.gallery.names import as_problem, from_source
from cordes.problems.problem import AbstractProblem
from cordes.readers.archive import MOST_BYTES, read_arrays, read_json
from cordes.results import Result
from cordes.runtime.files import check_writable, write_file
from cordes.runtime.memory import in_words
from cordes.runtime.plain import plain
from cordes.solutions.answer import Answer
from cordes.solutions.kept import check_arrays, check_facts
from cordes.solutions.kinds import make_solution
from cordes.solutions.solution import Solution

FORMAT = 1
KINDS = {
    "random-features": RandomFeatures,
    "mlp": MLP,
    "cells": CellPolynomials,
    "pieces": Pieces,
    "potential": ExercisePotential,
    "expansion": Expansion,
}
NEEDED = {"coefficients", "amplitudes", "probes", "values", "equation", "facts"}
DAMAGED = "is not a saved answer of cordes, or it is damaged"


class OtherProblemWarning(UserWarning):
    """The formulas of the problem passed in are not those of the one that was solved."""


def save(solution: Solution, path: str | Path) -> Path:
    return write_file(check_writable(path), to_bytes(solution))


def load(path: str | Path, problem: AbstractProblem | str | Path | None = None) -> Solution:
    """The answer kept in a file. `problem` is needed when it was written in Python."""
    path = as_path(path)
    if not path.is_file():
        raise FileError(f"There is no file {path}.")
    if (size := path.stat().st_size) > MOST_BYTES:
        raise FileError(
            f"{path} has {in_words(size)}; answers have at most {in_words(MOST_BYTES)}."
        )
    return from_bytes(path.read_bytes(), problem, str(path))


def to_bytes(solution: Solution) -> bytes:
    """What a file holds."""
    network = solution.network
    kind = next(name for name, class_ in KINDS.items() if isinstance(network, class_))
    probes = solution.problem.domain.interior_points(16, seed=2024)
    facts = {
        "format": FORMAT,
        "version": cordes.__version__,
        "problem": {
            "name": solution.problem.name,
            "source": solution.problem.source,
            "domain": repr(solution.problem.domain),
        },
        "fingerprint": _fingerprint(solution.problem),
        "network": {"kind": kind, "activation": network.activation, "layers": len(network.layers)},
        "result": solution.result.value,
        "residual": solution.residual_rms,
        "points": solution.points,
        "history": solution.history,
        "seconds": solution.seconds,
        "facts": solution.facts,
    }
    if not solution.problem.linear:
        # Here they depend on the answer; those of a linear problem, on its coefficients alone.
        facts["singular_points"] = [point.as_data() for point in solution.singular_points]
    fits = solution.fits
    facts["fits"] = [fit.basis for fit in fits]
    arrays: dict[str, np.ndarray] = {f"fit{k}": fit.coefficients for k, fit in enumerate(fits)}
    arrays |= {"coefficients": np.ravel(network.coefficients), "amplitudes": solution.amplitudes}
    for k, (weight, bias) in enumerate(network.layers):
        arrays[f"weight{k}"], arrays[f"bias{k}"] = np.asarray(weight), np.asarray(bias)
    if isinstance(network, CellPolynomials | Pieces | ExercisePotential | Expansion):
        arrays |= network.arrays()
    arrays |= {"probes": probes, "values": solution.values(probes)}
    arrays["equation"] = _equation(solution.problem, probes)
    arrays["facts"] = np.frombuffer(json.dumps(plain(facts)).encode(), dtype=np.uint8)
    file = io.BytesIO()
    np.savez_compressed(file, allow_pickle=False, **arrays)
    return file.getvalue()


def from_bytes(
    data: bytes,
    problem: AbstractProblem | str | Path | None = None,
    path: str = "This answer",
) -> Solution:
    """The answer that bytes hold, with the checks of `load`; messages call them `path`."""
    arrays, facts = _read(data, path)
    given = None if problem is None else as_problem(problem)
    try:
        return _restored(arrays, facts, given or _problem_of(facts["problem"], path), path)
    except (CordesError, Warning):
        raise
    except Exception as error:
        # Numbers of the right shapes that no answer has.
        raise _damaged(path, f"{type(error).__name__} while it was put together") from error


def _restored(
    arrays: dict[str, np.ndarray], facts: dict[str, Any], problem: AbstractProblem, path: str
) -> Solution:
    if repr(problem.domain) != facts["problem"]["domain"]:
        raise FileError(
            f"{path} holds an answer on {facts['problem']['domain']}, but the problem passed "
            f"in has the domain {problem.domain!r}."
        )
    settings = facts["facts"]
    points = None
    if "singular_points" in facts:
        points = [SingularPoint.from_data(data) for data in facts["singular_points"]]
    fits = [Fit(_basis(*data), arrays[f"fit{k}"]) for k, data in enumerate(facts.get("fits", []))]
    earlier = Earlier(settings["richness"], points, next(iter(fits), None))
    ansatz = make_place(problem, AnsatzOptions.kept_in(settings), earlier).ansatz
    if facts["network"]["kind"] == "cells":
        ansatz = ansatz.without_distance()
        levels = levels_of(problem.domain)
        network = from_arrays(arrays, levels, ansatz.inputs, ansatz.singular)
    elif facts["network"]["kind"] == "pieces":
        vanishing = isinstance(problem.domain, Box | Walled)
        ansatz = ansatz.without_distance(alone=False) if vanishing else ansatz
        directions = directions_of(problem.domain)
        network = from_pieces(arrays, ansatz.inputs, vanishing, directions)
    elif facts["network"]["kind"] == "potential":
        ansatz = bare_ansatz(problem)
        network = ExercisePotential.from_arrays(arrays, ansatz.inputs)
    elif facts["network"]["kind"] == "expansion":
        network = Expansion.from_arrays(arrays, ansatz.inputs)
    else:
        network = _network(facts["network"], arrays, ansatz.inputs, path)
    if len(arrays["amplitudes"]) != ansatz.singular.count:
        raise FileError(
            f"{path} has {len(arrays['amplitudes'])} singular functions, the problem "
            f"{ansatz.singular.count}: it is not the problem that was solved."
        )
    kept = (facts[name] for name in ("residual", "points", "history"))
    answer = Answer(network, arrays["amplitudes"], Result(facts["result"]), *kept)
    solution = make_solution(problem, ansatz, answer, facts["seconds"], settings)
    difference = float(np.max(np.abs(solution.values(arrays["probes"]) - arrays["values"])))
    if not difference <= 1e-8 * max(1.0, float(np.max(np.abs(arrays["values"])))):
        raise FileError(
            f"{path} does not give back its own values (difference {difference:.3g}): the "
            "problem passed in is not the one that was solved."
        )
    equation = _equation(problem, arrays["probes"])
    if equation.shape != arrays["equation"].shape or not np.allclose(
        equation, arrays["equation"], rtol=1e-8, atol=1e-10
    ):
        raise FileError(
            f"{path} answers an equation with other coefficients: the problem passed in is not "
            "the one that was solved."
        )
    doubt = _doubt(facts.get("fingerprint"), problem)
    if doubt is None:
        return solution
    result = solution.result
    result = Result.converged_uncertified if result is Result.converged else result
    why = f"{doubt}; solution.certified() has a certificate"
    return solution.replace(result=result, facts={**settings, "uncertified": why})


def _fingerprint(problem: AbstractProblem) -> dict[str, Any]:
    """What was computed of the problem when it was made, and where."""
    places = [repr(each) for each in problem.arguments.values() if isinstance(each, AbstractDomain)]
    return {"jax": jax.__version__, "domains": places, "parts": dict(problem.marks)}


def _doubt(kept: dict[str, Any] | None, problem: AbstractProblem) -> str | None:
    """Why the problem may not be the one that was solved; None where its formulas are the same."""
    if kept is None:
        return "the file has no fingerprint of its problem, which was compared at 16 points only"
    found = _fingerprint(problem)
    if kept["jax"] != found["jax"]:
        versions = f"JAX {kept['jax']} and {found['jax']}"
        return f"fingerprints of {versions} differ, so that problems were compared at 16 points"
    if None in kept["parts"].values():
        return "a coefficient calls back into Python, so that problems were compared at 16 points"
    names = dict.fromkeys([*kept["parts"], *found["parts"]])
    other = [name for name in names if kept["parts"].get(name) != found["parts"].get(name)]
    other += ["the domains"] if kept["domains"] != found["domains"] else []
    if not other:
        return None
    doubt = (
        "the problem passed in is not the one that was solved, or is written otherwise "
        f"({', '.join(other)})"
    )
    warnings.warn(
        f"T{doubt[1:]}: nothing is known of its error before solution.certified(), or a new solve.",
        OtherProblemWarning,
        stacklevel=5,
    )
    return doubt


def _equation(problem: AbstractProblem, points: np.ndarray) -> np.ndarray:
    """A, b, c and f at points, side by side: the values of an answer do not show another f."""
    parts = problem.coefficients(points)
    return np.concatenate([np.asarray(part).reshape(len(points), -1) for part in parts], axis=1)


def _read(data: bytes, path: str) -> tuple[dict[str, np.ndarray], dict]:
    arrays = read_arrays(data, f"{path} {DAMAGED}")
    missing = NEEDED - arrays.keys()
    if missing:
        raise FileError(f"{path} lacks {', '.join(sorted(missing))}: it {DAMAGED}.")
    facts = read_json(arrays.pop("facts").tobytes(), f"{path} {DAMAGED}: its facts")
    if facts.get("format") != FORMAT:
        version = shown(facts.get("format"))
        raise FileError(f"{path} has format {version}; this version reads format {FORMAT}.")
    try:
        check_facts(facts)
        check_arrays(arrays, facts)
    except OptionError as error:
        raise _damaged(path, str(error).rstrip(".")) from error
    return arrays, facts


def _damaged(path: str, why: str) -> FileError:
    return FileError(f"{path} {DAMAGED} ({why}).")


def _basis(degree: int, powers: list, multiplier: int) -> Basis:
    return Basis(degree, tuple((power, odd) for power, odd in powers), multiplier)


def _problem_of(facts: dict, path: str) -> AbstractProblem:
    if not facts["source"]:
        raise FileError(
            f"{path} answers a problem written in Python, which is not kept: pass it in again, "
            f"cordes.load({path!r}, problem=…)."
        )
    return from_source(facts["source"], facts["name"])


def _network(facts: dict, arrays: dict[str, np.ndarray], inputs: Any, path: str) -> AbstractNetwork:
    import equinox as eqx

    if facts["kind"] not in KINDS:
        raise FileError(f"{path} holds a network of unknown kind {facts['kind']!r}.")
    width, count = len(arrays["coefficients"]), facts["layers"]
    layers = tuple((arrays[f"weight{k}"], arrays[f"bias{k}"]) for k in range(count))
    found = tuple((weight.shape, bias.shape) for weight, bias in layers)
    sizes = [inputs.count, *[width] * count]
    expected = tuple(((before, after), (after,)) for before, after in pairwise(sizes))
    # Before a network is made, which has as many weights as it is told.
    if found != expected:
        raise FileError(
            f"{path} holds weights of shapes {shown(found)}, the problem "
            f"needs {shown(expected)}: it is not the problem solved."
        )
    if facts["kind"] == "mlp":
        network = MLP(inputs, width, count, facts["activation"])
    else:
        network = RandomFeatures(inputs, width, 1.0, activation=facts["activation"])
    return eqx.tree_at(
        lambda n: (n.layers, n.coefficients), network, (layers, arrays["coefficients"])
    )


def unpickled(data: bytes, problem: AbstractProblem, certificate: Any) -> Solution:
    """What Python's own pickle calls for a solution; cordes itself neither reads nor writes one."""
    return from_bytes(data, problem).replace(certificate=certificate)
