"""What a solution is: a value that does not change, of the kind that its problem has."""

import dataclasses

import numpy as np
import pytest

import cordes
from cordes.errors import CordesError, FrozenError, OptionError
from cordes.solutions.kinds import PlainSolution, PolicySolution
from cordes.solutions.transport import TransportSolution

SMALL = {"features": 30, "progress": False}


def wave(**options):
    problem = cordes.Linear(cordes.Box([0, 0], [1, 1]), 1.0, -1.0, name="bump")
    return cordes.solve(problem, **SMALL | options)


@pytest.fixture(scope="module")
def bump():
    return wave(certify=False)


@pytest.fixture(scope="module")
def kinds(bump):
    interval = cordes.Box([0.0], [1.0])
    control = cordes.HJB(interval, [0.0, 1.0], 1.0, lambda x, a: a - 1.0)
    map_ = cordes.Transport(interval, 1.0, cordes.Box([0.0], [2.0]), 0.5)
    return {
        PlainSolution: bump,
        PolicySolution: cordes.solve(control, certify=False, **SMALL),
        TransportSolution: cordes.solve(map_, certify=False, **SMALL),
    }


def test_each_problem_has_its_kind_of_solution(kinds):
    for kind, solution in kinds.items():
        assert type(solution) is kind
        assert isinstance(solution, cordes.Solution)
    shows = {
        name: [kind for kind, solution in kinds.items() if name in dir(solution)]
        for name in ("policy", "plot_policy", "map", "inverse", "cost", "pushforward", "gradient")
    }
    assert shows["policy"] == shows["plot_policy"] == [PolicySolution]
    for name in ("map", "inverse", "cost", "pushforward"):
        assert shows[name] == [TransportSolution]
    assert len(shows["gradient"]) == 3


@pytest.mark.parametrize("kind", [PlainSolution, TransportSolution])
@pytest.mark.parametrize("name", ["policy", "plot_policy"])
def test_a_policy_elsewhere_says_where_there_is_one(kinds, kind, name):
    solution = kinds[kind]
    assert not hasattr(solution, name)
    with pytest.raises(
        AttributeError, match="policies exist for HJB and Isaacs problems"
    ) as caught:
        getattr(solution, name)
    assert isinstance(caught.value, OptionError)
    with pytest.raises(
        AttributeError, match=f"'{kind.__name__}' object has no attribute 'nothing'"
    ):
        solution.nothing  # noqa: B018


def test_nothing_of_a_solution_can_be_set(bump):
    for name in [field.name for field in dataclasses.fields(bump)] + ["method", "anything"]:
        before = vars(bump).copy()
        with pytest.raises(FrozenError, match=rf"solution\.replace\({name}=…\)"):
            setattr(bump, name, 1)
        assert vars(bump) == before
    with pytest.raises(AttributeError, match="cannot be deleted"):
        del bump.result
    with pytest.raises(CordesError):
        bump.certificate = None
    with pytest.raises(ValueError, match="read-only"):
        bump.amplitudes[:] = 1


def test_replace_makes_another(bump):
    other = bump.replace(result=cordes.Result.time_out)
    assert (other.result, bump.result) == (
        cordes.Result.time_out,
        cordes.Result.converged_uncertified,
    )
    assert type(other) is type(bump)
    assert other.problem is bump.problem
    x = bump.problem.domain.interior_points(5, 1)
    np.testing.assert_array_equal(other(x), bump(x))
    assert dataclasses.replace(bump, points=3).points == 3
    with pytest.raises(TypeError):
        bump.replace(nothing=1)


def test_a_certificate_is_made_when_asked_for(bump, monkeypatch):
    assert bump.certificate is None
    solved = wave()
    assert solved.certificate is not None
    assert solved.seconds["certify"] > 0
    made = bump.certify()
    assert bump.certificate is None
    assert made.rms == solved.certificate.rms
    certified = bump.certified(norm="rms")
    assert certified.certificate.rms == made.rms
    assert certified.seconds["certify"] > 0 == bump.seconds["certify"]
    # Reading, drawing and writing never certify.
    monkeypatch.setattr("cordes.certificates.certify.certify", lambda *_, **__: 1 / 0)
    assert bump.certificate is None
    assert "Solution of bump" in repr(bump)


def test_a_tolerance_carries_the_certificate_it_was_met_with():
    solution = wave(tol=0.5)
    assert solution.certificate.rms <= 0.5
    assert solution.converged


def test_the_kinds_are_final():
    for kind in (PlainSolution, PolicySolution, TransportSolution):
        assert kind.__final__
    with pytest.raises(OptionError, match="last axis must have length 2"):
        wave(certify=False)(np.zeros((4, 3)))
