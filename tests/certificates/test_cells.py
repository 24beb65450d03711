"""Quadrature on cells: volumes and integrals of every patch, cuts at interfaces, grading at
singular points, and honest limits where it does not resolve."""

import math

import jax.numpy as jnp
import numpy as np
import pytest
from scipy.integrate import quad

from cordes.certificates.residual.cells import (
    GRADED_LEVELS,
    CellMesh,
    CellNodes,
    UnitCells,
    _embedded_change,
)
from cordes.certificates.residual.norms import Norm, Quadrature
from cordes.certificates.residual.refined import adaptive_nodes
from cordes.domains import Ball, Box, Ellipsoid, Polygon
from cordes.domains.patches import patches
from cordes.domains.unit_cube import gauss_rule
from cordes.errors import DomainError

SQUARE, DISK, TRIANGLE = (
    Box([0, 0], [1, 1]),
    Ball([0.0, 0.0], 1.0),
    Polygon([[0, 0], [1, 0], [0.2, 1]]),
)
DOMAINS = {
    "interval": Box([-1], [2]),
    "box": Box([-1, 0.5], [2, 3]),
    "cube": Box([0, 0, -1], [1, 2, 1]),
    "disk": Ball([0.3, -1], 2),
    "ball": Ball([0.3, -1, 0], 0.7),
    "ellipse": Ellipsoid([1, 2], [[1, 0.5], [0, 0.4]]),
    "ellipsoid": Ellipsoid([0, 0, 1], np.diag([1.0, 2.0, 0.5]) + 0.1),
    "triangle": TRIANGLE,
    "polygon": Polygon([[0, 0], [2, 0], [2.5, 1], [1, 2], [-0.5, 1]]),
}


def rule(domain, interfaces=(), singular=None) -> CellNodes:
    mesh = CellMesh(domain, interfaces, singular)
    return mesh.nodes(mesh.cells)


def moments(domain) -> tuple[float, np.ndarray, np.ndarray]:
    """Volume, first and second moments from the domain's own rule, which has been tested
    elsewhere."""
    x, weight = domain.quadrature(8)
    return float(np.sum(weight)), weight @ x, np.einsum("n,ni,nj->ij", weight, x, x)


@pytest.mark.parametrize("name", DOMAINS)
def test_volumes_and_moments(name):
    """Polynomials are exact where patches are polynomial; round ones leave the angles to Gauss."""
    domain = DOMAINS[name]
    nodes = rule(domain)
    volume, first, second = moments(domain)
    assert volume == pytest.approx(domain.volume, rel=1e-12)
    straight = name in ("interval", "box", "cube", "triangle", "polygon")
    for weight, accuracy in (
        (nodes.coarse, 1e-12 if straight else 2e-3),
        (nodes.fine, 1e-12 if straight else 1e-7 if domain.dimension == 2 else 1e-3),
    ):
        assert np.sum(weight) == pytest.approx(volume, rel=1e-12)
        assert np.all(weight >= 0)
        assert weight @ nodes.x == pytest.approx(first, rel=accuracy, abs=accuracy * volume)
        assert np.einsum("n,ni,nj->ij", weight, nodes.x, nodes.x) == pytest.approx(
            second, rel=accuracy, abs=accuracy * volume
        )
    assert np.all(domain.contains(nodes.x))
    # A point belongs to one of the two rules.
    assert np.all((nodes.coarse > 0) != (nodes.fine > 0))


def test_domains_without_patches_are_refused():
    with pytest.raises(DomainError, match="patches"):
        patches(Ball(np.zeros(4), 1.0))


@pytest.mark.parametrize("name", ["interval", "box", "cube", "disk", "polygon"])
def test_cutting_keeps_the_volume(name):
    """Halves and children tile their cells."""
    domain = DOMAINS[name]
    mesh = CellMesh(domain)
    cells, d = mesh.cells, domain.dimension
    rng = np.random.default_rng(0)

    def volume(some: UnitCells) -> float:
        return float(np.sum(mesh.nodes(some).fine))

    some = cells.take(rng.permutation(len(cells.patch))[: len(cells.patch) // 2 + 1])
    halves = some.halves(rng.integers(0, d, len(some.patch)))
    assert len(halves.patch) == 2 * len(some.patch)
    assert volume(halves) == pytest.approx(volume(some), rel=1e-12)
    assert np.prod(halves.upper - halves.lower, axis=1).sum() == pytest.approx(
        np.prod(some.upper - some.lower, axis=1).sum(), rel=1e-12
    )
    children = some.children()
    assert len(children.patch) == 2**d * len(some.patch)
    assert volume(children) == pytest.approx(volume(some), rel=1e-12)


@pytest.mark.parametrize(
    ("domain", "height", "share", "accuracy"),
    [
        (SQUARE, lambda x: x[0] - 0.3, 0.7, 1e-12),
        (SQUARE, lambda x: x[1] + 0.3 * x[0] - 0.6, 0.55, 1e-12),
        (SQUARE, lambda x: x[0] + x[1] - 1, 0.5, 1e-12),
        (SQUARE, lambda x: 0.09 - (x[0] - 0.47) ** 2 - (x[1] - 0.55) ** 2, math.pi * 0.09, 3e-4),
        (DISK, lambda x: x[0] + 0.2 * x[1], 0.5, 1e-6),
        (DISK, lambda x: 0.25 - x[0] ** 2 - x[1] ** 2, 0.25, 1e-12),
        (TRIANGLE, lambda x: x[0] - 0.2 * x[1] - 0.25, 0.75**2, 1e-3),
        (Box([0, 0, 0], [1, 1, 1]), lambda x: x[0] + 0.5 * x[1] + 0.25 * x[2] - 0.9, 0.475, 1e-3),
        (Box([0], [1]), lambda x: x[0] - math.sqrt(0.5), 1 - math.sqrt(0.5), 1e-12),
    ],
    ids=[
        "axis",
        "oblique",
        "diagonal",
        "circle",
        "disk and line",
        "disk and circle",
        "triangle",
        "cube and plane",
        "interval",
    ],
)
def test_a_jump_at_an_interface_costs_no_accuracy(domain, height, share, accuracy):
    """The volume of one side on the first cells: exact for lines that cross cells from side to
    side, else ten times better than without the interface."""
    nodes, plain = rule(domain, [height]), rule(domain)
    for weight in (nodes.coarse, nodes.fine):
        assert np.sum(weight) == pytest.approx(domain.volume, rel=1e-11)
    error, without = (
        abs(one.fine @ (np.asarray(height(one.x.T)) > 0) / domain.volume - share)
        for one in (nodes, plain)
    )
    assert error <= accuracy
    assert accuracy <= 1e-12 or error < 0.1 * without or without < 1e-6


def test_two_interfaces_that_cross():
    """Three values on four parts; refinement takes care of the cells that both interfaces cut."""
    heights = [lambda x: x[0] - 0.4, lambda x: x[1] - x[0] / 2 - 0.3]

    def residual(x: np.ndarray) -> np.ndarray:
        first, second = (np.asarray(height(x.T)) > 0 for height in heights)
        return np.sqrt(1.0 + 2 * first + 5 * second)

    # ∫ (1 + 2·[x > 0.4] + 5·[y > 0.3 + x/2]).
    truth = math.sqrt(1 + 2 * 0.6 + 5 * (0.7 - 0.25))
    found, points = norm_of(SQUARE, residual, interfaces=heights)
    assert found.lower <= truth <= found.upper
    assert found.spread < 1e-3
    assert points < 40_000


def test_an_interface_that_touches_no_cell_changes_nothing():
    nodes, plain = rule(SQUARE, [lambda x: x[0] + x[1] + 1.0]), rule(SQUARE)
    assert nodes.x == pytest.approx(plain.x)


def corner_integral(power: float) -> float:
    """∫ r^power over the unit square."""
    return 2 * quad(lambda angle: math.cos(angle) ** (-power - 2) / (power + 2), 0, math.pi / 4)[0]


def norm_of(
    domain, residual, budget: int = 120_000, interfaces=(), singular=None
) -> tuple[Norm, int]:
    """The L² norm as a certificate takes it."""
    nodes, values = adaptive_nodes(
        CellMesh(domain, interfaces, singular),
        residual,
        lambda values: (values**2)[:, None],
        budget,
    )
    return Quadrature(nodes).norm(values), len(values)


@pytest.mark.parametrize("exponent", [-0.2, -0.4, -0.7])
def test_a_singular_corner(exponent):
    """r^exponent at a corner: the limits hold the norm and are within a per cent."""
    found, points = norm_of(
        SQUARE, lambda x: np.sum(x**2, axis=1) ** (exponent / 2), singular=np.zeros((1, 2))
    )
    truth = math.sqrt(corner_integral(2 * exponent))
    assert found.converged
    assert found.lower <= truth <= found.upper
    assert found.upper <= 1.02 * truth
    assert points < 60_000


def test_grading_cuts_the_cells_at_the_point():
    """Each level halves the cells at the point, on all axes."""
    plain, graded = CellMesh(SQUARE), CellMesh(SQUARE, singular=np.array([[1.0, 0.0]]))
    widths = graded.cells.upper - graded.cells.lower
    smallest = np.argmin(np.prod(widths, axis=1))
    assert widths[smallest] == pytest.approx(np.array([0.05, 0.05]) / 2**GRADED_LEVELS)
    assert graded.cells.upper[smallest][0] > 0.95
    assert len(graded.cells.patch) > len(plain.cells.patch)
    assert np.prod(widths, axis=1).sum() == pytest.approx(1.0, rel=1e-12)


def peak(center: np.ndarray, width: float):
    """Δ of a Gaussian bump, on a floor of 1e-6."""

    def residual(x: np.ndarray) -> np.ndarray:
        z = np.sum((x - center) ** 2, axis=1) / width**2
        return np.exp(-z / 2) * (z - 2) / width**2 + 1e-6 * np.sin(3 * x[:, 0])

    return residual


def peak_norm(domain, center: np.ndarray, width: float) -> float:
    """Polar coordinates around the peak, clipped to the domain."""
    radius, weight = (part.ravel() for part in gauss_rule(200))
    radius, weight = 9 * radius, 9 * weight
    angle = 2 * math.pi * np.arange(400) / 400
    x = center + width * np.stack(
        [np.outer(radius, np.cos(angle)), np.outer(radius, np.sin(angle))], axis=-1
    ).reshape(-1, 2)
    density = (
        np.repeat((np.exp(-(radius**2) / 2) * (radius**2 - 2)) ** 2 * radius * weight, 400)
        * 2
        * math.pi
        / 400
    )
    return math.sqrt(np.sum(density[domain.contains(x)])) / width


@pytest.mark.parametrize("width", [0.05, 0.02])
@pytest.mark.parametrize("domain", [SQUARE, DISK, TRIANGLE], ids=["square", "disk", "triangle"])
def test_the_norm_of_a_peak_is_never_too_small(domain, width):
    """Peaks of a smooth residual at random places: where n and 2n points agree, the upper limit is
    at least the norm.

    A peak on the edge of a cell that has been refined reaches into a neighbour whose points all
    miss it: the two rules agree there, on nothing.
    """
    for center in domain.interior_points(30, 11):
        found, _ = norm_of(domain, peak(center, width))
        truth = peak_norm(domain, center, width)
        assert not found.converged or found.upper >= truth * (1 - 1e-3), (
            center,
            found.upper / truth,
        )
        assert not found.converged or found.lower <= truth * (1 + 1e-3)


def test_a_layer_is_resolved():
    """e^{-x/δ} at an edge of the square, δ = 0.004."""
    found, points = norm_of(SQUARE, lambda x: np.exp(-x[:, 0] / 0.004))
    assert found.converged
    assert found.lower <= math.sqrt(0.002) <= found.upper
    assert points < 60_000


def test_fine_structure_that_nobody_declared_is_not_called_converged():
    """Stripes of 0 and 1 with a period of 0.0013 in a strip, and a budget that cannot resolve them:
    n and 2n points do not agree."""

    def residual(x: np.ndarray) -> np.ndarray:
        stripes = np.floor(x[:, 0] / 1.3e-3) % 2
        return np.where((x[:, 0] > 0.3) & (x[:, 0] < 0.42), stripes, 0.0)

    found, points = norm_of(SQUARE, residual, budget=6000)
    assert points <= 12_000
    assert not found.converged


def test_an_undeclared_jump_keeps_the_rules_apart_and_a_declared_one_does_not():
    def height(x):
        return x[0] + 0.37 * x[1] - 0.61

    def residual(x: np.ndarray) -> np.ndarray:
        return np.where(height(x.T) > 0, 1.0, 0.1)

    share = 1 - 0.61 + 0.37 / 2
    truth = math.sqrt(share + 0.01 * (1 - share))
    blind, _ = norm_of(SQUARE, residual, budget=3000)
    cut, _ = norm_of(SQUARE, residual, budget=3000, interfaces=[height])
    assert cut.spread < 1e-4 < blind.spread
    assert 0.5 * (cut.lower + cut.upper) == pytest.approx(truth, rel=1e-4)


def test_refinement_keeps_the_volume_and_the_order_of_values():
    """What is returned belongs together: points, weights and the values at the points."""
    mesh = CellMesh(DISK, [lambda x: x[0] - 0.1])
    nodes, values = adaptive_nodes(
        mesh,
        lambda x: {"r": np.exp(-50 * np.sum((x - 0.3) ** 2, axis=1)), "x": x},
        lambda tree: tree["r"][:, None] ** 2,
        20_000,
    )
    assert np.sum(nodes.fine) == pytest.approx(math.pi, rel=1e-10)
    assert np.sum(nodes.coarse) == pytest.approx(math.pi, rel=1e-10)
    assert np.array_equal(values["x"], nodes.x)
    assert len(values["r"]) == len(nodes.x) == len(nodes.cell) == len(nodes.doubt)


def test_cells_keep_their_numbers_apart():
    """After refinement every number belongs to one cell: it has the points of one rule of each
    kind, and both rules give it the same volume."""
    nodes, values = adaptive_nodes(
        CellMesh(SQUARE),
        peak(np.array([0.3, 0.4]), 0.05),
        lambda values: (values**2)[:, None],
        20_000,
    )
    assert len(values) == len(nodes.x)
    assert set(np.bincount(nodes.cell, nodes.fine > 0)) == {36}
    assert set(np.bincount(nodes.cell, nodes.coarse > 0)) == {9}
    assert np.bincount(nodes.cell, nodes.fine) == pytest.approx(
        np.bincount(nodes.cell, nodes.coarse), rel=1e-12
    )


def test_zero_everywhere():
    found, _ = norm_of(SQUARE, lambda x: np.zeros(len(x)))
    assert (found.lower, found.upper, found.converged) == (0.0, 0.0, True)


def test_the_second_opinion_of_a_rule_is_exact_for_its_degree():
    """Weights changed by the embedded rule integrate what half of the points can."""
    for order in (3, 4, 6, 8):
        points, weights = gauss_rule(order)
        embedded = weights * (1 + _embedded_change(order))
        kept = int(np.sum(embedded != 0))
        assert kept < order
        for degree in range(kept):
            assert embedded @ points**degree == pytest.approx(1 / (degree + 1), rel=1e-12)


def test_doubt_points_across_the_variation():
    """An integrand that varies in one direction is doubted in that direction."""
    mesh = CellMesh(SQUARE)
    nodes = mesh.nodes(mesh.cells)
    count = len(mesh.cells.patch)
    for axis in (0, 1):
        density = np.abs(nodes.x[:, axis] - 0.123) ** 0.3
        doubt = np.stack(
            [np.abs(np.bincount(nodes.cell, column * density, count)) for column in nodes.doubt.T],
            axis=1,
        )
        assert np.all(doubt[:, axis] > 100 * doubt[:, 1 - axis])


def test_interface_functions_see_jax_arrays():
    """Interfaces are functions of one point written with jax.numpy."""
    nodes = rule(SQUARE, [lambda x: jnp.where(x[0] > 0.5, 1.0, -1.0) * 1.0 + 0 * x[1]])
    assert nodes.fine @ (nodes.x[:, 0] > 0.5) == pytest.approx(0.5, rel=1e-10)
