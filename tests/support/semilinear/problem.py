"""cordes/problems/semilinear.py: A:D²u - φ(u) = f with an increasing φ, u = g on the boundary."""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from cordes.domains.domain import AbstractDomain
from cordes.jet import Jet, contract
from cordes.problems.coefficients import Coefficients
from cordes.problems.linear import Linear
from cordes.problems.problem import AbstractProblem
from cordes.runtime.blocks import in_blocks


class Semilinear(AbstractProblem):
    """Frozen at a state w, Newton's method gives A:D²u - φ'(w)u = f + φ(w) - φ'(w)w. Checked: what
    `Linear` checks of A, f and g. Assumed: φ increases."""

    outer_options = frozenset({"outer_steps", "damping"})

    def __init__(
        self,
        domain: AbstractDomain,
        A: Any,
        f: Any,
        reaction: Callable[[Array], Array],
        g: Any = 0.0,
        exact: Callable[[Array], Array] | None = None,
        *,
        name: str | None = None,
    ):
        self.principal = Linear(domain, A, f, g=g, exact=exact)
        self.domain, self.name, self.exact = domain, name or "semilinear", exact
        self.A, self.g, self.zero_g = self.principal.A, self.principal.g, self.principal.zero_g
        self.reaction = reaction
        self._frozen = jax.jit(jax.vmap(lambda x, *jet: self.linearise(x, Jet(*jet))))

    def linearise(self, x: Array, jet: Jet) -> Coefficients:
        A, b, _, f = self.principal.linearise(x)
        value, slope = jax.value_and_grad(self.reaction)(jet.value)
        return Coefficients(A, b, slope, f + value - slope * jet.value)

    def residual(self, x: Array, jet: Jet) -> Array:
        A, _, _, f = self.principal.linearise(x)
        return contract(A, jet.hessian) - self.reaction(jet.value) - f

    def coefficients(
        self, points: np.ndarray, jet: Jet | None = None, **choices: Any
    ) -> Coefficients:
        """Without a state, at u = 0."""
        n, d = points.shape
        start = Jet(np.zeros(n), np.zeros((n, d)), np.zeros((n, d, d)))
        return in_blocks(self._frozen, (points, *(start if jet is None else jet)))

    def family(self, points: np.ndarray) -> Coefficients:
        return self.coefficients(points)

    def data(self) -> dict[str, Callable[[Array], Array]]:
        return {"A": self.A, "f": self.principal.f}

    def frozen_at(self, answer: Callable[[Array], Array]) -> Linear:
        """The linear equation with the residual of an answer: A:D²u = f + φ(answer)."""
        return self.principal.replace(
            f=lambda x: self.principal.f(x) + self.reaction(jnp.asarray(answer(x)))
        )
