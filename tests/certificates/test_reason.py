"""Reasons and theorems are objects: names and sentences are made from them, and nothing reads them
back; certificates and conditions go through Python's own pickle."""

import json
import pickle
from pathlib import Path

import jax.numpy as jnp
import numpy as np
import pytest

import cordes
from cordes.certificates.certificate import Certificate
from cordes.certificates.reason import NoBoundError, Reason, Why, contraction_too_large, joined
from cordes.certificates.theorem import Citation, Modifier, Needed, Theorem

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
SQUARE = cordes.Box([0, 0], [1, 1])
POISSON = cordes.Linear(SQUARE, 1.0, -1.0)


def wave(x):
    return jnp.sin(jnp.pi * x[0]) * jnp.sin(jnp.pi * x[1])


@pytest.mark.parametrize(
    ("citation", "name"),
    [
        (Citation(Theorem.T1c).with_(Modifier.preconditioned), "T1c with T1d"),
        (
            Citation(Theorem.T2, "triangle")
            .with_(Modifier.preconditioned)
            .with_(Modifier.transformed),
            "T2 (triangle) with T1d after the exponential transform",
        ),
        (Citation(Theorem.green, behind=Citation(Theorem.T1b)), "Green, T1b"),
        (
            Citation(Theorem.barrier, "parabola x1", behind=Citation(Theorem.ABP)),
            "barrier (parabola x1), ABP",
        ),
        (Citation(Theorem.ABP).with_(Modifier.drift), "ABP with drift"),
        (Citation(Theorem.T4).with_(Modifier.shifted), "T4 with shift"),
        (Citation(Theorem.T4).with_(Modifier.one_dimensional), "T4"),
        (Citation(Theorem.T5).with_(Modifier.shrunk), "T5, shrunk"),
        (Citation(Theorem.T5, "ii'"), "T5 (ii')"),
    ],
)
def test_names_of_theorems_as_they_were_applied(citation, name):
    assert str(citation) == name
    assert pickle.loads(pickle.dumps(citation)) == citation


def test_what_theorems_need():
    assert Citation(Theorem.T4).supremum is Needed.convexity
    assert Citation(Theorem.T4).with_(Modifier.shifted).supremum is Needed.eigenvalues
    assert Citation(Theorem.T5, "ii").supremum is Needed.curvature
    assert Citation(Theorem.T1b).supremum is Needed.contraction
    used = {theorem for theorem in Theorem if Citation(theorem).maximum_principle}
    others = {Theorem.M1, Theorem.O1, Theorem.rearrangement}
    assert used == {Theorem.ABP, Theorem.barrier, Theorem.drift, Theorem.talenti} | others
    assert not Citation(Theorem.green, behind=Citation(Theorem.T1b)).maximum_principle
    # A modifier that changes what is said says it.
    transformed = Citation(Theorem.smears_sueli).with_(Modifier.transformed)
    assert transformed.gloss == Modifier.transformed.gloss != Theorem.smears_sueli.gloss


def test_a_reason_has_its_numbers_with_all_digits():
    point = np.array([0.25, 0.5])
    reason = contraction_too_large("T1b", np.eye(2), 1.23456789, point)
    assert reason.sentence == "T1b needs a contraction below 1 and has 1.235 near x = (0.25, 0.5)"
    assert reason.values["contraction"] == 1.23456789
    assert reason.values["point"] is point
    error = NoBoundError(Why.not_converged, "it did not", spread=0.3)
    assert str(error) == "it did not"
    assert error.reason == Reason(Why.not_converged, "it did not", {"spread": 0.3})
    assert joined(()) is None


def test_certificates_of_our_own_carry_objects():
    certificate = cordes.certify(POISSON, lambda x: 0.1 * x[0] * (1 - x[0]) * x[1] * (1 - x[1]))
    assert certificate.theorem == str(certificate.citation)
    assert certificate.theorems == {
        norm: str(cited) for norm, cited in certificate.citations.items()
    }
    assert certificate.reason is None
    assert json.loads(json.dumps(certificate.facts()))["theorem"] == certificate.theorem
    refused = cordes.certify(POISSON, lambda x: 1.0 + x[0])
    assert [reason.kind for reason in refused.reasons] == [Why.boundary_values]
    assert refused.reason == refused.reasons[0].sentence
    assert refused.reasons[0].values["wanted"] == 0.0


def test_certificates_and_conditions_go_through_pickle():
    """Also one of a problem whose functions have no names: its picture stays behind and says so."""
    problem = cordes.Linear(SQUARE, lambda x: (1 + x[0]) * jnp.eye(2), lambda x: -1.0 - x[1])
    certificate = cordes.certify(problem, lambda x: 0.1 * wave(x))
    assert certificate.picture is not None
    again = pickle.loads(pickle.dumps(certificate))
    assert again == certificate
    assert again.facts() == certificate.facts()
    assert again.rows() == certificate.rows()
    with pytest.raises(cordes.errors.OptionError, match="went through pickle"):
        again.plot()
    refused = pickle.loads(pickle.dumps(Certificate(reasons=(Reason(Why.kink, "it has a kink"),))))
    with pytest.raises(cordes.errors.OptionError, match="nothing to draw: it has a kink"):
        refused.plot()
    condition = cordes.check(problem)
    other = pickle.loads(pickle.dumps(condition))
    assert str(other) == str(condition)
    assert other.epsilon == condition.epsilon


def test_check_and_certify_take_what_the_command_line_takes():
    path = EXAMPLES / "square.toml"
    assert cordes.check(path).epsilon == cordes.check(str(path)).epsilon
    problem = cordes.problem(path)
    assert cordes.certify(path, lambda x: 1.0 + x[0]).reason == (
        cordes.certify(problem, lambda x: 1.0 + x[0]).reason
    )
    assert cordes.check("ex4.2-continuous").source == "interval"
    with pytest.raises(cordes.errors.OptionError, match="pass a problem"):
        cordes.check(3)
    with pytest.raises(cordes.errors.OptionError, match="depends on the answer"):
        cordes.check("ex4.6-monge-ampere")
