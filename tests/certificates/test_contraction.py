"""Suprema over the whole domain: interval arithmetic against dense sampling, and the words that say
how a supremum is known."""

import math
from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from cordes.certificates.theorems.cell_bounds import ball_of, cell_bound
from cordes.certificates.theorems.contraction import TOLERANCE, Coverage
from cordes.certificates.theorems.energy import Local, TraceSplit, Triangle, Weighted, normalised
from cordes.domains import Ball, Box, Polygon
from cordes.formulas.intervals import Interval
from cordes.runtime.blocks import in_blocks

SQUARE = Box([-1, -1], [1, 1])
EIGENVALUE = math.pi**2 / 2
SCHEMES = {
    "T1b": TraceSplit(),
    "T2": Weighted(2.0, normalised((0.2, 0.8, 3.0, 20.0), 2.0, EIGENVALUE, 2)),
    "triangle": Triangle(1.0, EIGENVALUE),
}


def coverage_of(
    domain,
    A: Callable,
    b: Callable | None = None,
    c: Callable | None = None,
    count: int = 200,
    constant: bool = False,
    epsilon: float | None = None,
) -> Coverage:
    """As a certificate makes it: formulas, and values at sampled points."""
    d = domain.dimension
    drift, reaction = b or (lambda x: jnp.zeros(d)), c or (lambda x: jnp.zeros(()))

    def linearise(x):
        return A(x), drift(x), reaction(x)

    compiled = jax.jit(jax.vmap(linearise))

    def values(x: np.ndarray) -> Local:
        return Local(*in_blocks(compiled, (x,)))

    points = domain.interior_points(count, 1, "sobol")
    return Coverage(domain, linearise, values, points, values(points), constant, epsilon)


def smooth_matrix(x):
    return jnp.array(
        [
            [2 + jnp.sin(3 * x[0]) * x[1], 0.5 * jnp.cos(x[0] + 2 * x[1])],
            [0.5 * jnp.cos(x[0] + 2 * x[1]), 1.5 + 0.5 * x[0] ** 2],
        ]
    )


def dense(domain, count: int = 301) -> np.ndarray:
    lower, upper = domain.bounding_box
    axes = [np.linspace(a, b, count) for a, b in zip(lower, upper, strict=True)]
    points = np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1).reshape(-1, domain.dimension)
    return points[domain.contains(points)]


@pytest.fixture(scope="module")
def smooth():
    """Smooth coefficients with all terms, on a box, a disk and a triangle."""
    domains = {
        "box": SQUARE,
        "disk": Ball([0.2, 0.0], 0.9),
        "polygon": Polygon([[-1, -1], [1, -0.5], [0, 1]]),
    }
    return {
        name: coverage_of(
            domain,
            smooth_matrix,
            lambda x: 0.3 * jnp.sin(x + 1),
            lambda x: 1 + 0.5 * jnp.cos(x[0] * x[1]),
        )
        for name, domain in domains.items()
    }


@pytest.mark.parametrize("name", SCHEMES)
@pytest.mark.parametrize("kind", ["box", "disk", "polygon"])
def test_interval_suprema_bound_dense_samples_and_are_close(smooth, kind, name):
    coverage, scheme = smooth[kind], SCHEMES[name]
    for matrix in (np.eye(2), np.array([[1.3, 0.2], [0.2, 0.9]])):
        found = coverage.contraction(scheme, matrix)
        suprema = np.max(
            scheme.defects(coverage.values(dense(coverage.domain)).invariants(matrix)), axis=0
        )
        assert found.source == "interval"
        assert found.value >= np.sum(suprema)
        # Each column is decided to the tolerance; cells that stick out of a round domain add a
        # little.
        assert found.value <= np.sum(suprema + 2 * TOLERANCE * np.maximum(1 - suprema, 0.05))
        assert coverage.domain.contains(found.point, tolerance=1e-9)


def test_a_spike_between_the_samples_is_found():
    """A column of anisotropy 0.002 wide: no sample of a certificate would see it."""

    def A(x):
        spike = 3 * jnp.exp(-((x[0] - 0.137) ** 2 + (x[1] + 0.411) ** 2) / 2e-6)
        return jnp.array([[1 + spike, 0.0], [0.0, 1.0]])

    coverage = coverage_of(SQUARE, A, count=2000)
    assert np.max(TraceSplit().defects(coverage.local.invariants())) < 1e-3
    found = coverage.contraction(TraceSplit(), np.eye(2))
    assert found.source == "interval"
    assert 0.6 <= found.value <= 0.6 * (1 + 2 * TOLERANCE)
    assert found.point == pytest.approx([0.137, -0.411], abs=3e-3)


def test_discontinuous_coefficients():
    """The two sides of a jump are bounded one by one: the hull of both would have an off-diagonal
    entry between -1 and 1 and a trace between 2 and 6."""

    def A(x):
        side = jnp.sign(x[0] - x[1] / 3)
        return jnp.array(
            [[2 + side, side * jnp.cos(x[1]) / 2], [side * jnp.cos(x[1]) / 2, 2 + side]]
        )

    coverage = coverage_of(SQUARE, A)
    found = coverage.contraction(TraceSplit(), np.eye(2))
    assert coverage.values is not None
    suprema = np.max(TraceSplit().defects(coverage.values(dense(SQUARE)).invariants()))
    assert suprema == pytest.approx(0.5, abs=1e-3)
    assert found.source == "interval"
    assert suprema <= found.value <= 0.5 * (1 + 2 * TOLERANCE)
    largest = coverage.largest_multiplier(np.eye(2))
    assert largest.source == "interval"
    assert 1.0 <= largest.value <= 1.05 * 1.01


@pytest.mark.parametrize("inside", [True, False])
def test_a_thin_strip_with_another_formula_is_found(inside):
    """Every side of a jump counts: the strip is 2e-4 wide, whichever outcome of the comparison it
    is."""

    def A(x):
        distance, special = jnp.abs(x[0] - 0.137), jnp.diag(jnp.array([4.0, 1.0]))
        return (
            jnp.where(distance < 1e-4, special, jnp.eye(2))
            if inside
            else jnp.where(distance > 1e-4, jnp.eye(2), special)
        )

    coverage = coverage_of(SQUARE, A)
    assert np.max(TraceSplit().defects(coverage.local.invariants())) == 0
    for scheme, least in ((TraceSplit(), 0.6), (SCHEMES["triangle"], 0.6)):
        found = coverage.contraction(scheme, np.eye(2))
        assert found.value >= least
        assert found.source == "interval"
    assert coverage.largest_multiplier(np.diag([1.0, 2.0])).value >= 2 / 1.5 * (1 - 1e-12)


def test_what_intervals_do_not_know_is_sampled():
    """The eigenvalue of a matrix has no enclosure: the largest value at the samples, and the word
    for it."""

    def A(x):
        return jnp.diag(jnp.array([1.0, 1.0])) * (
            2 + jnp.linalg.eigvalsh(smooth_matrix(x))[0]
        ) + jnp.diag(jnp.array([x[0] ** 2, 0.0]))

    coverage = coverage_of(SQUARE, A, lambda x: 0.1 * x, lambda x: 1 + x[0] ** 2)
    for scheme in SCHEMES.values():
        found = coverage.contraction(scheme, np.eye(2))
        assert found.source == "sampled"
        assert found.value == pytest.approx(
            float(np.sum(np.max(scheme.defects(coverage.local.invariants()), axis=0)))
        )
    assert coverage.largest_multiplier(np.eye(2)).source == "sampled"
    assert coverage.nonnegative_reaction() == (True, "sampled")


def test_an_unbounded_enclosure_is_never_a_number():
    """tan has a pole at the right edge: what is sampled stays far below the supremum and must not
    be called an interval."""

    def A(x):
        return jnp.array([[1 + jnp.tan(x[0] * jnp.pi / 2) ** 2, 0.0], [0.0, 1.0]])

    coverage = coverage_of(SQUARE, A, lambda x: 0.1 * x, lambda x: 1 + x[0] ** 2)
    for scheme in SCHEMES.values():
        found = coverage.contraction(scheme, np.eye(2))
        assert found.value >= 1 or found.source == "sampled"


def test_the_epsilon_of_the_user_is_analytic():
    """ε = 0.5 in the plane is ρ' = √(0.5/1.5); it serves T1b without M and nothing else."""
    coverage = coverage_of(
        SQUARE, lambda x: jnp.diag(jnp.array([1.0, 2 + 0.5 * jnp.sin(x[0])])), epsilon=0.5
    )
    found = coverage.contraction(TraceSplit(), np.eye(2))
    assert found.source == "analytic"
    assert found.value == pytest.approx(math.sqrt(1 / 3), rel=1e-12)
    assert coverage.values is not None
    assert found.value >= np.max(TraceSplit().defects(coverage.values(dense(SQUARE)).invariants()))
    assert coverage.contraction(TraceSplit(), np.diag([1.0, 1.5])).source == "interval"
    assert coverage.contraction(SCHEMES["triangle"], np.eye(2)).source == "interval"


def test_constant_coefficients_are_analytic():
    """One value everywhere, rounded up."""
    coverage = coverage_of(
        SQUARE,
        lambda x: jnp.diag(jnp.array([1.0, 3.0])),
        lambda x: jnp.array([0.3, 0.4]),
        lambda x: jnp.asarray(1.0),
        constant=True,
    )
    found = coverage.contraction(TraceSplit(), np.eye(2))
    assert found.source == "analytic"
    assert 0.5 <= found.value <= 0.5 * (1 + 1e-11)
    scheme = SCHEMES["triangle"]
    expected = (
        0.5 + 0.5 * math.sqrt(EIGENVALUE) / (EIGENVALUE + 1) * 0.5 + abs(0.5 - 1) / (EIGENVALUE + 1)
    )
    assert coverage.contraction(scheme, np.eye(2)).value == pytest.approx(expected, rel=1e-10)
    assert coverage.contraction(scheme, np.eye(2)).source == "analytic"
    assert coverage.largest_multiplier(np.eye(2)).value == pytest.approx(0.5, rel=1e-10)


def test_constant_coefficients_given_as_functions_have_the_same_contraction():
    coverage = coverage_of(SQUARE, lambda x: jnp.diag(jnp.array([1.0, 3.0])) * (1 + 0 * x[0]))
    found = coverage.contraction(TraceSplit(), np.eye(2))
    assert found.source == "interval"
    assert 0.5 <= found.value <= 0.5 + TOLERANCE * 0.5


@pytest.mark.parametrize(
    ("reaction", "expected"),
    [
        (lambda x: x[0] ** 2, (True, "interval")),
        (lambda x: 1 + 0.5 * jnp.sin(5 * x[1]), (True, "interval")),
        (
            lambda x: 1 - 1.001 * jnp.exp(-((x[0] - 0.137) ** 2 + (x[1] + 0.411) ** 2) / 2e-6),
            (False, "interval"),
        ),
        (lambda x: x[0], (False, "sampled")),
    ],
    ids=["touches zero", "positive", "dips below zero between samples", "negative at samples"],
)
def test_sign_of_the_reaction(reaction, expected):
    assert coverage_of(SQUARE, lambda x: jnp.eye(2), c=reaction).nonnegative_reaction() == expected


def test_sign_of_a_constant_reaction():
    for value in (0.0, 2.0, -1e-3):
        coverage = coverage_of(
            SQUARE, lambda x: jnp.eye(2), c=lambda x, value=value: jnp.asarray(value), constant=True
        )
        assert coverage.nonnegative_reaction() == (value >= 0, "analytic")


def test_a_hidden_point_without_ellipticity_is_found():
    def dip(depth):
        return lambda x: jnp.diag(
            jnp.array(
                [1.0, 1 - depth * jnp.exp(-((x[0] - 0.137) ** 2 + (x[1] + 0.411) ** 2) / 2e-4)]
            )
        )

    found = coverage_of(SQUARE, dip(1.01)).degenerate_point()
    assert found == pytest.approx([0.137, -0.411], abs=0.01)
    assert coverage_of(SQUARE, dip(0.9)).degenerate_point() is None
    assert coverage_of(SQUARE, smooth_matrix).degenerate_point() is None


def test_balls_hold_their_intervals():
    """Middle and radius cover both ends; what is not finite has a radius beyond every number."""
    rng = np.random.default_rng(0)
    low = rng.standard_normal((5, 2, 2)) * 10.0 ** rng.integers(-8, 8, (5, 2, 2))
    high = low + rng.random((5, 2, 2)) * np.abs(low)
    low[0, 0, 0], high[1, 1, 1], low[2, 0, 1] = -np.inf, np.inf, np.nan
    ball = ball_of(
        Interval(low, high),
        Interval(np.zeros((5, 2)), np.ones((5, 2))),
        Interval(np.zeros(5), np.ones(5)),
    )
    finite = np.isfinite(low) & np.isfinite(high)
    assert np.all((low >= ball.middle.A - ball.radius.A)[finite])
    assert np.all((high <= ball.middle.A + ball.radius.A)[finite])
    assert np.all(ball.radius.A[~finite] > 1e100)
    assert np.all(np.isfinite(ball.middle.A))


@pytest.mark.parametrize("d", [1, 2, 3])
def test_bounds_on_a_ball_hold_for_its_members(d):
    """Each scheme on balls of all sizes, with traces, drifts and reactions that vary together; for
    tiny balls the bound is that of the middle."""
    rng = np.random.default_rng([1, d])
    n, members = 40, 300
    size = 10.0 ** rng.uniform(-9, -0.3, n)
    root = rng.standard_normal((n, d, d))
    A = root @ np.swapaxes(root, 1, 2) * 0.3 + np.eye(d) * rng.uniform(0.5, 2, n)[:, None, None]
    b, c = 0.5 * rng.standard_normal((n, d)), rng.uniform(-0.5, 3, n)
    reach_A, reach_b, reach_c = (
        size.reshape(-1, *(1,) * (part.ndim - 1)) * rng.random(part.shape) for part in (A, b, c)
    )
    reach_A = (reach_A + np.swapaxes(reach_A, 1, 2)) / 2
    ball = ball_of(
        Interval(A - reach_A, A + reach_A),
        Interval(b - reach_b, b + reach_b),
        Interval(c - reach_c, c + reach_c),
    )
    eigenvalue = 4.0
    schemes = [
        TraceSplit(),
        Triangle(1.0, eigenvalue),
        Weighted(2.0, normalised((0.2, 0.8, 3.0, 20.0), 2.0, eigenvalue, d)),
    ]
    for scheme in [*schemes, Weighted(0.0, normalised((0.3, 0.7, 2.0, 5.0), 0.0, eigenvalue, d))]:
        for matrix in (np.eye(d), np.diag(np.geomspace(0.05, 2.0, d)) + 0.01):
            middle = scheme.defects(ball.middle.invariants(matrix))
            largest = np.zeros_like(middle)
            for _ in range(members):
                corner = rng.random() < 0.5
                signs = [
                    rng.choice([-1.0, 1.0], part.shape)
                    if corner
                    else rng.uniform(-1, 1, part.shape)
                    for part in (A, b, c)
                ]
                signs[0] = np.triu(signs[0]) + np.swapaxes(np.triu(signs[0], 1), 1, 2)
                local = Local(
                    A + signs[0] * reach_A, b + signs[1] * reach_b, c + signs[2] * reach_c
                )
                largest = np.maximum(largest, scheme.defects(local.invariants(matrix)))
            for column in range(middle.shape[1]):
                with np.errstate(all="ignore"):
                    bound = cell_bound(scheme, ball.whitened(matrix), column)
                assert np.all(bound >= largest[:, column] * (1 - 1e-11))
                tiny = size < 1e-7
                assert np.any(tiny)
                assert bound[tiny] == pytest.approx(middle[tiny, column], rel=1e-3, abs=1e-3)


def test_largest_deviation_of_a_ball_bounds_its_matrices():
    """|A₀| of random members, whitened or not; attained up to a small factor by some."""
    rng = np.random.default_rng(1)
    for d in (2, 3):
        middle = rng.standard_normal((4, d, d))
        middle = middle + np.swapaxes(middle, 1, 2)
        spread = rng.random((4, d, d)) * np.array([1e-3, 0.1, 1.0, 10.0])[:, None, None]
        spread = (spread + np.swapaxes(spread, 1, 2)) / 2
        drift, reach = rng.standard_normal((4, d)), rng.random((4, d))
        ball = ball_of(
            Interval(middle - spread, middle + spread),
            Interval(drift - reach, drift + reach),
            Interval(np.zeros(4), np.ones(4)),
        )
        for matrix in (np.eye(d), np.diag(np.geomspace(0.1, 2.0, d)) + 0.02):
            carried = ball.whitened(matrix)
            largest = np.zeros((2, 4))
            for _ in range(500):
                signs = rng.choice([-1.0, 1.0], (4, d, d))
                signs = np.triu(signs) + np.swapaxes(np.triu(signs, 1), 1, 2)
                at = Local(
                    middle + signs * spread,
                    drift + rng.choice([-1.0, 1.0], (4, d)) * reach,
                    np.zeros(4),
                ).invariants(matrix)
                largest = np.maximum(largest, [at.deviation, at.drift])
            assert np.all(carried.largest_deviation >= largest[0])
            assert np.all(carried.largest_drift >= largest[1])
            assert np.all(carried.largest_deviation <= 2.5 * largest[0])
