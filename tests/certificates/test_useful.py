"""A bound above the size of the solution is a reason, not a bound."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import cordes
from cordes.certificates.reason import Why

pytestmark = pytest.mark.quick

SQUARE = cordes.Box([0, 0], [1, 1])


def bump(size):
    return lambda x: size * jnp.sin(jnp.pi * x[0]) * jnp.sin(jnp.pi * x[1])


def test_ten_times_the_answer_where_c_is_negative():
    """The truth is about 0.1; nothing but the answer tells how large it is."""
    problem = cordes.Linear(SQUARE, np.eye(2), 1.0, c=-5.0)
    certificate = cordes.certify(problem, bump(1e-6))
    assert certificate.rms is None
    assert (certificate.L2, certificate.H1, certificate.H2) == (None, None, None)
    assert certificate.Linf is None
    assert not certificate.bounded
    assert not {"Linf", "L2", "H1", "H2"} & set(certificate.citations)
    kinds = [reason.kind for reason in certificate.reasons]
    assert kinds.count(Why.useless) == 2
    useless = certificate.reasons[kinds.index(Why.useless)]
    assert useless.values["bound"] > useless.values["size"] == pytest.approx(1e-5, rel=0.01)
    printed, said = str(certificate), certificate.reason
    assert "no useful bound of the largest error" in printed
    assert said is not None
    assert f"{useless.values['bound']:.3g}" in said
    assert f"{useless.values['bound']:.3g}" not in printed
    # An answer of the right size keeps its bounds.
    assert cordes.certify(problem, bump(-0.05)).bounded


def test_the_maximum_principle_where_it_holds():
    """A small answer that is wrong by 0.07 is known to be wrong by no more than about that."""
    problem = cordes.Linear(SQUARE, np.eye(2), 1.0)
    certificate = cordes.certify(problem, bump(1e-6))
    assert certificate.Linf is not None
    assert 0.07 < certificate.Linf < 0.25


def test_zero_has_no_size():
    problem = cordes.Linear(SQUARE, np.eye(2), 1.0, c=-5.0)
    assert cordes.certify(problem, lambda x: 0.0 * x[0]).bounded


@pytest.mark.long
def test_a_solution_that_is_large_only_in_a_feature():
    """No point of those that are spread evenly sees it."""
    domain, place = cordes.Box([-50, -50], [50, 50]), jnp.array([7.3, -11.9])

    def peak(x):
        return jnp.maximum(1 - jnp.sum((x - place) ** 2) / 0.45**2, 0.0) ** 4

    problem = cordes.Linear(domain, np.eye(2), lambda x: jnp.trace(jax.hessian(peak)(x)))
    shape = domain.distance
    certificate = cordes.certify(problem, lambda x: 0.999 * peak(x) + 1e-12 * shape(x))
    assert certificate.Linf is not None
    assert certificate.Linf >= 1e-3
