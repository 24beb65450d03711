"""What a certificate says, in words: the answer in one sentence, and what is proved, what was checked, what is assumed."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from cordes.certificates.candidate import BUILT_IN
from cordes.reports.html.page import digits_of, number, table, text

if TYPE_CHECKING:
    from cordes.certificates.certificate import Certificate

# What the theorems say, by the beginning of their names; docs/certificates.md has the proofs.
THEOREMS = {
    "T1b": "scaled by d/tr A, the operator differs from the Laplacian by a contraction, so that the residual bounds the error",
    "T1c": "scaled by a multiplier that suits this residual, the operator differs from the Laplacian by a contraction, so that the residual bounds the error",
    "T1d": "after a linear change of variables the scaled operator differs from the Laplacian by a contraction, so that the residual bounds the error",
    "T2 after": "an exponential transform takes the drift away; then the scaled operator differs from Δ − λ by a contraction",
    "T2": "with drift and reaction the scaled operator differs from Δ − λ by a contraction, so that the residual bounds the error",
    "Smears–Süli": "with drift and reaction the scaled operator differs from Δ − λ by a contraction (the condition of Smears and Süli)",
    "ABP": "the maximum principle of Aleksandrov, Bakelman and Pucci bounds the error by an integral of the residual",
    "barrier": "a barrier, a function that the operator takes below the residual, lies above the error by the maximum principle",
    "Green": "Green's function turns the bound of the energy into one of the largest error",
    "T4": "the maximum principle for convex functions bounds the error by the difference of the roots of the determinants",
    "T5": "by duality the potential bounds the distance from both sides, and with bounds of D²u the error of the map",
}
LEVELS = {
    "sampled": "true at sampled points only",
    "quadrature": "the integrals have converged numerically",
    "statistical (asymptotic)": "from independent points, by the normal approximation",
    "statistical": "from independent points, guaranteed at the stated confidence",
    "verified": "proved with every rounding",
}
NORMS = (
    ("largest error", "Linf"),
    ("root mean square error", "rms"),
    ("‖v‖ in L²", "L2"),
    ("‖∇v‖ in L²", "H1"),
    ("‖D²v‖ in L²", "H2"),
    ("error of the map in L²(μ)", "map_L2"),
)


class Claims(NamedTuple):
    """Sentences in plain text."""

    proved: list[str]
    checked: list[str]
    assumed: list[str]


def answer_sentence(facts: Mapping[str, Any], dimension: int | None = None) -> str:
    """How wrong the answer is, in one sentence of safe HTML that needs no mathematics; or why nobody knows."""
    certificate = facts["certificate"]
    if certificate is None or all(certificate[name] is None for name in ("Linf", "rms", "map_L2")):
        reason = (certificate or {}).get("reason") or "no theorem applies"
        return f"No bound of the error can be given: {text(reason.rstrip('.'))}."
    level = f"; level: {text(_level(certificate))}."
    if certificate["map_L2"] is not None:
        low, high = certificate["W2"]
        digits = next((count for count in range(4, 13) if digits_of(low, count, False) != digits_of(high, count, True)), 13)
        ends = [number(end, digits, f"certificate.W2.{k}", up=k == 1) for k, end in enumerate((low, high))]
        distance = f", and the distance W₂ lies between {ends[0]} and {ends[1]}"
        return (
            f"The map is wrong by at most {number(certificate['map_L2'], 2, 'certificate.map_L2', up=True)} in the root mean square{distance}{level}"
        )
    mean = f"at most {number(certificate['rms'], 2, 'certificate.rms', up=True)} in the root mean square"
    if certificate["Linf"] is None:
        return f"The error is {mean}{level}"
    where = "at almost every point" if dimension is not None and dimension > 3 else "everywhere"
    return f"The error is at most {number(certificate['Linf'], 2, 'certificate.Linf', up=True)} {where}, and {mean}{level}"


def measured_sentence(facts: Mapping[str, Any]) -> str:
    """What a comparison with the exact solution, or with a classical one, gave; empty where there is none."""
    if facts["error"] is not None:
        largest, mean = number(facts["error"]["linf"], 2, "error.linf"), number(facts["error"]["l2"], 2, "error.l2")
        what = "map" if facts.get("transport") else "solution"
        return f"Measured against the exact {what}: largest error {largest}, root mean square {mean}."
    if facts.get("reference") is not None:
        return (
            f"A classical solution ({text(facts['reference']['name'])}) differs by at most {number(facts['reference']['linf'], 2, 'reference.linf')}."
        )
    return ""


def _level(certificate: Mapping[str, Any]) -> str:
    sure = f", {100 * certificate['confidence']:g} % confidence" if certificate.get("confidence") is not None else ""
    return f"{certificate['level']}{sure}"


def bounds_table(facts: Mapping[str, Any]) -> str:
    """All bounds, the theorems behind them, and how they are known."""
    certificate = facts["certificate"]
    transport = certificate["map_L2"] is not None
    rows = []
    for name, key in NORMS:
        if (key == "map_L2") == transport:
            value = certificate[key]
            rows.append((name, f"≤ {number(value, 3, f'certificate.{key}', up=True)}" if value is not None else "no bound"))
    if certificate["energy"] is not None:
        energy = certificate["energy"]
        shift = f" − {energy['lambda']:.4g} v" if energy["lambda"] else ""
        lower, upper = (
            number(energy["lower"], 3, "certificate.energy.lower", up=False),
            number(energy["upper"], 3, "certificate.energy.upper", up=True),
        )
        rows.append((f"‖Δv{shift}‖ in L²", f"between {lower} and {upper}"))
    if transport:
        low, high = certificate["W2"]
        rows.append(("distance W₂", f"between {number(low, 9, 'certificate.W2.0', up=False)} and {number(high, 9, 'certificate.W2.1', up=True)}"))
    for name, key in (("theorem", "theorem"), ("largest error by", "maximum_theorem")):
        if certificate[key] is not None:
            rows.append((name, text(certificate[key])))
    if certificate["contraction"] is not None:
        rows.append(
            ("contraction", f"{number(certificate['contraction'], 4, 'certificate.contraction', up=True)} ({text(certificate['epsilon_source'])})")
        )
    if certificate["level"] is not None:
        rows.append(("level", f"{text(_level(certificate))}: {text(LEVELS.get(certificate['level'], ''))}"))
    if certificate["points"]:
        rows.append(("points", number(certificate["points"], fact="certificate.points")))
    if certificate["reason"] is not None:
        rows.append(("not covered" if certificate["level"] is not None else "reason", text(certificate["reason"])))
    return table(rows)


def claims(certificate: "Certificate", problem: Any) -> Claims:
    """What the bounds rest on."""
    if certificate.level is None:
        return Claims([], [], [])
    made = Claims([], [], [])
    named = dict.fromkeys(name for name in (certificate.theorem, certificate.maximum_theorem, *certificate.theorems.values()) if name)
    for gloss in dict.fromkeys(_gloss(name) for name in named):
        made.proved.append(f"{', '.join(name for name in named if _gloss(name) == gloss)}: {gloss}.")
    _contraction(made, certificate, problem)
    transport = certificate.map_L2 is not None
    if not transport:
        made.checked.append("The answer takes the boundary values, to rounding.")
        made.checked.append("The answer has no kink: its gradient is continuous, so that the residual sees all of its second derivatives.")
        made.checked.append("No coefficient was found to jump where no interface is declared.")
    made.checked.append("The residual is evaluated in double precision, and a bound of its rounding error is added.")
    if certificate.level == "quadrature":
        agreement = f"{100 * (certificate.spread or 0.0):.2g} %"
        made.checked.append(
            f"{certificate.points:,} points that served neither to fit nor to choose; n and 2n of them per direction agree to {agreement}."
        )
        made.assumed.append("Integrals that agree for n and 2n points, and before and after the last refinement, have converged.")
    elif certificate.confidence is not None:
        made.checked.append(f"{certificate.points:,} independent points that served neither to fit nor to choose.")
        made.assumed.append(f"Chance: the bound fails with a probability of at most {100 * (1 - certificate.confidence):.3g} %.")
        if "asymptotic" in certificate.level:
            made.assumed.append("The normal approximation holds: the residual is not concentrated in a tiny set that all points missed.")
    if not isinstance(problem.domain, BUILT_IN):
        made.assumed.append("The domain is convex.")
    made.assumed.append("The coefficients are what their formulas say.")
    return made


def _contraction(made: Claims, certificate: "Certificate", problem: Any) -> None:
    """How what must hold over the whole domain is known."""
    what = {"MongeAmpere": "the convexity of the answer", "Transport": "the bounds of D²u"}.get(type(problem).__name__)
    if what is None:
        if certificate.contraction is None:
            return
        what = f"the contraction {certificate.contraction:.4g} < 1"
    source = certificate.epsilon_source
    if source == "interval":
        made.proved.append(
            f"{what[0].upper()}{what[1:]} holds over the whole domain, by interval arithmetic.".replace("bounds of D²u holds", "bounds of D²u hold")
        )
    elif source == "analytic" and problem.epsilon is not None:
        made.assumed.append(f"Your lower bound ε ≥ {problem.epsilon:g}; no sampled point contradicts it.")
    elif source == "analytic":
        made.proved.append(f"{what[0].upper()}{what[1:]} is known from constant coefficients or a formula.")
    else:
        made.checked.append(f"{what[0].upper()}{what[1:]}, at sampled points.")
        made.assumed.append(f"What holds at the sampled points holds between them: {what}.")


def _gloss(name: str) -> str:
    found = next((gloss for start, gloss in THEOREMS.items() if name.lower().startswith(start.lower())), None)
    return found or "see the documentation of certificates"


def claims_list(made: Claims) -> str:
    """Three lists side by side."""
    titles = (("Proved", made.proved), ("Checked", made.checked), ("Assumed", made.assumed))
    columns = (
        f'<div><h3>{title}</h3><ul class="claims">{"".join(f"<li>{text(each)}</li>" for each in lines)}</ul></div>'
        for title, lines in titles
        if lines
    )
    return f'<div class="columns">{"".join(columns)}</div>'
