"""The options of `solve`: which there are for which method and problem, and what is wrong with the
ones given."""

from cordes.errors import OptionError, unknown
from cordes.problems.problem import AbstractProblem
from cordes.solutions.solution import Solution

METHODS = ("auto", "least-squares", "gauss-newton", "adam")
COMMON = {"delta", "boundary", "boundary_weight", "singular", "inputs"}
OPTIONS = {
    "least-squares": {"features", "frequency", "activation", "oversampling"},
    "gauss-newton": {"width", "depth", "activation", "points", "steps", "resample", "momentum"},
    "adam": {
        "width",
        "depth",
        "activation",
        "learning_rate",
        "points",
        "epochs",
        "precision",
        "preset",
        "estimator",
        "probes",
    },
}
# Options of the outer loop, by problem, and of the dual loop of the paper, for Adam.
OUTER = {
    "Linear": set(),
    "HJB": {"outer", "outer_steps", "argmax"},
    "MongeAmpere": {"outer", "outer_steps", "form", "damping"},
    "Transport": {"outer_steps", "damping", "continuation"},
}
# What Adam with a stochastic estimate of A:D²u understands.
STOCHASTIC = {
    "estimator",
    "probes",
    "width",
    "depth",
    "activation",
    "learning_rate",
    "points",
    "epochs",
    "singular",
    "inputs",
    "delta",
}
ESTIMATORS = ("exact", "stochastic")
DUAL_LOOP = {"warm_up", "inner_epochs"}
# What `solve` itself takes, for whoever misspells it.
ARGUMENTS = ("tol", "seed", "multiplier", "start", "max_seconds", "progress")
LOOPS = ("newton", "fixed-point", "direct")


def choose_method(problem: AbstractProblem, method: str, start: Solution | None = None) -> str:
    """`auto`: least squares in up to three dimensions, where features reach rounding level in a
    second; Gauss–Newton beyond."""
    if method not in METHODS:
        raise unknown("method", method, METHODS)
    if method != "auto":
        return method
    if start is not None:
        return start.facts["method"]
    return "least-squares" if problem.domain.dimension <= 3 else "gauss-newton"


def check_arguments(
    problem: AbstractProblem,
    method: str,
    tol: float | None,
    max_seconds: float | None,
    start: Solution | None,
    options: dict,
) -> None:
    _check_names(problem, method, options)
    for name, value in (("tol", tol), ("max_seconds", max_seconds)):
        if value is not None and not (isinstance(value, (int, float)) and value > 0):
            raise OptionError(f"{name} = {value!r}: it must be a positive number.")
    points = options.get("oversampling", 2.5)
    if not (isinstance(points, (int, float)) and points >= 1.2):
        raise OptionError(
            f"oversampling = {points!r}: at least 1.2 collocation points for each feature are "
            "needed."
        )
    if options.get("preset") not in (None, "paper"):
        raise unknown("preset", str(options["preset"]), ["paper"])
    if options.get("boundary", "hard") not in ("hard", "soft"):
        raise OptionError(f"boundary = {options['boundary']!r}: 'hard' (exact by construction) or 'soft' (the paper's composite loss); Neumann and Robin "
                          "conditions are not supported.")  # fmt: skip
    if (
        start is not None
        and problem.linear
        and (method == "least-squares") != (start.facts["method"] == "least-squares")
    ):
        raise OptionError(
            f"start was made by {start.facts['method']} and cannot be continued by {method}: "
            "the networks differ."
        )
    if start is not None and repr(start.problem.domain) != repr(problem.domain):
        raise OptionError(
            f"start lives on {start.problem.domain!r}, the problem on {problem.domain!r}: a "
            "start must have the same domain."
        )
    if "estimator" in options or "probes" in options:
        _check_estimator(problem, options)
    if not problem.linear:
        _check_outer(problem, method, options)


def _check_estimator(problem: AbstractProblem, options: dict) -> None:
    estimator = options.get("estimator", "exact")
    if estimator not in ESTIMATORS:
        raise unknown("estimator", str(estimator), ESTIMATORS)
    if estimator == "exact":
        if "probes" in options:
            raise OptionError(
                "probes are the random directions of estimator='stochastic': pass that too, or "
                "leave them out."
            )
        return
    if not problem.linear:
        raise OptionError(
            "estimator = 'stochastic' is for linear problems: the supremum of estimates, or "
            "their determinant, would be biased."
        )
    if others := sorted(set(options) - STOCHASTIC):
        raise OptionError(
            f"{', '.join(others)} cannot be had with estimator='stochastic': leave it out."
        )


def _check_names(problem: AbstractProblem, method: str, options: dict) -> None:
    kind = type(problem).__name__
    common = {"delta"} if kind == "Transport" else COMMON
    known = (
        OPTIONS[method]
        | common
        | OUTER[kind]
        | (DUAL_LOOP if method == "adam" and not problem.linear else set())
    )
    for name in options:
        if name in known:
            continue
        others = [m for m, names in OPTIONS.items() if name in names]
        if others:
            raise OptionError(
                f"{name} is an option of {' and '.join(others)}, not of {method}: pass "
                f"method='{others[0]}' or leave it out."
            )
        kinds = [k for k, names in OUTER.items() if name in names]
        if kinds:
            raise OptionError(
                f"{name} is an option for {' and '.join(kinds)}, not for {kind}: leave it out."
            )
        if name in DUAL_LOOP:
            raise OptionError(
                f"{name} belongs to the dual loop of Adam for nonlinear equations: pass "
                "method='adam' for such a problem, or leave it out."
            )
        raise unknown(f"option for {method}", name, [*known, *ARGUMENTS])


def _check_outer(problem: AbstractProblem, method: str, options: dict) -> None:
    outer = options.get("outer", "newton")
    if outer not in LOOPS:
        raise unknown("outer loop", str(outer), LOOPS)
    if outer == "direct" and method != "adam":
        raise OptionError(
            "outer = 'direct' trains on the nonlinear residual itself, which Adam does: pass "
            "method='adam'."
        )
    if outer == "fixed-point" and not hasattr(problem, "contraction"):
        raise OptionError(
            f"outer = 'fixed-point' exists for HJB problems, not for {type(problem).__name__}: "
            "use outer='newton'."
        )
    if options.get("argmax", "scaled") not in ("scaled", "unscaled"):
        raise OptionError(
            f"argmax = {options['argmax']!r}: 'scaled' (the multiplier inside, default) or "
            "'unscaled' (as in the paper)."
        )
    if options.get("argmax") == "scaled" and problem.maximiser is not None:
        raise OptionError(
            "argmax = 'scaled' cannot be had with a maximiser, which is that of the unscaled "
            "equation: leave one of them out."
        )
    for name, least in (("outer_steps", 1), ("inner_epochs", 10), ("warm_up", 0)):
        value = options.get(name, least)
        if not (isinstance(value, int) and value >= least):
            raise OptionError(f"{name} = {value!r}: a whole number of at least {least} is needed.")
