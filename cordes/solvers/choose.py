"""`solve`: one verb over all problems and methods."""

from typing import Any

import jax.numpy as jnp

from cordes.compilation import CompileTimer
from cordes.condition import warn_if_violated
from cordes.errors import OptionError, unknown
from cordes.results import Result
from cordes.solution import Solution
from cordes.solvers.adam import PAPER, solve_adam
from cordes.solvers.answer import Answer
from cordes.solvers.gauss_newton import solve_gauss_newton
from cordes.solvers.least_squares import solve_least_squares
from cordes.solvers.progress import Progress
from cordes.solvers.system import Clock, System
from cordes.solvers.tolerance import reach, residual_target
from cordes.solvers.training import State
from cordes.threads import share_cores

METHODS = ("auto", "least-squares", "gauss-newton", "adam")
COMMON = {"delta", "boundary", "boundary_weight", "singular", "inputs"}
OPTIONS = {
    "least-squares": {"features", "frequency", "activation"},
    "gauss-newton": {"width", "depth", "activation", "points", "steps", "resample", "momentum"},
    "adam": {"width", "depth", "activation", "learning_rate", "points", "epochs", "precision", "preset"},
}


def solve(
    problem: Any,
    method: str = "auto",
    tol: float | None = None,
    seed: int = 0,
    multiplier: bool = True,
    start: Solution | None = None,
    max_seconds: float | None = None,
    progress: bool | None = None,
    **options: Any,
) -> Solution:
    """Solve a problem.

    `tol` bounds the certified root mean square error: features, points or training grow until `certificate.rms` ≤ tol; the result says if that
    could not be reached, or that no theorem gives a bound. Without it the solve ends near rounding level, or where nothing improves.
    `multiplier=False` leaves the Cordès multiplier out (the plain PINN loss). `start` continues from an earlier solution of the same problem.
    `max_seconds` and Ctrl-C return the best answer so far. `progress=None` shows a bar where standard error is a terminal.

    Options for every method: `boundary="soft"` with `boundary_weight` (the paper's composite loss), `singular=False` (no singular functions), `inputs`
    (`coordinates`, `interfaces`, `powers`: what networks see of the interfaces), `delta` (the paper's δ). Least squares: `features`, `frequency`,
    `activation`. Gauss–Newton: `width`, `depth`, `activation`, `points`, `steps`, `resample`, `momentum`. Adam: `width`, `depth`, `activation`,
    `learning_rate`, `points`, `epochs`, `precision`, `preset="paper"`.
    """
    chosen = choose_method(problem, method, start)
    _check_arguments(chosen, tol, max_seconds, start, options)
    if chosen == "adam" and options.pop("preset", None) == "paper":
        options = {**PAPER, **options}
    clock = Clock(max_seconds)
    with CompileTimer() as timer, share_cores():
        system, settings = _system(problem, chosen, multiplier, start, options)
        warn_if_violated(problem, system.coefficients)
        state = State(start.network, jnp.asarray(start.amplitudes)) if start is not None else None
        facts = {"method": chosen, "seed": seed, "multiplier": multiplier, **settings}

        def finish(answer: Answer) -> Solution:
            return Solution(problem, system, answer, {"certify": 0.0}, {**facts, "richness": system.richness})

        with Progress(f"{problem.name}: {chosen}", progress) as bar:
            if tol is None:
                solution = finish(_run(chosen, system, None, seed, clock, bar, state, settings, options))
            else:
                target = residual_target(problem, system.coefficients, multiplier, tol)
                solution = reach(tol, target, lambda tol, state: _run(chosen, system, tol, seed, clock, bar, state, settings, options), finish, state)
    total, certify = clock.seconds, solution.seconds["certify"]
    solution.seconds |= {"total": total, "compile": timer.seconds, "solve": max(total - timer.seconds - certify, 0.0), "certify": certify}
    return solution


def choose_method(problem: Any, method: str, start: Solution | None = None) -> str:
    """`auto`: least squares in up to three dimensions, where features reach rounding level in a second; Gauss–Newton beyond."""
    if method not in METHODS:
        raise unknown("method", method, METHODS)
    if method != "auto":
        return method
    if start is not None:
        return start.facts["method"]
    return "least-squares" if problem.domain.dimension <= 3 else "gauss-newton"


def _check_arguments(method: str, tol: float | None, max_seconds: float | None, start: Solution | None, options: dict) -> None:
    for name in options:
        if name not in OPTIONS[method] | COMMON:
            others = [m for m, names in OPTIONS.items() if name in names]
            if others:
                raise OptionError(f"{name} is an option of {' and '.join(others)}, not of {method}: pass method='{others[0]}' or leave it out.")
            raise unknown(f"option for {method}", name, OPTIONS[method] | COMMON)
    for name, value in (("tol", tol), ("max_seconds", max_seconds)):
        if value is not None and not (isinstance(value, (int, float)) and value > 0):
            raise OptionError(f"{name} = {value!r}: it must be a positive number.")
    if options.get("preset") not in (None, "paper"):
        raise unknown("preset", str(options["preset"]), ["paper"])
    if options.get("boundary", "hard") not in ("hard", "soft"):
        raise OptionError(f"boundary = {options['boundary']!r}: 'hard' (exact by construction) or 'soft' (the paper's composite loss); Neumann and Robin "
                          "conditions are not supported.")  # fmt: skip
    if start is not None and (method == "least-squares") != (start.facts["method"] == "least-squares"):
        raise OptionError(f"start was made by {start.facts['method']} and cannot be continued by {method}: the networks differ.")


def _system(problem: Any, method: str, multiplier: bool, start: Solution | None, options: dict) -> tuple[System, dict]:
    """The system, and the settings from which a saved answer rebuilds it."""
    interface_inputs = options.pop("interface_inputs", True)
    if start is not None:
        settings = {key: start.facts[key] for key in ("boundary", "boundary_weight", "singular", "inputs", "delta")}
    else:
        plain = "powers" if method == "least-squares" else "interfaces"
        if not interface_inputs:
            plain = "coordinates"
        settings = {"boundary": "hard", "boundary_weight": 100.0, "singular": method != "adam", "inputs": plain, "delta": 0.0}
    settings |= {key: options.pop(key) for key in list(options) if key in settings}
    if settings["inputs"] not in ("coordinates", "interfaces", "powers"):
        raise unknown("inputs", str(settings["inputs"]), ["coordinates", "interfaces", "powers"])
    return make_system(problem, multiplier, settings, start.facts["richness"] if start is not None else None), settings


def make_system(problem: Any, multiplier: bool, settings: dict, richness: int | None) -> System:
    return System(problem, multiplier, settings["delta"], settings["boundary"] == "hard", settings["singular"], settings["inputs"], richness)


def _run(method: str, system: System, tol, seed: int, clock: Clock, bar: Progress, start: State | None, settings: dict, options: dict) -> Answer:
    extra = system.boundary_rows(1000, seed, settings["boundary_weight"]) if settings["boundary"] == "soft" else None
    if method == "least-squares":
        return solve_least_squares(system, tol, seed, clock, bar, start, extra_rows=extra, **options)
    solver = solve_gauss_newton if method == "gauss-newton" else solve_adam
    return solver(system, tol, seed, clock, bar, start, extra_rows=extra, **options)


__all__ = ["METHODS", "Result", "choose_method", "make_system", "solve"]
