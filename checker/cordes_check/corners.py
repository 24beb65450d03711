"""Singular functions of the plane around points, as corners and crossings of interfaces have them.

S = B Σ r^β (log r)^l Φ(θ), r = |x - c|/scale, β > 1. Φ is C¹ across rays whatever the numbers are:
between two rays, t from -1 to 1 with the angle, it is Hermite's cubic of their values and slopes
plus (1 - t²)² times a sum of Chebyshev's polynomials. On the edges of the domain through c the
values are zero. B = 1 - (1 - P)⁴, P the product of the distances to the edges that do not touch c,
one at c. So S vanishes on the boundary, and is in H².
"""

import itertools
from collections.abc import Callable
from functools import reduce
from operator import mul

from flint import acb, arb, arb_poly

from cordes_check.balls import (
    ELEMENTARY,
    PAIRS,
    around,
    between,
    binary,
    derivatives,
    dot,
    largest,
    need,
    on_lines,
    over,
    rational,
    root,
    series,
)
from cordes_check.cells import Cell, Place

MOST_TERMS, WIDE = 400, arb(1e-6)


def cross(a: list, b: list):
    return a[0] * b[1] - a[1] * b[0]


def minus(a: list, b: list) -> list:
    return [p - q for p, q in zip(a, b, strict=True)]


def derived_twice(p: arb_poly) -> list[arb_poly]:
    return [p, p.derivative(), p.derivative().derivative()]


class Corner:
    """The singular functions around one point."""

    def __init__(self, data: dict, outline: list[tuple]):
        self.at, self.scale = [rational(c) for c in data["at"]], arb(rational(data["scale"]))
        rays = [[rational(c) for c in ray] for ray in data["rays"]]
        pairs, self.rays, self.terms = [*itertools.pairwise(rays)], rays, []
        need(self.scale > 0 and all(cross(*pair) > 0 for pair in pairs), "rays that turn back")
        self.angles = [arb.atan2(arb(cross(a, b)), arb(sum(map(mul, a, b)))) for a, b in pairs]
        self._see_edges([*zip(outline, [*outline[1:], outline[0]], strict=True)])
        need(len(data["terms"]) <= MOST_TERMS, "too many singular functions")
        for beta, logs, values, slopes, inner in data["terms"]:
            values, slopes = ([arb(binary(v)) for v in row] for row in (values, slopes))
            fits = len(values) == len(slopes) == len(rays) == len(inner) + 1
            need(fits and rational(beta) > 1 and logs in range(5), "a function that is not in H²")
            ends = [values[0] - values[-1], slopes[0] - slopes[-1]]
            ends = [values[0], values[-1]] if self.on_boundary else ends
            need(all(end.is_zero() for end in ends), "a function with wrong values on outer rays")
            profiles = [self._profile(k, values, slopes, row) for k, row in enumerate(inner)]
            self.terms.append((arb(rational(beta)), logs, profiles))

    def _see_edges(self, pairs: list[tuple]) -> None:
        """On the boundary the outer rays must be the edges through the point; inside the last ray
        must be the first after one turn. Of the other edges the distances, one at the point."""
        heights = [cross(minus(b, a), minus(self.at, a)) for a, b in pairs]
        self.on_boundary, self.edges = min(heights) == 0, []
        need(
            min(heights) >= 0 and sum(self.angles, arb(0)) < (4 if self.on_boundary else 7), "rays"
        )
        for (a, b), height in zip(pairs, heights, strict=True):
            if height:
                normal = [(a[1] - b[1]) / height, (b[0] - a[0]) / height]
                self.edges.append((arb(-sum(map(mul, normal, a))), [arb(n) for n in normal]))
        touching = [pair for pair, height in zip(pairs, heights, strict=True) if not height]
        outer = [self.rays[0], self.rays[-1]]
        edges = [
            minus(next(p[k] for p in touching if [*p[k]] != self.at), self.at)
            for k in (1, 0)
            if touching
        ]
        for ray, edge in zip(outer, edges or outer[::-1], strict=True):
            need(cross(ray, edge) == 0 and sum(map(mul, ray, edge)) > 0, "an outer ray is no edge")

    def _profile(self, k: int, values: list, slopes: list, inner: list) -> Callable:
        """Φ, Φ' and Φ'' in sector k as a function of t."""
        half, t, quarter = self.angles[k] / 2, arb_poly([0, 1]), arb(0.25)
        (v, w), (m, n) = values[k : k + 2], (half * slope for slope in slopes[k : k + 2])
        cubic = (1 - t) ** 2 * ((2 + t) * v + (1 + t) * m) * quarter
        cubic += (1 + t) ** 2 * ((2 - t) * w - (1 - t) * n) * quarter
        c, q, before, now = [arb(binary(c)) for c in inner], arb_poly([0]), t, arb_poly([1])
        for each in c:
            q, before, now = q + now * each, now, 2 * t * now - before
        bubble = (1 - t * t) ** 2
        exact, smooth, guards = (derived_twice(p) for p in (cubic + bubble * q, cubic, bubble))

        def profile(t) -> list:
            if largest(t - t.mid()) < WIDE:
                return [p(t) for p in exact]
            # For all t of a large ball |T_j|, |T_j'| and |T_j''| are at most j^2m ρ^j, m = 0, 1, 2,
            # on the ellipse with |t - 1| + |t + 1| = ρ + 1/ρ, which grows with |Re t| and |Im t|.
            x, y = (
                (largest(t.real), largest(t.imag)) if isinstance(t, acb) else (largest(t), arb(0))
            )
            axis = (root((x - 1) ** 2 + y * y) + root((x + 1) ** 2 + y * y)) / 2
            rho = largest(axis + root(largest(axis * axis - 1)))
            sizes = (
                sum((abs(a) * rho**j * j ** (2 * m) for j, a in enumerate(c)), arb(0))
                for m in range(3)
            )
            b, (g, g1, g2) = [around(size, t) for size in sizes], (p(t) for p in guards)
            s, s1, s2 = (p(t) for p in smooth)
            return [
                s + g * b[0],
                s1 + g1 * b[0] + g * b[1],
                s2 + g2 * b[0] + 2 * g1 * b[1] + g * b[2],
            ]

        return profile

    def sector(self, cell: Cell) -> int:
        for k, (a, b) in enumerate(zip(self.rays, self.rays[1:], strict=False)):
            seen = [minus(list(v), self.at) for v in cell.vertices]
            if all(cross(a, v) >= 0 and cross(v, b) >= 0 for v in seen):
                return k
        need(False, f"{cell.name}: a ray of a corner crosses it")
        return 0

    def guard(self, x: list):
        """B at a point, or on a line."""
        P = reduce(mul, (start + dot(normal, x) for start, normal in self.edges))
        return 1 - (1 - P) ** 4

    def on(self, cell: Cell) -> Callable[[Place], list]:
        """S on the lines through a place."""
        k, own = self.sector(cell), cell.kind != "box" and cell.origin == self.at
        ray, half, at = (
            [arb(c) for c in self.rays[k]],
            self.angles[k] / 2,
            [arb(c) for c in self.at],
        )

        def position(e: list):
            """t of a vector."""
            length = root(dot(e, e)) * root(dot(ray, ray))
            return ELEMENTARY["arctan"](over(cross(ray, e), length + dot(ray, e))) * 2 / half - 1

        def lines(place: Place) -> list:
            e, shift = [c - m for c, m in zip(place.x, at, strict=True)], arb(0)
            if own:  # x - c is p1 times this.
                e = [p + place.s[1] * q for p, q in zip(*cell.balls[1:], strict=True)]
                shift = ELEMENTARY["log"](place.p1) if place.log_p1 is None else place.log_p1
            # By the mean value theorem from a point m: ∇θ = (-e2, e1)/|e|², ∇l = e/|e|².
            m = [c.mid() for c in e]
            moved, square = [c - n for c, n in zip(e, m, strict=True)], dot(e, e)
            t = position(m) + over(cross(e, moved), square) / half
            # What continues from m is the arctan of x itself only while its angle is below π. (The
            # logarithm and √e² have their cuts where Re e² < 0 and Im e² = 0: in one complex
            # variable these are vertical lines from the zeros of e², so that a rectangle around
            # an ellipse that meets a cut has a zero, where nothing is a number.)
            angle = (t + 1) * half
            if not abs(angle.real if isinstance(angle, acb) else angle) < arb.pi():
                t = t * arb("nan")
            l = ELEMENTARY["log"](dot(m, m)) / 2 + over(dot(e, moved), square) + shift
            unit, found = (-shift).exp(), []
            s, s_l, s_t, s_ll, s_lt, s_tt = self._derivatives(k, l - self.scale.log(), t)
            for pair in PAIRS[2]:
                v = [arb(int(i in pair)) for i in range(2)]
                # l and t on the line, up to second order.
                l1, t1 = over(dot(e, v), square), over(cross(e, v), square) / half
                l2, t2 = (over(dot(v, v), square) - 2 * l1 * l1) / 2, -l1 * t1
                bend = s_l * l2 + s_t * t2 + s_lt * l1 * t1 + (s_ll * l1 * l1 + s_tt * t1 * t1) / 2
                found.append(series([s, unit * (s_l * l1 + s_t * t1), unit * unit * bend]))
            return [self.guard(x) * S for x, S in zip(on_lines(place.x), found, strict=True)]

        return lines

    def _derivatives(self, k: int, l, t) -> list:
        """Σ e^{βl} l^m Φ(t) with its derivatives by l and t."""
        total = [arb(0)] * 6
        for beta, m, profiles in self.terms:
            power, p = (
                (beta * l).exp(),
                [l**m, m * l ** max(m - 1, 0), m * (m - 1) * l ** max(m - 2, 0)],
            )
            r = [
                power * p[0],
                power * (beta * p[0] + p[1]),
                power * (beta**2 * p[0] + 2 * beta * p[1] + p[2]),
            ]
            f = profiles[k](t)
            parts = r[0] * f[0], r[1] * f[0], r[0] * f[1], r[2] * f[0], r[1] * f[1], r[0] * f[2]
            total = [a + b for a, b in zip(total, parts, strict=True)]
        return total

    def tip(self, cell: Cell) -> arb:
        """A bound of the L² norm, on a tip with the apex here, of S and of each first and second
        derivative. With m = (1 + |log r|)^l, S, r ∇S and r² D²S are at most C r^β m, where
        C = (β + l + 1)² (|Φ| + |Φ'| + |Φ''|); and since r^(β - 1) m² grows on (0, R] if
        (β - 1)(1 + |log R|) >= 2 l, the integral of r^(2β - 4) m² over the sector is at most its
        angle times R^(2β - 2) m(R)²/(β - 1)."""
        k, total = self.sector(cell), arb(0)
        R = (
            max(
                largest(root(arb(sum(c * c for c in minus(list(v), self.at)))))
                for v in cell.vertices
            )
            / self.scale
        )
        need(R < 1, f"{cell.name}: a tip must be small")
        for beta, l, profiles in self.terms:
            chain = [(2 / self.angles[k]) ** n for n in range(3)]
            C = (beta + l + 1) ** 2 * dot([*map(largest, profiles[k](between(-1, 1)))], chain)
            need((beta - 1) * (1 - R.log()) >= 2 * l, f"{cell.name}: a tip must be small")
            total += C * R ** (beta - 1) * (1 - R.log()) ** l * root(self.angles[k] / (beta - 1))
        B = derivatives([self.guard(x) for x in on_lines(cell.whole().x)], 2)
        size = sum(map(largest, B), arb(0)) * 2
        return (total * size * self.scale * (1 + 1 / self.scale) ** 2).upper()
