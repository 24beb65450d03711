"""What depends on the kind of a problem is dispatched once, by its type: every kind is known
wherever kinds are told apart, and a kind that nobody knows is refused by its name, or has a general
way."""

import importlib
import importlib.util
import inspect
import pkgutil
import typing
from pathlib import Path

import pytest

import cordes
from cordes.errors import CordesError
from cordes.problems.problem import AbstractProblem

# Dispatches that have no general way.
REFUSING = {
    "cordes.certificates.certify.certified",
    "cordes.certificates.condition.checked",
    "cordes.reports.pages.claims.rests_on",
}


def kinds(base=AbstractProblem):
    """The kinds of problems that the package has, and no abstract base of several."""
    own = [kind for kind in base.__subclasses__() if kind.__module__[:7] == "cordes."]
    return [each for kind in own for each in (kinds(kind) if inspect.isabstract(kind) else [kind])]


def on_problems(function):
    """Whether a dispatch is on a problem: the annotation of its first parameter says so."""
    first = next(iter(inspect.signature(function).parameters))
    try:
        kind = typing.get_type_hints(function).get(first)
    except NameError:
        kind = inspect.signature(function).parameters[first].annotation
    return kind in (AbstractProblem, "AbstractProblem")


def dispatches():
    """All of them by their full names, found in the modules that speak of singledispatch."""
    found = {}
    for module in pkgutil.walk_packages(cordes.__path__, "cordes."):
        spec = importlib.util.find_spec(module.name)
        if "singledispatch" in Path(str(spec and spec.origin)).read_text(encoding="utf-8"):
            for value in vars(importlib.import_module(module.name)).values():
                if hasattr(value, "registry") and on_problems(value):
                    found[f"{value.__module__}.{value.__name__}"] = value
    return found


class Unheard(AbstractProblem):
    """A kind that nobody knows."""

    def __init__(self):
        self.domain, self.name = cordes.Box([0, 0], [1, 1]), "unheard"
        self.g = lambda x: 0.0 * x[0]

    def data(self):
        return {}

    def residual(self, x, jet):
        return jet.value

    def linearise(self, x, jet):
        raise NotImplementedError

    coefficients = family = linearise


def test_dispatches_are_found():
    assert set(dispatches()) >= REFUSING
    names = {kind.__name__ for kind in kinds()}
    games = {"HJB", "Isaacs"}
    assert names == games | {"Linear", "MongeAmpere", "Transport", "Parabolic", "Obstacle"}


@pytest.mark.parametrize("name", sorted(dispatches()))
def test_every_kind_is_known_and_others_are_refused_by_name(name):
    dispatch = dispatches()[name]
    others = [None] * (len(inspect.signature(dispatch).parameters) - 1)
    try:
        dispatch(Unheard(), *others)
        refused = False
    except CordesError as error:
        refused = "Unheard" in str(error)
    except Exception:
        refused = False
    assert refused or name not in REFUSING
    if refused:
        assert [
            kind for kind in kinds() if dispatch.dispatch(kind) is dispatch.dispatch(object)
        ] == []


def test_kinds_are_final_and_their_base_is_abstract():
    assert inspect.isabstract(AbstractProblem)
    for kind in kinds():
        assert not [each for each in kind.__subclasses__() if each.__module__[:7] == "cordes."]
        assert not inspect.isabstract(kind)
