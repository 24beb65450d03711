"""The options of `solve`: whose they are (the solver's, the ansatz's, the outer loop's), and what
is wrong with the ones given, before any work."""

import dataclasses
import inspect
from collections.abc import Mapping
from typing import Any, NamedTuple

from cordes.ansatz.build import AnsatzOptions
from cordes.arguments import check_fields, flag, lasting, one_of, positive, whole
from cordes.errors import OptionError, shown, unknown
from cordes.problems.problem import AbstractProblem
from cordes.solutions.solution import Solution
from cordes.solvers.adam import Adam
from cordes.solvers.cells.cells import Cells
from cordes.solvers.expansions.expansions import Expansions
from cordes.solvers.gauss_newton import GaussNewton
from cordes.solvers.least_squares import LeastSquares
from cordes.solvers.solver import AbstractSolver

SOLVERS: dict[str, type[AbstractSolver]] = {
    kind.method: kind for kind in (LeastSquares, GaussNewton, Adam, Cells, Expansions)
}
METHODS = ("auto", *SOLVERS)
LOOPS = ("newton", "fixed-point", "direct")
# Of the dual loop of the paper, for Adam and nonlinear equations.
DUAL_LOOP = frozenset({"warm_up", "inner_epochs"})
# What `solve` itself takes, for whoever misspells it.
ARGUMENTS = ("tol", "seed", "multiplier", "start", "max_seconds", "progress", "certify")


OUTER_RULES = {
    "outer": one_of("outer loop", LOOPS),
    # The multiplier inside (default), or outside as in the paper.
    "argmax": one_of("argmax", ("scaled", "unscaled")),
    "outer_steps": whole(1),
    "damping": flag,
    "continuation": flag,
    "warm_up": whole(0),
    "inner_epochs": whole(10),
}
# Of `solve` itself.
SOLVE_RULES = {
    "tol": positive,
    "seed": whole(0),
    "multiplier": flag,
    "max_seconds": lasting,
    "progress": flag,
    "certify": flag,
}
OPTIONAL = ("tol", "max_seconds", "progress")


@dataclasses.dataclass(frozen=True)
class OuterOptions:
    """How a nonlinear problem is taken to linear ones. None: what is usual for the method and the
    problem."""

    outer: str = "newton"
    outer_steps: int | None = None
    argmax: str | None = None
    form: str | None = None
    damping: bool = True
    continuation: bool | None = None
    warm_up: int = 1000
    inner_epochs: int = 1000

    def __post_init__(self) -> None:
        check_fields(OUTER_RULES, self)

    @property
    def choices(self) -> dict[str, Any]:
        """What the problem is told when it is frozen."""
        form = {} if self.form is None else {"form": self.form}
        return form | ({"scaled": False} if self.argmax == "unscaled" else {})

    def refuse(self, problem: AbstractProblem, solver: AbstractSolver) -> None:
        """Refuse what the problem or the method does not have."""
        if self.outer == "direct" and not isinstance(solver, Adam):
            raise OptionError(
                "outer = 'direct' trains on the nonlinear residual itself, which Adam does: pass "
                "method='adam'."
            )
        if self.outer == "fixed-point" and not problem.contracting:
            raise OptionError(
                f"outer = 'fixed-point' exists for HJB problems, not for {type(problem).__name__}: "
                "use outer='newton'."
            )
        if self.argmax == "scaled" and problem.maximiser is not None:
            raise OptionError(
                "argmax = 'scaled' cannot be had with a maximiser, which is that of the unscaled "
                "equation: leave one of them out."
            )


class Choices(NamedTuple):
    """Everything that the options of a solve say."""

    solver: AbstractSolver
    ansatz: AnsatzOptions
    outer: OuterOptions
    # Cells, between which and the solver `auto` decides.
    rival: Cells | None = None


def choose(
    problem: AbstractProblem,
    method: str | AbstractSolver,
    start: Solution | None,
    options: Mapping[str, Any],
) -> Choices:
    """The solver, and what it solves: names are checked first, then values."""
    _refuse_no_solution(start)
    options = _renamed(options)
    kind = solver_class(problem, method, start)
    _refuse_without_lift(problem, kind)
    _check_names(problem, kind, options)
    _check_start(problem, kind, start)
    own = {name: value for name, value in options.items() if name in kind.names()}
    preset: Mapping[str, Any] = {}
    if (chosen := own.pop("preset", None)) is not None:
        if not isinstance(chosen, str) or chosen not in kind.presets:
            raise unknown("preset", chosen, kind.presets)
        preset = {**kind.presets[chosen], **problem.paper_options}
    if isinstance(method, AbstractSolver):
        _refuse_twice(method, {*own, *({"preset"} if preset else ())})
        solver = method
    else:
        solver = kind(**{name: preset[name] for name in kind.names() & preset.keys()} | own)
    solver.refuse(problem, frozenset(options))
    said = {**preset, **options}
    outer = OuterOptions(**{name: said[name] for name in outer_names(problem, kind) & said.keys()})
    if not problem.linear:
        outer.refuse(problem, solver)
    inputs = kind.inputs if preset.get("interface_inputs", True) else "coordinates"
    ansatz = _ansatz_options(problem, kind, inputs, start, options)
    rival = _rival(problem, method, start, options, ansatz)
    if rival is not None and problem.rough is not None:
        # Features would not follow it, after a long time.
        solver, rival = rival, None
    return Choices(solver, ansatz, outer, rival)


def _renamed(options: Mapping[str, Any]) -> Mapping[str, Any]:
    """`boundary_rows`, which was `boundary` before problems had one."""
    if "boundary_rows" not in options:
        return options
    if "boundary" in options:
        raise OptionError("boundary is the old name of boundary_rows: pass one of them.")
    rest = {name: value for name, value in options.items() if name != "boundary_rows"}
    return {**rest, "boundary": options["boundary_rows"]}


def _rival(
    problem: AbstractProblem,
    method: str | AbstractSolver,
    start: Solution | None,
    options: Mapping[str, Any],
    ansatz: AnsatzOptions,
) -> Cells | None:
    """Cells, where nothing was said that only another method understands."""
    free = method == "auto" and start is None and ansatz.hard
    own = LeastSquares.names() & options.keys()
    free = free and problem.domain.convex
    return Cells() if free and not own and Cells.serves(problem) else None


def solver_class(
    problem: AbstractProblem, method: str | AbstractSolver, start: Solution | None = None
) -> type[AbstractSolver]:
    """`auto`: least squares in up to three dimensions, where features reach rounding level in a
    second; Gauss–Newton beyond; expansions where the domain is not convex."""
    if isinstance(method, AbstractSolver):
        return type(method)
    if isinstance(method, type) and issubclass(method, AbstractSolver):
        raise OptionError(f"method = {method.__name__} is a class: write {method.__name__}().")
    if not isinstance(method, str) or method not in METHODS:
        raise unknown("method", method, METHODS)
    if method != "auto":
        return SOLVERS[method]
    if start is not None:
        return SOLVERS[start.facts["method"]]
    if Expansions.serves(problem):
        return Expansions
    return LeastSquares if problem.space.dimension <= 3 else GaussNewton


def outer_names(problem: AbstractProblem, kind: type[AbstractSolver]) -> frozenset[str]:
    """The options of the outer loop that there are for a problem and a method."""
    dual = DUAL_LOOP if kind is Adam and not problem.linear else frozenset()
    return problem.outer_options | dual


def ansatz_names(problem: AbstractProblem) -> frozenset[str]:
    """The options of the ansatz that there are for a problem."""
    return frozenset(AnsatzOptions.names() if problem.takes_boundary_values else ("delta",))


def _ansatz_options(
    problem: AbstractProblem,
    kind: type[AbstractSolver],
    inputs: str,
    start: Solution | None,
    options: Mapping[str, Any],
) -> AnsatzOptions:
    """Those of the start, where a linear solve goes on from there, or those of the method; then
    what the user says."""
    usual = AnsatzOptions(singular=kind.singular, inputs=inputs)
    if start is not None and problem.linear:
        usual = AnsatzOptions.kept_in(start.facts)
    given = {name: options[name] for name in ansatz_names(problem) & options.keys()}
    return dataclasses.replace(usual, **given)


def _refuse_without_lift(problem: AbstractProblem, kind: type[AbstractSolver]) -> None:
    """Domains that are not convex have neither a distance function nor a lift."""
    if not problem.domain.convex and kind is not Expansions:
        raise OptionError(
            f"method = {kind.method!r} is for convex domains, where boundary values are exact by "
            f"construction; {problem.domain!r} is not convex, or has conditions on its sides that "
            "no function fulfils by construction: leave the method out, or pass "
            f"method={Expansions.method!r}."
        )


def _refuse_twice(solver: AbstractSolver, names: set[str]) -> None:
    if names:
        name = min(names)
        raise OptionError(
            f"{name} is an option of the solver that was given: write "
            f"method={type(solver).__name__}({name}=…, …), or pass method='{solver.method}'."
        )


def _concrete(kind: type[AbstractProblem]) -> set[type[AbstractProblem]]:
    """The kinds of problems that can be made, without those that a person has derived."""
    ours = kind.__module__.startswith("cordes.")
    found = {kind} if ours and not inspect.isabstract(kind) else set()
    return found.union(*map(_concrete, kind.__subclasses__()))


def _check_names(
    problem: AbstractProblem, kind: type[AbstractSolver], options: Mapping[str, Any]
) -> None:
    known = kind.names() | ansatz_names(problem) | outer_names(problem, kind)
    for name in options:
        if name in known:
            continue
        others = [method for method, other in SOLVERS.items() if name in other.names()]
        if others:
            raise OptionError(
                f"{name} is an option of {' and '.join(others)}, not of {kind.method}: pass "
                f"method='{others[0]}' or leave it out."
            )
        kinds = sorted(
            each.__name__ for each in _concrete(AbstractProblem) if name in each.outer_options
        )
        if kinds:
            raise OptionError(
                f"{name} is an option for {' and '.join(kinds)}, not for "
                f"{type(problem).__name__}: leave it out."
            )
        if name in DUAL_LOOP:
            raise OptionError(
                f"{name} belongs to the dual loop of Adam for nonlinear equations: pass "
                "method='adam' for such a problem, or leave it out."
            )
        raise unknown(f"option for {kind.method}", name, [*known, *ARGUMENTS])


def _refuse_no_solution(start: Any) -> None:
    if start is not None and not isinstance(start, Solution):
        raise OptionError(
            f"start = {shown(start)}: a solution is needed, such as cordes.load(path) gives."
        )


def _check_start(
    problem: AbstractProblem, kind: type[AbstractSolver], start: Solution | None
) -> None:
    if start is None:
        return
    made_by = start.facts["method"]
    if problem.linear and kind.trains != SOLVERS[made_by].trains:
        raise OptionError(
            f"start was made by {made_by} and cannot be continued by {kind.method}: the networks "
            "differ."
        )
    if repr(start.problem.domain) != repr(problem.domain):
        raise OptionError(
            f"start lives on {start.problem.domain!r}, the problem on {problem.domain!r}: a "
            "start must have the same domain."
        )
