"""Singular functions with their jets: S(x) = B(x) · r^β (log r)^l · Φ(θ) around each singular
point.

B is made of the distances to the edges that do not touch the point, so S vanishes on the whole
boundary and no cut-off is needed: S is smooth away from its point. The leading terms use the exact
angular eigenfunctions; the terms above them, r^(β+j), use generic angular functions, with a
logarithm where an exponent is resonant (A = I on a box: β = 2). On a smooth boundary r and θ are
polar coordinates in a chart where it is straight.

Written with NumPy on purpose: the columns are computed once for a set of points, and compiling them
would take longer than a whole solve.
"""

import copy
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from cordes.ansatz.singular.angular import adapted_tables, angular_tables, kinked_table
from cordes.ansatz.singular.charts import BoundaryFactor, Chart, Curves
from cordes.ansatz.singular.exponents import Eigenfunction, angular_jet, eigenfunctions
from cordes.ansatz.singular.points import SingularPoint
from cordes.domains.domain import AbstractDomain
from cordes.jet import Jet, product

TINY = 1e-30
RESONANCE = 0.05


class Leading(NamedTuple):
    """An exact eigenfunction, times log r where f or a lower term resonates with it."""

    function: Eigenfunction
    logs: int


class Family(NamedTuple):
    """All functions of one singular point: exact leading terms, and generic ones for each radial
    factor r^exponent (log r)^logs. `local` is the point as its chart shows it."""

    point: SingularPoint
    local: SingularPoint
    leading: tuple[Leading, ...]
    radials: tuple[tuple[float, int], ...]
    degree: int


def make_family(
    original: SingularPoint, point: SingularPoint, largest: float, degree: int
) -> Family:
    """Which terms the expansion at a point has up to r^largest; `original` is the point before any
    change of coordinates.

    Each term begets others `step` powers of r higher; f forces the integers 2, 3, …, which without
    resonance are polynomials in each sector: the network has those, through φ|φ|. A forced exponent
    that is an eigenvalue β gives r^β (log r Θ + Φ) with the eigenfunction Θ and some Φ. At the tip
    of a cone the homogeneous solutions are polynomials and everything else is an integer from 3 on,
    with a logarithm. Where A does not jump on a smooth boundary, only f, no logarithm is ever
    squared: u is a function that is smooth on both sides of the interface and one with boundary
    values smooth on both sides of the point, and the singularities of the latter are those of
    classical pseudodifferential operators, r^n log r.
    """
    if point.sectors == 1 and not point.on_boundary:
        tip = [(float(n), logs) for n in range(3, int(largest) + 1) for logs in (0, 1)]
        return Family(original, point, (), tuple(tip), degree)
    if point.kink:
        # Only one logarithm, as on a smooth boundary; g forces all integers.
        forced = [(float(n), logs) for n in range(2, int(largest) + 1) for logs in (0, 1)]
        several = eigenfunctions(point, largest) if point.sectors > 1 else []
        exact = tuple(Leading(function, 0) for function in several)
        return Family(original, point, exact, tuple(forced), degree)
    functions = eigenfunctions(point, largest)
    leading = [Leading(function, 0) for function in functions]
    most = 1 if point.interface is not None and not np.any(np.ptp(original.matrices, axis=0)) else 3
    generic: dict[float, int] = {}
    queue = [(function.exponent.real + point.step, 0) for function in functions]
    queue += [
        (float(n), 0)
        for n in range(2, int(largest) + 1)
        if any(abs(function.exponent - n) < RESONANCE for function in functions)
    ]
    while queue:
        queue.sort()
        exponent, logs = queue.pop(0)
        known = next((other for other in generic if abs(other - exponent) < 1e-6), exponent)
        if exponent > largest + 1e-9 or generic.get(known, -1) >= logs:
            continue
        generic[known] = logs
        resonant = [
            function for function in functions if abs(function.exponent - exponent) < RESONANCE
        ]
        known_terms = {(id(function), power) for function, power in leading}
        leading += [
            Leading(function, logs + 1)
            for function in resonant
            if logs < most and (id(function), logs + 1) not in known_terms
        ]
        queue.append((exponent + point.step, min(logs + bool(resonant), 2, most)))
    radials = [(power, l) for power, logs in sorted(generic.items()) for l in range(logs + 1)]
    return Family(original, point, tuple(leading), tuple(radials), degree)


class Frame(NamedTuple):
    """Polar coordinates around a singular point: radius (N,) in domain units, angle (N,), and the
    unit vectors (N, 2)."""

    r: np.ndarray
    angle: np.ndarray
    radial: np.ndarray
    tangent: np.ndarray


class SingularFunctions:
    """The singular functions of a two-dimensional problem; `count` may be zero."""

    # Amplitudes that cancel each other would turn rounding into a kink.
    damped = True

    def __init__(
        self,
        domain: AbstractDomain,
        points: Sequence[SingularPoint] = (),
        largest: float = 5.0,
        degree: int = 8,
        curves: Sequence[Curves] = (),
    ):
        lower, upper = domain.bounding_box
        self.scale = float(np.max(upper - lower)) / 2
        self._parts: list[tuple[Family, BoundaryFactor]] = []
        for point in points:
            chart = None if point.interface is None else Chart(point, curves[point.interface])
            local = point if chart is None else chart.local
            family = make_family(point, local, largest, degree)
            self._parts.append((family, BoundaryFactor(domain, point, chart)))
        self.families = tuple(family for family, _ in self._parts)
        here = np.asarray(domain.center)[None]
        self.counts = tuple(
            self._columns(here, jets, *parts).shape[1]
            for jets, parts in zip(self.seen(here), self._parts, strict=True)
        )
        self.count = sum(self.counts)

    def only(self, wanted: Sequence[bool]) -> "SingularFunctions":
        """Those of some of the points."""
        other, chosen = copy.copy(self), [k for k, here in enumerate(wanted) if here]
        other._parts = [self._parts[k] for k in chosen]
        other.families = tuple(self.families[k] for k in chosen)
        other.counts = tuple(self.counts[k] for k in chosen)
        other.count = sum(other.counts)
        return other

    def rows(
        self, x: np.ndarray, zeroth: np.ndarray, first: np.ndarray, second: np.ndarray
    ) -> np.ndarray:
        """zeroth·S + first·∇S + second:D²S for all functions, (N, count)."""
        return self.all_rows(x, [(zeroth, first, second)])[0]

    def all_rows(
        self, x: np.ndarray, expressions: Sequence[tuple[np.ndarray, np.ndarray, np.ndarray]]
    ) -> list[np.ndarray]:
        """The same for several expressions."""
        x = np.asarray(x, dtype=np.float64)
        given = [tuple(np.asarray(part, np.float64) for part in each) for each in expressions]
        columns = [[np.zeros((len(x), 0))] for _ in given]
        for (family, factor), seen in zip(self._parts, self.seen(x), strict=True):
            B, place = factor.jet(x, seen), None
            y = x
            if factor.chart is not None:
                place = factor.chart.place(seen)
                y = place.y
            frame = self._frame(y, family.local)
            terms = list(_terms(family, frame))
            for found, (zeroth, first, second) in zip(columns, given, strict=True):
                # The expression for B·F, sorted by derivatives of F.
                of_value = (
                    zeroth * B.value
                    + np.sum(first * B.gradient, axis=1)
                    + np.sum(second * B.hessian, axis=(1, 2))
                )
                of_gradient = B.value[:, None] * first
                of_gradient = of_gradient + 2 * np.einsum("nij,nj->ni", second, B.gradient)
                of_hessian = B.value[:, None, None] * second
                if place is not None:
                    of_gradient, of_hessian = place.forms(of_gradient, of_hessian)
                found += self._polar_rows(frame, terms, of_value, of_gradient, of_hessian)
        return [np.concatenate(found, axis=1) for found in columns]

    def _polar_rows(
        self,
        frame: Frame,
        terms: list,
        zeroth: np.ndarray,
        first: np.ndarray,
        second: np.ndarray,
    ) -> Iterator[np.ndarray]:
        """The same for F(r, θ): in polar coordinates only Φ, Φ' and Φ'' are multiplied, by vectors
        that the radial factor makes."""
        r, s = frame.r[:, None], self.scale
        e, t = frame.radial, frame.tangent
        rr, rt, tt = (
            np.einsum("ni,nij,nj->n", a, second, b)[:, None] / s**2
            for a, b in ((e, e), (e, t), (t, t))
        )
        fr, ft = (np.sum(first * direction, axis=1)[:, None] / s for direction in (e, t))
        for (R, R1, R2), (T, T1, T2) in terms:
            of_T = zeroth[:, None] * R + (fr + tt / r) * R1 + rr * R2
            of_T1 = (ft / r - 2 * rt / r**2) * R + 2 * rt / r * R1
            yield np.real(of_T * T + of_T1 * T1 + (tt / r**2 * R) * T2)

    def seen(self, x: np.ndarray) -> list[tuple[Jet, ...]]:
        """What JAX computes for each singular point, also inside of a trace: the jets of the curves
        there. All else is NumPy."""
        return [factor.seen(x) for _, factor in self._parts]

    def values(self, x: np.ndarray, seen: Sequence[tuple[Jet, ...]] | None = None) -> np.ndarray:
        """S at points (N, 2), shape (N, count)."""
        seen = self.seen(x) if seen is None else seen
        columns = [
            self._columns(x, jets, *parts) for jets, parts in zip(seen, self._parts, strict=True)
        ]
        return np.concatenate([np.zeros((len(x), 0)), *columns], axis=1)

    def _columns(
        self, x: np.ndarray, seen: tuple[Jet, ...], family: Family, factor: BoundaryFactor
    ) -> np.ndarray:
        B = factor.jet(x, seen).value[:, None]
        y = x if factor.chart is None else factor.chart.place(seen).y
        terms = _terms(family, self._frame(y, family.local))
        # A very acute corner, seen through A, has no exponent that is small enough: no functions.
        return np.concatenate(
            [np.zeros((len(x), 0)), *(np.real(B * R * T) for (R, _, _), (T, _, _) in terms)], axis=1
        )

    def combined_jet(
        self,
        x: np.ndarray,
        amplitudes: np.ndarray,
        seen: Sequence[tuple[Jet, ...]] | None = None,
    ) -> Jet:
        """The jet of Σ amplitude·S: value (N,), gradient (N, 2), Hessian (N, 2, 2). The amplitudes
        are summed over each angular table first, so that polar derivatives are turned into
        Cartesian ones once for each point and family."""
        start = 0
        total = Jet(*(np.zeros((len(x), *shape)) for shape in ((), (2,), (2, 2))))
        given = self.seen(x) if seen is None else seen
        for (family, factor), jets in zip(self._parts, given, strict=True):
            place = None if factor.chart is None else factor.chart.place(jets)
            frame = self._frame(x if place is None else place.y, family.local)
            polar = np.zeros((6, len(x)))
            for (R, R1, R2), (T, T1, T2) in _terms(family, frame):
                count = np.broadcast_shapes(R.shape, T.shape)[1]
                part = amplitudes[start : start + count]
                start += count
                products = ((R, T), (R1, T), (R, T1), (R2, T), (R1, T1), (R, T2))
                polar += np.stack(
                    [
                        np.real((p * q) @ part if p.shape[1] > 1 else p[:, 0] * (q @ part))
                        for p, q in products
                    ]
                )
            F = self._cartesian(frame, polar)
            F = F if place is None else place.pulled_back(F)
            total = product(factor.jet(x, jets), F, plus=total)
        return total

    def _cartesian(self, frame: Frame, polar: np.ndarray) -> Jet:
        """The jet of F(r, θ) from F, F_r, F_θ, F_rr, F_rθ, F_θθ."""
        value, by_r, by_angle, by_rr, by_both, by_angles = polar
        r, s = frame.r, self.scale
        e, t = frame.radial, frame.tangent
        ee, et, tt = (one[:, :, None] * two[:, None] for one, two in ((e, e), (e, t), (t, t)))
        mixed, around = by_both / r - by_angle / r**2, by_r / r + by_angles / r**2
        hessian = (
            by_rr[:, None, None] * ee
            + mixed[:, None, None] * (et + np.swapaxes(et, 1, 2))
            + around[:, None, None] * tt
        )
        return Jet(value, (by_r[:, None] * e + (by_angle / r)[:, None] * t) / s, hessian / s**2)

    def _frame(self, x: np.ndarray, point: SingularPoint) -> Frame:
        offset = np.where(
            np.all(x == point.location, axis=1, keepdims=True), TINY, x - point.location
        )
        length = np.maximum(np.linalg.norm(offset, axis=1), TINY)
        radial = offset / length[:, None]
        tangent = np.stack([-radial[:, 1], radial[:, 0]], axis=1)
        # Angles are measured around the middle ray, so that rounding at an edge cannot wrap them
        # around.
        middle = (point.rays[0] + point.rays[-1]) / 2
        cosine, sine = np.cos(middle), np.sin(middle)
        angle = middle + np.arctan2(
            cosine * radial[:, 1] - sine * radial[:, 0], cosine * radial[:, 0] + sine * radial[:, 1]
        )
        return Frame(length / self.scale, angle, radial, tangent)


def _terms(family: Family, frame: Frame) -> Iterator[tuple[Sequence[np.ndarray], np.ndarray]]:
    """R(r) Φ(θ) for the exact leading terms, then for each generic radial factor with all k angular
    functions: R, R', R'' (N, 1) and Φ, Φ', Φ'' (3, N, k); complex ones stand for their real
    part."""
    point, r = family.local, frame.r[:, None]
    sector = np.clip(
        np.searchsorted(point.rays[1:-1], frame.angle, side="right"), 0, point.sectors - 1
    )
    L = np.log(r)
    for function, logs in family.leading:
        exponent = function.exponent if function.exponent.imag else function.exponent.real
        yield _radial_jet(r, L, exponent, logs), angular_jet(function, frame.angle, sector)
    tables = None
    for exponent, logs in family.radials:
        if point.kink and point.sectors == 1:
            tables = kinked_table(frame.angle - point.rays[0], exponent, logs)
        elif point.interface is not None:
            tables = adapted_tables(point, frame.angle, sector, family.degree, exponent)
        elif tables is None:
            tables = angular_tables(point, frame.angle, family.degree)
        yield _radial_jet(r, L, exponent, logs), tables


def _radial_jet(
    r: np.ndarray, L: np.ndarray, beta: complex, logs: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """r^β L^l with two derivatives; powers of L below zero never appear."""
    powers = [L ** (logs - k) if logs >= k else np.zeros_like(L) for k in range(3)]
    first = beta * powers[0] + logs * powers[1]
    second = (
        beta * (beta - 1) * powers[0]
        + (2 * beta - 1) * logs * powers[1]
        + logs * (logs - 1) * powers[2]
    )
    return r**beta * powers[0], r ** (beta - 1) * first, r ** (beta - 2) * second
