"""Why there is no bound, and what a bound does not cover: a kind, a sentence, and the numbers and
points that the sentence speaks of. What decides reads the kind and the values, people the
sentence."""

import enum
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Self

import numpy as np


class Why(enum.StrEnum):
    """What a reason is about."""

    # The answer, or what is known of it.
    precision = enum.auto()
    soft_boundary = enum.auto()
    boundary_values = enum.auto()
    boundary_gap = enum.auto()
    kink = enum.auto()
    false_derivatives = enum.auto()
    unseen = enum.auto()
    not_finite = enum.auto()
    # The data.
    jump = enum.auto()
    not_elliptic = enum.auto()
    negative_reaction = enum.auto()
    unbounded_drift = enum.auto()
    maximiser = enum.auto()
    not_a_density = enum.auto()
    rough_data = enum.auto()
    # What the user vouches for is wrong.
    contradicted = enum.auto()
    # Theorems that do not apply, or do not say enough.
    contraction = enum.auto()
    contraction_sampled = enum.auto()
    hypothesis = enum.auto()
    not_converged = enum.auto()
    pole = enum.auto()
    large_drift = enum.auto()
    unknown_constants = enum.auto()
    useless = enum.auto()
    not_covered = enum.auto()
    no_theorem = enum.auto()
    not_asked_for = enum.auto()
    memory = enum.auto()
    # Convexity, and maps.
    convexity_lost = enum.auto()
    negative_eigenvalue = enum.auto()
    outside_target = enum.auto()
    mass_balance = enum.auto()


@dataclass(frozen=True)
class Reason:
    """`values` are the numbers and points of the sentence by their names, with all digits."""

    kind: Why
    sentence: str
    values: Mapping[str, Any] = field(default_factory=dict)

    def __str__(self) -> str:
        return self.sentence

    def and_(self, more: str, **values: Any) -> Self:
        """The same with more behind it."""
        return replace(self, sentence=f"{self.sentence}{more}", values={**self.values, **values})


class NoBoundError(Exception):
    """There is no bound, for a reason."""

    def __init__(self, kind: Why, sentence: str, **values: Any):
        super().__init__(sentence)
        self.reason = Reason(kind, sentence, values)


def joined(reasons: Iterable[Reason]) -> str | None:
    """All of them as one text; None where there is none."""
    return "; ".join(reason.sentence for reason in reasons) or None


def contraction_too_large(
    theorem: object, matrix: np.ndarray, value: float, point: np.ndarray
) -> Reason:
    """A theorem whose contraction, with the preconditioner `matrix`, is not below one."""
    place = ", ".join(f"{coordinate:.4g}" for coordinate in point)
    sentence = f"{theorem} needs a contraction below 1 and has {value:.4g} near x = ({place})"
    if not np.array_equal(matrix, np.eye(len(matrix))):
        sentence += " with the best constant preconditioner"
    return Reason(Why.contraction, sentence, {"contraction": value, "point": np.asarray(point)})


def short(reasons: Sequence[Reason]) -> str | None:
    """The text with one theorem in place of several that fail alike, the one that came nearest,
    behind what concerns the equation itself.

    A parameter that goes to infinity takes every contraction to 1 and no further: a value of 1, in
    the digits shown, is not near anything.
    """

    def shown(failure: Reason) -> float:
        return float(f"{failure.values['contraction']:.4g}")

    # The number of a bound that says nothing is left to the full text.
    reasons = [
        replace(reason, sentence=reason.sentence.partition(" (")[0])
        if reason.kind is Why.useless
        else reason
        for reason in reasons
    ]
    failures = [reason for reason in reasons if reason.kind is Why.contraction]
    if len(failures) < 2:
        return joined(reasons)
    open_ = [failure for failure in failures if shown(failure) != 1] or failures
    nearest = min(open_, key=shown)
    others = [reason for reason in reasons if reason.kind is not Why.contraction]
    return joined([*others, nearest.and_(f", the nearest of {len(failures)} ways that were tried")])
