"""What a certificate proves, checks and assumes, in words: three lists that each kind fills."""

import functools
from collections.abc import Mapping
from typing import Any, NamedTuple

from cordes.certificates.certificate import Certificate
from cordes.certificates.reason import Why
from cordes.certificates.residual.candidate import BUILT_IN
from cordes.certificates.theorem import Citation, Modifier
from cordes.domains.domain import AbstractDomain
from cordes.domains.plane.sides import fluxes
from cordes.domains.walls import Walled
from cordes.errors import OptionError
from cordes.problems.controls.controlled import AbstractControlled
from cordes.problems.linear import Linear
from cordes.problems.monge_ampere import MongeAmpere
from cordes.problems.problem import AbstractProblem
from cordes.problems.transport import Transport
from cordes.reports.kit.page import MINUS, columns, text
from cordes.runtime.packages import load_kinds


class Claims(NamedTuple):
    """Sentences in plain text."""

    proved: list[str]
    checked: list[str]
    assumed: list[str]

    def say(self, proved: str = "", checked: str = "", assumed: str = "") -> None:
        """Adds a sentence to each of these lists."""
        for sentences, said in zip(self, (proved, checked, assumed), strict=True):
            sentences += [said] if said else []


def claims(
    certificate: Certificate, problem: AbstractProblem, facts: Mapping[str, Any] | None = None
) -> Claims:
    """What the bounds rest on. `facts` are those of result.json."""
    made = Claims([], [], [])
    if certificate.level is None:
        return made
    said: dict[str, list[str]] = {}
    for cited in dict.fromkeys(_cited(certificate)):
        said.setdefault(cited.gloss, []).append(str(cited))
    for gloss, names in said.items():
        made.proved.append(f"{', '.join(dict.fromkeys(names))}: {gloss}.")
    rests_on(problem, certificate, made, facts or {})
    return made


def _cited(certificate: Certificate) -> list[Citation]:
    first = (certificate.citation, certificate.maximum_citation)
    return [*(cited for cited in first if cited is not None), *certificate.citations.values()]


@functools.singledispatch
def rests_on(
    problem: AbstractProblem, certificate: Certificate, made: Claims, facts: Mapping[str, Any]
) -> None:
    """What the bounds of one kind of problem rest on, beside the theorems: into the three lists."""
    raise OptionError(
        f"What certificates of {type(problem).__name__} problems rest on is not known: register "
        "it, with cordes.reports.pages.claims.rests_on.register."
    )


@rests_on.register
def _linear(
    problem: Linear, certificate: Certificate, made: Claims, facts: Mapping[str, Any]
) -> None:
    lower_order = problem.has_drift or problem.has_reaction
    if (
        certificate.contraction is not None
        and certificate.epsilon_source == "analytic"
        and problem.epsilon is not None
        and not (problem.constant_coefficients or lower_order)
    ):
        your = f"Your lower bound ε ≥ {problem.epsilon:g}; no sampled point contradicts it."
        made.say(assumed=your)
    else:
        _contraction(made, certificate)
    _maximum_principle(made, certificate, problem)
    if not problem.domain.convex:
        _on_plane(made, certificate, problem.domain)
        return
    _boundary_values(made, certificate)
    _answer(made, certificate, problem.domain)


def _on_plane(made: Claims, certificate: Certificate, domain: AbstractDomain) -> None:
    """Of domains that are not convex, where boundary values are met by rows."""
    made.say(
        checked="Along panels of each side, halved until a polynomial through some of their points "
        f"predicts the others, the answer misses the boundary values by at most "
        f"{_gap(certificate) or 0.0:.2g}; this is part of the bounds.",
        assumed="Between these points the polynomials are as near as where they were compared.",
    )
    if fluxes(domain):
        made.say(
            assumed="There is a solution whose second derivatives are square integrable near the "
            "sides with a given normal derivative; there the answer misses the data by at most so "
            "much, too."
        )
    made.say(
        checked="Poles, logarithms and branch cuts of the answer lie outside of the domain: inside "
        "it is smooth."
    )
    made.say(checked="No coefficient was found to jump where no interface is declared.")
    _rest(made, certificate, domain, "coefficients")


@rests_on.register
def _hjb(
    problem: AbstractControlled, certificate: Certificate, made: Claims, facts: Mapping[str, Any]
) -> None:
    if problem.clock is not None:
        in_time_claims(problem, certificate, made, ", for all controls")
        return
    _contraction(made, certificate, ", for all controls")
    if problem.maximiser is not None:
        made.say(
            checked=f"None of the {len(problem.controls):,} controls given is better than the "
            "maximiser, at any point of the norms.",
            assumed="The maximiser is the best of all controls, between those that it was compared "
            "with too.",
        )
    _maximum_principle(made, certificate, problem, ", for all controls")
    _boundary_values(made, certificate)
    _answer(made, certificate, problem.domain)


@rests_on.register
def _monge_ampere(
    problem: MongeAmpere, certificate: Certificate, made: Claims, facts: Mapping[str, Any]
) -> None:
    _convexity(made, certificate, problem, facts)
    # The certificate adds the gap and does not tell.
    made.say(
        checked="The boundary values, at points of the boundary: what they miss there is counted "
        "twice in the bounds."
    )
    _answer(made, certificate, problem.domain)


@rests_on.register
def _transport(
    problem: Transport, certificate: Certificate, made: Claims, facts: Mapping[str, Any]
) -> None:
    """The bounds of T5, and what is searched and never proved."""
    what = "the bounds of D²u and of the target density"
    proof = "over their whole domains, by interval arithmetic"
    _known(made, what, certificate.epsilon_source, proof, "hold")
    made.say(
        checked="The map takes the boundary into the target, at points and by a search from the "
        "worst of them; what leaves the target counts twice.",
        assumed="The search on the boundary has found the worst: where the map takes the boundary "
        "is never proved.",
    )
    made.say(
        checked="The potential has no kink: its gradient is continuous, so that the densities see "
        "all of its second derivatives."
    )
    made.say(checked="No jump of the densities was found.")
    _rest(made, certificate, problem.domain, "densities")
    if not isinstance(problem.target_domain, BUILT_IN):
        made.assumed.insert(-1, "The target domain is convex.")


def in_time_claims(
    problem: AbstractProblem, certificate: Certificate, made: Claims, controls: str = ""
) -> None:
    """What the bounds of an equation in time rest on."""
    _contraction(made, certificate, controls)
    for meaning in certificate.classes.values():
        made.say(assumed=f"The solution is the one that comparison speaks of: {meaning}.")
    made.say(proved="The answer has the initial values by construction.")
    shared_claims(made, certificate, problem)


def shared_claims(made: Claims, certificate: Certificate, problem: AbstractProblem) -> None:
    """What certificates of answers with given values rest on."""
    _boundary_values(made, certificate)
    _answer(made, certificate, problem.space)


def _gap(certificate: Certificate) -> float | None:
    """By how much the boundary values miss g, where that is more than rounding."""
    found = (reason for reason in certificate.reasons if reason.kind is Why.boundary_gap)
    return next((reason.values["gap"] for reason in found), None)


def _boundary_values(made: Claims, certificate: Certificate) -> None:
    missed = _gap(certificate)
    said = (
        "The answer takes the boundary values, to rounding, at the boundary points looked at; what "
        "it misses there counts twice."
    )
    if missed is not None:
        said = (
            "At the boundary points looked at, the answer misses the boundary values by at most "
            f"{missed:.2g}; the bounds count this twice."
        )
    made.say(checked=said)


def _answer(made: Claims, certificate: Certificate, domain: AbstractDomain) -> None:
    """The boundary values, kinks and jumps, and what every certificate rests on."""
    made.say(
        checked="The answer has no kink: its gradient is continuous, so that the residual sees all "
        "of its second derivatives.",
        assumed="Between the boundary points looked at, the answer misses the boundary values by "
        "no more than twice as much.",
    )
    made.say(checked="No coefficient was found to jump where no interface is declared.")
    _rest(made, certificate, domain, "coefficients")


def _rest(made: Claims, certificate: Certificate, domain: AbstractDomain, data: str) -> None:
    """What every certificate rests on."""
    rounding = "and a bound of its rounding error is added."
    made.say(checked=f"The residual is evaluated in double precision, {rounding}")
    _integrals(made, certificate)
    if domain.convex and not isinstance(domain, (*BUILT_IN, Walled)):
        made.say(assumed="The domain is convex.")
    made.say(assumed=f"The {data} are what their formulas say.")


def _integrals(made: Claims, certificate: Certificate) -> None:
    """How the norms are known."""
    apart = "points that served neither to fit nor to choose"
    if certificate.level == "quadrature":
        agreement = ""
        if certificate.spread is not None:
            share = f"{100 * certificate.spread:.2g} %"
            agreement = f"; n and 2n of them per direction agree to {share}"
        made.say(
            checked=f"{certificate.points:,} {apart}{agreement}.",
            assumed="Integrals that agree for n and 2n points, and before and after the last "
            "refinement, have converged.",
        )
    elif certificate.confidence is not None:
        made.say(checked=f"{certificate.points:,} independent {apart}.")
        chance = f"{100 * (1 - certificate.confidence):.3g} %"
        limit, condition = "at most", "what else is assumed holds"
        reason = (
            "Your bound of the residual (residual_bound) over the whole domain; no sampled point "
            "contradicts it."
        )
        if "asymptotic" in str(certificate.level):
            limit, condition = "about", "the normal approximation holds"
            reason = (
                "The normal approximation holds: the residual is not concentrated in a tiny set "
                "that all points missed."
            )
        fails = f"Chance: the bound fails with a probability of {limit} {chance}, if {condition}."
        made.say(assumed=fails)
        made.say(assumed=reason)


def _known(made: Claims, what: str, source: str | None, proof: str, verb: str = "holds") -> None:
    """Something that must hold over the whole domain, and how that is known."""
    capital = what[0].upper() + what[1:]
    if source == "sampled":
        between = f"What holds at the sampled points holds between them: {what}."
        made.say(checked=f"{capital}, at sampled points.", assumed=between)
    elif source is not None:
        made.say(proved=f"{capital} {verb} {proof}.")


def _contraction(made: Claims, certificate: Certificate, controls: str = "") -> None:
    """The contraction of the energy theorems."""
    if certificate.contraction is None:
        return
    analytic = certificate.epsilon_source == "analytic"
    reason = ": A, b and c do not depend on x" if analytic else ", by interval arithmetic"
    what = f"the contraction {certificate.contraction:.4g} < 1"
    _known(made, what, certificate.epsilon_source, f"over the whole domain{controls}{reason}")


def _maximum_principle(
    made: Claims, certificate: Certificate, problem: AbstractProblem, controls: str = ""
) -> None:
    """What bounds of the largest error need: by points perhaps where the contraction is not."""
    used = any(cited.maximum_principle for cited in _cited(certificate))
    if not used and _gap(certificate) is None:
        return
    needs = {
        "A is positive definite": True,
        "c ≥ 0": problem.has_reaction,
        "b is bounded": problem.has_drift,
        "the Cordès condition holds or A is continuous": problem.domain.dimension > 2,
    }
    *first, last = (need for need, there in needs.items() if there)
    listed = f"{', '.join(first)} and {last}" if first else last
    if problem.constant_coefficients:
        known = "What the maximum principle needs is known, since the coefficients are constant"
        made.say(proved=f"{known}: {listed}.")
        return
    made.say(
        checked=f"What the maximum principle needs{controls}: {listed}; by interval arithmetic "
        "where the formulas allow it, else at sampled points.",
        assumed=f"Where only points could be looked at, it holds between them too: {listed}.",
    )


def _convexity(
    made: Claims, certificate: Certificate, problem: MongeAmpere, facts: Mapping[str, Any]
) -> None:
    """In one dimension the equation is linear, and convexity plays no part; an answer that is not
    convex is certified through w + δ|x|²/2."""
    made.say(checked="f ≥ 0, and its integral is finite, as far as the points show.")
    if problem.domain.dimension == 1:
        return
    found = [
        float(reason.values["eigenvalue"])
        for reason in certificate.reasons
        if reason.kind is Why.negative_eigenvalue
    ]
    if facts.get("convexity"):
        found.append(float(facts["convexity"]["smallest_eigenvalue"]))
    smallest = min(found, default=0.0)
    lost = smallest < 0
    proof = "over the whole domain, by interval arithmetic"
    cited, source = certificate.citation, certificate.epsilon_source
    if not lost and (cited is None or Modifier.shifted not in cited.modifiers):
        _known(made, "the convexity of the answer", source, proof)
        return
    _known(made, "D²w + δI ≥ 0 (w is the answer, and the bound pays for δ)", source, proof)
    said = (
        "The answer itself is not known to be convex: the eigenvalues of D²w are too near zero to "
        "be sure."
    )
    if lost:
        said = f"The answer itself is not convex: D²w has the eigenvalue {smallest:.3g}."
        said = said.replace("-", MINUS)
    made.say(checked=said)


def claims_list(made: Claims) -> str:
    """Three lists side by side."""
    titles = dict(zip(("Proved", "Checked", "Assumed"), made, strict=True))
    items = {
        title: "".join(f"<li>{text(each)}</li>" for each in lines)
        for title, lines in titles.items()
        if lines
    }
    return columns(
        *(
            f'<div><h3>{title}</h3><ul class="claims">{listed}</ul></div>'
            for title, listed in items.items()
        )
    )


# Kinds whose words are files of their own beside this one.
load_kinds("cordes.reports.pages.kinds")
