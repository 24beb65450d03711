"""Isaacs equations, inf_o sup_a (L^{ao} u - f^{ao}) = 0: a game in which controls and opponents
choose the diffusion, the drift and the costs.

All pairs of a control and an opponent have linear equations. Frozen at a state, the equation is
that of the pair which is played there: policy iteration, which for games is not sure to converge,
since F is neither convex nor concave and Newton's steps may go round in circles. Where they do, the
fixed point Δu⁺ = Δu - F_γ[u] takes their place (`AbstractControlled.coefficients`), which converges
from any state under the Cordès condition over all pairs: |inf sup x - inf sup y| ≤ sup |x - y|.
"""

from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from cordes.domains.domain import AbstractDomain
from cordes.errors import CoefficientError
from cordes.jet import Jet
from cordes.problems.controls.checked import checked_controls
from cordes.problems.controls.controlled import AbstractControlled, played_index
from cordes.problems.evolution import refuse_times

# Pairs that are compared: all of them at once.
MOST_PAIRS = 1024


class Isaacs(AbstractControlled):
    """inf_o sup_a (A(x, a, o):D²u + b(x, a, o)·∇u - c(x, a, o)u - f(x, a, o)) = 0 in `domain`, u =
    g on its boundary.

    `controls` has shape (m, …) and `opponents` shape (n, …): their leading axes run over the
    (discretised) sets. Coefficients are functions of (x, a, o) written with jax.numpy, or
    constants. Whoever wants sup_a inf_o instead solves for -u: the coefficients are the same, f, g
    and the initial values change their sign, and the players change places.

    With a `horizon` the equation is u_t = inf_o sup_a (L^{ao} u - f^{ao}) with `initial` values, or
    u_t + inf_o sup_a (…) = 0 with `terminal` ones; coefficients are functions of (x, t, a, o).

    `solution.policy(x)` is the control that is best against the best opponent, and
    `solution.opponent(x)` is that opponent. In the problem, `controls` holds all pairs (a, o), one
    opponent after the other.

    Checked when made, at sampled points for every pair: shapes, traceability, NaN, symmetry and
    ellipticity of A; the number of pairs. Assumed: as for `Linear`, uniformly in the pairs.
    """

    sense = "inf sup"

    def __init__(
        self,
        domain: AbstractDomain,
        controls: Any,
        opponents: Any,
        A: Any,
        f: Any,
        b: Any = None,
        c: Any = None,
        g: Any = 0.0,
        interfaces: Sequence[Callable[[Array], Array]] = (),
        exact: Callable[..., Array] | None = None,
        horizon: float | None = None,
        initial: Any = None,
        terminal: Any = None,
        boundary: Any = None,
        *,
        name: str | None = None,
    ):
        place = interfaces, exact, name or "isaacs"
        if horizon is None:
            refuse_times(initial, terminal)
            self._place(domain, g, *place, boundary)
        else:
            self._place_in_time(domain, horizon, (g, initial, terminal), *place, boundary)
        pairs, self.split = paired(controls, opponents)
        self.rivals = len(checked_controls(opponents))
        A, b, c, f = (self._joined(each) for each in (A, b, c, f))
        self._set(pairs, A, b, c, f)
        self._compile()
        self._check()

    def _joined(self, given: Any) -> Any:
        """A function of (…, a, o) as one of (…, pair)."""
        if not callable(given):
            return given
        function: Callable[..., Any] = given
        return lambda *place: function(*place[:-1], *self.split(place[-1]))

    def best_index(self, x: Array, jet: Jet, scaled: bool = True) -> Array:
        """The pair that is played: the first opponent against whom the best control gains least."""
        values = jax.vmap(lambda pair: self.defect(x, jet, pair, scaled))
        return played_index(values(jnp.asarray(self.controls)), self.rivals)

    def __repr__(self) -> str:
        against = f"{len(self.controls) // self.rivals} controls against {self.rivals}"
        return f"Isaacs({self.name!r}, {self.domain!r}, {against})"


def paired(controls: Any, opponents: Any) -> tuple[np.ndarray, Callable[[Any], tuple[Any, Any]]]:
    """All pairs as rows, one opponent after the other, and how a row is taken apart again."""
    ours, theirs = checked_controls(controls), checked_controls(opponents, "opponents")
    m, n = len(ours), len(theirs)
    if m * n > MOST_PAIRS:
        raise CoefficientError(
            f"{m} controls against {n} opponents are {m * n} pairs; up to {MOST_PAIRS} are "
            "compared at each point. Sample the two sets with fewer."
        )
    ours_flat, theirs_flat = ours.reshape(m, -1), theirs.reshape(n, -1)
    pairs = np.hstack([np.tile(ours_flat, (n, 1)), np.repeat(theirs_flat, m, axis=0)])
    width, shapes = ours_flat.shape[1], (ours.shape[1:], theirs.shape[1:])

    def split(pair: Any) -> tuple[Any, Any]:
        front = pair.shape[:-1]
        first = pair[..., :width].reshape(*front, *shapes[0])
        return first, pair[..., width:].reshape(*front, *shapes[1])

    return pairs, split
