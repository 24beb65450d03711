"""The numbers of theorem T5 (see `transport`) for a computed map: how far its image is from the
target density, what it does not reach, and its cost."""

import itertools
import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import jax
import numpy as np
import scipy.linalg
from numpy.polynomial import legendre

from cordes.certificates.reason import NoBoundError, Why
from cordes.certificates.residual.convexity import CELLS, largest_value
from cordes.certificates.residual.norms import AGREEMENT, Measure, Norm, Quadrature
from cordes.certificates.transport.map import (
    EPSILON,
    ComputedMap,
    Curvature,
    MapValues,
    Unreached,
    dual_value,
    excess,
    integral,
    mass_doubt,
)
from cordes.certificates.transport.target import Image, Target, radius
from cordes.domains import Ball, Box, Ellipsoid
from cordes.domains.domain import AbstractDomain
from cordes.jet import jet_of
from cordes.problems.coefficients import at_points

# The interval bound of q may be so much away from what is attained.
TOLERANCE = 0.02
MASS_SLACK = 1e-8
# The share of the flux's bound that n and 2n points may leave in doubt: their limits contain it.
FLUX_AGREEMENT = 0.05
# Polynomials of the flux up to this degree, by dimension; the weights of its divergence that are
# tried; points at a time; rounding in units of ε; and what is added to the diagonal of the scaled
# normal equations, since rotations and the other fields are not independent.
FLUX_DEGREE = {1: 32, 2: 12, 3: 6}
FLUX_EMPHASES = (1.0, 4.0, 16.0)
FLUX_BLOCK = 4096
FLUX_ROUNDING = 64.0
FLUX_RIDGE = 1e-11


class MapBounds(NamedTuple):
    """Everything that is bounded, for T_η; `moved` is ‖T - T_η‖ and `cost` ‖x - T_η‖."""

    chi: Norm
    delta: float
    factor: float
    slice: Unreached
    reached: tuple[float, float]
    moved: Norm
    cost: tuple[float, float]
    dual: tuple[float, float]


def bounds_of(
    computed: ComputedMap,
    curvature: Curvature,
    image: Image,
    target: Target,
    measure: Measure,
    local: MapValues,
) -> MapBounds:
    """Everything that the theorem needs, from the map at the points of a measure."""
    doubt = mass_doubt(computed.problem.source_density, computed.domain)
    if not computed.problem.uniform:
        doubt += mass_doubt(computed.problem.target_density, computed.target)
    chi = measure.norm(excess(local) / local.smallest_root)
    check_convergence(chi)
    # Masses 1 ± e change μ/√G and √G, of norms about 1 + χ and 1, by these shares.
    chi = Norm(max(chi.lower - 2 * doubt, 0.0), chi.upper + 2 * doubt * (1 + chi.upper), chi.spread)
    rules = [(measure, local), *computed.smooth_rule(image.shrink)]
    reached = _sharpest([rule.norm(values.G, 1.0)[:2] for rule, values in rules])
    _check_mass(reached, image, doubt)
    R = radius(computed.target)
    slice_ = _unreached(computed, image, target, reached, doubt, R)
    factor = flow_factor(computed, measure, local, doubt) if image.onto else 2.0
    C = target.poincare
    dual_norm, image_part = C * math.hypot(chi.upper, math.sqrt(slice_.mass)), C * chi.upper
    if len(rules) > 1:
        by_flux = flux_norm(computed.domain, rules, C) + 2 * C * doubt * (1 + chi.upper)
        image_part = min(image_part, by_flux)
    if image.gap < 1:
        tau = -target.ratio * math.log1p(-image.gap) * (computed.dimension * C**2 + 2 * R * C)
        dual_norm = min(dual_norm, image_part + math.sqrt(slice_.mass * min(tau, C**2)))
    delta = factor * dual_norm * (1 + 16 * EPSILON)
    # A map that is onto up to rounding stands for one that is onto, which is as near as that.
    moved = Norm(0.0, image.rounding * R if image.onto else 0.0)
    if image.shrink > 0:
        step = image.shrink / (1 - image.shrink) * np.linalg.norm(local.T - computed.center, axis=1)
        moved = measure.norm(step * np.sqrt(local.mu) * (1 + doubt))
    alpha = (1 - image.shrink) * curvature.alpha
    limits = [_costs(computed, *rule, alpha, slice_, doubt) for rule in rules]
    costs, duals = zip(*limits, strict=True)
    return MapBounds(chi, delta, factor, slice_, reached, moved, _sharpest(costs), _sharpest(duals))


def _costs(
    computed: ComputedMap,
    measure: Measure,
    local: MapValues,
    alpha: float,
    slice_: Unreached,
    doubt: float,
) -> tuple[tuple[float, float], tuple[float, float]]:
    """Limits of ‖x - T‖ and of the dual value."""
    x, root, volume = measure.points, np.sqrt(local.mu), computed.domain.volume
    length = np.linalg.norm(x - local.T, axis=1)
    low = measure.norm(np.maximum(length - local.small, 0.0) * root).lower * (1 - doubt)
    high = measure.norm((length + local.small) * root).upper * (1 + doubt)
    potential = np.sum(x**2, axis=1) / 2 - local.value
    reach = 1.1 * float(np.ptp(potential))
    # Rounding of ½|x - T|²G + (p - c)(μ - G), with |p - c| at most 1.1 times the range of p; the
    # masses change both terms by a share.
    slack = local.small * (length * local.G + np.abs(local.mu - local.G)) + reach * local.rounding
    blur = integral(measure, slack, volume)[1] + 2 * doubt * (high**2 + reach)
    least, largest = dual_value(
        measure, volume, length**2 / 2, potential, local.mu - local.G, local.G, alpha, slice_
    )
    return (low, high), (least - blur, largest + blur)


def flux_norm(domain: Any, rules: Sequence[tuple[Measure, MapValues]], poincare: float) -> float:
    """The dual norm of the difference of the densities on the image, by a flux that carries most of
    it; infinity where the points cannot resolve it."""
    (measure, local), (smooth, fitted) = rules
    assert isinstance(smooth, Quadrature)
    coarse = smooth.nodes.coarse > 0
    flux = Flux(domain)
    flux.fit(
        smooth.points[coarse],
        smooth.nodes.coarse[coarse],
        fitted.hessian[coarse],
        (fitted.mu - fitted.G)[coarse],
        fitted.G[coarse],
        poincare,
    )
    F, divergence, rounding = flux(measure.points)
    root, image = local.smallest_root, np.einsum("nij,nj->ni", local.hessian, F)
    lack = np.abs(local.mu - local.G - divergence) + rounding + local.rounding
    carried, rest = measure.norm(np.linalg.norm(image, axis=1) / root), measure.norm(lack / root)
    shares = (carried.upper, carried.spread), (poincare * rest.upper, rest.spread)
    total = sum(upper for upper, _ in shares)
    unresolved = sum(upper * min(spread, 1.0) for upper, spread in shares)
    return total if unresolved <= FLUX_AGREEMENT * total else math.inf


def _unreached(
    computed: ComputedMap,
    image: Image,
    target: Target,
    reached: tuple[float, float],
    doubt: float,
    R: float,
) -> Unreached:
    """The part of the target that is not reached. Its mass is 1 - ∫G, and at most that of the slice
    in which it lies."""
    if image.onto:
        return Unreached(0.0, 0.0, 0.0)
    share = -math.expm1(computed.dimension * math.log1p(-min(image.gap, 1 - EPSILON)))
    thin = target.largest * computed.target.volume * share
    mass = min(max(1 - reached[0] + doubt, 0.0), thin, 1.0)
    apart = float(np.linalg.norm(np.asarray(computed.domain.center) - computed.center))
    far = radius(computed.domain) + R + apart
    return Unreached(mass, min(image.gap * R, 2 * R), far**2 / 2)


def flow_factor(computed: ComputedMap, measure: Measure, local: MapValues, doubt: float) -> float:
    """2/(1 + √s) with s ≤ 1/q for all q = G/μ, where interval arithmetic proves such an s; else
    2."""
    if computed.function is None or computed.dimension not in CELLS:
        return 2.0
    function, problem = computed.function, computed.problem

    def quotient(x: Any) -> Any:
        _, gradient, hessian = jet_of(function)(x)
        return problem.nu(gradient) * _determinant(hessian) / problem.mu(x)

    q, cells = local.G / local.mu, CELLS[computed.dimension]
    seen = float(np.max(q)), measure.points[int(np.argmax(q))]
    found = largest_value(quotient, at_points(quotient), computed.domain, seen, TOLERANCE, cells)
    if found is None:
        return 2.0
    largest = found.upper * (1 + 4 * doubt) + 1e-12
    return 2 / (1 + math.sqrt(1 / largest)) if math.isfinite(largest) else 2.0


def check_convergence(chi: Norm) -> None:
    """A norm of which n and 2n points tell different things is no norm."""
    if not chi.spread <= AGREEMENT:
        sentence = "the norm of the difference of the densities did not converge: n and 2n points"
        sentence += f" per direction differ by {100 * chi.spread:.2g} %; a peak may be unresolved:"
        sentence += " use smoother densities, or solve more accurately"
        raise NoBoundError(Why.not_converged, sentence, spread=chi.spread)


def _check_mass(reached: tuple[float, float], image: Image, doubt: float) -> None:
    """The image of an injective map has at most the mass of the target, and all of it if it is the
    target."""
    slack = MASS_SLACK + doubt + 3 * (reached[1] - reached[0])
    if reached[0] > 1 + slack or (image.onto and reached[1] < 1 - slack):
        raise NoBoundError(
            Why.mass_balance,
            f"the mass balance fails: the image of the map has the mass {reached[0]:.9g} to "
            f"{reached[1]:.9g} of the target's 1, though it "
            f"{'covers' if image.onto else 'lies in'} the target as far as its boundary shows. "
            "The second derivatives are not those of the map, or a density is not normalised.",
            mass=reached,
        )


def _sharpest(limits: Sequence[tuple[float, float]]) -> tuple[float, float]:
    """What several pairs of limits have in common; the hull of all where they contradict each
    other."""
    lows, highs = zip(*limits, strict=True)
    if max(lows) <= min(highs):
        return max(lows), min(highs)
    return min(lows), max(highs)


def _determinant(matrix: Any) -> Any:
    """Written out for interval arithmetic, in up to three dimensions."""
    if matrix.shape[0] == 1:
        return matrix[0, 0]
    if matrix.shape[0] == 2:
        return matrix[0, 0] * matrix[1, 1] - matrix[0, 1] ** 2
    upper = itertools.combinations_with_replacement(range(3), 2)
    a, b, c, d, e, f = (matrix[i, j] for i, j in upper)
    return a * (d * f - e**2) - b * (b * f - c * e) + c * (b * e - c * d)


class Flux:
    """Vector fields F on the source that do not flow through its boundary: polynomials times the
    distance to the faces of a box, in each component, or times the distance function, and rotations
    of a ball or an ellipsoid.

    Let h be the image of μ under T. For all ψ, ∫ψ(T) div F = -∫∇ψ(T)·D²φF, so that ∫ψ(h - ν) over
    the image is at most ‖D²φF/√G‖ ‖∇ψ‖ + √C ‖(μ - G - div F)/√G‖ ‖∇ψ‖ if ∫ψν = 0. F = 0 gives √C χ;
    a good F gives much less where the densities differ in waves.
    """

    def __init__(self, domain: AbstractDomain):
        self.domain, self.dimension = domain, domain.dimension
        lower, upper = domain.bounding_box
        self.middle, self.half = (lower + upper) / 2, (upper - lower) / 2
        degree = FLUX_DEGREE[self.dimension]
        powers = np.indices([degree + 1] * self.dimension).reshape(self.dimension, -1).T
        self.powers = powers[np.sum(powers, axis=1) <= degree]
        self._heights = at_points(jax.value_and_grad(domain.distance))
        self.rotations = []
        if isinstance(domain, Ball | Ellipsoid):
            axes = domain.matrix if isinstance(domain, Ellipsoid) else np.eye(self.dimension)
            for i, j in itertools.combinations(range(self.dimension), 2):
                turn = np.zeros((self.dimension, self.dimension))
                turn[i, j], turn[j, i] = 1.0, -1.0
                self.rotations.append(axes @ turn @ np.linalg.inv(axes))
        self.coefficients = np.zeros((self.dimension + len(self.rotations), len(self.powers)))

    def _polynomials(self, x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Legendre products (N, J) and their gradients (d, N, J)."""
        z, degree = (x - self.middle) / self.half, int(np.max(self.powers))
        # The derivative of the highest polynomial has one degree less.
        derivative = np.pad(legendre.legder(np.eye(degree + 1)), ((0, 1), (0, 0)))
        tables = [legendre.legvander(z[:, i], degree) for i in range(self.dimension)]
        slopes = [table @ derivative / self.half[i] for i, table in enumerate(tables)]

        def product(changed: int) -> np.ndarray:
            factors = [slopes[i] if i == changed else table for i, table in enumerate(tables)]
            parts = zip(factors, self.powers.T, strict=True)
            return np.prod([factor[:, power] for factor, power in parts], axis=0)

        return product(-1), np.stack([product(i) for i in range(self.dimension)])

    def _fields(self, x: np.ndarray) -> list[tuple[np.ndarray, np.ndarray]]:
        """The vector fields (N, d) that polynomials multiply, with their divergences."""
        if isinstance(self.domain, Box):
            lower, upper = self.domain.lower, self.domain.upper
            values, slopes = (x - lower) * (upper - x), lower + upper - 2 * x
        else:
            height, slopes = self._heights(x)
            values = np.repeat(height[:, None], self.dimension, axis=1)
        units, offset, none = np.eye(self.dimension), x - self.domain.center, np.zeros(len(x))
        fields = [(values * unit, slope) for unit, slope in zip(units, slopes.T, strict=True)]
        return fields + [(offset @ rotation.T, none) for rotation in self.rotations]

    def fit(
        self,
        x: np.ndarray,
        weight: np.ndarray,
        hessian: np.ndarray,
        excess: np.ndarray,
        density: np.ndarray,
        poincare: float,
    ) -> None:
        """The F for which the bound is small at points with weights, by least squares."""
        P, slopes = self._polynomials(x)
        root = np.sqrt(weight / density)
        blocks, divergences = [], []
        for field, divergence in self._fields(x):
            carried = np.einsum("nij,nj->in", hessian, field) * root
            blocks.append((carried[:, :, None] * P).reshape(-1, P.shape[1]))
            divergences.append(
                root[:, None] * (divergence[:, None] * P + np.einsum("ni,inj->nj", field, slopes))
            )
        carried, divergence = np.concatenate(blocks, axis=1), np.concatenate(divergences, axis=1)
        wanted, best = root * excess, poincare * float(np.linalg.norm(root * excess))
        # Normal equations: seven digits of the best F are enough, any F is allowed.
        stiffness = carried.T @ carried
        mass = divergence.T @ divergence
        load = divergence.T @ wanted
        for emphasis in FLUX_EMPHASES:
            scale = (emphasis * poincare) ** 2
            matrix = stiffness + scale * mass
            size = np.sqrt(np.maximum(np.diag(matrix), 1e-300))
            matrix = matrix / np.outer(size, size) + FLUX_RIDGE * np.eye(len(matrix))
            found = scipy.linalg.solve(matrix, scale * load / size, assume_a="pos") / size
            value = float(np.linalg.norm(carried @ found)) + poincare * float(
                np.linalg.norm(wanted - divergence @ found)
            )
            if value < best:
                best, self.coefficients = value, found.reshape(self.coefficients.shape)

    def __call__(self, x: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """F (N, d), its divergence, and a bound of the rounding of the divergence."""
        parts = [self._chunk(x[k : k + FLUX_BLOCK]) for k in range(0, len(x), FLUX_BLOCK)]
        joined = tuple(np.concatenate(arrays) for arrays in zip(*parts, strict=True))
        return joined  # pyright: ignore

    def _chunk(self, x: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        P, slopes = self._polynomials(x)
        value, divergence, size = np.zeros_like(x), np.zeros(len(x)), np.zeros(len(x))
        for (field, own), c in zip(self._fields(x), self.coefficients, strict=True):
            value += field * (P @ c)[:, None]
            divergence += own * (P @ c) + np.einsum("ni,in->n", field, slopes @ c)
            size += np.abs(own) * (np.abs(P) @ np.abs(c)) + np.einsum(
                "ni,in->n", np.abs(field), np.abs(slopes) @ np.abs(c)
            )
        return value, divergence, FLUX_ROUNDING * EPSILON * size
