"""Certificates of optimal transport: from a problem and a computed potential φ to bounds of ‖∇φ - ∇u‖ in L²(μ) and of the distance W₂(μ, ν).

The theorem (T5). Let αI ≤ D²φ ≤ βI on the convex X with α > 0, T = ∇φ, T(X) ⊂ Y, and δ ≥ W₂(T_#μ, ν). Let φ* be the conjugate over X, whose
gradient is 1/α-Lipschitz, and x̃ = ∇φ*(∇u(x)). The dual gap lies between α/2 ∫|x - x̃|²μ and δ²/2α, so ‖x - x̃‖ ≤ δ/α.

Where ∇u(x) = T(x̃) this gives |T - ∇u| ≤ β|x - x̃|. If T(X) covers y₀ + (1 - ζ)(Y - y₀), any y in Y is within ζR of a point T(x') (R the radius of Y
around y₀), |x' - ∇φ*(y)| ≤ ζR/α, and |y - T(∇φ*(y))| ≤ (1 + β/α)ζR, which happens on a set of mass m = 1 - ∫G only, G = ν(T) det D²φ. So

    ‖T - ∇u‖ ≤ (β/α) δ + (1 + β/α) ζ R √m        and in any case        ‖T - ∇u‖ ≤ (1 + 2β/α) δ.

The second: |y - T(∇φ*(y))| depends on y alone, so that ∇u may be exchanged for the map x ↦ S(T(x)), S optimal from T_#μ to ν, which is δ from T.
In one dimension S(T) increases, so that it is ∇u, and ‖T - ∇u‖ ≤ δ.

δ comes from densities: δ ≤ κ ‖T_#μ - ν‖ in the norm dual to ‖∇ψ‖_{L²(ν)}, by following the flow along (1 - t)ν + tT_#μ; κ = 2/(1 + √s), s the smallest
T_#μ/ν, where T(X) = Y, else 2. With the Poincaré constant C of ν and χ² = ∫(μ - G)²/G the dual norm is at most √C χ + √(m τ): the second term is for
the slice Y∖T(X), on which ∫ψ²ν ≤ τ ‖∇ψ‖², τ = (ν_max/ν_min) log(1/(1 - ζ)) (dC + 2R√C) (integrate div((y - y₀)ψ²) over the dilations of Y).
It is at most √C √(χ² + m) as well. In place of √C χ a flux that carries most of μ - G gives less (`conjugate.Flux`).

Where T leaves Y, all this is applied to T_η = y₀ + (1 - η)(T - y₀), the gradient of another convex potential, and ‖T - T_η‖ is added to the bound of the
map at the end. W₂: ‖x - T‖ ± δ, and by duality D ≤ ½W₂² ≤ D + δ²/2α (`conjugate.dual_value`), which is sharper where δ is small.

What is searched and not proved: α and β where `epsilon_source` says `sampled`, and always T on the boundary (excesses count twice).
"""

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import jax
import numpy as np

from cordes.blocks import in_blocks
from cordes.certificates.candidate import Candidate, FunctionCandidate
from cordes.certificates.cells import Mesh, Nodes, adaptive_nodes
from cordes.certificates.certificate import Certificate, Picture
from cordes.certificates.conjugate import (
    Curvature,
    Image,
    Slice,
    Target,
    curvature_of,
    describe_target,
    dual_value,
    gauge,
    image_of_boundary,
    integral,
    radius,
)
from cordes.certificates.convexity import cofactors_of
from cordes.certificates.flux import Flux
from cordes.certificates.hypotheses import _false_derivatives, _kink
from cordes.certificates.norms import AGREEMENT, Measure, Norm, Quadrature, Sample
from cordes.certificates.regularity import jump
from cordes.errors import DomainError
from cordes.intervals import UnsupportedOperation, enclose, supremum
from cordes.jet import jet_of
from cordes.problems.coefficients import show
from cordes.problems.jumps import find_jumps, straight

SEARCH_POINTS, SEARCH_SEED = {"function": 4096, "answer": 1024}, 5_550_311
# Points after which refinement ends, by dimension; points of a sample, and the norms that one sample serves.
BUDGETS = {1: 20_000, 2: 120_000, 3: 200_000}
SAMPLE_POINTS, SAMPLE_SEED, NORMS_OF_A_SAMPLE = 1 << 15, 5_550_312, 10
# The interval bound of q may be so much away from what is attained; cells spent on it.
TOLERANCE, CELLS = 0.02, {1: 4000, 2: 12_000, 3: 12_000}
# Points per direction of two rules for the masses; points of a sample beyond three dimensions, and the multiple of its deviation that is believed.
MASS_POINTS, MASS_SAMPLE, MASS_DEVIATIONS = {1: (100, 200), 2: (40, 80), 3: (16, 32)}, 1 << 16, 4.0
MASS_SLACK = 1e-8
# The share of the flux's bound that n and 2n points may leave in doubt: their limits contain it.
FLUX_AGREEMENT = 0.05
# Points per direction of the two rules for smooth integrands.
GLOBAL_POINTS = {1: (60, 120), 2: (36, 72), 3: (12, 24)}
CHORDS, CHORD_SEED = 256, 5_550_313
# A map that must be shrunk by more than this share has little to do with the target.
LARGEST_SHRINK = 0.5
# Step of the differences that give ∇ν for the rounding, relative to the target.
STEP = 1e-5
EPSILON = float(np.finfo(np.float64).eps)
NO_POINTWISE = "no bound at single points: the theorem is about mean squares of the map"


class NoBoundError(Exception):
    """Why there is no bound, as a sentence."""


class TransportFacts(NamedTuple):
    """What is known of a computed map T = ∇φ. `alpha` and `beta` bound D²φ, `chi` is the distance of the densities in χ², `delta` ≥ W₂(T_#μ, ν), `mass`
    = ∫qμ with q = ν(T) det D²φ/μ, the mass of ν that T reaches, `total_variation` that between T_#μ and ν, `density_L2` and `density_max` the mean
    square and the largest |q - 1|, `outside` how far T(∂X) leaves the target, `shrink` the η of the module, `uncovered` its ζ, `onto` whether T(X) = Y."""

    alpha: float
    beta: float
    chi: float
    delta: float
    mass: float
    total_variation: float
    largest_q: float
    smallest_q: float
    density_L2: float  # noqa: N815
    density_max: float
    outside: float
    shrink: float
    uncovered: float
    onto: bool
    poincare: float
    flow_factor: float


class Local(NamedTuple):
    """At points: μ, G and its rounding, T_η, the potential of T_η, its rounding and that of |x - T_η|, DT_η, the extreme eigenvalues of D²φ."""

    mu: np.ndarray
    G: np.ndarray
    rounding: np.ndarray
    T: np.ndarray
    value: np.ndarray
    small: np.ndarray
    hessian: np.ndarray
    least: np.ndarray
    greatest: np.ndarray


class Bounds(NamedTuple):
    """Everything that is bounded, for T_η; `moved` is ‖T - T_η‖ and `cost` ‖x - T_η‖."""

    chi: Norm
    delta: float
    factor: float
    slice: Slice
    reached: tuple[float, float]
    moved: Norm
    cost: tuple[float, float]
    dual: tuple[float, float]


def certify_transport(problem: Any, candidate: Candidate, confidence: float = 0.99) -> Certificate:
    """The bounds that the theorem gives, or the reason why there are none."""
    reason = refusal(problem, candidate)
    return Certificate(reason=reason) if reason is not None else bounds(problem, candidate, confidence)


def bounds(problem: Any, candidate: Candidate, confidence: float = 0.99) -> Certificate:
    """The theorem applied to a potential that is known to be smooth, and to densities that are known not to jump."""
    try:
        return _Attempt(problem, candidate, confidence).certificate()
    except NoBoundError as why:
        return Certificate(reason=str(why))


def transport_facts(problem: Any, candidate: Candidate, confidence: float = 0.99) -> TransportFacts:
    """The facts behind the certificate of a map; raises `NoBoundError` where there is none."""
    reason = refusal(problem, candidate)
    if reason is not None:
        raise NoBoundError(reason)
    return _Attempt(problem, candidate, confidence).facts()


def refusal(problem: Any, candidate: Candidate) -> str | None:
    """The first hypothesis that fails, as a sentence, or None: double precision, a potential without kinks, densities without jumps."""
    if not jax.config.read("jax_enable_x64"):
        return "double precision is off (jax_enable_x64): second derivatives in single precision certify nothing. Leave JAX_ENABLE_X64 unset or set it to 1."
    for check in (_kink, _false_derivatives):
        found = check(problem, candidate)
        if found is not None:
            return found
    for name, density, domain in (("source", problem.mu, problem.domain), ("target", problem.nu, problem.target_domain)):
        found = _jump(name, density, domain)
        if found is not None:
            return found
    return None


def _jump(name: str, density: Any, domain: Any) -> str | None:
    """A jump of a density: n and 2n points would disagree, or agree by accident."""
    if jump(density, domain) is None:
        return None
    points, values = domain.interior_points(2 * CHORDS, CHORD_SEED, "sobol"), jax.jit(jax.vmap(density))
    for found in find_jumps(lambda x: np.asarray(values(x)), points[0::2], points[1::2], straight, samples=129):
        return (
            f"the density {name} jumps near x = {show(found.point)}: the norms cannot be trusted across it, n and 2n points need not agree. "
            "Replace the jump by a steep smooth function, or restrict the domain to one side of it."
        )
    return None


class _Attempt:
    """One problem with one potential."""

    def __init__(self, problem: Any, candidate: Candidate, confidence: float):
        self.problem, self.candidate, self.confidence = problem, candidate, confidence
        self.domain, self.target = problem.domain, problem.target_domain
        self.dimension, self.center = problem.domain.dimension, np.asarray(problem.target_domain.center)
        self.function = candidate.function if isinstance(candidate, FunctionCandidate) else None

    def _run(self) -> tuple[Curvature, Image, Target, Measure, Local, Bounds]:
        curvature = self._curvature()
        image = image_of_boundary(self.problem, self.candidate)
        if not image.shrink <= LARGEST_SHRINK:
            raise NoBoundError(
                f"the map leaves the target by {image.outside:.3g} at the boundary point x = {show(image.worst)}: T(∂X) must lie in the target, up to a small "
                "excess. Impose the boundary condition more strictly, or start from a map into the target."
            )
        target = describe_target(self.problem)
        measure, local = self._measured(image)
        curvature = self._seen_again(curvature, local)
        image = self._covering(image, local)
        return curvature, image, target, measure, local, self._bounds(curvature, image, target, measure, local)

    # Hessians

    def _curvature(self) -> Curvature:
        points = self.domain.interior_points(SEARCH_POINTS["answer" if self.function is None else "function"], SEARCH_SEED, "sobol")
        found = curvature_of(self.domain, lambda x: np.asarray(self.candidate.jet(x).hessian, dtype=np.float64), self.function, points)
        if not np.isfinite(found.alpha) or not np.isfinite(found.beta):
            raise NoBoundError(
                "the second derivatives of the potential are not finite numbers everywhere: it must be twice differentiable up to the boundary"
            )
        self._check_convex(found.alpha, found.point)
        return found

    def _check_convex(self, smallest: float, point: np.ndarray) -> None:
        if not smallest > 0:
            raise NoBoundError(
                f"the potential is not convex: D²φ has the eigenvalue {smallest:.4g} at x = {show(point)}. The map of such a potential is not optimal and "
                "need not be injective; solve more accurately, or start from a convex potential."
            )

    def _seen_again(self, curvature: Curvature, local: Local) -> Curvature:
        """The points of the norms may show more extreme eigenvalues than a search has found."""
        least = int(np.argmin(local.least))
        if curvature.source == "interval":
            return curvature
        return curvature._replace(alpha=min(curvature.alpha, float(local.least[least])), beta=max(curvature.beta, float(np.max(local.greatest))))

    # Densities and the measure

    def _evaluate(self, x: np.ndarray, shrink: float) -> Local:
        n, d = x.shape
        value, gradient, hessian = (np.asarray(part, dtype=np.float64) for part in self.candidate.jet(x))
        finite = np.isfinite(value) & np.all(np.isfinite(gradient), axis=1) & np.all(np.isfinite(hessian), axis=(1, 2))
        if not np.all(finite):
            raise NoBoundError(f"the potential or its derivatives are not finite numbers at x = {show(x[int(np.argmin(finite))])}")
        spectrum = np.linalg.eigvalsh(hessian)
        if np.min(spectrum) <= 0:
            worst = int(np.argmin(spectrum[:, 0]))
            self._check_convex(float(spectrum[worst, 0]), x[worst])
        T = self.center + (1 - shrink) * (gradient - self.center)
        mu, nu = self._density("source", self.problem.source_density, x, x), self._density("target", self.problem.target_density, T, x)
        determinant, cofactors, scale = np.prod(spectrum, axis=1), cofactors_of(hessian), (1 - shrink) ** d
        _, rounding = self.candidate.applied(x, nu[:, None, None] * cofactors, (1 - shrink) * determinant[:, None] * self._slope(T, nu), np.zeros(n))
        # The second part is the rounding of eigenvalues and cofactors, the third that of the densities.
        rounding = rounding + 8 * d * EPSILON * nu * np.linalg.norm(hessian, axis=(1, 2)) * np.linalg.norm(cofactors, axis=(1, 2))
        G, linear = scale * nu * determinant, x @ self.center
        rounding = scale * rounding + 16 * EPSILON * (G + mu)
        offset = x - T
        direction = offset / np.maximum(np.linalg.norm(offset, axis=1, keepdims=True), 1e-300)
        _, small = self.candidate.applied(x, np.zeros_like(hessian), direction, -np.ones(n))
        small = small + 16 * EPSILON * (np.linalg.norm(x, axis=1) + np.linalg.norm(T, axis=1) + np.sum(x**2, axis=1))
        return Local(mu, G, rounding, T, linear + (1 - shrink) * (value - linear), small, (1 - shrink) * hessian, spectrum[:, 0], spectrum[:, -1])

    def _density(self, name: str, density: Any, points: np.ndarray, x: np.ndarray) -> np.ndarray:
        values = np.asarray(density(points), dtype=np.float64)
        good = np.isfinite(values) & (values > 0)
        if not np.all(good):
            bad = int(np.argmin(good))
            where = f"at x = {show(x[bad])}" if name == "source" else f"at T(x) = {show(points[bad])}, x = {show(x[bad])}"
            raise NoBoundError(f"the density {name} is {values[bad]:.6g} {where}: it must be a positive number on its whole domain")
        return values

    def _slope(self, T: np.ndarray, nu: np.ndarray) -> np.ndarray:
        """∇ν by differences, towards the centre of the target: good enough for rounding errors."""
        if self.problem.uniform:
            return np.zeros_like(T)
        lower, upper = self.target.bounding_box
        step = STEP * np.where(self.center < T, -1.0, 1.0) * (upper - lower)
        unit = np.eye(self.dimension)
        return np.stack([(self.problem.target_density(T + step * unit[i]) - nu) / step[:, i] for i in range(self.dimension)], axis=1)

    def _measured(self, image: Image) -> tuple[Measure, Local]:
        def evaluate(x: np.ndarray) -> Local:
            return self._evaluate(x, image.shrink)

        def indicator(local: Local) -> np.ndarray:
            return np.stack([_excess(local) ** 2 / local.G, local.mu, local.G], axis=1)

        if self.dimension <= 3:
            try:
                mesh = Mesh(self.domain, ())
            except DomainError:
                mesh = None
            if mesh is not None:
                nodes, local = adaptive_nodes(mesh, evaluate, indicator, BUDGETS[self.dimension])
                return Quadrature(nodes), local
        points = self.domain.interior_points(SAMPLE_POINTS, SAMPLE_SEED)
        return Sample(points, self.domain.volume, self.confidence, NORMS_OF_A_SAMPLE), evaluate(points)

    def _smooth_rule(self, image: Image) -> list[tuple[Measure, Local]]:
        """One Gauss rule over the whole domain with n points per direction and one with 2n: for smooth integrands far more accurate than many cells."""
        if self.dimension > 3:
            return []
        try:
            rules = [self.domain.quadrature(count) for count in GLOBAL_POINTS[self.dimension]]
        except DomainError:
            return []
        (x, coarse), (finer, fine) = rules
        points, none, nothing = np.concatenate([x, finer]), np.zeros(len(coarse)), np.zeros(len(fine))
        nodes = Nodes(points, np.concatenate([coarse, nothing]), np.concatenate([none, fine]), np.zeros(len(points), int), np.zeros_like(points))
        return [(Quadrature(nodes), self._evaluate(points, image.shrink))]

    def _covering(self, image: Image, local: Local) -> Image:
        """The argument for covering needs one point of T(X) well inside."""
        if image.onto or float(np.min(gauge(self.target, local.T))) < 1 - image.gap:
            return image
        return image._replace(gap=1.0)

    def _mass_doubt(self, density: Any, domain: Any) -> float:
        """How far from one the mass of a density may be: the problem has divided by a computed mass."""
        if self.dimension <= 3:
            try:
                rules = [domain.quadrature(count) for count in MASS_POINTS[self.dimension]]
                coarse, fine = (float(weights @ density(points)) for points, weights in rules)
                return abs(fine - coarse) + abs(fine - 1) + 64 * EPSILON
            except DomainError:
                pass
        values = domain.volume * density(domain.interior_points(MASS_SAMPLE // 4, SAMPLE_SEED))
        return MASS_DEVIATIONS * float(np.std(values)) / math.sqrt(MASS_SAMPLE) + 64 * EPSILON

    # The theorem

    def _bounds(self, curvature: Curvature, image: Image, target: Target, measure: Measure, local: Local) -> Bounds:
        doubt = self._mass_doubt(self.problem.source_density, self.domain)
        doubt += 0.0 if self.problem.uniform else self._mass_doubt(self.problem.target_density, self.target)
        chi = measure.norm(_excess(local) / np.sqrt(np.maximum(local.G - local.rounding, 0.5 * local.G)))
        self._check_convergence(chi)
        # Masses 1 ± e change μ/√G and √G, of norms about 1 + χ and 1, by these shares.
        chi = Norm(max(chi.lower - 2 * doubt, 0.0), chi.upper + 2 * doubt * (1 + chi.upper), chi.spread)
        rules = [(measure, local), *self._smooth_rule(image)]
        reached = _sharpest([(norm.lower, norm.upper) for norm in (rule.norm(values.G, 1.0) for rule, values in rules)])
        self._check_mass(reached, image, doubt)
        R = radius(self.target)
        slice_ = self._slice(image, target, reached, doubt, R)
        factor = self._flow_factor(measure, local, doubt) if image.onto else 2.0
        C = target.poincare
        dual_norm, image_part = C * math.hypot(chi.upper, math.sqrt(slice_.mass)), C * chi.upper
        if len(rules) > 1:
            image_part = min(image_part, self._flux(rules, C) + 2 * C * doubt * (1 + chi.upper))
        if image.gap < 1:
            tau = -target.ratio * math.log1p(-image.gap) * (self.dimension * C**2 + 2 * R * C)
            dual_norm = min(dual_norm, image_part + math.sqrt(slice_.mass * min(tau, C**2)))
        delta = factor * dual_norm * (1 + 16 * EPSILON)
        # A map that is onto up to rounding stands for one that is onto, which is as near as that.
        moved = Norm(0.0, image.rounding * R if image.onto else 0.0)
        if image.shrink > 0:
            step = image.shrink / (1 - image.shrink) * np.linalg.norm(local.T - self.center, axis=1)
            moved = measure.norm(step * np.sqrt(local.mu) * (1 + doubt))
        alpha = (1 - image.shrink) * curvature.alpha
        costs, duals = zip(*(self._costs(*rule, alpha, slice_, doubt) for rule in rules), strict=True)
        return Bounds(chi, delta, factor, slice_, reached, moved, _sharpest(costs), _sharpest(duals))

    def _costs(self, measure: Measure, local: Local, alpha: float, slice_: Slice, doubt: float) -> tuple[tuple[float, float], tuple[float, float]]:
        """Limits of ‖x - T‖ and of the dual value."""
        x, root, volume = measure.points, np.sqrt(local.mu), self.domain.volume
        length = np.linalg.norm(x - local.T, axis=1)
        low = measure.norm(np.maximum(length - local.small, 0.0) * root).lower * (1 - doubt)
        high = measure.norm((length + local.small) * root).upper * (1 + doubt)
        potential = np.sum(x**2, axis=1) / 2 - local.value
        reach = 1.1 * float(np.ptp(potential))
        # Rounding of ½|x - T|²G + (p - c)(μ - G), with |p - c| at most 1.1 times the range of p; the masses change both terms by a share.
        slack = local.small * (length * local.G + np.abs(local.mu - local.G)) + reach * local.rounding
        blur = integral(measure, slack, volume)[1] + 2 * doubt * (high**2 + reach)
        least, largest = dual_value(measure, volume, length**2 / 2, potential, local.mu - local.G, local.G, alpha, slice_)
        return (low, high), (least - blur, largest + blur)

    def _flux(self, rules: Sequence[tuple[Measure, Local]], poincare: float) -> float:
        """The dual norm of the difference of the densities on the image, by a flux that carries most of it; infinity where the points cannot resolve it."""
        (measure, local), (smooth, fitted) = rules
        assert isinstance(smooth, Quadrature)
        coarse = smooth.nodes.coarse > 0
        flux = Flux(self.domain)
        flux.fit(
            smooth.points[coarse], smooth.nodes.coarse[coarse], fitted.hessian[coarse], (fitted.mu - fitted.G)[coarse], fitted.G[coarse], poincare
        )
        F, divergence, rounding = flux(measure.points)
        root = np.sqrt(np.maximum(local.G - local.rounding, 0.5 * local.G))
        carried = measure.norm(np.linalg.norm(np.einsum("nij,nj->ni", local.hessian, F), axis=1) / root)
        rest = measure.norm((np.abs(local.mu - local.G - divergence) + rounding + local.rounding) / root)
        total = carried.upper + poincare * rest.upper
        unresolved = carried.upper * min(carried.spread, 1.0) + poincare * rest.upper * min(rest.spread, 1.0)
        return total if unresolved <= FLUX_AGREEMENT * total else math.inf

    def _slice(self, image: Image, target: Target, reached: tuple[float, float], doubt: float, R: float) -> Slice:
        """The part of the target that is not reached. Its mass is 1 - ∫G, and at most that of the slice in which it lies."""
        if image.onto:
            return Slice(0.0, 0.0, 0.0)
        thin = target.largest * self.target.volume * -math.expm1(self.dimension * math.log1p(-min(image.gap, 1 - EPSILON)))
        mass = min(max(1 - reached[0] + doubt, 0.0), thin, 1.0)
        far = radius(self.domain) + R + float(np.linalg.norm(np.asarray(self.domain.center) - self.center))
        return Slice(mass, min(image.gap * R, 2 * R), far**2 / 2)

    def _flow_factor(self, measure: Measure, local: Local, doubt: float) -> float:
        """2/(1 + √s) with s ≤ 1/q for all q = G/μ, where interval arithmetic proves such an s; else 2."""
        if self.function is None or self.dimension not in CELLS:
            return 2.0
        function, problem = self.function, self.problem

        def quotient(x: Any) -> Any:
            _, gradient, hessian = jet_of(function)(x)
            return problem.nu(gradient) * _determinant(hessian) / problem.mu(x)

        enclosure, compiled = enclose(quotient), jax.jit(jax.vmap(quotient))

        def bound(lower: np.ndarray, upper: np.ndarray) -> np.ndarray:
            with np.errstate(over="ignore", invalid="ignore"):
                return np.max([piece.upper for piece in enclosure(lower, upper)], axis=0)

        q = local.G / local.mu
        worst = int(np.argmax(q))
        try:
            found = supremum(
                bound, lambda x: in_blocks(compiled, (x,)), self.domain, float(q[worst]), measure.points[worst], TOLERANCE, CELLS[self.dimension]
            )
        except UnsupportedOperation:
            return 2.0
        largest = found.upper * (1 + 4 * doubt) + 1e-12
        return 2 / (1 + math.sqrt(1 / largest)) if math.isfinite(largest) else 2.0

    def _check_convergence(self, chi: Norm) -> None:
        if not chi.spread <= AGREEMENT:
            raise NoBoundError(
                f"the norm of the difference of the densities did not converge: n and 2n points per direction differ by {100 * chi.spread:.2g} %; "
                "a peak may be unresolved: use smoother densities, or solve more accurately"
            )

    def _check_mass(self, reached: tuple[float, float], image: Image, doubt: float) -> None:
        """The image of an injective map has at most the mass of the target, and all of it if it is the target."""
        slack = MASS_SLACK + doubt + 3 * (reached[1] - reached[0])
        if reached[0] > 1 + slack or (image.onto and reached[1] < 1 - slack):
            raise NoBoundError(
                f"the mass balance fails: the image of the map has the mass {reached[0]:.9g} to {reached[1]:.9g} of the target's 1, though it "
                f"{'covers' if image.onto else 'lies in'} the target as far as its boundary shows. The second derivatives are not those of the map, "
                "or a density is not normalised."
            )

    # The results

    def certificate(self) -> Certificate:
        curvature, image, target, measure, _, found = self._run()
        ratio = curvature.beta / curvature.alpha
        covered = ratio * found.delta + (1 + ratio) * found.slice.thickness * math.sqrt(found.slice.mass)
        alternatives = {"T5 (ii)": covered + found.moved.upper, "T5 (ii')": (1 + 2 * ratio) * found.delta + found.moved.upper}
        if self.dimension == 1:
            alternatives["T5 (increasing)"] = found.delta + found.moved.upper
        theorem = min(alternatives, key=lambda name: alternatives[name])
        proved_by = {curvature.source, target.source}
        reasons = [NO_POINTWISE]
        if image.shrink > 0 and image.outside > 0:
            reasons.append(
                f"the map leaves the target by {image.outside:.2g} at x = {show(image.worst)}; shrinking it costs {found.moved.upper:.2g} of the bound"
            )

        def residual(x: np.ndarray) -> np.ndarray:
            jet = self.candidate.jet(x)
            return self.problem.target_density(np.asarray(jet.gradient)) * np.linalg.det(np.asarray(jet.hessian)) - self.problem.source_density(x)

        return Certificate(
            map_L2=alternatives[theorem] * (1 + 16 * EPSILON),
            W2=self._distance(curvature, image, found),
            theorem="T5" if image.shrink == 0 else "T5, shrunk",
            level=measure.level,
            confidence=measure.confidence,
            epsilon_source="sampled" if "sampled" in proved_by else "interval",
            reason="; ".join(reasons),
            points=len(measure.points),
            spread=found.chi.spread,
            theorems={"map_L2": theorem, "W2": "T5"},
            alternatives=alternatives,
            picture=Picture(self.problem, residual, None, measure.points),
        )

    def _distance(self, curvature: Curvature, image: Image, found: Bounds) -> tuple[float, float]:
        """W₂ from the cost of the map and from the dual value, whichever is sharper."""
        alpha = (1 - image.shrink) * curvature.alpha
        low, high = found.dual
        lower = max(found.cost[0] - found.delta, math.sqrt(max(2 * low, 0.0)), 0.0)
        upper = min(found.cost[1] + found.delta, math.sqrt(max(2 * high, 0.0) + found.delta**2 / alpha))
        slack = found.moved.upper if image.onto else 0.0
        return max(lower * (1 - 16 * EPSILON) - slack, 0.0), upper * (1 + 16 * EPSILON) + slack

    def facts(self) -> TransportFacts:
        curvature, image, target, measure, local, found = self._run()
        raw = local if image.shrink == 0 else self._evaluate(measure.points, 0.0)
        q = raw.G / raw.mu
        mass = found.reached if image.shrink == 0 else integral(measure, raw.G, self.domain.volume)
        variation = integral(measure, np.abs(raw.mu - raw.G) / 2, self.domain.volume)
        return TransportFacts(
            curvature.alpha,
            curvature.beta,
            found.chi.upper,
            found.delta + found.moved.upper,
            sum(mass) / 2,
            variation[1] + max(1 - mass[0], 0.0) / 2,
            float(np.max(q)),
            float(np.min(q)),
            measure.norm((q - 1) * np.sqrt(raw.mu)).upper,
            float(np.max(np.abs(q - 1))),
            image.outside,
            image.shrink,
            image.gap,
            image.onto,
            target.poincare,
            found.factor,
        )


def _excess(local: Local) -> np.ndarray:
    """|μ - G|, rounded up."""
    return np.abs(local.mu - local.G) + local.rounding


def _sharpest(limits: Sequence[tuple[float, float]]) -> tuple[float, float]:
    """What several pairs of limits have in common; the hull of all where they contradict each other."""
    low, high = max(pair[0] for pair in limits), min(pair[1] for pair in limits)
    return (low, high) if low <= high else (min(pair[0] for pair in limits), max(pair[1] for pair in limits))


def _determinant(matrix: Any) -> Any:
    """Written out for interval arithmetic, in up to three dimensions."""
    if matrix.shape[0] == 1:
        return matrix[0, 0]
    if matrix.shape[0] == 2:
        return matrix[0, 0] * matrix[1, 1] - matrix[0, 1] ** 2
    a, b, c, d, e, f = matrix[0, 0], matrix[0, 1], matrix[0, 2], matrix[1, 1], matrix[1, 2], matrix[2, 2]
    return a * (d * f - e**2) - b * (b * f - c * e) + c * (b * e - c * d)
