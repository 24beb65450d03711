"""Certificates of optimal transport that are refused, with their reasons."""

from types import SimpleNamespace

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from transport_maps import SQUARE, certified, facts, flat, uniform_square

import cordes
from cordes.certificates.residual.candidate import FunctionCandidate
from cordes.certificates.residual.norms import Norm
from cordes.certificates.transport import certify as transport
from cordes.certificates.transport.bounds import check_convergence
from cordes.certificates.transport.certify import NoBoundError, bounds, examined
from cordes.certificates.transport.map import mass_doubt
from cordes.problems.transport import Transport


def refused(problem, potential):
    certificate = certified(problem, potential)
    assert certificate.map_L2 is None
    assert certificate.W2 is None
    return certificate.reason


def test_a_potential_that_is_not_convex():
    reason = refused(
        uniform_square(), lambda x: jnp.sum(x**2) / 2 + 0.2 * jnp.prod(jnp.cos(jnp.pi * (x + 0.5)))
    )
    assert "not convex" in reason
    assert "eigenvalue" in reason
    with pytest.raises(NoBoundError, match="not convex"):
        facts(uniform_square(), lambda x: -jnp.sum(x**2))


def test_kinks_jumps_and_false_derivatives():
    assert "kink" in refused(uniform_square(), lambda x: jnp.sum(x**2) / 2 + jnp.abs(x[0] - 0.1))
    stopped = refused(
        uniform_square(), lambda x: jnp.sum(x**2) / 2 + 0.1 * jax.lax.stop_gradient(jnp.cos(x[0]))
    )
    assert "not the derivative" in stopped
    with pytest.warns(cordes.UndeclaredJumpWarning):
        problem = Transport(SQUARE, lambda x: 1 + 0.5 * (x[0] > 0.123), normalise=True)
    reason = refused(problem, lambda x: jnp.sum(x**2) / 2)
    assert "source jumps" in reason
    problem = Transport(
        SQUARE, lambda x: jnp.ones(()), SQUARE, lambda y: 1 + 0.5 * (y[1] > 0.123), normalise=True
    )
    assert "target jumps" in refused(problem, lambda x: jnp.sum(x**2) / 2)


def test_single_precision(monkeypatch):
    monkeypatch.setattr(
        transport, "jax", SimpleNamespace(config=SimpleNamespace(read=lambda _: False))
    )
    assert "double precision is off" in refused(uniform_square(), flat(1e-3))


def test_densities_that_are_not_positive():
    problem = uniform_square()
    broken = SimpleNamespace(
        **{
            name: getattr(problem, name)
            for name in (
                "domain",
                "target_domain",
                "uniform",
                "target_density",
                "interfaces",
                "data",
            )
        }
    )
    broken.source_density = lambda x: np.where(x[:, 0] > 0.45, -1.0, 1.0)
    certificate = bounds(broken, FunctionCandidate(problem, flat(1e-3)))
    assert "the density source is -1 at x" in certificate.reason


def test_masses_that_are_not_one_count():
    problem = uniform_square()
    names = ("domain", "target_domain", "uniform", "target_density", "mu", "nu")
    names += ("interfaces", "data")
    heavy = SimpleNamespace(
        **{name: getattr(problem, name) for name in names},
        source_density=lambda x: 1.001 * problem.source_density(x),
    )
    assert mass_doubt(heavy.source_density, SQUARE) == pytest.approx(1e-3, rel=1e-9)
    assert examined(heavy, FunctionCandidate(problem, flat(1e-6))).found.chi.upper >= 2e-3


def test_second_derivatives_of_another_map():
    """The mass balance of a map onto the target shows that its Hessian is wrong."""
    inner = FunctionCandidate(uniform_square(), lambda x: jnp.sum(x**2) / 2)

    def jet(x):
        return inner.jet(x)._replace(hessian=1.1 * np.asarray(inner.jet(x).hessian))

    certificate = bounds(
        uniform_square(),
        SimpleNamespace(
            jet=jet, applied=inner.applied, value=inner.value, formulas=(), scales=None
        ),
    )
    assert "mass balance" in certificate.reason


def test_norms_that_do_not_converge():
    with pytest.raises(NoBoundError, match="did not converge"):
        check_convergence(Norm(0.0, 1.0, 0.3))
