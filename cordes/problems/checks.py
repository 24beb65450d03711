"""What every kind of problem asks of its domain, interfaces and boundary values when it is made,
and the search for jumps that no interface explains."""

import warnings
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from cordes.domains.domain import AbstractDomain
from cordes.domains.plane.region import Region
from cordes.errors import CoefficientError, DomainError, FrozenError, shown
from cordes.formulas.fingerprint import fingerprint
from cordes.formulas.intervals import UnsupportedOperation, enclose
from cordes.formulas.intervals.suprema import outside_of
from cordes.formulas.regularity import kink
from cordes.formulas.regularity.distances import without_root
from cordes.jet import Jet
from cordes.problems.coefficients import at_points, check_finite, checked_sample, sample
from cordes.problems.kinks.boundary_kinks import BoundaryShape, KinkWarning, boundary_shape
from cordes.problems.kinks.jumps import Jump, find_jumps
from cordes.runtime.plain import show

if TYPE_CHECKING:
    from cordes.problems.problem import AbstractProblem

CHECK_POINTS = 2000
# Paths along an arc of a boundary, in shares of its length.
ARC_PATHS = np.array([[0.0], [1.0], [0.31]]), np.array([[0.5], [0.5], [0.69]])
# Boxes in which the zeros of an interface are looked for: how often they are halved, and how many
# are kept.
HALVINGS, MOST_BOXES = 40, 4096
# Entries of matrices that are looked at, and that are kept for each step along a chord: in many
# dimensions there are fewer points and chords.
CHECKED_NUMBERS, CHORD_NUMBERS = 2_000_000, 200_000


class UndeclaredJumpWarning(UserWarning):
    """A coefficient jumps where no interface was declared."""


def check_domain(domain: Any, convex: bool = True) -> None:
    """Whether it is a domain, and a convex one where one is needed."""
    if not isinstance(domain, AbstractDomain):
        raise CoefficientError(
            f"domain is {domain!r}: pass a Box, Ball, Ellipsoid, Polygon or a subclass of the "
            "abstract domain."
        )
    if convex and not domain.convex:
        raise DomainError(
            f"{domain!r} is not convex: there only Linear problems are posed so far. Take a "
            "convex domain that contains it, or its convex parts."
        )


def check_interfaces(
    interfaces: Sequence[Callable[..., Any]], domain: AbstractDomain
) -> tuple[Callable[[Array], Array], ...]:
    """Each interface is a scalar function of one point with a finite jet that changes sign in the
    domain. Distances less a number, √q - c, are replaced by the multiple of q - c² that has their
    slope on the zero set: answers are made of interfaces, and have their kinks."""
    if callable(interfaces):
        raise CoefficientError("interfaces is a function: pass a list of functions, [phi].")
    if not isinstance(interfaces, Iterable):
        raise CoefficientError(f"interfaces is {shown(interfaces)}: pass a list of functions.")
    points, kept = domain.interior_points(CHECK_POINTS, seed=12), []
    for k, phi in enumerate(interfaces):
        name = f"interfaces[{k}]"
        if not callable(phi):
            raise CoefficientError(
                f"{name} is {phi!r}: an interface is a function of one point whose zero set is "
                "where D²u may jump."
            )
        values = checked_sample(name, phi, (), points)
        slopes = sample(jax.grad(lambda x, phi=phi: jnp.asarray(phi(x), float)), points)
        check_finite(f"the gradient of {name}", slopes, points)
        if (np.all(values > 0) or np.all(values < 0)) and keeps_sign(phi, domain):
            raise CoefficientError(
                f"{name} does not change sign in the domain: its values lie in "
                f"[{values.min():.6g}, {values.max():.6g}] at {CHECK_POINTS} points. Leave it "
                "out."
            )
        twin = without_root(phi, points[:64]) if kink(phi, domain) is not None else None
        kept.append(phi if twin is None else twin)
    return tuple(kept)


def keeps_sign(phi: Callable[..., Any], domain: AbstractDomain) -> bool:
    """Whether a function has one sign in the whole domain, for all that its formula tells: boxes
    in which it may vanish are halved until none is left, or one has points of both signs. Without
    a formula, or in many dimensions, the points that were looked at have to do."""
    if domain.dimension > 3:
        return True
    low, high = (np.asarray(corner, float) for corner in domain.bounding_box)
    lower, upper, outside = low[None], high[None], outside_of(domain)
    values, enclosure, sides = at_points(phi), enclose(phi), set()
    for step in range(HALVINGS):
        try:
            pieces = enclosure(lower, upper)
        except UnsupportedOperation:
            return True
        may_vanish = np.any([(p.lower <= 0) & (p.upper >= 0) for p in pieces], axis=0)
        kept = may_vanish & ~outside(lower, upper)
        lower, upper = lower[kept][:MOST_BOXES], upper[kept][:MOST_BOXES]
        if not len(lower):
            return True
        middle = (lower + upper) / 2
        inside = domain.contains(middle)
        sides |= set(np.sign(values(middle[inside])).tolist()) if np.any(inside) else set()
        if len(sides - {0.0}) > 1:
            return False
        axis = np.arange(domain.dimension) == step % domain.dimension
        lower, upper = (
            np.concatenate([lower, np.where(axis, middle, lower)]),
            np.concatenate([np.where(axis, middle, upper), upper]),
        )
    return False


def check_boundary_data(
    g: Callable[..., Any], domain: AbstractDomain, follows_kinks: bool = True
) -> BoundaryShape:
    """g is finite and continuous on the boundary; paths run along it, across corners and edges.
    Gives its kinks, and warns about what no answer can follow, kinks among it where the kind of
    equation does not."""
    points, _ = domain.boundary_points(500, seed=13)
    checked_sample("g", g, (), points, " of the boundary")
    if domain.dimension == 1:
        return BoundaryShape()  # Two points: nothing runs along them.
    if isinstance(domain, Region):
        _check_along_arcs(g, domain)
        return _warned(boundary_shape(g, domain), follows_kinks)
    generator = np.random.default_rng(14)
    directions = generator.standard_normal((64, domain.dimension))
    starts, ends = directions, np.roll(directions, 1, axis=0)
    if domain.vertices is not None:
        # Every corner is the start of a path along each of its two edges, so that a value at the
        # corner alone is seen too.
        corners = domain.vertices - domain.center
        following = np.roll(corners, -1, axis=0)
        starts = np.concatenate([starts, corners, following])
        ends = np.concatenate([ends, (corners + following) / 2, (corners + following) / 2])
    evaluate = jax.jit(jax.vmap(g))
    for jump in find_jumps(lambda x: evaluate(domain.boundary_at(x)), starts, ends):
        _refuse_jump(domain.boundary_at(jump.point), jump)
    return _warned(boundary_shape(g, domain), follows_kinks)


def _refuse_jump(place: np.ndarray, jump: Jump) -> None:
    raise CoefficientError(
        f"g is not continuous on the boundary: near {show(place)} it jumps from "
        f"{show(jump.before[0])} to {show(jump.after[0])}. No function in H² has such boundary "
        "values: smooth g there, or split the problem."
    )


def _check_along_arcs(g: Callable[..., Any], domain: Region) -> None:
    """Along each arc by itself, ends included: with another value at a corner g jumps there."""
    evaluate = jax.jit(jax.vmap(g))
    for arc in domain.arcs:
        for jump in find_jumps(lambda s, arc=arc: evaluate(arc.at(s[:, 0])), *ARC_PATHS):
            _refuse_jump(arc.at(jump.point[:1])[0], jump)


def _warned(shape: BoundaryShape, follows_kinks: bool) -> BoundaryShape:
    """With a warning about what no answer can follow."""
    if shape.kinks and not follows_kinks:
        place = show(shape.kinks[0].location)
        shape = BoundaryShape(
            rough=f"g has a kink at x = {place}, which this equation cannot follow"
        )
    if shape.rough is not None:
        warnings.warn(
            f"{shape.rough}. The answer will be wrong around it, and is not called converged: "
            "smooth g there.",
            KinkWarning,
            stacklevel=5,
        )
    return shape


def warn_about_jumps(
    functions: dict[str, Callable[..., Any]],
    domain: AbstractDomain,
    interfaces: Sequence[Callable[..., Any]],
) -> None:
    """Bisect along random chords; a jump that no declared interface explains is reported once for
    each coefficient."""
    chords = max(12, min(96, CHORD_NUMBERS // domain.dimension**2))
    points = domain.interior_points(2 * chords, seed=15)
    # Chords join points on the same side of every interface: each path shows one jump at most, and
    # a declared one must not hide another.
    sides = np.stack([np.zeros(len(points)), *(sample(phi, points) > 0 for phi in interfaces)])
    points = points[np.lexsort(sides)]
    starts, ends = points[0::2], points[1::2]
    lower, upper = domain.bounding_box
    size = float(np.max(upper - lower))
    for name, function in functions.items():
        for jump in find_jumps(jax.jit(jax.vmap(function)), starts, ends):
            if any(
                abs(float(phi(jump.point)))
                <= 1e-6 * size * (1e-9 + float(jnp.linalg.norm(jax.grad(phi)(jump.point))))
                for phi in interfaces
            ):
                continue
            if "f32[" in str(jax.make_jaxpr(function)(jnp.asarray(jump.point))):
                warnings.warn(
                    f"{name} is computed in single precision (float32): its rounding is seen as "
                    f"jumps, near x = {show(jump.point)} for instance, and limits every bound. "
                    "Compute it in float64, which x has.",
                    UndeclaredJumpWarning,
                    stacklevel=4,
                )
                break
            heights = np.abs(jump.after - jump.before)
            change = np.flatnonzero(heights > 0.5 * np.max(heights))[0]
            warnings.warn(
                f"{name} jumps near x = {show(jump.point)} from {jump.before[change]:.6g} to "
                f"{jump.after[change]:.6g} and no interface is declared there. Smooth features "
                "converge slowly across a jump: pass interfaces=[phi] with phi = 0 on it.",
                UndeclaredJumpWarning,
                stacklevel=4,
            )
            break


def fingerprints(problem: "AbstractProblem") -> dict[str, str | None]:
    """What is computed of a problem, part by part: the data by their names, then everything that
    the equation is made of."""
    d = problem.domain.dimension
    x, value = jax.ShapeDtypeStruct((d,), np.float64), jax.ShapeDtypeStruct((), np.float64)
    jet = Jet(value, x, jax.ShapeDtypeStruct((d, d), np.float64))
    parts = {name: fingerprint(function, x) for name, function in problem.data().items()}
    if problem.takes_boundary_values:
        parts["g"] = fingerprint(problem.g, x)
    parts |= {f"interfaces[{k}]": fingerprint(phi, x) for k, phi in enumerate(problem.interfaces)}
    return parts | {"the equation": fingerprint(problem.residual, x, jet)}


def check_unchanged(problem: "AbstractProblem") -> None:
    """Refuse data that read an array which is not what it was when the problem was made: what was
    compiled then, and what was answered, speak of the data as they were."""
    now = fingerprints(problem)
    other = [name for name, mark in problem.marks.items() if now[name] != mark]
    if other:
        raise FrozenError(
            f"{other[0]} of {problem!r} is not what it was when the problem was made: an array or "
            "a variable that it reads was changed since. Make another problem of the data as they "
            "are now: problem.replace()."
        )
