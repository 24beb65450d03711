"""The largest error where a flux is given on a part of the boundary of a domain of the plane.

Let c ≥ 0, κ ≥ 0, v = u − w in H² near the sides with a flux, δ a bound of |g − w| where u is given,
and W smooth with −LW > 0 inside, ∂ₙW + κW > 0 on the sides with a flux and W ≥ 0 where u is given.
Then

    |v| ≤ δ + max(sup |r|/(−LW), sup |h − ∂ₙw − κw|/(∂ₙW + κW)) · W.

With any larger number m in place of the maximum z = δ + mW ∓ v has Lz < 0, no value below zero
where u is given, and ∂ₙz + κz > 0 elsewhere. So it has no negative minimum: not inside, and not on
a side with a flux, across which it goes on by reflection, with a kink that is concave. W is the
combination of polynomials, logarithms and poles with the smallest maximum that a linear program
finds; any one with these signs would do. At corners at which u need not be in H² nothing is
bounded. Where values are given on the whole boundary the same W is nearly the torsion function of
the domain, LW = −1 and W = 0 on ∂Ω, which is a barrier (N2): on thin rings it is up to a hundred
times smaller than the constant of N1.
"""

from typing import Any, NamedTuple

import numpy as np
import scipy.optimize

from cordes.ansatz.plane.network import Functions
from cordes.ansatz.plane.polynomials import PlanePolynomials
from cordes.ansatz.plane.powers import LOG_MODULUS, PLAIN, Center, Powers
from cordes.certificates.reason import Reason, Why
from cordes.certificates.residual.norms import Quadrature
from cordes.certificates.theorems.energy import Local
from cordes.certificates.theorems.maximum import Barrier, Maximum, MaximumPrinciple
from cordes.domains.plane.region import Region
from cordes.domains.plane.sides import SideConditions, SidePoints, graded_sides
from cordes.runtime.plain import show

# The degree of polynomials, and the poles of a hole beside its logarithm.
DEGREE, POLES = 7, 4
# Points of each side and of the interior for the program, and of each side afterwards.
CHOSEN, INSIDE, LOOKED_AT = 40, 1500, 150
# Where −LW is less than this between the points of the program, so many of the worst are added.
LEAST, WORST, ROUNDS = 0.3, 300, 3
# The largest value between points is larger by so much at most.
BETWEEN = 1.02
# n and 2n points agree on the largest residual.
AGREES = 1.2
NO_BARRIER = (
    "no bound of the largest error: no function was found that the operator takes below zero and "
    "that grows outwards on all sides with a given normal derivative"
)


def corners_without_bound(domain: Region) -> Reason | None:
    """The first corner at which second derivatives of u need not be square integrable."""
    for corner in domain.corners:
        if not all(corner.given) and not corner.straightens:
            sentence = (
                f"at x = {show(corner.point)} a side with a given normal derivative meets the next "
                f"one at {float(np.degrees(corner.angle)):.4g}°: second derivatives of u need not "
                "be square integrable there (above 90° between a value and a flux, from 180° "
                "between fluxes), and nothing is bounded"
            )
            return Reason(Why.hypothesis, sentence, {"point": corner.point})
    return None


class Sides(NamedTuple):
    """Points of the boundary, those with a flux and the others, and κ."""

    flux: SidePoints
    given: SidePoints
    kappa: np.ndarray

    @staticmethod
    def of(domain: Region, count: int) -> "Sides":
        points, conditions = graded_sides(domain, count), SideConditions.of(domain)
        flux = conditions.slope[points.number] > 0
        some = points.take(flux)
        return Sides(some, points.take(~flux), conditions.value[some.number])

    def flow(self, functions: Functions) -> np.ndarray:
        """∂ₙ + κ of all functions."""
        if not len(self.kappa):
            return np.zeros((0, functions.count))
        none = np.zeros((len(self.kappa), 2, 2))
        return functions.columns(self.flux.x, none, self.flux.normal, -self.kappa)


class Outflow(NamedTuple):
    """W by its functions and coefficients; at points of the measure W and −LW; the smallest flow
    through the sides."""

    value: np.ndarray
    minus_operator: np.ndarray
    flow: float

    @property
    def peak(self) -> float:
        return BETWEEN * float(np.max(self.value))

    @property
    def serves(self) -> bool:
        return self.flow > 0 and bool(np.all(self.minus_operator > 0))


def outflow(principle: MaximumPrinciple, domain: Region) -> Outflow | None:
    """The W of the module; None where none is found."""
    x, local = principle.measure.points, principle.evaluated.local
    functions, sides = _functions(domain), Sides.of(domain, LOOKED_AT)
    some, found = np.random.default_rng(5_550_007).permutation(len(x))[:INSIDE], None
    for _ in range(ROUNDS):
        coefficients = _program(functions, x[some], Local(*(part[some] for part in local)), domain)
        if coefficients is None:
            return None
        found = _looked_at(functions, coefficients, x, local, sides)
        if float(np.min(found.minus_operator)) >= LEAST:
            break
        some = np.union1d(some, np.argsort(found.minus_operator)[:WORST])
    return found if found is not None and found.serves else None


def _looked_at(
    functions: Functions, coefficients: np.ndarray, x: np.ndarray, local: Local, sides: Sides
) -> Outflow:
    """W with a constant more, which takes no sign away, so that it is not negative where u is
    given."""
    given = functions.values(sides.given.x) @ coefficients
    shift = max(-float(np.min(given, initial=0.0)), 0.0) * BETWEEN
    value = functions.summed(x, coefficients)[0] + shift
    minus = local.c * shift - functions.applied(x, coefficients, local)[0]
    flow = sides.flow(functions) @ coefficients
    return Outflow(value, minus, float(np.min(flow, initial=np.inf)))


def _program(functions: Functions, x: np.ndarray, local: Any, domain: Region) -> np.ndarray | None:
    """min t, W ≤ t, −LW ≥ 1, ∂ₙW + κW ≥ a width/tr A, W ≥ 0 where u is given."""
    sides, values = Sides.of(domain, CHOSEN), functions.values(x)
    width = float(np.max(np.ptp(domain.bounding_box, axis=0)))
    wanted = width / float(np.max(np.trace(local[0], axis1=1, axis2=2)))
    flow, given = sides.flow(functions), functions.values(sides.given.x)
    below = np.concatenate([values, functions.columns(x, *local), -flow, -given])
    sizes = [len(values), len(values), len(flow), len(given)]
    top = np.repeat([-1.0, 0.0, 0.0, 0.0], sizes)
    right = np.repeat([0.0, -1.0, -wanted, 0.0], sizes)
    objective = np.append(np.zeros(functions.count), 1.0)
    found = scipy.optimize.linprog(
        objective, A_ub=np.column_stack([below, top]), b_ub=right, bounds=(None, None)
    )
    return None if found.x is None else found.x[:-1]


def _functions(domain: Region) -> Functions:
    lower, upper = domain.bounding_box
    p = -np.arange(POLES + 1.0)
    factor = np.where(p == 0, LOG_MODULUS, PLAIN)
    centers = [
        Center(hole, np.eye(2) / float(domain.gap(hole[None])[0]), 0.0, np.eye(2))
        for hole in domain.holes
    ]
    poles = [Powers(center, p, 0 * p, factor) for center in centers]
    return Functions(PlanePolynomials(lower, upper, DEGREE), poles)


def torsion(principle: MaximumPrinciple, domain: Region) -> list[Maximum]:
    """The bound by the barrier W where values are given everywhere; none where there is no W."""
    found = outflow(principle, domain)
    if found is None:
        return []
    barrier = Barrier("torsion", found.value, found.minus_operator, found.peak)
    return [principle.with_barrier(barrier)]


class Compared(NamedTuple):
    """A bound, whether n and 2n points agree on it, and why there is none."""

    bound: float
    resolved: bool
    reason: Reason | None = None


def comparison(principle: MaximumPrinciple, missed: float, domain: Any) -> Compared:
    """The bound for the residual and for fluxes that are `missed` by so much."""
    measure = principle.measure
    assert isinstance(measure, Quadrature)
    function = outflow(principle, domain)
    if function is None:
        return Compared(np.inf, False, Reason(Why.no_theorem, NO_BARRIER))
    ratio = principle.size / function.minus_operator
    every, coarse = float(np.max(ratio)), float(np.max(ratio[measure.nodes.coarse > 0]))
    # Between the points a residual is larger than at them: by what the finer ones show, at least.
    inside = every + 2 * (every - coarse)
    resolved = every <= AGREES * coarse and float(np.min(function.minus_operator)) >= LEAST
    return Compared(max(inside, missed / function.flow) * function.peak, resolved)
