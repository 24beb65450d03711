"""A bound of exactly zero is given for what is proved to be exact, and for nothing else."""

import jax.numpy as jnp
import numpy as np
import pytest

import cordes
from cordes import HJB, Box, Linear
from cordes.certificates.reason import Why

SQUARE = Box([0, 0], [1, 1])
NORMS = ("H2", "H1", "L2", "rms", "Linf")


def nothing(x):
    return 0.0 * x[0]


def strip(x):
    """Beside the interface x₁ = 1/2, with the integral 1."""
    return jnp.where(jnp.abs(x[0] - 0.5 - 5e-9) < 5e-9, 1e8, 0.0)


EXACT = {
    "constant": Linear(SQUARE, 1.0, 0.0),
    "functions": Linear(SQUARE, lambda x: (1 + x[0] ** 2) * jnp.eye(2), lambda x: 0.0 * x[1]),
    "five dimensions": Linear(Box([0] * 5, [1] * 5), 1.0, 0.0),
    "control": HJB(SQUARE, np.array([1.0, 2.0]), lambda x, a: a * jnp.eye(2), lambda x, a: 0.0),
}


@pytest.mark.parametrize("name", EXACT)
def test_zero_where_the_enclosure_is_zero(name):
    certificate = cordes.certify(EXACT[name], nothing)
    assert [getattr(certificate, norm) for norm in NORMS] == [0.0] * 5


def test_an_answer_of_ours_that_is_zero():
    solution = cordes.solve(EXACT["constant"], features=30, progress=False)
    assert solution.certificate.Linf == 0
    assert solution.converged


@pytest.mark.long
@pytest.mark.filterwarnings("ignore:.*jump")
def test_a_residual_that_is_zero_by_chance_has_no_bound():
    """The truth is about 0.11. The formula of f does not exclude jumps that nobody declared."""
    problem = Linear(SQUARE, 1.0, strip, interfaces=[lambda x: x[0] - 0.5])
    solution = cordes.solve(problem, features=30, progress=False)
    for certificate in (cordes.certify(problem, nothing), solution.certificate):
        assert not certificate.bounded
        assert all(getattr(certificate, norm) is None for norm in (*NORMS, "energy"))
        assert [reason.kind for reason in certificate.reasons] == [Why.jump]
    assert solution.result is cordes.Result.converged_uncertified


def test_what_is_exact_but_for_rounding_has_an_allowance():
    """u = 3 solves Δu - u = -3: the terms cancel, and their rounding is paid for."""
    problem = Linear(SQUARE, 1.0, -3.0, c=1.0, g=3.0)
    certificate = cordes.certify(problem, lambda x: 3.0 + 0.0 * x[0])
    assert 0 < certificate.Linf < 1e-10
    assert certificate.H2 > 0
