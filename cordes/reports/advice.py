"""What the end of a solve means, and what to do about it, from the facts of `solve --json`."""

import math
from collections.abc import Mapping, Sequence
from typing import Any

from cordes.results import Result

# A larger network helps if it leaves at most this share of the residual: the solvers' rule too.
HELPS = 0.5
# Of the polynomials of cells, beyond what is usual.
LARGER_DEGREE = 16


def remedy(facts: Mapping[str, Any]) -> str:
    """What to do about a result that is not as it should be, in the words of the command line."""
    result = Result(facts["result"])
    if result is Result.converged_uncertified:
        more = {
            "least-squares": f"--features {2 * facts['parameters']}",
            "gauss-newton": "more --steps",
            "cells": f"--degree {LARGER_DEGREE}",
        }.get(facts["method"], "more --epochs")
        return (
            "Read what is not covered below. Another solve "
            f"(--seed 1, {more}) shows an error where the two differ; that they agree proves "
            "nothing."
        )
    if result is Result.tolerance_not_reached and facts["method"] == "least-squares":
        return _more_features(facts)
    if result is Result.tolerance_not_reached and facts["method"] == "cells":
        return "Allow more --cells, or declare interfaces where coefficients jump. Or ask for less."
    return result.command_remedy


def _more_features(facts: Mapping[str, Any]) -> str:
    """Whether more features are any use is seen in what the last ones did."""
    tolerance = facts["tolerance"]
    found = tolerance["stages"]
    less = "ask for less"
    if tolerance["certified"] is not None:
        less += f": --tol {_above(tolerance['certified'])} is met"
    if len(found) < 2 or found[-1]["residual"] <= HELPS * found[-2]["residual"]:
        return (
            "Allow more features, which still helped at the end: --features "
            f"{2 * (found[-1]['size'] if found else facts['parameters'])}. Or {less}."
        )
    before, after = found[-2:]
    fell = (
        f"from {before['size']} to {after['size']} of them the residual fell from "
        f"{before['residual']:.2g} to {after['residual']:.2g}"
    )
    return (
        f"More features hardly help: {fell}. So the solution is rough somewhere: declare "
        "interfaces where coefficients or their derivatives jump, try --method gauss-newton, or "
        f"{less}."
    )


def stages(history: Sequence[Mapping[str, Any]]) -> list[tuple[int, float]]:
    """The sizes of the networks of a solve, each with the smallest residual that it left."""
    found: dict[int, float] = {}
    for step in history:
        size = step.get("features", step.get("size"))
        if size is not None and step.get("residual") is not None:
            found[size] = min(found.get(size, math.inf), step["residual"])
    return list(found.items())


def _above(bound: float) -> str:
    """The next number above with two digits."""
    scale = 10.0 ** (math.floor(math.log10(bound)) - 1)
    return f"{math.ceil(bound / scale * (1 + 1e-9)) * scale:.2g}"
