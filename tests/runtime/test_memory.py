"""Memory is estimated before it is taken."""

import re
import tracemalloc

import numpy as np
import pytest

import cordes
from cordes.certificates.residual.measured import pilot_points_of
from cordes.certificates.useful import _by_the_data
from cordes.runtime import blocks, memory
from cordes.runtime.blocks import in_blocks, slices_with_matrices
from cordes.runtime.memory import free_memory, in_words, largest_that_fits, require_memory
from cordes.solvers.least_squares import LeastSquares, Search

SQUARE = cordes.Linear(cordes.Box([0, 0], [1, 1]), 1.0, lambda x: x[0] * x[1])


@pytest.fixture
def little(monkeypatch):
    """A machine with so many bytes."""

    def limit(size: float) -> None:
        monkeypatch.setattr(memory, "SHARE", 1.0)
        monkeypatch.setattr(memory, "free_memory", lambda: size)

    return limit


def test_the_least_of_all_limits_counts(monkeypatch, tmp_path):
    assert 1e6 < free_memory() < 1e15
    limit, taken = tmp_path / "limit", tmp_path / "taken"
    limit.write_text("3000000\n")
    taken.write_text("1000000\n")
    monkeypatch.setattr(memory, "CONTAINER", (("nowhere", "nowhere"), (str(limit), str(taken))))
    assert free_memory() == 2e6
    taken.write_text("4000000\n")
    assert free_memory() == 0
    limit.write_text("max\n")
    assert free_memory() > 1e6


def test_too_few_addresses_are_refused_before_a_library_aborts(monkeypatch):
    memory.require_addresses()
    monkeypatch.setattr(memory, "_process", lambda: 1.5e9)
    with pytest.raises(
        cordes.MemoryLimitError, match=r"leaves 1\.5 GB of addresses, and JAX needs"
    ):
        memory.require_addresses()


def test_the_largest_size_fits_and_the_next_does_not(little):
    little(8e6)
    assert largest_that_fits(lambda n: 8.0 * n * n, 10**30) == 1000
    assert largest_that_fits(lambda n: 8.0 * n * n, 7) == 7
    assert largest_that_fits(lambda n: 1e9, 7) == 0
    require_memory(8e6, "It", "none.")
    with pytest.raises(
        cordes.MemoryLimitError, match="It would need about 9 MB of memory, and 8 MB"
    ):
        require_memory(9e6, "It", "none.")


def test_sizes_in_words():
    assert [in_words(size) for size in (5, 1234, 5.5e6, 2e9, 3e12, 1e16)] == [
        *("5 B", "1.23 KB", "5.5 MB", "2 GB", "3 TB", "1e+04 TB")
    ]


def test_an_error_is_both_ours_and_one_of_memory():
    assert issubclass(cordes.MemoryLimitError, MemoryError)
    assert cordes.MemoryLimitError.kind == "memory"


@pytest.mark.parametrize(
    "call",
    [
        lambda: cordes.solve(SQUARE, oversampling=1e9),
        lambda: cordes.solve(SQUARE, oversampling=1e300),
        lambda: cordes.solve(SQUARE, "adam", points=10**9),
        lambda: cordes.solve(SQUARE, "adam", width=10**7),
        lambda: cordes.solve(SQUARE, "gauss-newton", points=10**10),
        lambda: cordes.solve(SQUARE, "gauss-newton", width=10**6, depth=2),
        lambda: cordes.Linear(cordes.Box(np.zeros(10**5), np.ones(10**5)), 1.0, 1.0),
    ],
)
def test_what_cannot_fit_is_refused_with_what_would(call):
    with pytest.raises(cordes.MemoryLimitError) as refused:
        call()
    told = re.search(
        r"would need about [\d.e+]+ [GT]B of memory.*(would fit|take less)", str(refused.value)
    )
    assert told, refused.value


def test_growing_ends_where_memory_does(little):
    little(2.5e8)  # Singular functions of the corners count too.
    wavy = cordes.Linear(cordes.Box([0, 0], [1, 1]), 1.0, lambda x: 1e3 * abs(x[0] - x[1]) ** 0.5)
    with pytest.warns(
        cordes.MemoryLimitWarning, match="fewer than 2000 features.*446 MB.*1470 would fit"
    ):
        solution = cordes.solve(wavy, features=2000, certify=False, progress=False)
    assert solution.history[-1]["features"] == 1000


def test_the_estimate_of_a_stage_is_that_of_its_arrays():
    class System:
        columns = 0
        domain = SQUARE.domain

    search = object.__new__(Search)
    search.solver, search.system = LeastSquares(), System
    # 4000 features took 2.2 GB with the 0.35 GB of the program.
    assert 1.4e9 < search.memory(4000) < 2.2e9


def test_matrices_at_points_count_in_many_dimensions(little):
    """1000 dimensions took 49 GB for A and the distance at 1000 points, 40 take 77 MB."""
    problem = cordes.Linear(cordes.Box([0] * 40, [1] * 40), 1.0, -1.0)
    little(7e7)
    with pytest.raises(cordes.MemoryLimitError, match=r"points = 1000 .* points = \d+ would fit"):
        cordes.solve(problem, "gauss-newton", progress=False)


@pytest.mark.parametrize("count", [1, 7, 64, 65, 1000])
def test_blocks_are_smaller_where_rows_are_large(count, monkeypatch):
    monkeypatch.setattr(blocks, "HELD", 4 * blocks.COPIES * 300)
    seen, x = [], np.arange(count * 12.0).reshape(count, 3, 4)

    def doubled(part):
        seen.append(len(part))
        return 2 * part, np.sum(part, axis=(1, 2))

    twice, sums = in_blocks(doubled, (x,))
    assert np.array_equal(twice, 2 * x)
    assert np.array_equal(sums, np.sum(x, axis=(1, 2)))
    assert set(seen) == {100}
    parts = slices_with_matrices(count, 4)
    assert np.array_equal(np.concatenate([x[part] for part in parts]), x)
    assert all(len(x[part]) <= 75 for part in parts)


def test_a_certificate_that_does_not_fit_says_so_and_costs_no_answer(little):
    cube = cordes.Linear(cordes.Box([0] * 5, [1] * 5), 1.0, 1.0)
    little(1e6)
    certificate = cordes.certify(cube, lambda x: 0 * x[0])
    assert certificate.rms is None
    assert "A certificate in 5 dimensions" in certificate.reason


def test_the_size_of_a_solution_holds_one_barrier_at_a_time():
    """One for each coordinate, with a matrix at each point: in 200 dimensions 41 GB."""
    d = 40
    problem = cordes.Linear(cordes.Box(np.zeros(d), np.ones(d)), 1.0, 1.0)
    x = pilot_points_of(problem.domain)
    tracemalloc.start()
    assert _by_the_data(problem, x) == pytest.approx(0.125, rel=1e-6)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 8 * 8 * len(x) * d**2
