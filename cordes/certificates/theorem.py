"""The theorems: what each says, what it needs, and how it was applied. docs/certificates.md has the
proofs."""

import enum
from typing import NamedTuple


class Needed(enum.Enum):
    """What a theorem needs to know over the whole domain."""

    contraction = "the contraction (ε)"
    convexity = "the convexity of the answer"
    eigenvalues = "a bound of the eigenvalues of D²u"
    curvature = "the bounds of D²u"


class Theorem(enum.Enum):
    """A name, what it says in a sentence, and the supremum that it needs."""

    T1b = (
        "T1b",
        "scaled by d/tr A, the operator differs from the Laplacian by a contraction, so that the "
        "residual bounds the error",
    )
    T1c = (
        "T1c",
        "scaled by a multiplier that suits this residual, the operator differs from the Laplacian "
        "by a contraction, so that the residual bounds the error",
    )
    T2 = (
        "T2",
        "with drift and reaction the scaled operator differs from Δ − λ by a contraction, so that "
        "the residual bounds the error",
    )
    smears_sueli = (
        "Smears–Süli",
        "with drift and reaction the scaled operator differs from Δ − λ by a contraction (the "
        "condition of Smears and Süli)",
    )
    free = (
        "T1b with a free constant",
        "up to a constant on the right, which is part of the answer, the scaled operator differs "
        "from the Laplacian by a contraction, so that the residual bounds the error about its mean",
    )
    green = (
        "Green",
        "Green's function turns the bound of the energy into one of the largest error",
    )
    ABP = (
        "ABP",
        "the maximum principle of Aleksandrov, Bakelman and Pucci bounds the error by an integral "
        "of the residual",
    )
    barrier = (
        "barrier",
        "a barrier, a function that the operator takes below the residual, lies above the error "
        "by the maximum principle",
    )
    drift = (
        "Green with drift",
        "Green's function of the whole space, with the drift, turns the norm of the residual into "
        "a bound of the largest error",
    )
    talenti = (
        "Talenti",
        "a drift without sinks leaves Talenti's rearrangement as it is, and Green's function turns "
        "the norm of the residual into a bound of the largest error",
    )
    rearrangement = (
        "N3",
        "with a constant A, Talenti's rearrangement and Green's function of the disc of the same "
        "area bound the largest error on any domain",
    )
    energy_anywhere = (
        "N4",
        "the energy of a constant operator in divergence form bounds the error on any domain",
    )
    interpolation = (
        "interpolation",
        "the equation and the contraction of A turn the bound of the error into bounds of its "
        "derivatives",
    )
    TP = (
        "TP",
        "scaled by a multiplier, the operator in space and time differs from ω∂_t − Δ + λ by a "
        "contraction, so that the residual bounds the error",
    )
    M1 = (
        "M1",
        "comparison with a function of time alone: the largest residual at each time, summed up, "
        "bounds the error",
    )
    KT = (
        "KT",
        "the maximum principle of Krylov and Tso bounds the error by an integral of the residual "
        "over space and time",
    )
    O1 = (
        "O1",
        "comparison for obstacles: where the answer lies below the obstacle, and the largest "
        "residual at each time where it counts, bound the error",
    )
    T4 = (
        "T4",
        "the maximum principle for convex functions bounds the error by the difference of the "
        "roots of the determinants",
        Needed.convexity,
    )
    T5 = (
        "T5",
        "by duality the potential bounds the distance from both sides, and with bounds of D²u the "
        "error of the map",
        Needed.curvature,
    )

    def __init__(self, label: str, gloss: str, supremum: Needed = Needed.contraction):
        self.label, self.gloss, self.supremum = label, gloss, supremum

    @property
    def maximum_principle(self) -> bool:
        """Whether it rests on the maximum principle of linear equations."""
        own = (Theorem.ABP, Theorem.barrier, Theorem.drift, Theorem.talenti, Theorem.rearrangement)
        return self in (*own, Theorem.M1, Theorem.O1)


class Modifier(enum.Enum):
    """How a theorem was applied: what its name gains, and what is said and needed instead, where
    that changes."""

    drift = (" with drift",)
    # T1d: after a linear change of variables, y = M^{-1/2}x.
    preconditioned = (" with T1d",)
    transformed = (
        " after the exponential transform",
        "an exponential transform takes the drift away; then the scaled operator differs from Δ − "
        "λ by a contraction",
    )
    growing = (
        " with exponential in time",
        "after a factor that grows in time, the operator in space and time differs from ω∂_t − Δ + "
        "λ by a contraction",
    )
    shifted = (
        " with shift",
        "if the answer plus δ|x|²/2 is convex, the maximum principle for convex functions bounds "
        "the error of that sum, and δ the rest",
        Needed.eigenvalues,
    )
    shrunk = (", shrunk",)
    # Convexity plays no part, and the name stays.
    one_dimensional = (
        "",
        "in one dimension the equation is linear, and the maximum principle bounds the error by "
        "the residual",
    )

    def __init__(self, suffix: str, gloss: str | None = None, supremum: Needed | None = None):
        self.suffix, self.gloss, self.supremum = suffix, gloss, supremum


class Citation(NamedTuple):
    """A theorem as it was applied: a variant of its own, modifiers, and the theorem behind it whose
    bound it carries on."""

    theorem: Theorem
    variant: str = ""
    modifiers: tuple[Modifier, ...] = ()
    behind: "Citation | None" = None

    def __str__(self) -> str:
        variant = f" ({self.variant})" if self.variant else ""
        modified = "".join(modifier.suffix for modifier in self.modifiers)
        behind = f", {self.behind}" if self.behind is not None else ""
        return f"{self.theorem.label}{variant}{modified}{behind}"

    def with_(self, modifier: Modifier) -> "Citation":
        return self._replace(modifiers=(*self.modifiers, modifier))

    @property
    def gloss(self) -> str:
        """What it says; a modifier may say it better."""
        return [each.gloss for each in (self.theorem, *self.modifiers) if each.gloss][-1]

    @property
    def supremum(self) -> Needed:
        """What must be known over the whole domain."""
        return [each.supremum for each in (self.theorem, *self.modifiers) if each.supremum][-1]

    @property
    def maximum_principle(self) -> bool:
        """Whether it, or the theorem behind it, rests on the maximum principle."""
        behind = self.behind is not None and self.behind.maximum_principle
        return self.theorem.maximum_principle or behind
