"""What may be said of an answer that its solver is content with: the word is the certificate's."""

from typing import TYPE_CHECKING, Any, NamedTuple

from cordes.results import Result

if TYPE_CHECKING:
    from cordes.solutions.solution import AbstractSolution

# Without a tolerance, the certified error may be this share of the largest |u|.
SHARE = 1e-3
NAMES = {
    "Linf": "largest error",
    "rms": "root mean square error",
    "map_L2": "error of the map",
}
# The words that a certificate decides about.
OPEN = (Result.converged, Result.converged_uncertified, Result.tolerance_not_reached)


class Judgement(NamedTuple):
    """A word, and the sentence that says why it is this one."""

    result: Result
    sentence: str


def judge(solution: "AbstractSolution") -> Judgement:
    """With a tolerance, the norm that it bounds must be certified to be at most that; without one,
    the largest error (where it has no bound, the root mean square, or that of a map) at most
    `SHARE` of the largest |u|; both at a level that is enough."""
    if solution.result not in OPEN:
        return Judgement(solution.result, solution.result.sentence)
    certificate, tol = solution.certificate, solution.facts.get("tol")
    missed = solution.result is Result.tolerance_not_reached
    if certificate is None:
        result = solution.result if missed else Result.converged_uncertified
        small = f"The residual is {'not ' if missed else ''}small, and no certificate was made"
        why = str(solution.facts.get("uncertified", small))
        return Judgement(result, f"{why[0].upper()}{why[1:]}.")
    norm = solution.problem.tolerance_norm if tol is not None else _best(certificate)
    bound = None if norm is None else getattr(certificate, norm)
    if norm is None or bound is None:
        result = Result.tolerance_not_reached if missed else Result.converged_uncertified
        return Judgement(result, "The residual is small, but nothing bounds the error.")
    limit, what = (tol, "the tolerance") if tol is not None else _share(solution, norm)
    if not bound <= limit:
        result = Result.converged_uncertified if tol is None else Result.tolerance_not_reached
        more = f"The certified {NAMES[norm]} {bound:.2e} is more than {what} ({limit:.2e})"
        return Judgement(result, f"The residual is small. {more}." if tol is None else f"{more}.")
    doubt = certificate.doubt(norm, solution.problem.domain.dimension)
    if doubt is not None:
        met = f"The bound of the {NAMES[norm]} is within {what}, but {doubt}."
        return Judgement(Result.converged_uncertified, met)
    return Judgement(Result.converged, f"The certified {NAMES[norm]} is within {what}.")


def _best(certificate: Any) -> str | None:
    return next((norm for norm in NAMES if getattr(certificate, norm) is not None), None)


def _share(solution: "AbstractSolution", norm: str) -> tuple[float, str]:
    whole = "the size of the image" if norm == "map_L2" else "the largest |u|"
    return SHARE * solution.size, f"{SHARE:g} of {whole}"
