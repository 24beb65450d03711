"""cordes/reports/pages/kinds/semilinear.py: how the equation is written, what bounds rest on."""

from collections.abc import Mapping
from typing import Any

from cordes.certificates.certificate import Certificate
from cordes.formulas.written.mathml import words
from cordes.reports.pages.claims import Claims, rests_on
from cordes.reports.pages.equation import EquationShape, shape_of
from semilinear.problem import Semilinear


@shape_of.register
def _equation(problem: Semilinear) -> EquationShape:
    given = {"A": problem.A, "f": problem.principal.f, "g": problem.g}
    return EquationShape(given, {"Ω": problem.domain}, lambda parts: [words("A:D²u − φ(u) = f")])


@rests_on.register
def _claims(
    problem: Semilinear, certificate: Certificate, made: Claims, facts: Mapping[str, Any]
) -> None:
    made.assumed.append("φ increases.")
