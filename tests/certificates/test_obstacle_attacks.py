"""What hides between the points at which the suprema of obstacle problems are looked at gets no
bound: zero as the answer of problems whose solution is of order one."""

import jax.numpy as jnp
import numpy as np
import pytest

import cordes

LINE = cordes.Box([0.0], [1.0])
WIDTH, PLACE = 1e-5, 0.3123


def peak(s):
    return jnp.exp(-(((s - PLACE) / WIDTH) ** 2))


def heated(f):
    return cordes.Obstacle(cordes.Parabolic(LINE, 1.0, 0.01, f, initial=0.0), below=-1.0)


def pinned(f, below):
    return cordes.Obstacle(cordes.Linear(LINE, 1.0, f, c=1.0), below=below)


ATTACKS = {
    "a moment": lambda: heated(lambda x, t: -peak(t) / WIDTH * x[0] * (1 - x[0])),
    "a place": lambda: heated(lambda x, t: -peak(x[0]) / WIDTH),
    "a source": lambda: pinned(lambda x: -peak(x[0]) / WIDTH, -1.0),
    "a needle": lambda: pinned(0.0, lambda x: -1 + 3 * peak(x[0])),
}


@pytest.mark.parametrize("name", ATTACKS)
def test_what_is_too_narrow_gets_no_bound(name):
    problem = ATTACKS[name]()
    zero = (lambda x, t: 0.0 * x[0]) if problem.clock is not None else (lambda x: 0.0 * x[0])
    found = cordes.certify(problem, zero)
    assert (found.Linf, found.L2) == (None, None)
    assert "narrower" in found.reason


def test_wide_data_get_one():
    found = cordes.certify(pinned(lambda x: -jnp.sin(3 * x[0]), -1.0), lambda x: 0.0 * x[0])
    # Where u is largest it is f less the bending: between 0.05 and 0.1.
    assert 0.1 <= found.Linf <= 1.0


def test_a_needle_in_a_payoff_is_not_taken_for_a_put():
    """Its pieces are a put's at all points that decide about the potential of the curve."""
    from cordes.certificates.obstacle.points import too_narrow

    def payoff(x):
        return jnp.maximum(1 - jnp.exp(x[0]), 0.0)

    def put(below, terminal):
        base = cordes.Parabolic(
            cordes.Box([-1.6], [2.0]),
            1.0,
            A=0.03125,
            b=np.array([-0.03125]),
            c=0.05,
            f=0.0,
            g=lambda x, t: payoff(x),
            terminal=terminal,
        )
        return cordes.Obstacle(base, below=below)

    def needle(x):
        return payoff(x) + 0.5 * peak(x[0])

    assert too_narrow(put(payoff, payoff), ()) is None
    assert too_narrow(put(needle, payoff), ()) is not None
    assert too_narrow(put(payoff, needle), ()) is not None
