"""What a certificate says, in words: the answer in one sentence, and what is proved, what was
checked, what is assumed."""

import math
import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from cordes.certificates.residual.candidate import BUILT_IN
from cordes.problems.hjb import HJB
from cordes.problems.monge_ampere import MongeAmpere
from cordes.problems.problem import AbstractProblem
from cordes.problems.transport import Transport
from cordes.reports.kit.page import MINUS, number, table, text

if TYPE_CHECKING:
    from cordes.certificates.certificate import Certificate

# What the theorems say, by the beginning of their names; docs/certificates.md has the proofs.
THEOREMS = {
    "T1b": (
        "scaled by d/tr A, the operator differs from the Laplacian by a contraction, so that the "
        "residual bounds the error"
    ),
    "T1c": (
        "scaled by a multiplier that suits this residual, the operator differs from the Laplacian "
        "by a contraction, so that the residual bounds the error"
    ),
    "T1d": (
        "after a linear change of variables the scaled operator differs from the Laplacian by a "
        "contraction, so that the residual bounds the error"
    ),
    "T2 after": (
        "an exponential transform takes the drift away; then the scaled operator differs from Δ − "
        "λ by a contraction"
    ),
    "T2": (
        "with drift and reaction the scaled operator differs from Δ − λ by a contraction, so that "
        "the residual bounds the error"
    ),
    "Smears–Süli": (
        "with drift and reaction the scaled operator differs from Δ − λ by a contraction (the "
        "condition of Smears and Süli)"
    ),
    "ABP": (
        "the maximum principle of Aleksandrov, Bakelman and Pucci bounds the error by an integral "
        "of the residual"
    ),
    "barrier": (
        "a barrier, a function that the operator takes below the residual, lies above the error "
        "by the maximum principle"
    ),
    "Green": "Green's function turns the bound of the energy into one of the largest error",
    "T4 with shift": (
        "if the answer plus δ|x|²/2 is convex, the maximum principle for convex functions bounds "
        "the error of that sum, and δ the rest"
    ),
    "T4": (
        "the maximum principle for convex functions bounds the error by the difference of the "
        "roots of the determinants"
    ),
    "T5": (
        "by duality the potential bounds the distance from both sides, and with bounds of D²u the "
        "error of the map"
    ),
}
LEVELS = {
    "quadrature": "the integrals have converged numerically",
    "statistical (asymptotic)": "from independent points, by the normal approximation",
    "statistical": (
        "from independent points, guaranteed at the stated confidence if your bound of the "
        "residual holds"
    ),
}
NORMS = (
    ("largest error", "Linf"),
    ("root mean square error", "rms"),
    ("‖v‖ in L²", "L2"),
    ("‖∇v‖ in L²", "H1"),
    ("‖D²v‖ in L²", "H2"),
    ("error of the map in L²(μ)", "map_L2"),
)
# What is a supremum over the domain, by the beginning of the theorem's name; for all others it is
# the contraction.
SUPREMA = {
    "T4 with shift": "a bound of the eigenvalues of D²u",
    "T4": "the convexity of the answer",
    "T5": "the bounds of D²u",
}
# Theorems that rest on the maximum principle of linear equations.
MAXIMUM = ("ABP", "barrier")
EIGENVALUE = re.compile(r"D²w has the eigenvalue (-?[0-9.e+-]*[0-9])")
BOUNDARY_GAP = re.compile(r"the boundary values miss g by ([0-9.e+-]*[0-9])")
# The digits of a distance: few where its limits are far apart.
FEWEST, MOST = 3, 13


class Claims(NamedTuple):
    """Sentences in plain text."""

    proved: list[str]
    checked: list[str]
    assumed: list[str]


def answer_sentence(facts: Mapping[str, Any], dimension: int | None = None) -> str:
    """How wrong the answer is, in one sentence of safe HTML that needs no mathematics; or why
    nobody knows."""
    certificate = facts["certificate"]
    if certificate is None or all(certificate[name] is None for name in ("Linf", "rms", "map_L2")):
        reason = (certificate or {}).get("reason") or "no theorem applies"
        return f"No bound of the error can be given: {text(reason.rstrip('.'))}."
    level = f"; level: {text(_level(certificate))}{_sampled(certificate)}."
    if certificate["map_L2"] is not None:
        distance = f", and the distance W₂ lies {_distance(certificate)}"
        return (
            "The map is wrong by at most "
            f"{number(certificate['map_L2'], 2, 'certificate.map_L2', up=True)} in the root mean "
            f"square{distance}{level}"
        )
    mean = (
        f"at most {number(certificate['rms'], 2, 'certificate.rms', up=True)} in the root mean "
        "square"
    )
    if certificate["Linf"] is None:
        return f"The error is {mean}{level}"
    return (
        f"The error is at most {number(certificate['Linf'], 2, 'certificate.Linf', up=True)} "
        f"{everywhere(dimension)}, and {mean}{level}"
    )


def everywhere(dimension: int | None) -> str:
    """Where a bound of the largest error holds: in more than three dimensions functions with second
    derivatives in L² need not be continuous."""
    return "at almost every point" if dimension is not None and dimension > 3 else "everywhere"


def _sampled(certificate: Mapping[str, Any]) -> str:
    """What the bound takes from sampled points; empty where it is proved over the whole domain."""
    if certificate.get("epsilon_source") != "sampled":
        return ""
    name = certificate.get("theorem") or ""
    what = next(
        (what for start, what in SUPREMA.items() if name.startswith(start)), "the contraction (ε)"
    )
    return f"; {what}: at sampled points only"


def _distance(certificate: Mapping[str, Any]) -> str:
    """Between which numbers W₂ lies, with two digits more than its limits have in common."""
    low, high = certificate["W2"]
    width = high - low
    common = (
        math.floor(math.log10(high)) - math.floor(math.log10(width))
        if width > 0 and high > 0
        else MOST
    )
    digits = min(max(common + 2, FEWEST), MOST)
    ends = [
        number(end, digits, f"certificate.W2.{k}", up=k == 1) for k, end in enumerate((low, high))
    ]
    return f"between {ends[0]} and {ends[1]}"


def measured_sentence(facts: Mapping[str, Any]) -> str:
    """What a comparison with the exact solution, or with a classical one, gave; empty where there
    is none."""
    if facts["error"] is not None:
        largest, mean = (
            number(facts["error"]["linf"], 2, "error.linf"),
            number(facts["error"]["l2"], 2, "error.l2"),
        )
        what = "map" if facts.get("transport") else "solution"
        return (
            f"Measured against the exact {what}: largest error {largest}, root mean square {mean}."
        )
    if facts.get("reference") is not None:
        return (
            f"A classical solution ({text(facts['reference']['name'])}) differs by at most "
            f"{number(facts['reference']['linf'], 2, 'reference.linf', up=True)}, at the points "
            "compared."
        )
    return ""


def _level(certificate: Mapping[str, Any]) -> str:
    sure = (
        f", {100 * certificate['confidence']:g} % confidence"
        if certificate.get("confidence") is not None
        else ""
    )
    return f"{certificate['level']}{sure}"


def bounds_table(facts: Mapping[str, Any]) -> str:
    """All bounds, the theorems behind them, and how they are known."""
    certificate = facts["certificate"]
    transport = certificate["map_L2"] is not None
    rows = []
    for name, key in NORMS:
        if (key == "map_L2") == transport:
            value = certificate[key]
            rows.append(
                (
                    name,
                    f"≤ {number(value, 3, f'certificate.{key}', up=True)}"
                    if value is not None
                    else "no bound",
                )
            )
    if certificate["energy"] is not None:
        energy = certificate["energy"]
        shift = f" − {energy['lambda']:.4g} v" if energy["lambda"] else ""
        lower, upper = (
            number(energy["lower"], 3, "certificate.energy.lower", up=False),
            number(energy["upper"], 3, "certificate.energy.upper", up=True),
        )
        rows.append((f"‖Δv{shift}‖ in L²", f"between {lower} and {upper}"))
    if transport:
        rows.append(("distance W₂", _distance(certificate)))
    for name, key in (("theorem", "theorem"), ("largest error by", "maximum_theorem")):
        if certificate[key] is not None:
            rows.append((name, text(certificate[key])))
    if certificate["contraction"] is not None:
        rows.append(
            (
                "contraction",
                (
                    f"{number(certificate['contraction'], 4, 'certificate.contraction', up=True)} "
                    f"({text(certificate['epsilon_source'])})"
                ),
            )
        )
    if certificate["level"] is not None:
        rows.append(
            ("level", f"{text(_level(certificate))}: {text(LEVELS.get(certificate['level'], ''))}")
        )
    if certificate["points"]:
        rows.append(("points", number(certificate["points"], fact="certificate.points")))
    if certificate["reason"] is not None:
        rows.append(
            (
                "not covered" if certificate["level"] is not None else "reason",
                text(certificate["reason"]),
            )
        )
    return table(rows)


def claims(
    certificate: "Certificate", problem: AbstractProblem, facts: Mapping[str, Any] | None = None
) -> Claims:
    """What the bounds rest on. `facts` are those of result.json, which know the smallest eigenvalue
    of D²u."""
    made = Claims([], [], [])
    if certificate.level is None:
        return made
    named = dict.fromkeys(
        name
        for name in (
            certificate.theorem,
            certificate.maximum_theorem,
            *certificate.theorems.values(),
        )
        if name
    )
    glosses = {name: _gloss(name, problem.domain.dimension) for name in named}
    for gloss in dict.fromkeys(glosses.values()):
        made.proved.append(
            f"{', '.join(name for name in named if glosses[name] == gloss)}: {gloss}."
        )
    if isinstance(problem, Transport):
        _transport(made, certificate)
    else:
        if isinstance(problem, MongeAmpere):
            _convexity(made, certificate, problem, facts or {})
        else:
            _contraction(made, certificate, problem)
            _maximum_principle(made, certificate, problem, list(named))
        _answer(made, certificate, problem)
    made.checked.append(
        "The residual is evaluated in double precision, and a bound of its rounding error is added."
    )
    _integrals(made, certificate)
    if not isinstance(problem.domain, BUILT_IN):
        made.assumed.append("The domain is convex.")
    if isinstance(problem, Transport) and not isinstance(problem.target_domain, BUILT_IN):
        made.assumed.append("The target domain is convex.")
    made.assumed.append(
        f"The {'densities' if isinstance(problem, Transport) else 'coefficients'} are what "
        "their formulas say."
    )
    return made


def _answer(made: Claims, certificate: "Certificate", problem: AbstractProblem) -> None:
    """The boundary values, kinks and jumps."""
    missed = BOUNDARY_GAP.search(certificate.reason or "")
    if missed is not None:
        made.checked.append(
            "At the boundary points looked at, the answer misses the boundary values by at "
            f"most {missed[1]}; the bounds count this twice."
        )
    elif isinstance(problem, MongeAmpere):
        # Its certificate adds the gap and does not tell.
        made.checked.append(
            "The boundary values, at points of the boundary: what they miss there is counted "
            "twice in the bounds."
        )
    else:
        made.checked.append(
            "The answer takes the boundary values, to rounding, at the boundary points looked "
            "at; what it misses there counts twice."
        )
    made.assumed.append(
        "Between the boundary points looked at, the answer misses the boundary values by no "
        "more than twice as much."
    )
    made.checked.append(
        "The answer has no kink: its gradient is continuous, so that the residual sees all of "
        "its second derivatives."
    )
    made.checked.append("No coefficient was found to jump where no interface is declared.")


def _integrals(made: Claims, certificate: "Certificate") -> None:
    """How the norms are known."""
    if certificate.level == "quadrature":
        agreement = (
            f"; n and 2n of them per direction agree to {100 * certificate.spread:.2g} %"
            if certificate.spread is not None
            else ""
        )
        made.checked.append(
            f"{certificate.points:,} points that served neither to fit nor to choose{agreement}."
        )
        made.assumed.append(
            "Integrals that agree for n and 2n points, and before and after the last "
            "refinement, have converged."
        )
    elif certificate.confidence is not None:
        made.checked.append(
            f"{certificate.points:,} independent points that served neither to fit nor to choose."
        )
        chance = f"{100 * (1 - certificate.confidence):.3g} %"
        if "asymptotic" in str(certificate.level):
            made.assumed.append(
                f"Chance: the bound fails with a probability of about {chance}, if the normal "
                "approximation holds."
            )
            made.assumed.append(
                "The normal approximation holds: the residual is not concentrated in a tiny "
                "set that all points missed."
            )
        else:
            made.assumed.append(
                f"Chance: the bound fails with a probability of at most {chance}, if what "
                "else is assumed holds."
            )
            made.assumed.append(
                "Your bound of the residual (residual_bound) over the whole domain; no sampled "
                "point contradicts it."
            )


def _known(made: Claims, what: str, source: str | None, proof: str, verb: str = "holds") -> None:
    """Something that must hold over the whole domain, and how that is known."""
    if source == "sampled":
        made.checked.append(f"{_capital(what)}, at sampled points.")
        made.assumed.append(f"What holds at the sampled points holds between them: {what}.")
    elif source is not None:
        made.proved.append(f"{_capital(what)} {verb} {proof}.")


def _capital(sentence: str) -> str:
    return sentence[0].upper() + sentence[1:]


def _contraction(made: Claims, certificate: "Certificate", problem: AbstractProblem) -> None:
    """The contraction of the energy theorems."""
    if certificate.contraction is None:
        return
    controls = ", for all controls" if isinstance(problem, HJB) else ""
    constant = getattr(problem, "constant_coefficients", True)
    if (
        certificate.epsilon_source == "analytic"
        and problem.epsilon is not None
        and not (constant or problem.has_drift or problem.has_reaction)
    ):
        made.assumed.append(
            f"Your lower bound ε ≥ {problem.epsilon:g}; no sampled point contradicts it."
        )
        return
    reason = (
        ": A, b and c do not depend on x"
        if certificate.epsilon_source == "analytic"
        else ", by interval arithmetic"
    )
    what = f"the contraction {certificate.contraction:.4g} < 1"
    _known(made, what, certificate.epsilon_source, f"over the whole domain{controls}{reason}")


def _maximum_principle(
    made: Claims, certificate: "Certificate", problem: AbstractProblem, named: list[str]
) -> None:
    """What bounds of the largest error need, which may rest on points even where the contraction
    does not; and the maximiser of a control problem."""
    if isinstance(problem, HJB) and problem.maximiser is not None:
        made.checked.append(
            f"None of the {len(problem.controls):,} controls given is better than the "
            "maximiser, at any point of the norms."
        )
        made.assumed.append(
            "The maximiser is the best of all controls, between those that it was compared "
            "with too."
        )
    used = any(part.strip().startswith(MAXIMUM) for name in named for part in name.split(","))
    if not used and BOUNDARY_GAP.search(certificate.reason or "") is None:
        return
    needs = ["A is positive definite"]
    if problem.has_reaction:
        needs.append("c ≥ 0")
    if problem.has_drift:
        needs.append("b is bounded")
    if problem.domain.dimension > 2:
        needs.append("the Cordès condition holds or A is continuous")
    listed = f"{', '.join(needs[:-1])} and {needs[-1]}" if len(needs) > 1 else needs[0]
    if getattr(problem, "constant_coefficients", False):
        made.proved.append(
            "What the maximum principle needs is known, since the coefficients are constant: "
            f"{listed}."
        )
        return
    controls = ", for all controls" if isinstance(problem, HJB) else ""
    made.checked.append(
        f"What the maximum principle needs{controls}: {listed}; by interval arithmetic where "
        "the formulas allow it, else at sampled points."
    )
    made.assumed.append(
        f"Where only points could be looked at, it holds between them too: {listed}."
    )


def _convexity(
    made: Claims, certificate: "Certificate", problem: AbstractProblem, facts: Mapping[str, Any]
) -> None:
    """In one dimension the equation is linear, and convexity plays no part; an answer that is not
    convex is certified through w + δ|x|²/2."""
    made.checked.append("f ≥ 0, and its integral is finite, as far as the points show.")
    if problem.domain.dimension == 1:
        return
    named = EIGENVALUE.search(certificate.reason or "")
    found = [
        (facts.get("convexity") or {}).get("smallest_eigenvalue"),
        float(named[1]) if named is not None else None,
    ]
    smallest = min((value for value in found if value is not None), default=0.0)
    lost = smallest < 0
    proof = "over the whole domain, by interval arithmetic"
    if not lost and "shift" not in (certificate.theorem or ""):
        _known(made, "the convexity of the answer", certificate.epsilon_source, proof)
        return
    _known(
        made,
        "D²w + δI ≥ 0 (w is the answer, and the bound pays for δ)",
        certificate.epsilon_source,
        proof,
    )
    if lost:
        made.checked.append(
            f"The answer itself is not convex: D²w has the eigenvalue {smallest:.3g}.".replace(
                "-", MINUS
            )
        )
    else:
        made.checked.append(
            "The answer itself is not known to be convex: the eigenvalues of D²w are too near "
            "zero to be sure."
        )


def _transport(made: Claims, certificate: "Certificate") -> None:
    """The bounds of T5, and what is searched and never proved."""
    proof = "over their whole domains, by interval arithmetic"
    _known(
        made,
        "the bounds of D²u and of the target density",
        certificate.epsilon_source,
        proof,
        "hold",
    )
    made.checked.append(
        "The map takes the boundary into the target, at points and by a search from the worst "
        "of them; what leaves the target counts twice."
    )
    made.assumed.append(
        "The search on the boundary has found the worst: where the map takes the boundary is "
        "never proved."
    )
    made.checked.append(
        "The potential has no kink: its gradient is continuous, so that the densities see all "
        "of its second derivatives."
    )
    made.checked.append("No jump of the densities was found.")


def _gloss(name: str, dimension: int) -> str:
    if dimension == 1 and name.startswith("T4"):
        return (
            "in one dimension the equation is linear, and the maximum principle bounds the error "
            "by the residual"
        )
    found = next(
        (gloss for start, gloss in THEOREMS.items() if name.lower().startswith(start.lower())), None
    )
    return found or "see the documentation of certificates"


def claims_list(made: Claims) -> str:
    """Three lists side by side."""
    titles = (("Proved", made.proved), ("Checked", made.checked), ("Assumed", made.assumed))
    columns = (
        (
            f"<div><h3>{title}</h3><ul "
            f'class="claims">{"".join(f"<li>{text(each)}</li>" for each in lines)}</ul></div>'
        )
        for title, lines in titles
        if lines
    )
    return f'<div class="columns">{"".join(columns)}</div>'
