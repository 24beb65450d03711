"""How a solve ended: one sentence and a remedy each."""

import enum


class Result(enum.StrEnum):
    """The end of a solve. The value is the stable word of the JSON output; `sentence` explains it,
    `remedy` says what to do, `command_remedy` says it in the words of the command line."""

    converged = enum.auto()
    converged_uncertified = enum.auto()
    finished = enum.auto()
    tolerance_not_reached = enum.auto()
    not_certifiable = enum.auto()
    stagnated = enum.auto()
    time_out = enum.auto()
    interrupted = enum.auto()
    not_elliptic = enum.auto()
    convexity_lost = enum.auto()
    nonfinite = enum.auto()

    def as_asked(self, tol: float | None) -> bool:
        """Whether a solve that ended so did what was asked of it: a tolerance asks for a bound."""
        return self in (Result.converged, Result.finished) or (
            self is Result.converged_uncertified and tol is None
        )

    @property
    def sentence(self) -> str:
        return _TEXT[self][0]

    @property
    def remedy(self) -> str:
        return _TEXT[self][1]

    @property
    def command_remedy(self) -> str:
        return _TEXT[self][-1]


_FLAT = (
    "Check that a convex function can take the boundary values g: g must be convex along straight "
    "edges, and where it is flat along one, or f is larger than g allows at a corner, D²u is not "
    "bounded and smooth networks cannot follow it. Else try more"
)
# The sentence, the remedy and, where it is another one, that of the command line.
_TEXT: dict[Result, tuple[str, ...]] = {
    Result.converged: (
        "The certified error is small enough: at most the tolerance; without one, 1e-3 of the "
        "largest value of u.",
        "Nothing to do.",
    ),
    Result.converged_uncertified: (
        "The solver is content with the residual, but no bound of the error is small enough and "
        "known well enough.",
        "Read the reason of the certificate. Another seed or size may show an error; that two "
        "answers agree proves nothing.",
        "Read the reason below. Another --seed or size may show an error; that two answers agree "
        "proves nothing.",
    ),
    Result.finished: (
        "The training of given length is over; nothing is claimed of the answer.",
        "Look at the certificate and the history, or continue with start=solution.",
        "Look at the certificate and the residual, or train longer (--epochs).",
    ),
    Result.tolerance_not_reached: (
        "The certified error did not meet the tolerance before the method stopped improving.",
        "Allow more features (features=…) or steps (steps=…), declare interfaces where "
        "coefficients jump, or ask for less.",
        "Allow more features (--features) or steps (--steps), declare interfaces where "
        "coefficients jump, or ask for less (--tol).",
    ),
    Result.not_certifiable: (
        "No theorem gives a bound of the error for this answer; the certificate says why.",
        "Read the reason of the certificate; solve without tol to get the answer alone.",
        "Read the reason below; solve without --tol to get the answer alone.",
    ),
    Result.stagnated: (
        "The residual on fresh points stopped falling while it was still large.",
        "Look for undeclared interfaces or a rough solution; try method='gauss-newton' or more "
        "features.",
        "Look for undeclared interfaces or a rough solution; try --method gauss-newton or more "
        "--features.",
    ),
    Result.time_out: (
        "max_seconds passed; the best answer so far is returned.",
        "Allow more time, or continue with start=solution.",
        "Allow more time (--max-seconds).",
    ),
    Result.interrupted: (
        "The solve was interrupted; the best answer so far is returned.",
        "Continue with start=solution.",
        "Run the command again; from Python a solve can go on with "
        "start=cordes.load('DIR/answer.cordes').",
    ),
    Result.not_elliptic: (
        "The frozen coefficient matrix lost its ellipticity.",
        "Check the coefficients, or start nearer to the solution.",
    ),
    Result.convexity_lost: (
        "The answer is not convex, so that it is not the solution of the Monge–Ampère equation.",
        f"{_FLAT} features, or start=… from an easier f.",
        f"{_FLAT} --features, or --form convex.",
    ),
    Result.nonfinite: (
        "The loss became infinite or not a number; the last finite answer is returned.",
        "Lower the learning rate, or check the data for poles.",
    ),
}
