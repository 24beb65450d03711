"""Several solves at once: in threads they give the values of a solve alone, in forks they are
refused."""

import os
import signal
import threading

import numpy as np
import pytest

import cordes
from cordes.runtime import threads
from cordes.runtime.blocks import in_blocks

SEEDS = range(4)


def found(seed):
    solution = cordes.solve("ex4.2-continuous", features=60, seed=seed, progress=False)
    assert solution.certificate is not None
    return solution(solution.problem.domain.interior_points(200, seed=7)), solution.certificate.rms


@pytest.mark.long
def test_four_solves_in_threads_equal_those_alone():
    alone = {seed: found(seed) for seed in SEEDS}
    together = {}

    def work(seed):
        together[seed] = found(seed)

    working = [threading.Thread(target=work, args=(seed,)) for seed in SEEDS]
    for thread in working:
        thread.start()
    for thread in working:
        thread.join(300)
    assert together.keys() == alone.keys()
    for seed, (values, bound) in alone.items():
        np.testing.assert_allclose(together[seed][0], values, rtol=1e-10, atol=1e-10)
        assert together[seed][1] == pytest.approx(bound, rel=1e-6)


def test_another_process_than_the_first_is_refused(monkeypatch):
    monkeypatch.setattr(threads._Use, "process", os.getpid() + 1)
    with pytest.raises(cordes.ProcessError, match=r'made by fork .*"spawn"'):
        in_blocks(lambda x: x, (np.ones((3, 2)),))


@pytest.mark.long
@pytest.mark.filterwarnings("ignore:.*fork:RuntimeWarning", "ignore:.*fork:DeprecationWarning")
def test_a_fork_does_not_wait_for_ever():
    problem = cordes.Linear(cordes.Box([0, 0], [1, 1]), 1.0, 1.0)
    child = os.fork()
    if child == 0:
        signal.alarm(60)
        status = 1
        try:
            cordes.solve(problem, features=20, progress=False)
        except cordes.ProcessError:
            status = 7
        finally:
            os._exit(status)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
