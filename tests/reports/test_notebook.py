"""What a notebook shows: small pieces of HTML that stand alone and never fail."""

import re
from html.parser import HTMLParser

import pytest

import cordes
from cordes.reports.pages import notebook

SQUARE = cordes.Box([0, 0], [1, 1])
VOID = {"br", "img"}


class Balanced(HTMLParser):
    """Fails where tags are not closed in turn."""

    def __init__(self):
        super().__init__()
        self.open, self.words = [], []

    def handle_starttag(self, tag, attrs):
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.words.append(data)


def words(value):
    """The words of the view, after a look at its tags: nothing is fetched, nothing is run."""
    html = value._repr_html_()
    parser = Balanced()
    parser.feed(html)
    assert not parser.open
    assert not re.search(r"<script|<link|https?://(?!www\.w3\.org)", html)
    return " ".join("".join(parser.words).split()), html


@pytest.fixture(scope="module")
def problem():
    return cordes.Linear(SQUARE, 1.0, -1.0, exact=None, name="a < b")


@pytest.fixture(scope="module")
def solution(problem):
    return cordes.solve(problem, features=40, progress=False)


def test_a_problem_shows_its_equation(problem):
    said, html = words(problem)
    assert "Linear problem a < b on Box(lower=[0.0, 0.0], upper=[1.0, 1.0])" in said
    assert "<math" in html
    control = cordes.HJB(SQUARE, [0.0, 1.0], 1.0, lambda x, a: a * x[0])
    assert "sup" in words(control)[0]


def test_a_condition_shows_its_verdict(problem):
    said, _ = words(cordes.check(problem))
    assert said.startswith("The Cordès condition holds.ε1 (analytic)")
    assert "multiplier γbetween 1 and 1" in said


def test_a_certificate_shows_its_bounds(solution):
    said, _ = words(solution.certificate)
    assert "The error is at most" in said
    assert "level" in said
    refused, _ = words(cordes.certify(solution.problem, lambda x: abs(x[0] - 0.5)))
    assert "No bound of the error can be given" in refused


def test_a_solution_shows_equation_bound_and_picture(solution):
    said, html = words(solution)
    assert "The error is at most" in said
    assert "least-squares: converged" in said
    assert "data:image/png;base64," in html
    assert len(html) < 400_000
    bare, _ = words(solution.replace(certificate=None))
    assert "No certificate was made: solution.certify()" in bare


def test_faults_leave_the_text(solution, monkeypatch):
    monkeypatch.setattr(type(solution), "plot", lambda self: 1 / 0)
    said, html = words(solution)
    assert "The error is at most" in said
    assert "<img" not in html
    monkeypatch.setattr(notebook, "equation", lambda problem: 1 / 0)
    assert (
        solution._repr_html_()
        == "<pre>"
        + repr(solution).replace("<", "&lt;").replace(">", "&gt;").replace("'", "&#x27;")
        + "</pre>"
    )
