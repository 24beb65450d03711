"""How wrong an answer is, in one sentence and in a table: what its certificate says."""

import math
from collections.abc import Mapping
from typing import Any

from cordes.certificates.certificate import Certificate
from cordes.certificates.theorem import Needed
from cordes.reports.kit.page import number, table, text

LEVELS = {
    "proved": "a theorem, confirmed in ball arithmetic by a program of its own",
    "enclosed": "nothing can hide between points; rounding is estimated",
    "quadrature": "the integrals have converged numerically",
    "sampled": "true at the points that were looked at",
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
# The digits of a distance: few where its limits are far apart.
FEWEST, MOST = 3, 13


def answer_sentence(certificate: Certificate | None, dimension: int | None = None) -> str:
    """How wrong the answer is, in one sentence of safe HTML, or why nobody knows."""
    if certificate is None or not certificate.bounded:
        reason = (certificate and certificate.reason) or "no theorem applies"
        return f"No bound of the error can be given: {text(reason.rstrip('.'))}."
    level = f"; level: {text(_level(certificate))}{_sampled(certificate)}."
    if certificate.map_L2 is not None:
        missed = number(certificate.map_L2, 2, "certificate.map_L2", up=True)
        distance = f"the distance W₂ lies {_distance(certificate)}"
        return (
            f"The map is wrong by at most {missed} in the root mean square, and {distance}{level}"
        )
    rms = number(certificate.rms, 2, "certificate.rms", up=True)
    mean = f"at most {rms} in the root mean square{level}"
    if certificate.Linf is None:
        return f"The error is {mean}"
    largest = number(certificate.Linf, 2, "certificate.Linf", up=True)
    return f"The error is at most {largest} {everywhere(dimension)}, and {mean}"


def everywhere(dimension: int | None) -> str:
    """Where a bound of the largest error holds: in more than three dimensions functions with second
    derivatives in L² need not be continuous."""
    return "at almost every point" if dimension is not None and dimension > 3 else "everywhere"


def _sampled(certificate: Certificate) -> str:
    """What the bound takes from sampled points; empty where it is proved over the whole domain."""
    if certificate.epsilon_source != "sampled":
        return ""
    cited = certificate.citation
    needed = Needed.contraction if cited is None else cited.supremum
    return f"; {needed.value}: at sampled points only"


def _distance(certificate: Certificate) -> str:
    """Between which numbers W₂ lies, with two digits more than its limits have in common."""
    assert certificate.W2 is not None
    low, high = certificate.W2
    width = high - low
    common = MOST
    if width > 0 and high > 0:
        common = math.floor(math.log10(high)) - math.floor(math.log10(width))
    digits = min(max(common + 2, FEWEST), MOST)
    lower = number(low, digits, "certificate.W2.0", up=False)
    return f"between {lower} and {number(high, digits, 'certificate.W2.1', up=True)}"


def measured_sentence(facts: Mapping[str, Any]) -> str:
    """What a comparison with the exact solution, or a classical one, gave, if there is any."""
    if facts["error"] is not None:
        largest = number(facts["error"]["linf"], 2, "error.linf")
        mean = number(facts["error"]["l2"], 2, "error.l2")
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


def _level(certificate: Certificate) -> str:
    if certificate.confidence is None:
        return str(certificate.level)
    return f"{certificate.level}, {100 * certificate.confidence:g} % confidence"


def bounds_table(certificate: Certificate) -> str:
    """All bounds, the theorems behind them, and how they are known."""
    transport = certificate.map_L2 is not None
    rows = []
    for name, key in NORMS:
        if (key == "map_L2") == transport:
            value = getattr(certificate, key)
            bound = f"≤ {number(value, 3, f'certificate.{key}', up=True)}"
            rows.append((name, "no bound" if value is None else bound))
    if certificate.energy is not None:
        shift = f" − {certificate.lambda_:.4g} v" if certificate.lambda_ else ""
        lower, upper = (
            number(end, 3, f"certificate.energy.{name}", up=name == "upper")
            for name, end in zip(("lower", "upper"), certificate.energy, strict=True)
        )
        rows.append((f"‖Δv{shift}‖ in L²", f"between {lower} and {upper}"))
    if transport:
        rows.append(("distance W₂", _distance(certificate)))
    for name, theorem in (
        ("theorem", certificate.theorem),
        ("largest error by", certificate.maximum_theorem),
    ):
        if theorem is not None:
            rows.append((name, text(theorem)))
    if certificate.contraction is not None:
        value = number(certificate.contraction, 4, "certificate.contraction", up=True)
        rows.append(("contraction", f"{value} ({text(certificate.epsilon_source)})"))
    if certificate.level is not None:
        known = f"{text(_level(certificate))}: {text(LEVELS.get(certificate.level, ''))}"
        rows.append(("level", known))
    if certificate.proof is not None:
        rows.append(("checked by", f"<code>{text(certificate.proof.command)}</code>"))
    if certificate.points:
        rows.append(("points", number(certificate.points, fact="certificate.points")))
    if certificate.reason is not None:
        name = "not covered" if certificate.level is not None else "reason"
        rows.append((name, text(certificate.reason)))
    return table(rows)
