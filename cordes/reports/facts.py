"""What a solve has to say, as data for the JSON output and for the tables made from it."""

from typing import Any

import numpy as np

from cordes.certificates.certificate import Certificate
from cordes.certificates.condition import Condition
from cordes.certificates.reason import Reason, Why
from cordes.reports.advice import stages
from cordes.solutions.solution import Solution

# Gallery problems without an exact solution that a classical solver can do, with the points where
# their coefficients are not smooth.
REFERENCES: dict[str, list[tuple[float, float]]] = {
    "ex4.4-continuous": [(0.0, 0.0)],
    "ex4.4-discontinuous": [],
}
# Times whose bounds are data, the first and the last among them.
TIMES = 11


def certificate_of(solution: Solution) -> Certificate:
    """The certificate of a solution, or one that says that none was made."""
    if solution.certificate is not None:
        return solution.certificate
    none = "none was asked for; solution.certified() has a certificate"
    # A solve that was cut short says so itself.
    why = solution.facts.get("uncertified", none)
    return Certificate(reasons=(Reason(Why.not_asked_for, why),))


def condition_facts(condition: Condition) -> dict[str, Any]:
    return {
        "epsilon": condition.epsilon,
        "satisfied": bool(condition.satisfied),
        "lambda": condition.lambda_,
        "source": condition.source,
    }


def negative_facts(condition: Condition) -> dict[str, Any] | None:
    """Where c < 0, and what that means; None where it is not."""
    found = condition.negative
    if found is None:
        return None
    return {"value": found.value, "point": found.point.tolist(), "meaning": str(found)}


def solution_facts(solution: Solution, condition: Condition) -> dict[str, Any]:
    error, certificate = solution.error(), certificate_of(solution)
    return {
        "problem": solution.problem.name,
        "method": solution.method,
        "result": solution.result.value,
        "parameters": solution.parameters,
        "points": solution.points,
        "seconds": solution.seconds,
        "error": {"l2": error.l2, "linf": error.linf} if error else None,
        "reference": _reference_facts(solution),
        "condition": condition_facts(condition),
        "certificate": certificate.facts(),
        "proof": proof_facts(certificate),
        "verdict": solution.verdict,
        "residual": solution.residual_rms,
        "relative_residual": solution.relative_residual,
        "seed": solution.facts["seed"],
    } | (
        _tolerance_facts(solution)
        | _outer_facts(solution)
        | _constant_facts(solution)
        | _time_facts(solution)
    )


def _constant_facts(solution: Solution) -> dict[str, Any]:
    """C in Lu = f + C, where it is part of the answer."""
    return {"constant": solution.constant} if solution.problem.free_constant else {}


def proof_facts(certificate: Certificate | None) -> dict[str, Any] | None:
    """Where the proof is, what it bounds and how long it took; None where there is none."""
    if certificate is None or certificate.proof is None:
        return None
    bounds = {name: getattr(certificate, name) for name in ("L2", "Linf", "H1", "H2")}
    return {**bounds, **certificate.proof._asdict()}


def _tolerance_facts(solution: Solution) -> dict[str, Any]:
    """What was asked for and certified, and how the residual fell with the size of the network."""
    asked, norm = solution.facts.get("tol"), solution.problem.tolerance_norm
    if asked is None:
        return {}
    certified = getattr(certificate_of(solution), norm)
    found = [{"size": size, "residual": residual} for size, residual in stages(solution.history)]
    return {"tolerance": {"asked": asked, "norm": norm, "certified": certified, "stages": found}}


def _time_facts(solution: Solution) -> dict[str, Any]:
    """Bounds at times, for problems in time; none where comparison speaks of all times at once."""
    clock, certificate = solution.problem.clock, certificate_of(solution)
    if clock is None:
        return {}
    times = np.linspace(clock.domain.start, clock.domain.end, TIMES)
    found = [] if certificate.in_time is None else [certificate.at(float(t)) for t in times]
    return {"times": [{"t": each.t, "L2": each.L2, "Linf": each.Linf} for each in found]}


def _outer_facts(solution: Solution) -> dict[str, Any]:
    """The steps of the outer loop, and the smallest eigenvalue of D²u where it must be positive."""
    if solution.problem.linear:
        return {}
    facts: dict[str, Any] = {"outer": [step for step in solution.history if "outer" in step]}
    if hasattr(solution, "cost"):
        return facts | {"transport": _transport_facts(solution)}
    if solution.convexity is not None:
        facts["convexity"] = {
            "smallest_eigenvalue": solution.convexity.smallest,
            "point": solution.convexity.point.tolist(),
        }
    return facts


def _reference_facts(solution: Solution) -> dict[str, Any] | None:
    """The largest difference to a classical solution, for the gallery problems that need one."""
    name = (solution.problem.source or {}).get("gallery")
    if name not in REFERENCES:
        return None
    from cordes.references.chebyshev import solve_chebyshev

    error = solution.error(solve_chebyshev(solution.problem, extra_points=REFERENCES[name]))
    assert error is not None
    return {"name": "chebyshev", "linf": error.linf}


def _transport_facts(solution: Any) -> dict[str, Any]:
    measured = solution.pushforward
    return {
        "W2": solution.cost,
        "density_error": {"rms": measured.rms, "largest": measured.largest},
        "eigenvalues": list(measured.eigenvalues),
        "rim": measured.rim,
        "mass_defect": solution.facts["mass_defect"],
        "masses": list(solution.problem.masses),
    }
