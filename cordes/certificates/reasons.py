"""Why there is no bound, in few words: a certificate has every reason, a person needs the ones that
matter first."""

import re

# What `theorems.failure` says of a theorem whose contraction is too large, with what may follow:
# the preconditioner, the control.
FAILURE = re.compile(
    r"(?P<theorem>[^;]*?) needs a contraction below 1 and has (?P<value>\S+) near x = \([^)]*\)[^;]*"
)


def short(reason: str) -> str:
    """The same with one theorem in place of several that fail alike, the one that came nearest,
    behind what concerns the equation itself.

    A parameter that goes to infinity takes every contraction to 1 and no further: a value of 1 is
    not near anything.
    """
    failures = list(FAILURE.finditer(reason))
    if len(failures) < 2:
        return reason
    others = [
        part for part in (piece.strip() for piece in FAILURE.sub("", reason).split(";")) if part
    ]
    open_ = [failure for failure in failures if failure["value"] != "1"] or failures
    nearest = min(open_, key=lambda failure: float(failure["value"]))
    return "; ".join(
        [*others, f"{nearest[0].strip()}, the nearest of {len(failures)} ways that were tried"]
    )
