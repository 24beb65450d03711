"""What a network sees of a point: scaled coordinates, and functions of the interfaces across which
second derivatives may jump.

A function that is C¹ with a jump of D²u across φ = 0 is a smooth function of (x, φ|φ|). So each
interface adds the input φ|φ|, which is C^{1,1}: the network stays in H² by construction and can
jump where the equation does. `powers` adds |φ|^p for solutions that are rougher in another way; p >
2 keeps the second derivative bounded.
"""

from collections.abc import Callable, Sequence

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from cordes.domains.domain import AbstractDomain
from cordes.jet import Jet, composed, jet_of, jets_of


class Inputs(eqx.Module):
    """x ↦ z = ((x - center)/scale, φ|φ|/s, |φ|^p/s', ...), with its jet."""

    center: np.ndarray
    scale: np.ndarray
    interface_scale: np.ndarray
    interfaces: tuple[Callable[[Array], Array], ...] = eqx.field(static=True)
    powers: tuple[float, ...] = eqx.field(static=True)
    # What takes the place of the scaled coordinates, and how many there are.
    coordinates: Callable[[Array], Array] | None = eqx.field(static=True)
    places: int = eqx.field(static=True)

    def __init__(
        self,
        domain: AbstractDomain,
        interfaces: Sequence[Callable[[Array], Array]] = (),
        powers: tuple[float, ...] = (),
        coordinates: Callable[[Array], Array] | None = None,
    ):
        lower, upper = domain.bounding_box
        self.center = (lower + upper) / 2
        self.scale = (upper - lower) / 2
        self.interfaces = tuple(interfaces)
        self.powers = tuple(powers)
        self.coordinates = coordinates
        at_center = jnp.asarray(self.center)
        self.places = len(at_center if coordinates is None else coordinates(at_center))
        points = domain.interior_points(256, seed=0)
        largest = [
            float(np.max(np.abs(jax.vmap(phi)(jnp.asarray(points))))) for phi in self.interfaces
        ]
        self.interface_scale = np.array([value if value > 0 else 1.0 for value in largest])

    @property
    def count(self) -> int:
        return self.places + len(self.interfaces) * (1 + len(self.powers))

    def active(self, choice: str) -> np.ndarray:
        """Which inputs a network looks at: `coordinates` alone, with the `interfaces` φ|φ|, or with
        all `powers` too."""
        d, each = self.places, 1 + len(self.powers)
        mask = np.ones(self.count)
        if choice != "powers":
            mask[d:] = 0.0
        if choice == "interfaces":
            mask[d::each] = 1.0
        return mask

    def jet(self, x: Array) -> Jet:
        """Jet of z at one point: value (m,), gradient (m, d), Hessian (m, d, d)."""
        dimension = x.shape[0]
        if self.coordinates is None:
            z, slope = (x - self.center) / self.scale, jnp.diag(1 / jnp.asarray(self.scale))
            parts = [Jet(z, slope, jnp.zeros((dimension,) * 3))]
        else:
            parts = [jets_of(self.coordinates)(x)]
        for phi, scale in zip(self.interfaces, self.interface_scale, strict=True):
            inner = Jet(*(part / scale for part in jet_of(phi)(x)))
            size, sign = jnp.abs(inner.value), jnp.sign(inner.value)
            columns = [(inner.value * size, 2 * size, 2 * sign)]
            columns += [
                (size**p, p * size ** (p - 1) * sign, p * (p - 1) * size ** (p - 2))
                for p in self.powers
            ]
            parts += [Jet(*(part[None] for part in composed(column, inner))) for column in columns]
        return jax.tree.map(lambda *leaves: jnp.concatenate(leaves), *parts)
