"""Conditions on the sides of a domain of the plane: which holds on which arc, the data, and points
of the boundary that know their side. Values and fluxes are both met by rows."""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from cordes.domains.domain import AbstractDomain
from cordes.domains.plane.arcs import Arc, turned
from cordes.domains.plane.boolean import loops_of
from cordes.domains.plane.region import Region

Function = Callable[..., Array]


class SidePoints(NamedTuple):
    """Points of the boundary, the outer normals there, and the numbers of their arcs."""

    x: np.ndarray
    normal: np.ndarray
    number: np.ndarray

    def take(self, chosen: np.ndarray) -> "SidePoints":
        return SidePoints(self.x[chosen], self.normal[chosen], self.number[chosen])

    @staticmethod
    def on(arcs: Sequence[Arc], shares: Sequence[np.ndarray]) -> "SidePoints":
        """At shares of each arc."""
        x = np.concatenate([arc.at(own) for arc, own in zip(arcs, shares, strict=True)])
        out = [turned(arc.direction(own)) for arc, own in zip(arcs, shares, strict=True)]
        normal = np.concatenate(out)
        number = np.repeat(np.arange(len(arcs)), [len(own) for own in shares])
        return SidePoints(x, normal / np.linalg.norm(normal, axis=1, keepdims=True), number)


class SideData(NamedTuple):
    """What is given on each arc, in the order of `domain.arcs`: u, or ∂ₙu + κu. Called with a point
    of the boundary, what holds on the nearest arc."""

    domain: Region
    functions: tuple[Function, ...]
    # Whether all of them are zero.
    zero: bool = False

    def __call__(self, x: Array) -> Array:
        gaps = jnp.stack([_gap(arc, x) for arc in self.domain.arcs])
        nearest, total = jnp.argmin(gaps), jnp.zeros(())
        for k, function in enumerate(self.functions):
            total = jnp.where(nearest == k, function(x), total)
        return total

    def on(self, points: SidePoints) -> np.ndarray:
        found = np.zeros(len(points.x))
        for k, function in enumerate(self.functions):
            here = points.number == k
            if np.any(here):
                found[here] = np.asarray(jax.jit(jax.vmap(function))(jnp.asarray(points.x[here])))
        return found


class SideConditions(NamedTuple):
    """The weights of ∂ₙu and of u in what is given on each arc."""

    slope: np.ndarray
    value: np.ndarray

    @staticmethod
    def of(domain: Region) -> "SideConditions":
        kappas = [arc.kappa for arc in domain.arcs]
        slope = np.array([0.0 if kappa is None else 1.0 for kappa in kappas])
        return SideConditions(slope, np.array([1.0 if k is None else k for k in kappas]))


def with_conditions(
    domain: AbstractDomain, kappas: Sequence[float | None], names: Sequence[str]
) -> Region:
    """The domain that knows what is given on its arcs: None for u, κ for ∂ₙu + κu."""
    arcs, loops = iter(zip(kappas, names, strict=True)), []
    for loop in _named_loops(domain):
        own = [next(arcs) for _ in loop]
        loops.append(
            tuple(arc._replace(kappa=kappa) for arc, (kappa, _) in zip(loop, own, strict=True))
        )
    said = ", ".join(
        f"{name}: {_in_words(kappa)}" for name, kappa in zip(names, kappas, strict=True)
    )
    return Region(loops, f"{domain!r} with {said}")


def has_sides(domain: AbstractDomain) -> bool:
    """Whether the boundary is known as arcs."""
    known = loops_of.dispatch(type(domain)) is not loops_of.dispatch(object)
    return domain.dimension == 2 and known


def sides_of(domain: AbstractDomain) -> list[tuple[str, str]]:
    """The piece of each arc, and a name of its own: `outer 2` is the second arc of `outer`, in the
    order of the boundary."""
    arcs, found = [arc for loop in _named_loops(domain) for arc in loop], []
    count: dict[str, int] = {}
    for arc in arcs:
        count[arc.piece] = count.get(arc.piece, 0) + 1
        found.append((arc.piece, f"{arc.piece} {count[arc.piece]}"))
    return found


def _named_loops(domain: AbstractDomain) -> list[tuple[Arc, ...]]:
    """As in a `Region`; of a convex polygon the arcs have the names of its sides."""
    loops = list(loops_of(domain))
    if len(domain.pieces) == sum(map(len, loops)):
        names = iter(domain.pieces)
        loops = [tuple(arc._replace(piece=next(names)) for arc in loop) for loop in loops]
    return loops


def _in_words(kappa: float | None) -> str:
    if kappa is None:
        return "D"
    return "N" if kappa == 0 else f"R({kappa:.17g})"


def graded_sides(domain: Region, count: int) -> SidePoints:
    """`Region.graded_points`, without the ends of sides with a flux: there is no normal."""
    arcs = domain.arcs
    shares = [
        own[(own > 0) & (own < 1)] if arc.kappa is not None else own
        for arc, own in zip(arcs, domain.graded_shares(count), strict=True)
    ]
    return SidePoints.on(arcs, shares)


def fluxes(domain: Any) -> bool:
    """Whether a flux is given anywhere on the boundary of a domain of the plane."""
    return isinstance(domain, Region) and any(arc.kappa is not None for arc in domain.arcs)


def _gap(arc: Arc, x: Array) -> Array:
    """The distance of a point from an arc."""
    if arc.v is None:
        start, end = np.array(arc.start), np.array(arc.end)
        along = end - start
        share = jnp.clip((x - start) @ along / float(along @ along), 0, 1)
        return jnp.linalg.norm(x - start - share * along)
    frame = np.array([arc.u, arc.v]).T
    local = jnp.asarray(np.linalg.inv(frame)) @ (x - np.array(arc.a))
    low, high = min(arc.first, arc.last), max(arc.first, arc.last)
    middle = (low + high) / 2
    t = middle + jnp.remainder(jnp.arctan2(local[1], local[0]) - middle + jnp.pi, 2 * jnp.pi)
    t = jnp.clip(t - jnp.pi, low, high)
    return jnp.linalg.norm(x - np.array(arc.a) - frame @ jnp.stack([jnp.cos(t), jnp.sin(t)]))
