"""Expansions on domains that are not convex: how they go on."""

import jax.numpy as jnp

import cordes
from cordes.runtime.clock import Clock


def test_a_step_that_would_take_too_long_is_not_begun(monkeypatch):
    """Nothing is known before the first step; the third one is forbidden here."""
    expected = []

    def allows(_, seconds):
        expected.append(seconds)
        return len(expected) < 3

    monkeypatch.setattr(Clock, "allows", allows)
    corner = cordes.Polygon([[0, 0], [2, 0], [2, 1], [1, 1], [1, 2], [0, 2]])
    problem = cordes.Linear(corner, lambda x: jnp.array([[2 + x[0], 0.3], [0.3, 1]]), 1.0)
    solution = cordes.solve(problem, max_seconds=1000, certify=False, progress=False)
    assert solution.result is cordes.Result.time_out
    assert len(solution.history) == 2
    first, second = (step["columns"] for step in solution.history)
    assert first < second
    assert 0 == expected[0] < expected[1]
