"""Hamilton–Jacobi–Bellman equations, sup_a (L^a u - f^a) = 0 with L^a u = A^a:D²u + b^a·∇u - c^a u,
or the same with inf."""

import functools
from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from cordes.domains.domain import AbstractDomain
from cordes.errors import CoefficientError, OptionError
from cordes.jet import Jet
from cordes.problems.controls.controlled import AbstractControlled
from cordes.problems.evolution import refuse_times

# Controls that are written out.
FEW = 8


class HJB(AbstractControlled):
    """sup_a (A(x, a):D²u + b(x, a)·∇u - c(x, a)u - f(x, a)) = 0 in `domain`, u = g on its boundary;
    `sense="inf"` takes the infimum.

    `controls` has shape (m, …): its leading axis runs over the (discretised) control set.
    Coefficients are functions of (x, a) written with jax.numpy, `a` of shape controls.shape[1:], or
    constants. `maximiser(x, jet)` gives the control that is best for L^a u - f^a (without the
    multiplier) in closed form, where the control set is a continuum and `controls` a sample of it;
    jet has value, gradient and hessian.

    With a `horizon` the equation is u_t = sup_a (L^a u - f^a) for 0 < t < horizon with `initial`
    values, or u_t + sup_a (L^a u - f^a) = 0 with `terminal` ones: coefficients are functions of (x,
    t, a), g, interfaces and exact of (x, t), the maximiser of (x, t, jet).

    Checked when made, at sampled points for every control: shapes, traceability, NaN, symmetry and
    ellipticity of A; that no sampled control beats the maximiser, and that its controls lie in the
    box of the sampled ones, which must contain the ends of the set. Jumps are looked for with at
    most 16 of the controls. Assumed: as for `Linear`, uniformly in the controls; the maximiser
    gives controls of the set.
    """

    def __init__(
        self,
        domain: AbstractDomain,
        controls: Any,
        A: Any,
        f: Any,
        b: Any = None,
        c: Any = None,
        g: Any = 0.0,
        interfaces: Sequence[Callable[[Array], Array]] = (),
        sense: str = "sup",
        maximiser: Callable[[Array, Jet], Array] | None = None,
        exact: Callable[..., Array] | None = None,
        horizon: float | None = None,
        initial: Any = None,
        terminal: Any = None,
        boundary: Any = None,
        *,
        name: str | None = None,
    ):
        place = interfaces, exact, name or "hjb"
        if horizon is None:
            refuse_times(initial, terminal)
            self._place(domain, g, *place, boundary)
        else:
            self._place_in_time(domain, horizon, (g, initial, terminal), *place, boundary)
        if sense in ("max", "min"):
            sense = "sup" if sense == "max" else "inf"
        if sense not in ("sup", "inf"):
            raise OptionError(f"sense = {sense!r}: 'sup' or 'inf'.")
        self.sense, self.sign = sense, 1.0 if sense == "sup" else -1.0
        self._set(controls, A, b, c, f)
        if maximiser is not None and not callable(maximiser):
            raise CoefficientError(
                f"maximiser is {maximiser!r}: it must be a function of (x, jet) that returns a "
                "control."
            )
        self.maximiser = maximiser
        if maximiser is not None and self.clock is not None:
            self.maximiser = self.clock.turned_maximiser(maximiser)
        self._compile()
        self._check()

    def best_index(self, x: Array, jet: Jet, scaled: bool = True) -> Array:
        """The number of the best control of the sampled ones; they are compared in blocks, so that
        memory does not grow with their number."""
        count, size = len(self.controls), self._block
        blocks = -(-count // size)
        order = np.minimum(np.arange(blocks * size), count - 1).reshape(blocks, size)

        def compare(best: tuple[Array, Array], block: Array) -> tuple[tuple[Array, Array], None]:
            controls = jnp.asarray(self.controls)[block]
            values = self.sign * jax.vmap(lambda a: self.defect(x, jet, a, scaled))(controls)
            k = jnp.argmax(values)
            # A NaN wins, so that it is seen and not hidden by the other controls.
            better = ~(values[k] <= best[0]) & ~jnp.isnan(best[0])
            found = (values[k], block[k])
            return jax.tree.map(functools.partial(jnp.where, better), found, best), None

        start = (jnp.asarray(-jnp.inf), jnp.asarray(0))
        return jax.lax.scan(compare, start, jnp.asarray(order))[0][1]

    def __repr__(self) -> str:
        # So that (0, 1) is seen to be two controls, and no interval.
        few = self.controls.ndim == 1 and len(self.controls) <= FEW
        values = ": " + ", ".join(f"{a:.6g}" for a in self.controls) if few else ""
        return f"HJB({self.name!r}, {self.domain!r}, {len(self.controls)} controls{values})"
