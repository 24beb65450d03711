"""Random problems with one small feature and answers with a known error, for `hidden_battery`.

A case has a number, and all of it follows from the number and the seed. The feature has a width of
0.001 to 0.3 of the diameter of the largest ball in the domain. It is part of the answer, of the
data, or of both sides of the boundary; or the data have it and the answer knows nothing of it
(`Blind`), so that the solution is unknown, but Δv is known since A is a multiple of I.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from hidden_places import (
    BOUNDARY,
    CONVEX,
    POLE,
    Domain,
    Place,
    Truth,
    by_duality,
    draw_domain,
    draw_place,
    feature,
    jets,
    matrix,
    pole_norm,
    rotation,
    smooth_solution,
)

import cordes

Array = np.ndarray
FAMILIES = ("linear", "hjb", "monge-ampere", "transport")
SHARES = (0.6, 0.17, 0.15, 0.08)
PLANTED = ("bump", "gaussian", "needle", "shell", "ridge")
BLIND = ("peak", "inclusion", "undeclared", "table 1", "table 3", "table of A", "pole")
KINDS = {
    "linear": (*PLANTED, *PLANTED, *BLIND, *BOUNDARY),
    "hjb": (*PLANTED, "peak", "inclusion", "undeclared", "table of A"),
    "monge-ampere": PLANTED,
    "transport": ("bump", "needle", "shell"),
}
# Every tenth case is a whole solve, every sixteenth of those of transport: 19 of 3,000 cases.
SOLVED, TRANSPORTED = 10, 16
# The share of λ_min(D²u) that a planted error of a convex function may have.
BENT = 0.4
CONTROLS = np.arange(3.0)


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


def outline(number: int, seed: int) -> tuple[str, str, Domain, float, bool, np.random.Generator]:
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
    domain: Domain,
    place: Place,
    solved: bool,
) -> tuple[Any, Callable, Truth, Callable, Array]:
    """The feature times a function that vanishes on the boundary, as a part of the answer or of
    the solution; the other of the two is smooth. A whole solve has it in the solution."""
    convex, shape, zero = family in CONVEX, feature(kind, place), domain.distance
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
        height = BENT * float(np.linalg.eigvalsh(curvature)[0]) / steepest
    value, gradient, hessian = (height * part for part in jet)
    truth = Truth(weight, value, gradient, hessian, {})

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
    rng: np.random.Generator, family: str, domain: Domain, exact: Callable, g: Callable
) -> Any:
    """A problem with the given solution."""
    d, length = domain.dimension, 2 * domain.inradius
    hessian = jax.hessian(exact)
    if family == "transport":
        return cordes.Transport(domain, lambda x: jnp.linalg.det(hessian(x)))
    if family == "monge-ampere":
        return cordes.MongeAmpere(domain, lambda x: jnp.linalg.det(hessian(x)), g=g)
    if family == "hjb":
        table = jnp.asarray([matrix(rotation(rng, d), rng.uniform(0.7, 1.4, d)) for _ in range(3)])
        more = surplus(rng, domain)

        def source(x: Any, a: Any) -> Any:
            return jnp.sum(table[a.astype(int)] * hessian(x)) + more(x, a)

        return cordes.HJB(domain, CONTROLS, lambda x, a: table[a.astype(int)], source, g=g)
    A = np.eye(d) if rng.random() < 0.4 else matrix(rotation(rng, d), rng.uniform(0.6, 1.6, d))
    lower = rng.random() < 0.3
    b, c = lower * rng.normal(size=d) / length, lower * rng.uniform(0, 3) / length**2

    def right(x: Any) -> Any:
        first = b @ jax.grad(exact)(x) - c * exact(x) if lower else 0.0
        return jnp.sum(A * hessian(x)) + first

    return cordes.Linear(domain, A, right, b=b, c=c, g=g)


def surplus(rng: np.random.Generator, domain: Domain) -> Callable:
    """s_a ≥ 0 of the controls, one of which is zero at each point; which one changes."""
    length = 2 * domain.inradius
    slopes = rng.normal(size=(len(CONTROLS), domain.dimension)) / length

    def more(x: Any, a: Any) -> Any:
        heights = jnp.cos(slopes @ (x - domain.center))
        return (heights[a.astype(int)] - jnp.min(heights)) / length**2

    return more


# Data that the answer knows nothing of ----------------------------------------------------------


def blind(
    rng: np.random.Generator, family: str, kind: str, domain: Domain, place: Place
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
        sizes, more = jnp.asarray(rng.uniform(0.5, 2, 3)), surplus(rng, domain)
        problem = cordes.HJB(
            domain,
            CONTROLS,
            lambda x, a: sizes[a.astype(int)] * ratio(x) * jnp.eye(d),
            lambda x, a: sizes[a.astype(int)] * (right(x) + more(x, a)),
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
    unknown = np.zeros(0)
    if kind == "pole":
        found = {"energy": pole_norm(place, d) * height / length**2}
    return problem, answer, Truth(weight, unknown, unknown, unknown, found), None, x


def hidden(
    rng: np.random.Generator, kind: str, domain: Domain, place: Place, height: float
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
