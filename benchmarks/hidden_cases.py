"""Random problems with one small feature and answers with a known error, for `hidden_battery`.

A case has a number, and all of it follows from the number and the seed. The feature has a width of
0.001 to 0.3 of the diameter of the largest ball in the domain. It is part of the answer, of the
data, or of both sides of the boundary; or the data have it and the answer knows nothing of it
(`Blind`), so that the solution is unknown, but Δv is known since A is a multiple of I.
"""

import itertools
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

import cordes
from cordes.domains import AbstractDomain

Array = np.ndarray
FAMILIES = ("linear", "hjb", "monge-ampere", "transport")
SHARES = (0.6, 0.17, 0.15, 0.08)
PLANTED = ("bump", "gaussian", "needle", "shell", "ridge")
BLIND = ("peak", "inclusion", "undeclared", "table 1", "table 3", "table of A", "pole")
BOUNDARY = ("bump of g", "bump at g")
KINDS = {
    "linear": (*PLANTED, *PLANTED, *BLIND, *BOUNDARY),
    "hjb": (*PLANTED, "peak", "inclusion", "undeclared", "table of A"),
    "monge-ampere": PLANTED,
    "transport": ("bump", "needle", "shell"),
}
# Every tenth case is a whole solve, every sixteenth of those of transport: 19 of 3,000 cases.
SOLVED, TRANSPORTED = 10, 16
GRID = {2: 300, 3: 60}
# The share of λ_min(D²u) that a planted error of a convex function may have.
CONVEX = 0.4


class Place(NamedTuple):
    """Where the feature is: its middle, its width, a rotation, and for each turned axis how many
    widths it is long and how many the grid around it reaches."""

    middle: Array
    width: float
    turned: Array
    stretch: Array
    reach: Array

    def local(self, x: Any) -> Any:
        return (x - self.middle) @ self.turned / (self.width * self.stretch)

    def grid(self, domain: AbstractDomain) -> tuple[Array, float]:
        """Points of a midpoint rule around the feature that lie in the domain, and their weight:
        what is summed over them is less than the integral over the domain."""
        d = len(self.middle)
        n, half = GRID[d], self.reach * self.stretch * self.width
        unit = (2 * np.arange(n) + 1) / n - 1
        y = np.array(list(itertools.product(unit, repeat=d))) * half
        x = self.middle + y @ self.turned.T
        return x[domain.contains(x)], float(np.prod(2 * half / n))


class Truth(NamedTuple):
    """The planted error at the points of a grid: its jet where it is known, else its Laplacian and
    lower bounds of its norms."""

    weight: float
    value: Array
    gradient: Array
    hessian: Array
    known: dict[str, float]

    def norms(self, lambda_: float, volume: float) -> dict[str, float]:
        """Numbers below which no bound may lie."""

        def norm(values: Array) -> float:
            return float(np.sqrt(self.weight * np.sum(values**2)))

        if self.known:
            return self.known
        L2, laplacian = norm(self.value), np.trace(self.hessian, axis1=1, axis2=2)
        found = {"L2": L2, "rms": L2 / volume**0.5, "Linf": float(np.max(np.abs(self.value)))}
        found |= {"H1": norm(self.gradient), "H2": norm(self.hessian)}
        return found | {"energy": norm(laplacian - lambda_ * self.value)}


class Case(NamedTuple):
    """`exact` is the solution, where it is known."""

    number: int
    family: str
    kind: str
    domain: str
    share: float
    problem: Any
    answer: Callable
    truth: Truth
    exact: Callable | None
    points: Array
    solved: bool


def draw_domain(rng: np.random.Generator, d: int, family: str) -> AbstractDomain:
    size, longest = 10 ** rng.uniform(-3, 3), 1 if family in FAMILIES[2:] else 3
    center, kind = size * rng.normal(size=d), rng.integers(4)
    if family == "transport" or kind == 0 or (d == 3 and kind < 2):
        sides = size * np.ones(d)
        sides[rng.integers(d)] *= 10 ** rng.uniform(0, longest)
        return cordes.Box(center - sides / 2, center + sides / 2)
    if kind == 1 or d == 3:
        return cordes.Ball(center, size)
    turn = rotation(rng, 2)
    axes = turn * size * np.array([1.0, 10 ** rng.uniform(0, longest / 2)])
    if kind == 2:
        return cordes.Ellipsoid(center, axes)
    corners = rng.integers(3, 7)
    angles = 2 * np.pi * (np.arange(corners) + rng.uniform(-0.3, 0.3, corners)) / corners
    return cordes.Polygon(center + np.stack([np.cos(angles), np.sin(angles)], axis=1) @ axes.T)


def rotation(rng: np.random.Generator, d: int) -> Array:
    return np.linalg.qr(rng.normal(size=(d, d)))[0]


def draw_place(rng: np.random.Generator, kind: str, domain: AbstractDomain, share: float) -> Place:
    d, width = domain.dimension, 2 * share * domain.inradius
    inside = domain.interior_points(1, int(rng.integers(1 << 30)))[0]
    if kind in BOUNDARY:
        middle = domain.boundary_points(1, int(rng.integers(1 << 30)))[0][0]
    else:
        near = min(0.85, 1 - 1.02 * width / domain.inradius)
        middle = domain.center + near * (inside - domain.center)
    turned, stretch, reach = np.eye(d), np.ones(d), np.full(d, 1.02)
    if kind in ("needle", "ridge"):
        turned = rotation(rng, d)
        stretch[0] = 10.0
    if kind == "ridge":
        # The grid looks at a part of it.
        stretch[1:], reach = domain.inradius / width, np.ones(d)
        stretch[0], reach[0] = 1.0, 4.0
    if kind == "gaussian":
        reach = 4 * reach
    if kind == "shell":
        reach = 1.85 * reach
    return Place(middle, width, turned, stretch, reach)


def feature(kind: str, place: Place) -> Callable:
    """A function of height one."""

    def square(x: Any) -> Any:
        return jnp.sum(place.local(x) ** 2)

    if kind == "shell":
        return lambda x: jnp.maximum(1 - (square(x) - 2.25) ** 2, 0.0) ** 4
    if kind == "ridge":
        return lambda x: jnp.exp(-(place.local(x)[0] ** 2))
    if kind == "gaussian":
        return lambda x: jnp.exp(-square(x))
    return lambda x: jnp.maximum(1 - square(x), 0.0) ** 4


def smooth_solution(rng: np.random.Generator, domain: AbstractDomain, convex: bool) -> Callable:
    """A quadratic function with values of about one, and a wave where it need not be convex."""
    d = domain.dimension
    low, high = (np.asarray(corner) for corner in domain.bounding_box)
    scale, waves = (high - low) / 2, 0.0 if convex else 0.3
    turn = rotation(rng, d)
    Q, k = turn @ np.diag(rng.uniform(0.5, 1.5, d)) @ turn.T, rng.normal(size=d)

    def u(x: Any) -> Any:
        y = (x - domain.center) / scale
        return 0.5 * y @ Q @ y + waves * jnp.sin(k @ y)

    return u


def jets(function: Callable, x: Array) -> tuple[Array, Array, Array]:
    """Values, gradients and Hessians at points."""
    at = jax.jit(jax.vmap(lambda x: (function(x), jax.grad(function)(x), jax.hessian(function)(x))))
    parts = [at(part) for part in np.array_split(x, max(1, len(x) // 30_000))]
    value, gradient, hessian = (np.concatenate(each) for each in zip(*parts, strict=True))
    return value, gradient, hessian


def outline(
    number: int, seed: int
) -> tuple[str, str, AbstractDomain, float, bool, np.random.Generator]:
    """Family, kind, domain, width, whether it is solved, and the generator for the rest."""
    rng = np.random.default_rng([seed, number])
    solved = number % SOLVED == 0
    family = str(rng.choice(FAMILIES, p=SHARES))
    if solved:
        rest = FAMILIES[rng.choice(3, p=np.array(SHARES[:3]) / sum(SHARES[:3]))]
        family = "transport" if number // SOLVED % TRANSPORTED == 0 else rest
    kinds = [k for k in KINDS[family] if not (solved and k in BLIND)]
    kind, d = str(rng.choice(kinds)), 2 if rng.random() < 0.85 else 3
    domain = draw_domain(rng, d, family)
    return family, kind, domain, float(10 ** rng.uniform(-3, np.log10(0.3))), solved, rng


def draw(number: int, seed: int) -> Case:
    """A case by its number."""
    family, kind, domain, share, solved, rng = outline(number, seed)
    place = draw_place(rng, kind, domain, share)
    known = number, family, kind, type(domain).__name__, share
    if kind in BLIND:
        return Case(*known, *blind(rng, family, kind, domain, place), solved=False)
    return Case(*known, *planted(rng, family, kind, domain, place, solved), solved=solved)


# Errors that are planted ------------------------------------------------------------------------


def planted(
    rng: np.random.Generator,
    family: str,
    kind: str,
    domain: AbstractDomain,
    place: Place,
    solved: bool,
) -> tuple[Any, Callable, Truth, Callable, Array]:
    """The feature times a function that vanishes on the boundary, as a part of the answer or of
    the solution; the other of the two is smooth. A whole solve has it in the solution."""
    convex, shape, zero = family in FAMILIES[2:], feature(kind, place), domain.distance
    smooth = smooth_solution(rng, domain, convex)
    if family == "transport":
        smooth = lambda x: 0.5 * jnp.sum(x**2)  # noqa: E731
    power = 0 if kind in BOUNDARY else 2 if family == "transport" else 1
    top = float(zero(jnp.asarray(place.middle))) if power else 1.0
    background = 0.0 if convex else 10 ** rng.uniform(-8, -2)
    whole = float(zero(jnp.asarray(domain.center)))

    def unit(x: Any) -> Any:
        rest = background * zero(x) / whole if background else 0.0
        return shape(x) * (zero(x) / top) ** power + rest

    x, weight = place.grid(domain)
    jet = jets(unit, x)
    height = 10 ** rng.uniform(-3, 0)
    if convex:
        curvature = np.asarray(jax.hessian(smooth)(jnp.asarray(domain.center)))
        steepest = np.max(np.linalg.norm(jet[2], ord=2, axis=(1, 2)))
        height = CONVEX * float(np.linalg.eigvalsh(curvature)[0]) / steepest
    truth = Truth(weight, *(height * part for part in jet), {})

    def other(x: Any) -> Any:
        return smooth(x) + height * unit(x)

    in_data = solved or kind == "bump of g" or (kind != "bump at g" and rng.random() < 0.5)
    exact, answer = (other, smooth) if in_data else (smooth, other)
    problem = equation(rng, family, domain, exact, exact if kind in BOUNDARY else smooth)
    return problem, answer, with_map(problem, family, truth, x), exact, x


def with_map(problem: Any, family: str, truth: Truth, x: Array) -> Truth:
    """Of transport the error of the map is known, in L²(μ)."""
    if family != "transport":
        return truth
    square = np.sum(truth.gradient**2, axis=1) * problem.source_density(x)
    return truth._replace(known={"map_L2": float(np.sqrt(truth.weight * np.sum(square)))})


def equation(
    rng: np.random.Generator, family: str, domain: AbstractDomain, exact: Callable, g: Callable
) -> Any:
    """A problem with the given solution."""
    d, length = domain.dimension, 2 * domain.inradius
    hessian = jax.hessian(exact)
    if family == "transport":
        return cordes.Transport(domain, lambda x: jnp.linalg.det(hessian(x)))
    if family == "monge-ampere":
        return cordes.MongeAmpere(domain, lambda x: jnp.linalg.det(hessian(x)), g=g)
    turn = rotation(rng, d)
    if family == "hjb":
        matrices = [matrix(rotation(rng, d), rng.uniform(0.7, 1.4, d)) for _ in range(3)]
        table, slopes = np.array(matrices), rng.normal(size=(3, d)) / length

        def source(x: Any, a: Any) -> Any:
            heights = jnp.cos(slopes @ (x - domain.center))
            k = a.astype(int)
            surplus = heights[k] - jnp.min(heights)
            return jnp.sum(jnp.asarray(table)[k] * hessian(x)) + surplus / length**2

        return cordes.HJB(
            domain, np.arange(3.0), lambda x, a: jnp.asarray(table)[a.astype(int)], source, g=g
        )
    A = np.eye(d) if rng.random() < 0.4 else matrix(turn, rng.uniform(0.6, 1.6, d))
    lower = rng.random() < 0.3
    b, c = lower * rng.normal(size=d) / length, lower * rng.uniform(0, 3) / length**2

    def right(x: Any) -> Any:
        first = b @ jax.grad(exact)(x) - c * exact(x) if lower else 0.0
        return jnp.sum(A * hessian(x)) + first

    return cordes.Linear(domain, A, right, b=b, c=c, g=g)


def matrix(turn: Array, values: Array) -> Array:
    found = turn @ np.diag(values) @ turn.T
    return (found + found.T) / 2


# Data that the answer knows nothing of ----------------------------------------------------------


def blind(
    rng: np.random.Generator, family: str, kind: str, domain: AbstractDomain, place: Place
) -> tuple[Any, Callable, Truth, None, Array]:
    """ρΔw = f, where ρ or f has the feature and the answer u solves the equation without it. For
    several controls with A = ρ_a ρ I the best one is that with s_a = 0, and w is the same."""
    d, u = domain.dimension, smooth_solution(rng, domain, False)
    height = 10 ** rng.uniform(-1, 1)
    ratio, source, interfaces, place = hidden(rng, kind, domain, place, height)
    laplacian = lambda x: jnp.trace(jax.hessian(u)(x))  # noqa: E731
    length, background = 2 * domain.inradius, 10 ** rng.uniform(-8, -5)
    whole = float(domain.distance(jnp.asarray(domain.center)))

    def right(x: Any) -> Any:
        return laplacian(x) + source(x) / length**2

    if family == "hjb":
        sizes, slopes = rng.uniform(0.5, 2, 3), rng.normal(size=(3, d)) / length

        def each(x: Any, a: Any) -> Any:
            heights, k = jnp.cos(slopes @ (x - domain.center)), a.astype(int)
            surplus = (heights[k] - jnp.min(heights)) / length**2
            return jnp.asarray(sizes)[k] * (right(x) + surplus)

        problem = cordes.HJB(
            domain,
            np.arange(3.0),
            lambda x, a: jnp.asarray(sizes)[a.astype(int)] * ratio(x) * jnp.eye(d),
            each,
            g=u,
            interfaces=interfaces,
        )
    else:
        problem = cordes.Linear(
            domain, lambda x: ratio(x) * jnp.eye(d), right, g=u, interfaces=interfaces
        )

    def answer(x: Any) -> Any:
        return u(x) + background * domain.distance(x) / whole

    x, weight = place.grid(domain)
    missing = jax.jit(jax.vmap(lambda x: right(x) / ratio(x) - laplacian(x)))
    values = np.concatenate([np.asarray(missing(part)) for part in np.array_split(x, 8)])
    found = by_duality(domain, x, weight, values, background)
    if kind == "pole":
        found = {"energy": pole_norm(place, d) * height / length**2}
    return problem, answer, Truth(weight, *(np.zeros(1),) * 3, found), None, x


POLE = 0.45


def hidden(
    rng: np.random.Generator, kind: str, domain: AbstractDomain, place: Place, height: float
) -> tuple[Callable, Callable, list[Callable], Place]:
    """ρ, what f has more, declared interfaces, and the place (tables have places of their own)."""
    one, none = (lambda x: 1.0), (lambda x: 0.0)
    bump, d = feature("bump", place), len(place.middle)
    circle = lambda x: jnp.sum(place.local(x) ** 2) - 1  # noqa: E731
    if kind == "peak":
        return lambda x: 1 + height * bump(x), none, [], place
    if kind in ("inclusion", "undeclared"):
        ratio = lambda x: jnp.where(circle(x) < 0, 1 + height, 1.0)  # noqa: E731
        return ratio, none, [circle] if kind == "inclusion" else [], place
    if kind == "pole":

        def pole(x: Any) -> Any:
            return height * bump(x) * jnp.sum(place.local(x) ** 2) ** (-POLE * d / 2)

        return one, pole, [], place
    low, high = (np.asarray(corner) for corner in domain.bounding_box)
    count = np.clip(np.round((high - low) / place.width), 8, {2: 200, 3: 30}[d]).astype(int)
    pixel = np.clip(np.round((place.middle - low) / (high - low) * count), 1, count - 1).astype(int)
    values, order = np.zeros(count + 1), 3 if kind == "table 3" else 1
    values[tuple(pixel)] = height
    table, steps = cordes.interpolate(values, domain, order), (high - low) / count
    reach = np.full(d, {1: 1.0, 3: 5.0}[order])
    here = Place(low + pixel * steps, 1.0, np.eye(d), steps, reach)
    if kind == "table of A":
        return lambda x: 1 + table(x), none, [], here
    return one, table, [], here


def pole_norm(place: Place, d: int) -> float:
    """‖(1 - s²)⁴ s^(-a)‖ over a ball of the width, a = POLE · d: a Beta function."""
    from scipy.special import beta

    sphere = {2: 2 * np.pi, 3: 4 * np.pi}[d]
    return float(np.sqrt(sphere * place.width**d * beta(d / 2 - POLE * d, 9) / 2))


def by_duality(
    domain: AbstractDomain, x: Array, weight: float, laplacian: Array, background: float
) -> dict[str, float]:
    """Lower bounds of v from Δv, which vanishes away from x: ∫vΔφ = ∫φΔv for φ = 0 on the
    boundary. What the answer has besides is taken off."""
    zero = jax.jit(jax.vmap(domain.distance))
    bent = jax.jit(jax.vmap(lambda x: jnp.trace(jax.hessian(domain.distance)(x))))
    y, w = domain.quadrature(24)
    test, height = np.asarray(bent(y)), np.asarray(zero(y)) / float(zero(domain.center[None])[0])
    moment = abs(weight * float(np.asarray(zero(x)) @ laplacian))
    rest = background * float(np.sqrt(w @ height**2))
    L2 = max(0.0, moment / float(np.sqrt(w @ test**2)) - rest)
    Linf = max(0.0, moment / float(w @ np.abs(test)) - 2 * background * np.max(height))
    bent_rest = background * float(np.max(np.abs(test))) / float(zero(domain.center[None])[0])
    energy = np.sqrt(weight * np.sum(np.maximum(np.abs(laplacian) - bent_rest, 0.0) ** 2))
    return {"L2": L2, "rms": L2 / domain.volume**0.5, "Linf": Linf, "energy": float(energy)}
