"""Jumps of the data that no interface declares, and of the gradient of an answer across the rays of
its singular functions."""

import functools
import math
from collections.abc import Callable, Iterator
from typing import Any

import jax
import numpy as np

from cordes.certificates.reason import Reason, Why
from cordes.domains import Box
from cordes.formulas.intervals import UnsupportedOperation
from cordes.formulas.regularity import jump
from cordes.formulas.regularity.search import suspected
from cordes.formulas.trace import asks_for_equality
from cordes.problems.controls.controlled import AbstractControlled
from cordes.problems.kinks.jumps import Jump, find_jumps
from cordes.problems.problem import AbstractProblem
from cordes.runtime.plain import show
from cordes.solutions.solution import Solution

JUMP_SEED = 5_550_004
# Controls that are searched for jumps at once, and in all.
BLOCK_OF_CONTROLS, SEARCHED_CONTROLS = 16, 512
# In many dimensions the entries of A along all chords are too many numbers, and fewer chords are
# searched.
CHORDS, CHORD_NUMBERS, LEAST_CHORDS = 256, 1 << 19, 32
# Distances from a singular point, in units of the domain, at which its rays are crossed, and the
# step across relative to them.
RAY_RADII, RAY_STEP = np.array([1e-3, 1e-2, 0.1, 0.3]), 1e-5
# The difference of quadratic extrapolations from both sides, by weight and number of steps: what a
# gradient does smoothly on either side cancels up to the cube of a step.
ONE_SIDED = ((3, 1), (-3, 2), (1, 3), (-3, -1), (3, -2), (-1, -3))
EPSILON = float(np.finfo(np.float64).eps)
# What is left out along the sides of a box, as a share of it.
HAIR = 1e-6


def undeclared_jump(problem: AbstractProblem) -> Reason | None:
    """Jumps and poles of the coefficients away from the declared interfaces: n and 2n points would
    disagree, or agree by accident. What the formulas do not exclude stays; chords only find a place
    to name."""
    domain = problem.domain
    for name, function in all_data(problem):
        if isinstance(function, Reason):
            return function
        found = jump(function, domain, problem.interfaces, spots=True)
        reason = None if found is None else _named(problem, name, function, found)
        if reason is not None:
            return reason
    return None


def _named(problem: AbstractProblem, name: str, function: Callable, found: str) -> Reason | None:
    """A jump with its place, where one is seen; else what is suspected; None where nothing is seen
    and the formula has operations that are not known."""
    domain = problem.domain
    chords = int(np.clip(CHORD_NUMBERS // domain.dimension**2, LEAST_CHORDS, CHORDS))
    points = domain.interior_points(2 * chords, JUMP_SEED, "sobol")
    sides = [np.asarray(jax.jit(jax.vmap(phi))(points)) > 0 for phi in problem.interfaces]
    points = points[np.lexsort([np.zeros(len(points)), *sides])]
    lower, upper = domain.bounding_box
    size = float(np.max(upper - lower))
    for seen in jumps_along_chords(function, points):
        if not any(_near(phi, seen.point, size) for phi in problem.interfaces):
            return Reason(
                Why.jump,
                f"{name} jumps near x = {show(seen.point)} and no interface is declared "
                "there: the norm of the residual cannot be trusted across it, n and 2n "
                "points need not agree. Pass interfaces=[phi] with phi = 0 on the jump.",
                {"point": seen.point},
            )
    # The sines of our own networks reduce their arguments by rounding, which no formula excuses:
    # an answer among the data is left to the chords.
    if not suspected(found) or "the operation round" in found:
        return None
    if isinstance(domain, Box) and jump(function, _inside(domain), problem.interfaces) is None:
        # A pole along a side, which is looked at closely (`unseen_layers`).
        return None
    return Reason(
        Why.jump,
        f"{name} may jump or have a pole ({found}): its formula does not exclude it, and "
        "points may miss it. Write interfaces as the coefficients compare them; a pole must be "
        "square integrable by far.",
    )


def _inside(box: Box) -> Box:
    """The box without a hair along its sides."""
    low, high = (np.asarray(corner, float) for corner in box.bounding_box)
    hair = HAIR * (high - low)
    return Box(low + hair, high - hair)


def jumps_along_chords(function: Callable, points: np.ndarray) -> list[Jump]:
    """Jumps of a function of one point on the chords between every second point and the next."""
    return find_jumps(jax.jit(jax.vmap(function)), points[0::2], points[1::2], samples=129)


@functools.singledispatch
def all_data(problem: AbstractProblem) -> Iterator[tuple[str, Callable | Reason]]:
    """The data of a problem as functions of one point, or why they cannot be looked at."""
    yield from problem.data().items()


@all_data.register
def _of_controls(problem: AbstractControlled) -> Iterator[tuple[str, Callable | Reason]]:
    """None for data that are continuous in x and the control together, else one for each block of
    the controls, unless these are too many."""
    controls = problem.controls
    if len(controls) <= BLOCK_OF_CONTROLS:
        yield from problem.data().items()
        return
    for name, function in (("A", problem.A), ("b", problem.b), ("c", problem.c), ("f", problem.f)):
        if _continuous_together(problem, function):
            continue
        if len(controls) > SEARCHED_CONTROLS:
            sentence = f"{name} may jump, and {len(controls)} controls are too many to look at each"
            sentence += f" of them (up to {SEARCHED_CONTROLS}): use fewer controls, or a formula"
            yield name, Reason(Why.jump, f"{sentence} that is continuous in x and the control")
            return
        for first in range(0, len(controls), BLOCK_OF_CONTROLS):
            yield name, problem.data(controls[first : first + BLOCK_OF_CONTROLS])[name]


def _continuous_together(problem: AbstractControlled, function: Callable) -> bool:
    """Whether a function of (x, a) is proved to be continuous over the boxes of the domain and of
    the controls, away from the interfaces."""
    d, shape = problem.domain.dimension, problem.controls.shape[1:]

    def together(z: Any) -> Any:
        return function(z[:d], z[d:].reshape(shape))

    try:
        # A control that is singled out by a == 1 is of measure zero among all numbers, and `jump`
        # would not look at it.
        if asks_for_equality(together, d + math.prod(shape), d):
            return False
    except UnsupportedOperation:
        return False
    flat = problem.controls.reshape(len(problem.controls), -1)
    low, high = np.min(flat, axis=0), np.max(flat, axis=0)
    high = np.where(high > low, high, low + 1.0)
    ends = zip(problem.domain.bounding_box, (low, high), strict=True)
    interfaces = [lambda z, phi=phi: phi(z[:d]) for phi in problem.interfaces]
    return jump(together, Box(*(np.concatenate(pair) for pair in ends)), interfaces) is None


def _near(phi: Any, point: np.ndarray, size: float) -> bool:
    slope = float(np.linalg.norm(jax.grad(phi)(point)))
    return abs(float(phi(point))) <= 1e-6 * size * (1e-9 + slope)


def kink_across_rays(solution: Solution) -> float:
    """The largest jump of the gradient across the rays of the singular functions, beyond rounding:
    zero by construction, measured all the same, because large amplitudes magnify the smallest fault
    of an angle.

    Values at distances h, 2h and 3h are combined so that a function which is smooth on both sides
    leaves a term of the third order in h: one of the second order was taken for a jump.
    """
    singular, amplitudes = solution.singular_functions
    lower, upper = solution.problem.domain.bounding_box
    size = float(np.max(upper - lower))
    largest = 0.0
    for family in singular.families:
        point = family.point
        rays = point.rays[1:-1] if point.on_boundary else point.rays[1:]
        if point.sectors == 1:
            continue
        angles, radii = np.repeat(rays, len(RAY_RADII)), size * np.tile(RAY_RADII, len(rays))
        along = np.stack([np.cos(angles), np.sin(angles)], axis=1)
        across = np.stack([-along[:, 1], along[:, 0]], axis=1)
        x = point.location + radii[:, None] * along
        inside = solution.problem.domain.contains(x)
        x, across, step = x[inside], across[inside], RAY_STEP * radii[inside, None]
        if not len(x):
            continue
        change, rounding = np.zeros(x.shape), np.zeros(x.shape)
        for weight, distance in ONE_SIDED:
            gradient, terms = _singular_gradient(singular, amplitudes, x + distance * step * across)
            change = change + weight * gradient
            rounding = rounding + abs(weight) * 8 * EPSILON * terms
        largest = max(largest, float(np.max(np.abs(change) - rounding)))
    return max(largest, 0.0)


def _singular_gradient(
    singular: Any, amplitudes: np.ndarray, x: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    n, nothing = len(x), np.zeros((len(x), 2, 2))
    columns = [
        singular.rows(x, np.zeros(n), np.tile(direction, (n, 1)), nothing)
        for direction in np.eye(2)
    ]
    values = np.stack([column @ amplitudes for column in columns], axis=1)
    return values, np.stack([np.abs(column) @ np.abs(amplitudes) for column in columns], axis=1)
