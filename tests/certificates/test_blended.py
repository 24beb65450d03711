"""Norms of the residual of an answer by cells from which nothing can hide: against random points
and fine grids, for answers whose cells hardly fit, and with a fault."""

import dataclasses
import functools

import equinox as eqx
import jax.numpy as jnp
import numpy as np
import pytest

import cordes
from cordes.ansatz.cells.jets import as_rows
from cordes.certificates.enclosed.blended import measure
from cordes.certificates.enclosed.blended.regions import regions_of
from cordes.certificates.enclosed.residual import enclosed_measure
from cordes.certificates.enclosed.weights import multiplier
from cordes.certificates.residual.candidate import AnswerCandidate
from cordes.certificates.theorems.energy import TraceSplit


@functools.cache
def answer(d, wrong=0.0, seed=0):
    """Cells of several sizes around a peak; `wrong`: how far coefficients are moved at random."""
    matrix = np.eye(d) + 0.3 * np.ones((d, d))
    place = np.array([0.31, -0.2, 0.1])[:d]

    def f(x):
        return jnp.exp(-jnp.sum((x - place) ** 2) / 0.3**2) * (1 + x[0])

    problem = cordes.Linear(cordes.Box([-1] * d, [1] * d), matrix, f, b=0.3 * np.ones(d), c=1.0)
    count, degree = {1: (12, 8), 2: (40, 7), 3: (12, 4)}[d]
    solver = cordes.Cells(cells=count, degree=degree)
    solution = cordes.solve(problem, solver, singular=False, certify=False)
    network = solution.network
    moved = np.random.default_rng(seed).normal(size=network.squares.shape) * wrong
    falls = np.exp(-np.sum(np.indices(network.squares.shape[1:]), axis=0))
    network = eqx.tree_at(lambda each: each.squares, network, network.squares + moved * falls)
    return dataclasses.replace(solution, network=network)


def enclosed(solution):
    d = solution.problem.domain.dimension
    weight = multiplier(TraceSplit(), np.eye(d))
    candidate = AnswerCandidate(solution.problem, solution)
    return enclosed_measure(solution.problem, candidate, [weight]), weight


def by_random_points(solution, weight, power, count=200_000):
    x = solution.problem.domain.interior_points(count, seed=5)
    found = AnswerCandidate(solution.problem, solution).evaluate(x)
    sizes = weight.at(x, found.local) * np.abs(found.residual)
    return float((solution.problem.domain.volume * np.mean(sizes**power)) ** (1 / power))


@pytest.mark.parametrize("wrong", [0.0, 1e-6, 1e-2])
@pytest.mark.parametrize("d", [1, 2, 3])
def test_norms_lie_between_their_limits(d, wrong):
    solution = answer(d, wrong)
    found, weight = enclosed(solution)
    for power in (2, 3):
        norm, truth = found.norm_of(weight, power), by_random_points(solution, weight, power)
        assert norm.enclosed
        assert norm.lower <= 1.05 * truth
        assert 0.95 * truth <= norm.upper
        if power == 2:
            assert norm.upper < 10 * truth


def test_what_blending_adds_counts(monkeypatch):
    """Cells that hardly fit, and a measure that forgets the windows."""
    solution = answer(2, 1e-2)
    forgets = lambda *_: 0.0  # noqa: E731
    monkeypatch.setattr(measure.BlendedMeasure, "added", forgets)
    found, weight = enclosed(solution)
    assert found.norm_of(weight).upper < 0.9 * by_random_points(solution, weight, 2)


@pytest.mark.parametrize("d", [1, 2, 3])
def test_in_a_region_no_window_begins_or_ends(d):
    """There answers are polynomials over polynomials, and what blending adds is bounded: against
    the answer itself on fine grids, less the polynomial of the cell."""
    network = answer(d, 1e-2).network
    regions = regions_of(network)
    norms, suprema = measure.added(network, regions)
    volume = np.prod(regions.upper - regions.lower, axis=1)
    n = {1: 200, 2: 24, 3: 9}[d]
    line = (2 * np.arange(n) + 1) / (2 * n)
    grid = np.stack(np.meshgrid(*[line] * d, indexing="ij"), axis=-1).reshape(-1, d)
    some = np.random.default_rng(1).permutation(len(volume))[:60]
    for k in some:
        x = regions.lower[k] + (regions.upper - regions.lower)[k] * grid
        more = as_rows(network.jet_at(x)) - as_rows(network.alone().jet_at(x))
        assert np.all(np.max(np.abs(more), axis=1) <= suprema[k] * (1 + 1e-9))
        rms = np.sqrt(np.mean(more**2, axis=1) * volume[k])
        assert np.all(rms <= 1.02 * norms[k])
        assert np.all(norms[k] <= 60 * rms)


def test_regions_and_cores_cover_the_box():
    """Outside of regions the answer is the polynomial of the cell, inside of them it is not, but
    for the ends of windows, where these are smaller than rounding."""
    network = answer(2, 1e-2).network
    regions = regions_of(network)
    x = np.random.default_rng(0).uniform(-1, 1, (20_000, 2))
    inside = (regions.lower <= x[:, None]) & (x[:, None] < regions.upper)
    number = np.sum(np.all(inside, axis=2), axis=1)
    assert np.max(number) == 1
    same = network.jet_at(x).value == network.alone().jet_at(x).value
    assert np.all(same[number == 0])
    assert np.mean(same[number == 1]) < 0.02


def test_a_tolerance_is_met_by_norms_that_are_enclosed():
    place = np.array([0.313, -0.271])

    def f(x):
        return jnp.exp(-jnp.sum((x - place) ** 2) / 0.02**2)

    problem = cordes.Linear(cordes.Box([-1, -1], [1, 1]), np.diag([2.0, 1.0]), f)
    solution = cordes.solve(problem, method="cells", tol=1e-6)
    assert solution.converged
    assert solution.certificate.rms <= 1e-6
    assert str(solution.certificate.levels["rms"]) == "enclosed"
