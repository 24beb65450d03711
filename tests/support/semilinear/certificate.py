"""cordes/certificates/semilinear.py: the error of a semilinear equation by the maximum principle.

v = u - w has A:D²v - cv = r with c = (φ(u) - φ(w))/(u - w) ≥ 0 and r the residual of w, whatever c
is: bounds that hold for all c ≥ 0 hold, and that of Aleksandrov, Bakelman and Pucci does. The
linear equation A:D²u = f + φ(w) has the same residual at w.
"""

import math

from cordes.certificates.certificate import Certificate
from cordes.certificates.certify import Request, certified, certify
from cordes.certificates.condition import Condition, checked
from cordes.certificates.reason import Reason, Why
from cordes.certificates.theorem import Citation, Theorem
from semilinear.problem import Semilinear


@checked.register
def _condition(problem: Semilinear) -> Condition:
    return checked(problem.principal)


@certified.register
def _certificate(problem: Semilinear, request: Request) -> Certificate:
    answer = request.candidate.answer
    found = certify(problem.frozen_at(answer), answer, confidence=request.confidence)
    bound = found.alternatives.get("ABP")
    if bound is None:
        return Certificate(reasons=found.reasons)
    cited = Citation(Theorem.ABP)
    return Certificate(
        Linf=bound,
        L2=bound * math.sqrt(problem.domain.volume),
        rms=bound,
        citation=cited,
        maximum_citation=cited,
        level=found.level,
        epsilon_source=found.epsilon_source,
        points=found.points,
        spread=found.spread,
        reasons=(Reason(Why.not_covered, "no energy theorem is registered for this kind"),),
    )
