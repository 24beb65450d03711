"""What a notebook shows of a problem, a condition, a certificate and a solution: the equation as it
stands on a report, the bounds, a small picture. Small pieces of HTML that need nothing from outside
and take their colours from the notebook, light or dark."""

import io
from functools import singledispatch
from typing import Any

import numpy as np

from cordes.certificates.certificate import Certificate
from cordes.certificates.condition import Condition
from cordes.problems.problem import AbstractProblem
from cordes.reports.kit.page import digits_of, picture, text
from cordes.reports.pages.bounds import answer_sentence
from cordes.reports.pages.equation import equation
from cordes.solutions.solution import AbstractSolution

# Of a picture in a notebook: width in inches and dots per inch.
WIDTH, DOTS = 6.4, 96


def notebook_html(value: Any) -> str:
    """Never fails: a fault in a formula or a picture leaves the text."""
    try:
        return f'<div style="line-height: 1.5">{view(value)}</div>'
    except Exception:
        return f"<pre>{text(value)}</pre>"


@singledispatch
def view(value: Any) -> str:
    """The piece of HTML for a value."""
    raise NotImplementedError(f"Nothing says how a notebook shows {type(value).__name__}.")


@view.register
def _(problem: AbstractProblem) -> str:
    name = f"{text(type(problem).__name__)} problem <b>{text(problem.name)}</b>"
    return f"<p>{name} on {text(problem.domain)}</p>{equation(problem).headline}"


@view.register
def _(condition: Condition) -> str:
    verdict = "holds" if condition.satisfied else "is <b>violated</b>"
    low, high = condition.multiplier_range
    rows = [
        ("ε", f"{_number(condition.epsilon, False)} ({text(condition.source)})"),
        ("smallest at x =", _point(condition.worst_point)),
        ("multiplier γ", f"between {_number(low)} and {_number(high)}"),
    ]
    if condition.lambda_ is not None and condition.satisfied:
        rows.insert(1, ("best λ", _number(condition.lambda_)))
    if condition.negative is not None:
        rows.append(("c < 0", text(condition.negative)))
    return f"<p>The Cordès condition {verdict}.</p>{_table(rows)}"


@view.register
def _(certificate: Certificate) -> str:
    return f"<p>{answer_sentence(certificate)}</p>" + _table(
        [(name, text(value)) for name, value in certificate.rows()]
    )


@view.register
def _(solution: AbstractSolution) -> str:
    problem = solution.problem
    bound = "No certificate was made: <code>solution.certify()</code> says how wrong it can be."
    if solution.certificate is not None:
        bound = answer_sentence(solution.certificate, problem.domain.dimension)
    how = text(f"{solution.method}: {solution.result.value}")
    facts = f"{how} ({text(solution.verdict.rstrip('.'))}), relative residual "
    facts += _number(solution.relative_residual)
    error = solution.error()
    if error is not None:
        sizes = f"{_number(error.l2)} (root mean square), {_number(error.linf)} (largest)"
        facts += f", error {sizes}"
    return f"{view(problem)}<p>{bound}<br>{facts}.</p>{_picture(solution)}"


def _picture(solution: AbstractSolution) -> str:
    """A small picture in up to two dimensions; nothing where it cannot be drawn."""
    if solution.problem.domain.dimension > 2:
        return ""
    try:
        figure = solution.plot()
        width = float(figure.get_size_inches()[0])
        file = io.BytesIO()
        figure.savefig(file, format="png", dpi=DOTS * min(1.0, WIDTH / width) * 1.5)
        return picture(file.getvalue(), "", f"{solution.problem.name}, as it was solved").replace(
            "<img ", f'<img style="width: {DOTS * min(width, WIDTH):.0f}px; max-width: 100%" '
        )
    except Exception:
        return ""


def _table(rows: list[tuple[str, str]]) -> str:
    left = 'style="text-align: left; padding: 0 1.5em 0 0; font-weight: normal; opacity: 0.75"'
    body = "".join(
        f'<tr style="background: none"><th {left}>{text(name)}</th>'
        f'<td style="text-align: left">{value}</td></tr>'
        for name, value in rows
    )
    return f"<table>{body}</table>"


def _number(value: float, up: bool | None = None) -> str:
    return digits_of(float(value), 3, up)


def _point(x: np.ndarray) -> str:
    few = ", ".join(_number(value) for value in x[:6])
    return f"({few}{', …' if len(x) > 6 else ''})"
