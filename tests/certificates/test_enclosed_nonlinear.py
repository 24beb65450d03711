"""Enclosed norms of several controls and of determinants: against norms on fine grids, with planted
faults, and what certificates make of them."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import cordes
from cordes.certificates.enclosed import controls, determinant
from cordes.certificates.enclosed.abstract import RHO
from cordes.certificates.enclosed.answers.interpolation import limits_between
from cordes.certificates.enclosed.controls import controlled_measure
from cordes.certificates.enclosed.determinant import convex_measure
from cordes.certificates.enclosed.refinement import CHEAP
from cordes.certificates.enclosed.weights import multiplier
from cordes.certificates.residual.candidate import FunctionCandidate
from cordes.certificates.theorems.energy import TraceSplit
from cordes.domains.unit_cube import gauss_rule, tensor_rule

SQUARE = cordes.Box([0, 0], [1, 1])
DOMAINS = [
    SQUARE,
    cordes.Ball([0, 0], 0.7),
    cordes.Polygon([[0, 0], [1, 0], [1.2, 0.5], [0.35, 0.85]]),
    cordes.Box([0, 0], [20, 1]),
]
PLAIN = multiplier(TraceSplit(), np.eye(2))


def zero(x):
    return 0.0 * x[0]


def bump(place, width):
    def height(x):
        return jnp.maximum(1 - jnp.sum((x - jnp.asarray(place)) ** 2) / width**2, 0.0) ** 4

    return height


def grid(domain, low, high, n):
    """Middles of squares, `n` along the shortest side: peaks are as narrow in long boxes."""
    sides = np.asarray(high) - low
    counts = np.ceil(n * sides / np.min(sides)).astype(int)
    ends = zip(low, high, counts, strict=True)
    axes = [np.linspace(a, b, 2 * count + 1)[1::2] for a, b, count in ends]
    x = np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1).reshape(-1, len(low))
    return x[domain.contains(x)], float(np.prod(sides / counts))


# Several controls ---------------------------------------------------------------------------------


def random_controls(seed):
    """A problem, and the scaled supremum for the answer zero."""
    rng = np.random.default_rng([20_262, seed])
    domain, count = DOMAINS[rng.integers(len(DOMAINS))], int(rng.integers(2, 5))
    sense = str(rng.choice(["sup", "inf"]))
    waves, shifts = (
        rng.normal(size=(count, 3, 2)) * rng.choice([2, 8]),
        rng.uniform(0, 6, (count, 3)),
    )
    sizes, offset = rng.normal(size=(count, 3)), rng.normal(size=count) * rng.choice([0, 1, 5])
    roots = 0.3 * rng.normal(size=(count, 2, 2))
    A = roots @ np.swapaxes(roots, 1, 2) + 0.7 * np.eye(2)
    peak = bump(domain.interior_points(1, seed)[0], 10 ** rng.uniform(-2, -0.7))
    height = rng.choice([0.0, 30.0])

    def f(x, a):
        i = a.astype(int)
        angles = jnp.asarray(waves)[i] @ x + jnp.asarray(shifts)[i]
        more = jnp.where(i == 0, height, 0.0) * peak(x)
        return jnp.sum(jnp.asarray(sizes)[i] * jnp.cos(angles)) + jnp.asarray(offset)[i] + more

    table = jnp.asarray(A)
    given = np.arange(float(count)), lambda x, a: table[a.astype(int)], f
    problem = cordes.HJB(domain, *given, sense=sense)
    sign, scale = problem.sign, [2 / np.trace(each) for each in A]

    def best(x):
        each = [-sign * f(x, jnp.asarray(float(a))) * scale[a] for a in range(count)]
        return jnp.max(jnp.stack(each))

    return problem, best


def violated(seed):
    """Whether the truth lies outside of the limits by more than the error of the grid."""
    problem, best = random_controls(seed)
    low, high = (np.asarray(each) for each in problem.domain.bounding_box)
    x, weight = grid(problem.domain, low, high, 700)
    truth = float(np.sqrt(weight * np.sum(np.asarray(jax.jit(jax.vmap(best))(x)) ** 2)))
    found = controlled_measure(problem, FunctionCandidate(problem, zero), [PLAIN], CHEAP)
    norm = found.norm_of(PLAIN)
    assert norm.enclosed
    assert norm.upper <= 2.1 * truth
    return not norm.lower * 0.99 <= truth <= norm.upper * 1.005


@pytest.mark.parametrize("seed", [0, 1, pytest.param(range(2, 8), marks=pytest.mark.long)])
def test_the_best_of_random_controls(seed):
    assert not any(violated(each) for each in ([seed] if isinstance(seed, int) else seed))


def opposed(switching):
    """Two controls of which each is the best in a half of the square."""
    return cordes.HJB(
        SQUARE,
        [-1.0, 1.0],
        np.eye(2),
        lambda x, a: 1 + a * jnp.sin(switching * (x[0] - 0.37123)),
    )


@pytest.mark.parametrize("switching", [1.0, 9.0])
def test_the_smaller_of_two_residuals_is_no_bound(switching):
    """max(p, q) = -1 + |sin|, between -1 and 0."""
    problem = opposed(switching)
    t = (np.arange(200_000) + 0.5) / 200_000
    truth = np.sqrt(np.mean((-1 + np.abs(np.sin(switching * (t - 0.37123)))) ** 2))
    found = controlled_measure(problem, FunctionCandidate(problem, zero), [PLAIN], CHEAP)
    norm = found.norm_of(PLAIN)
    assert norm.lower <= truth <= norm.upper <= 1.2 * truth


def test_faults_of_the_comparison_are_noticed(monkeypatch):
    """With all controls taken to be equally good the smallest of their norms would be the bound."""
    problem = cordes.HJB(SQUARE, [0.0, 1.0], np.eye(2), lambda x, a: 0.1 - 3 * a * x[0])
    candidate = FunctionCandidate(problem, zero)
    truth = np.sqrt(np.mean((3 * (np.arange(10_000) + 0.5) / 10_000 - 0.1) ** 2))
    sound = controlled_measure(problem, candidate, [PLAIN], CHEAP)
    assert truth * 0.99 <= sound.norm_of(PLAIN).upper <= 1.1 * truth
    monkeypatch.setattr(controls, "limits_between", lambda *given: np.zeros((2, len(given[2]))))
    assert controlled_measure(problem, candidate, [PLAIN], CHEAP).norm_of(PLAIN).upper < truth / 2


def test_values_between_the_points_of_rules():
    """1/(a - y), whose ellipses end at a, and waves, at rules of several orders."""
    rng = np.random.default_rng(3)
    for _ in range(40):
        orders = rng.integers(2, 12, 2)
        a, k = rng.uniform(1.02, 3.0), rng.uniform(0, 6)

        def f(x, a=a, k=k):
            return 1 / (a - x[..., 0]) + np.cos(k * x[..., 1])

        axis, height = (RHO + 1 / RHO) / 2, RHO / 2
        pole = np.where(axis < a, 1 / np.maximum(a - axis, 1e-300), np.inf) + 1
        wave = 1 / (a - 1) + np.cosh(k * height)
        x, _ = tensor_rule([gauss_rule(int(n)) for n in orders])
        values = f(2 * x - 1)
        bound = np.stack([pole, wave])[None]
        low, high = limits_between(values, np.zeros(1, int), orders[None], bound, np.zeros(1))
        between = f(rng.uniform(-1, 1, (4000, 2)))
        assert low[0] <= np.min(between)
        assert np.max(between) <= high[0]


def test_a_certificate_of_two_controls_is_enclosed():
    def answer(x):
        return x[0] * (1 - x[0]) * x[1] * (1 - x[1])

    problem = cordes.HJB(SQUARE, [1.0, 2.0], lambda x, a: a * jnp.eye(2), lambda x, a: -a)
    certificate = cordes.certify(problem, answer)
    assert certificate.level == "enclosed"
    assert set(certificate.levels.values()) == {"enclosed"}


# Determinants -------------------------------------------------------------------------------------


def bent(seed, d=2):
    """A convex solution, and an answer that has a bump more, which may bend it too far."""
    rng = np.random.default_rng([20_263, seed])
    domain = DOMAINS[rng.integers(3)] if d == 2 else cordes.Box([0] * 3, [1] * 3)
    Q = np.linalg.qr(rng.normal(size=(d, d)))[0]
    M = Q @ np.diag(rng.uniform(0.3, 2, d)) @ Q.T
    place, width = domain.interior_points(1, seed)[0], 10 ** rng.uniform(-2.3, -0.5)
    height = rng.choice([-1, 1]) * 0.04 * 10 ** rng.uniform(-2, 0.6)

    def solution(x):
        return 0.5 * x @ (M @ x) + 0.02 * jnp.cos(3 * x[0] + x[1])

    def answer(x):
        return solution(x) + height * width**2 * bump(place, width)(x)

    problem = cordes.MongeAmpere(
        domain, lambda x: jnp.linalg.det(jax.hessian(solution)(x)), g=solution
    )
    return problem, solution, answer, place, width


def outcome(seed):
    """`proved`, `open`, or `violated`."""
    problem, solution, answer, place, width = bent(seed)
    found = convex_measure(problem, FunctionCandidate(problem, answer), CHEAP)
    x, weight = grid(problem.domain, place - width, place + width, 400)
    both = [np.asarray(jax.jit(jax.vmap(jax.hessian(u)))(x)) for u in (answer, solution)]
    if found is None:
        return "open"
    det, f = (np.linalg.det(each) for each in both)
    convex = np.min(np.linalg.eigvalsh(both[0])) > 0
    truth = float(np.sqrt(weight * np.sum((np.sqrt(np.maximum(det, 0)) - np.sqrt(f)) ** 2)))
    norm = found.norm()
    good = norm.lower * 0.995 <= truth <= norm.upper * 1.005 and np.min(det / f) >= found.share
    return "proved" if convex and good else "violated"


@pytest.mark.parametrize("seed", [0, pytest.param(range(1, 7), marks=pytest.mark.long)])
def test_random_determinants(seed):
    found = [outcome(each) for each in ([seed] if isinstance(seed, int) else seed)]
    assert "violated" not in found
    assert found.count("proved") >= 0.6 * len(found)


def test_an_answer_that_bends_the_wrong_way_is_not_proved_convex():
    """-|x|²/2 has the determinant of |x|²/2, and a saddle in a tiny disk escapes all points."""
    problem = cordes.MongeAmpere(cordes.Ball([0, 0], 1.0), 1.0, g=0.5)

    def turned(x):
        return 1 - 0.5 * jnp.dot(x, x)

    assert convex_measure(problem, FunctionCandidate(problem, turned), CHEAP) is None
    square = cordes.MongeAmpere(SQUARE, 1.0, g=lambda x: 0.5 * jnp.dot(x, x))

    def dented(x):
        return 0.5 * jnp.dot(x, x) - 2e-7 * bump([0.3713, 0.2127], 1e-3)(x)

    def raised(x):
        return 0.5 * jnp.dot(x, x) + 2e-7 * bump([0.3713, 0.2127], 1e-3)(x)

    for answer in (dented, raised):
        assert convex_measure(square, FunctionCandidate(square, answer), CHEAP) is None


def test_a_fault_in_the_determinant_is_noticed(monkeypatch):
    """Without the points that say which sign the eigenvalues have, -|x|²/2 would be convex."""
    problem = cordes.MongeAmpere(cordes.Ball([0, 0], 1.0), 1.0, g=0.5)
    candidate = FunctionCandidate(problem, lambda x: 1 - 0.501 * jnp.dot(x, x))
    monkeypatch.setattr(determinant, "CERTAIN", -np.inf)
    assert convex_measure(problem, candidate, CHEAP) is not None


@pytest.mark.long
def test_a_solved_answer_is_convex_and_its_bound_enclosed():
    solution = cordes.solve("ex4.6-monge-ampere", progress=False)
    certificate = solution.certificate
    assert solution.result == "converged"
    assert certificate.epsilon_source == "interval"
    assert set(certificate.levels.values()) == {"enclosed"}
    x = SQUARE.interior_points(2000, 3)
    error = solution(x) - jax.vmap(solution.problem.exact)(x)
    # Half of the bound is the rounding of the answer's second derivatives.
    assert np.max(np.abs(error)) <= certificate.Linf <= 3e-13


@pytest.mark.long
def test_a_solved_answer_of_two_controls_is_enclosed():
    solution = cordes.solve("ex4.5-hjb", singular=False, progress=False)
    certificate = solution.certificate
    assert set(certificate.levels.values()) == {"enclosed"}
    assert certificate.Linf <= 2e-10


def test_a_line_of_a_table_that_bends_nothing_is_no_cell():
    from cordes.certificates.residual.lines import unit_lines

    values = np.zeros((201, 201))
    values[70, 40] = 1.0
    table = cordes.interpolate(values, SQUARE, order=1)
    problem = cordes.Linear(SQUARE, lambda x: (1 + table(x)) * jnp.eye(2), 1.0)
    along = [sorted({round(200 * float(t)) for t in axis}) for axis in unit_lines(problem)]
    assert along == [[69, 70, 71], [39, 40, 41]]


@pytest.mark.long
@pytest.mark.parametrize("number", [83, 96, 99])
def test_features_in_long_boxes_and_single_pixels(number):
    """A needle in a box of 1:75, a bump of a potential in one of 1:10 in space, which is finer than
    the points of its norms and refused, one pixel of 200 x 200."""
    import sys
    from pathlib import Path

    sys.path.append(str(Path(__file__).parents[2] / "benchmarks"))
    import hidden_battery as battery

    found = battery.judged(number, battery.SEED)
    assert found.bounds or (number == 96 and "more than the points" in found.said)
    assert not found.violated, found
