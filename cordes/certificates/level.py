"""How a bound is known: the levels, weakest first, and which of them `converged` asks for.

`sampled`: a supremum or a hypothesis was looked at in points only. `statistical`: independent
points, with a confidence. `quadrature`: n and 2n points agree; converged, not proved. `enclosed`:
every integral, supremum and hypothesis is bounded over the whole domain, in float64 with an
allowance for rounding. `proved`: confirmed in ball arithmetic.
"""

LEVELS = ("sampled", "statistical", "quadrature", "enclosed", "proved")
# What a bound must be for `converged`; where quadrature ends, independent points are all there is.
ENOUGH, ENOUGH_BEYOND, QUADRATURE_ENDS = "quadrature", "statistical", 3


def needed(dimension: int) -> str:
    """The weakest level that is enough for `converged`."""
    return ENOUGH if dimension <= QUADRATURE_ENDS else ENOUGH_BEYOND


def enough(level: str, dimension: int) -> bool:
    """Whether a bound of this level is; a level may have a remark behind it, `(asymptotic)`."""
    return LEVELS.index(level.partition(" ")[0]) >= LEVELS.index(needed(dimension))
