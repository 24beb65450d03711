"""The certificate: bounds of the error v = u - u_θ, or the reason why there are none."""

import decimal
import math
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from cordes.certificates.level import enough, needed
from cordes.certificates.reason import Reason, joined, short
from cordes.certificates.theorem import Citation
from cordes.errors import OptionError
from cordes.problems.problem import AbstractProblem

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from cordes.certificates.parabolic.bounds import AtTime, InTimeBounds

# What a certificate may bound.
NORMS = ("H2", "H1", "L2", "rms", "Linf", "energy", "map_L2", "W2")


def directed(value: float, digits: int, up: bool) -> float:
    """The number with so many digits that is next above, or below: an upper bound that is printed
    must still be one."""
    if not math.isfinite(value):
        return value
    rounding = decimal.ROUND_CEILING if up else decimal.ROUND_FLOOR
    context = decimal.Context(prec=digits, rounding=rounding)
    return float(context.create_decimal_from_float(float(value)))


class Picture(NamedTuple):
    """What a plot of a certificate needs: the residual and the pointwise bound of |v| as functions
    of points (N, d), and the points that were used."""

    problem: AbstractProblem
    residual: Callable[[np.ndarray], np.ndarray]
    bound: Callable[[np.ndarray], np.ndarray] | None
    points: np.ndarray


class Proof(NamedTuple):
    """Where a proof is, the command that checks it, what that command said, and how many seconds
    it took to find and to check."""

    file: str
    command: str
    theorem: str
    seconds: float
    checked: float


@dataclass(frozen=True)
class Certificate:
    """Bounds of v = u - u_θ. A bound that cannot be given is None, and `reasons` say why (`reason`
    is their text); a number is always a bound at the stated `level`.

    `H2` ≥ ‖D²v‖, `H1` ≥ ‖∇v‖, `L2` ≥ ‖v‖, `rms` = L2/√|Ω|, `Linf` ≥ sup|v| (d ≥ 4: for almost every
    point), `energy` = (lower, upper) around ‖Δv - λv‖ with λ = `lambda_`. `citation` gave L2,
    `maximum_citation` gave Linf, `citations` has the one behind each norm; `theorem`,
    `maximum_theorem` and `theorems` are their names, `alternatives` holds the other bounds of the
    maximum. The best energy theorem has the `contraction` and gives L2 ≤ `constant` · ‖g r‖;
    `epsilon_source` says how the contraction, a supremum over the domain, is known: `analytic`,
    `interval` or `sampled`. `level` is that of the integrals, `levels` has that of the weakest
    ingredient of each norm; `known` are those that differ from both rules. `proof` is there where
    all of this is a theorem that a checker has confirmed.
    """

    H2: float | None = None
    H1: float | None = None
    L2: float | None = None
    rms: float | None = None
    Linf: float | None = None
    energy: tuple[float, float] | None = None
    lambda_: float | None = None
    citation: Citation | None = None
    maximum_citation: Citation | None = None
    contraction: float | None = None
    constant: float | None = None
    level: str | None = None
    known: dict[str, str] = field(default_factory=dict)
    confidence: float | None = None
    epsilon_source: str | None = None
    reasons: tuple[Reason, ...] = ()
    points: int = 0
    spread: float | None = None
    map_L2: float | None = None
    W2: tuple[float, float] | None = None
    citations: dict[str, Citation] = field(default_factory=dict)
    alternatives: dict[str, float] = field(default_factory=dict)
    proof: Proof | None = None
    picture: Picture | None = field(default=None, repr=False, compare=False)
    # Of equations in time: the class of solutions that comparison rests on, with its meaning, and
    # what is known at each time.
    classes: dict[str, str] = field(default_factory=dict)
    in_time: "InTimeBounds | None" = field(default=None, repr=False, compare=False)

    @property
    def theorem(self) -> str | None:
        return None if self.citation is None else str(self.citation)

    @property
    def maximum_theorem(self) -> str | None:
        return None if self.maximum_citation is None else str(self.maximum_citation)

    @property
    def theorems(self) -> dict[str, str]:
        return {norm: str(citation) for norm, citation in self.citations.items()}

    @property
    def levels(self) -> dict[str, str]:
        """How each bound is known (`cordes.certificates.level`): by its integrals, unless what the
        theorem behind it needs over the whole domain was seen at points only."""
        return {
            norm: self.known.get(norm, "sampled" if self._sampled(norm) else self.level)
            for norm in NORMS
            if getattr(self, norm) is not None and self.level is not None
        }

    def _sampled(self, norm: str) -> bool:
        cited = self.citations.get("L2" if norm == "rms" else norm, self.citation)
        principle = cited is not None and cited.maximum_principle
        return self.epsilon_source == "sampled" and not principle

    def doubt(self, norm: str, dimension: int) -> str | None:
        """Why the bound of a norm is not known well enough to be relied on; None where it is."""
        level = self.levels.get(norm, "sampled")
        if enough(level, dimension):
            return None
        return f"its level is {level}, where {needed(dimension)} is asked for"

    @property
    def reason(self) -> str | None:
        """The reasons as one text; None where there is none."""
        return joined(self.reasons)

    def _repr_html_(self) -> str:
        # Pages are made of these.
        from cordes.reports.pages.notebook import notebook_html

        return notebook_html(self)

    def __getstate__(self) -> dict[str, Any]:
        """For Python's own pickle: all but the picture, which is made of functions."""
        return vars(self) | {"picture": None, "in_time": None}

    def at(self, t: float) -> "AtTime":
        """Bounds at a time, for problems in time: `L2` ≥ ‖v(t)‖, `H1` ≥ ‖∇v(t)‖, `Linf`."""
        if self.in_time is None:
            raise OptionError(
                "Nothing is known at a time: the certificate is not one of a problem in time, or "
                f"has no bound. {self.reason or ''}".strip()
            )
        return self.in_time.at(t)

    @property
    def bounded(self) -> bool:
        """Whether there is any bound of the error itself."""
        return any(bound is not None for bound in (self.rms, self.Linf, self.map_L2))

    def facts(self) -> dict[str, Any]:
        """The certificate as data."""
        names = ("theorem", "level", "confidence", "H2", "H1", "L2", "rms", "Linf", "energy")
        names += ("map_L2", "W2", "maximum_theorem", "contraction", "constant", "epsilon_source")
        facts = {name: getattr(self, name) for name in (*names, "points", "reason", "levels")}
        if self.energy is not None:
            lower, upper = self.energy
            facts["energy"] = {"lower": lower, "upper": upper, "lambda": self.lambda_}
        return facts

    def rows(self, verbose: bool = False) -> list[tuple[str, str]]:
        """What a person wants to know, one line each; `verbose` for all reasons why a theorem does
        not apply and not only the nearest."""
        if self.map_L2 is not None and self.W2 is not None:
            return self._transport_rows(self.map_L2, *self.W2)
        bounds = {
            "root mean square error": self.rms,
            "largest error": self.Linf,
            "‖v‖": self.L2,
            "‖∇v‖": self.H1,
            "‖D²v‖": self.H2,
        }
        rows = [(name, _at_most(bound)) for name, bound in bounds.items()]
        if self.energy is not None:
            shift = f" - {self.lambda_:.4g} v" if self.lambda_ else ""
            rows.append((f"‖Δv{shift}‖", _between(*self.energy, digits=3)))
        if self.theorem is not None:
            rows.append(("theorem", self.theorem))
        if self.contraction is not None:
            by = self.theorems.get("energy", self.theorem)
            rows.append(("contraction", f"{self.contraction:.4g} ({self.epsilon_source}) in {by}"))
        if self.maximum_theorem is not None:
            rows.append(("largest error by", self.maximum_theorem))
        if self.level is not None:
            rows.append(("level", self._level() + self._others()))
        reason = self.reason if verbose else short(self.reasons)
        if reason is not None:
            rows.append(("reason" if self.rms is None else "not covered", reason))
        return rows

    def _transport_rows(self, error: float, low: float, high: float) -> list[tuple[str, str]]:
        rows = [
            ("error of the map, L²(μ)", _at_most(error)),
            ("distance W₂", _between(low, high, digits=9)),
            ("theorem", str(self.theorem)),
            ("Hessian bounds", str(self.epsilon_source)),
            ("level", self._level() + self._others()),
        ]
        return rows + ([("not covered", self.reason)] if self.reason is not None else [])

    def _level(self) -> str:
        if self.proof is not None:
            return f"proved: confirmed in ball arithmetic, {self.proof.command}"
        if self.level == "enclosed":
            return "enclosed: nothing can hide between points; rounding is estimated"
        if self.level == "quadrature":
            agreement = ""
            if self.spread is not None:
                agreement = f", n and 2n per direction agree to {100 * self.spread:.2g} %"
            return f"quadrature: {self.points:,} points{agreement}; converged, not proved"
        if self.confidence is not None:
            points = f"{self.points:,} independent points"
            return f"{self.level}: {points}, confidence {100 * self.confidence:g} %"
        return f"{self.level}: true at {self.points:,} points only"

    def _others(self) -> str:
        """The bounds whose level is another one."""
        others = {norm: level for norm, level in self.levels.items() if level != self.level}
        named = {level: [n for n in others if others[n] == level] for level in others.values()}
        return "".join(f"; {level} for {', '.join(names)}" for level, names in named.items())

    def __str__(self) -> str:
        rows = self.rows()
        width = max(len(name) for name, _ in rows)
        lines = [f"  {name:<{width}}  {value}" for name, value in rows]
        return "\n".join(["Certificate (v = u - u_θ)", *lines])

    def plot(self, path: str | Path | None = None) -> "Figure":
        """Where the residual lives, and the pointwise bound of the error."""
        from cordes.reports.plots import plot_certificate

        if self.picture is None:
            raise OptionError(
                f"There is nothing to draw: {self.reason}"
                if self.level is None
                else "There is nothing to draw: a certificate that went through pickle leaves the "
                "functions of its picture behind. Draw it before, or certify the answer again."
            )
        return plot_certificate(self, self.picture, path)


def _at_most(bound: float | None) -> str:
    return "no bound" if bound is None else f"≤ {directed(bound, 3, up=True):.3g}"


def _between(low: float, high: float, digits: int) -> str:
    ends = directed(low, digits, up=False), directed(high, digits, up=True)
    return f"between {ends[0]:.{digits}g} and {ends[1]:.{digits}g}"
