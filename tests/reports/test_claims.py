"""What a page claims about an answer is what its certificate says, and no more."""

import html
import json
import re
from types import SimpleNamespace

import jax.numpy as jnp
import numpy as np
import pytest

import cordes
from cordes.certificates.certificate import Certificate
from cordes.certificates.reason import Reason, Why
from cordes.certificates.theorem import Citation, Modifier, Theorem
from cordes.reports.pages.answer import _without_bound, condition_sentence
from cordes.reports.pages.bounds import LEVELS, answer_sentence, bounds_table, measured_sentence
from cordes.reports.pages.claims import claims, claims_list
from cordes.reports.pages.fields import bound_quantity, condition_pair

BOX = cordes.Box([0, 0], [1, 1])


def variable(x):
    return jnp.array([[2.0, x[0] / 9], [x[0] / 9, 2.0]])


class Steered(cordes.HJB):
    """A user's own kind of control problem is still one."""


PROBLEMS = {
    "constant": lambda: cordes.Linear(BOX, 1.0, -1.0),
    "variable": lambda: cordes.Linear(
        BOX, variable, -1.0, b=lambda x: jnp.array([x[0], 1.0]), c=lambda x: x[0] ** 2
    ),
    "vouched": lambda: cordes.Linear(BOX, variable, -1.0, epsilon=0.5),
    "vouched, constant": lambda: cordes.Linear(
        BOX, 1.0, -1.0, b=np.array([0.1, 0.0]), c=1.0, epsilon=0.5
    ),
    "five": lambda: cordes.Linear(cordes.Box([0] * 5, [1] * 5), 1.0, -1.0),
    "three": lambda: cordes.Linear(
        cordes.Box([0] * 3, [1] * 3), lambda x: (1 + x[0]) * jnp.eye(3), -1.0
    ),
    "controls": lambda: Steered(
        BOX, [-1.0, 1.0], lambda x, a: (2 + 0.1 * a * x[0]) * jnp.eye(2), -1.0
    ),
    "maximiser": lambda: cordes.HJB(
        BOX,
        jnp.linspace(-1, 1, 9),
        lambda x, a: jnp.eye(2),
        lambda x, a: a**2 / 2,
        b=lambda x, a: jnp.array([a, 0.0]),
        maximiser=lambda x, jet: jnp.clip(jet.gradient[0], -1, 1),
    ),
    "convex": lambda: cordes.MongeAmpere(BOX, 1.0),
    "convex line": lambda: cordes.MongeAmpere(cordes.Box([0], [1]), 1.0),
    "transport": lambda: cordes.Transport(BOX, 1.0, cordes.Box([0, 0], [2, 1]), 0.5),
}
T1B, ABP = Citation(Theorem.T1b), Citation(Theorem.ABP)
T4, T4_WITH_SHIFT = Citation(Theorem.T4), Citation(Theorem.T4, modifiers=(Modifier.shifted,))
T4_ON_A_LINE = Citation(Theorem.T4, modifiers=(Modifier.one_dimensional,))
LINEAR = {
    "H2": 3.0,
    "H1": 2.0,
    "L2": 1e-3,
    "rms": 1e-3,
    "Linf": 2e-3,
    "citation": T1B,
    "maximum_citation": ABP,
    "contraction": 0.5,
    "level": "quadrature",
    "epsilon_source": "interval",
    "points": 1000,
    "spread": 1e-3,
    "citations": {"energy": T1B},
}
CONVEX = {"L2": 1.0, "rms": 1.0, "Linf": 2.0, "level": "quadrature", "points": 10, "spread": 1e-3}
MAP = {
    "map_L2": 0.01,
    "W2": (0.57739, 0.57744),
    "citation": Citation(Theorem.T5),
    "level": "quadrature",
    "epsilon_source": "interval",
    "points": 10,
    "spread": 1e-3,
}


def convex(theorem, source, eigenvalue=None):
    negative = Reason(
        Why.negative_eigenvalue,
        f"D²w has the eigenvalue {eigenvalue} at x = (0.5, 0.5); making it positive costs 1",
        {"eigenvalue": eigenvalue},
    )
    return CONVEX | {
        "citation": theorem,
        "maximum_citation": theorem,
        "epsilon_source": source,
        "reasons": (
            Reason(Why.not_covered, "no bounds of ∇v and D²v"),
            *([negative] if eigenvalue else []),
        ),
        "citations": {"L2": theorem},
    }


def said(name, given, facts=None):
    """The three lists, each as one text."""
    made = claims(Certificate(**given), PROBLEMS[name](), facts)
    return SimpleNamespace(
        **{part: " ".join(getattr(made, part)) for part in made._fields},
        all=" ".join(" ".join(part) for part in made),
    )


def plain(body):
    return html.unescape(re.sub(r"<[^>]+>", "", body.replace("<sup>", "^")))


def sentence(given, dimension=2):
    json.dumps(Certificate(**given).facts())
    return plain(answer_sentence(Certificate(**given), dimension))


@pytest.mark.parametrize("source", ["interval", "sampled"])
def test_lost_convexity_is_not_claimed(source):
    facts = {"convexity": {"smallest_eigenvalue": -0.0123, "point": [0.5, 0.5]}}
    for made in (
        said("convex", convex(T4_WITH_SHIFT, source), facts),
        said("convex", convex(T4_WITH_SHIFT, source, -0.0123)),
    ):
        assert "convexity of the answer" not in made.all
        assert "The answer itself is not convex: D²w has the eigenvalue −0.0123." in made.checked
        assert "D²w + δI ≥ 0" in (made.proved if source == "interval" else made.assumed)
    # A shift for rounding alone leaves convexity open.
    assert (
        "The answer itself is not known to be convex"
        in said("convex", convex(T4_WITH_SHIFT, source, 1e-14)).checked
    )
    # Without one it is what the theorem needs.
    good = said(
        "convex",
        convex(T4, source),
        {"convexity": {"smallest_eigenvalue": 0.5, "point": [0.5, 0.5]}},
    )
    assert "convexity of the answer" in (good.proved + good.assumed).lower()
    assert "not convex" not in good.all
    assert ("at sampled points only" in sentence(convex(T4, source))) == (source == "sampled")


def test_convexity_plays_no_part_in_one_dimension():
    assert "onvex" not in said("convex line", convex(T4_ON_A_LINE, "analytic")).all.replace(
        "The domain is convex.", ""
    )


def test_transport_rests_on_the_boundary_and_on_the_target():
    made = said("transport", MAP)
    assert "where the map takes the boundary is never proved" in made.assumed
    assert "The map takes the boundary into the target, at points" in made.checked
    assert "The potential has no kink" in made.checked
    assert "No jump of the densities" in made.checked
    assert "bounds of D²u and of the target density hold" in made.proved
    assert "target domain is convex" not in made.all
    assert (
        "bounds of D²u and of the target density"
        in said("transport", MAP | {"epsilon_source": "sampled"}).assumed
    )


def test_convexity_of_a_target_of_the_users_own_is_assumed(monkeypatch):
    monkeypatch.setattr("cordes.reports.pages.claims.BUILT_IN", (cordes.Ball,))
    assert "The target domain is convex." in said("transport", MAP).assumed
    assert "The domain is convex." in said("constant", LINEAR).assumed


def test_statistics_say_what_they_rest_on():
    proved = said(
        "five",
        LINEAR
        | {
            "level": "statistical",
            "confidence": 0.99,
            "Linf": None,
            "maximum_citation": None,
            "spread": None,
        },
    )
    assert "at most 1 %" in proved.assumed
    assert "Your bound of the residual (residual_bound)" in proved.assumed
    asymptotic = said(
        "five", LINEAR | {"level": "statistical (asymptotic)", "confidence": 0.999, "spread": None}
    )
    assert "about 0.1 %, if the normal approximation holds" in asymptotic.assumed
    assert "at most 0.1 %" not in asymptotic.all
    assert "residual_bound" not in asymptotic.all


def test_the_maximum_principle_may_rest_on_points():
    for contraction in (0.5, None):
        given = LINEAR | {
            "contraction": contraction,
            "epsilon_source": "interval" if contraction else None,
        }
        made = said("variable", given)
        assert (
            "A is positive definite, c ≥ 0 and b is bounded; by interval arithmetic where the "
            "formulas allow it"
        ) in made.checked
        assert "Where only points could be looked at" in made.assumed
        assert ("0.5 < 1 holds over the whole domain, by interval" in made.proved) == bool(
            contraction
        )
    assert (
        "maximum principle needs"
        in said(
            "three",
            LINEAR | {"maximum_citation": Citation(Theorem.barrier, "paraboloid", behind=ABP)},
        ).checked
    )
    assert "the Cordès condition holds or A is continuous" in said("three", LINEAR).checked
    assert (
        "maximum principle needs"
        not in said(
            "variable", LINEAR | {"maximum_citation": Citation(Theorem.green, behind=T1B)}
        ).all
    )
    # Constant coefficients are known.
    assert "maximum principle needs is known" in said("constant", LINEAR).proved
    assert "Where only points" not in said("constant", LINEAR).assumed


def test_controls():
    made = said("controls", LINEAR)
    assert "holds over the whole domain, for all controls, by interval arithmetic" in made.proved
    assert "maximum principle needs, for all controls" in made.checked
    assert "aximiser" not in made.all
    made = said("maximiser", LINEAR)
    assert "None of the 9 controls given is better than the maximiser" in made.checked
    assert "The maximiser is the best of all controls" in made.assumed


def test_agreement_is_claimed_where_it_was_measured():
    assert "agree to 0.1 %" in said("constant", LINEAR).checked
    assert "agree to 0.1 %" in dict(Certificate(**LINEAR).rows())["level"]
    bare = LINEAR | {"spread": None}
    assert "agree" not in said("constant", bare).checked
    assert "agree" not in dict(Certificate(**bare).rows())["level"]
    assert "converged, not proved" in dict(Certificate(**bare).rows())["level"]


@pytest.mark.parametrize(
    ("low", "high", "shown"),
    [
        (0.57739, 0.57744, ("0.57739", "0.57744")),
        (0.577350269, 0.577350271, ("0.577350269", "0.577350271")),
        (0.5, 2.0, ("0.5", "2")),
        (1.0, 1.0, ("1", "1")),
        (0.0, 0.0, ("0", "0")),
    ],
)
def test_distance_has_the_digits_that_its_limits_allow(low, high, shown):
    for words in (
        sentence(MAP | {"W2": (low, high)}),
        plain(bounds_table(Certificate(**MAP | {"W2": (low, high)}))),
    ):
        ends = re.search(r"between ([0-9.]+) and ([0-9.]+)", words).groups()
        assert float(ends[0]) <= low
        assert float(ends[1]) >= high
        assert float(ends[1]) - float(ends[0]) <= 1.25 * (high - low)
        assert max(len(end) for end in ends) <= max(len(end) for end in shown) + 1


def test_condition_holds_where_it_was_looked_at():
    found = {"epsilon": 0.6, "lambda": None, "source": "sampled", "satisfied": True}
    assert "holds at all sampled points: ε = 0.6" in plain(condition_sentence(found))
    for source in ("interval", "analytic"):
        assert "condition holds: ε = 0.6" in plain(condition_sentence(found | {"source": source}))
    for epsilon in (None, float("nan")):
        assert "is not known" in condition_sentence(
            found | {"epsilon": epsilon, "satisfied": False}
        )
    violated = found | {"epsilon": -0.2, "satisfied": False}
    assert "certificate" not in condition_sentence(violated)
    assert "does not need the condition" in condition_sentence(violated, bounded=True)


def test_epsilon_is_one_for_multiples_of_the_identity_without_drift_only():
    assert (
        "1 where A is a multiple of the identity"
        in condition_pair(np.ones(1), np.ones(1), None)[0].caption
    )
    assert "multiple of the identity" not in condition_pair(np.ones(1), np.ones(1), 2.5)[0].caption
    # Independent: ε of A = I, b = (3, 0), c = 1 for λ = 1 is (2 + 1)²/(2 + 9/2 + 1) - 2.
    assert cordes.certificates.condition.epsilon_at(
        np.eye(2)[None], np.array([[3.0, 0.0]]), np.ones(1), 1.0
    )[0] == pytest.approx(9 / 7.5 - 2)


def test_boundary_values_are_as_good_as_the_certificate_says():
    exact = said("constant", LINEAR)
    assert (
        "takes the boundary values, to rounding, at the boundary points looked at" in exact.checked
    )
    missed = said(
        "variable",
        LINEAR
        | {
            "maximum_citation": None,
            "reasons": (
                Reason(
                    Why.boundary_gap,
                    "no bounds of ∇v and D²v: the boundary values miss g by 3e-08",
                    {"gap": 3.0012e-8},
                ),
            ),
        },
    )
    assert "to rounding" not in missed.checked
    assert "misses the boundary values by at most 3e-08" in missed.checked
    # What follows from the gap follows by the maximum principle.
    assert "maximum principle needs" in missed.checked
    assert "to rounding" not in said("convex", convex(T4, "sampled")).all
    for made in (exact, missed):
        assert "Between the boundary points looked at" in made.assumed


def test_epsilon_is_the_users_only_where_it_was_used():
    given = LINEAR | {"epsilon_source": "analytic"}
    assert "Your lower bound ε ≥ 0.5" in said("vouched", given).assumed
    made = said("vouched, constant", given)
    assert "Your lower bound" not in made.all
    assert "do not depend on x" in made.proved


def test_small_words():
    words = {"quadrature", "enclosed", "proved", "sampled"}
    words |= {"statistical", "statistical (asymptotic)"}
    assert set(LEVELS) == words
    reference = {"error": None, "reference": {"name": "chebyshev", "linf": 1.23e-5}}
    assert (
        plain(measured_sentence(reference))
        == "A classical solution (chebyshev) differs by at most 1.3·10^−5, at the points compared."
    )
    facts = {"certificate": Certificate(**LINEAR).facts()}
    assert "at almost every point" in _without_bound("", facts, 4)
    assert "everywhere" in _without_bound("", facts, 3)
    assert "the contraction (ε): at sampled points only" in sentence(
        LINEAR | {"epsilon_source": "sampled"}
    )
    assert "sampled" not in sentence(LINEAR)
    assert (
        claims_list(
            claims(Certificate(reasons=(Reason(Why.no_theorem, "<b>"),)), PROBLEMS["constant"]())
        )
        == '<div class="columns"></div>'
    )


@pytest.mark.parametrize(
    ("cited", "green"), [(ABP, False), (Citation(Theorem.green, behind=T1B), True)]
)
def test_bound_map_names_what_bounds_it(cited, green):
    picture = SimpleNamespace(bound=lambda points: np.ones(len(points)))
    solution = SimpleNamespace(certificate=SimpleNamespace(picture=picture, maximum_citation=cited))
    assert ("Green's function" in bound_quantity(solution, np.zeros((2, 2))).caption) == green
    assert "at almost every point" in bound_quantity(solution, np.zeros((2, 4))).caption
