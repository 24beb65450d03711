"""Every linear gallery problem with its certificate beside the true error: `python
benchmarks/certificate_table.py [NAME …]`.

ε is the Cordès constant, `constant` multiplies the weighted residual in the bound of ‖v‖, ratio =
certified rms / true l2. The seconds are those of the solve, without compilation, and of the
certificate. ex4.4 has no exact solution: there the true error is the distance to a Chebyshev
reference.
"""

import sys
import warnings

import cordes
from cordes.references.chebyshev import solve_chebyshev
from cordes.reports.facts import REFERENCES


def row(name: str) -> str:
    problem = cordes.gallery[name]
    condition = cordes.check(problem)
    solution = cordes.solve(problem)
    certificate = solution.certificate
    reference = (
        solve_chebyshev(problem, extra_points=REFERENCES[name]) if name in REFERENCES else None
    )
    error = solution.error(reference)
    holds = (
        error is None
        or certificate.rms is None
        or (
            error.l2 <= certificate.rms
            and (certificate.Linf is None or error.linf <= certificate.Linf)
        )
    )
    cells = [
        f"{name:<24}",
        f"{condition.epsilon:8.3f}",
        "        -" if certificate.constant is None else f"{certificate.constant:9.3g}",
        "   no bound" if certificate.rms is None else f"{certificate.rms:11.2e}",
        "          -" if error is None else f"{error.l2:11.2e}",
        "       -"
        if error is None or certificate.rms is None
        else f"{certificate.rms / error.l2:8.0f}",
        f"{certificate.level or '-':<24}",
        f"{certificate.epsilon_source or '-':<9}",
        f"{solution.seconds['solve']:6.1f}",
        f"{solution.seconds['certify']:7.1f}",
        "" if holds else "  THE BOUND IS WRONG",
    ]
    return " ".join(cells)


def main() -> None:
    warnings.simplefilter("ignore", cordes.CordesConditionWarning)
    names = sys.argv[1:] or list(cordes.gallery)
    print(
        f"{'problem':<24} {'ε':>8} {'constant':>9} {'rms':>11} {'true l2':>11} {'ratio':>8} "
        f"{'level':<24} {'source':<9} {'solve':>6} {'certify':>7}"
    )
    for name in names:
        print(row(name), flush=True)


if __name__ == "__main__":
    main()
