"""Pages of other equations and dimensions, and of answers without certificate or maps."""

import json
import time

import jax.numpy as jnp
import numpy as np
import pytest
from report_page import Page

import cordes
from cordes.certificates.certificate import Certificate
from cordes.certificates.reason import Reason, Why
from cordes.commands.output import as_json_text
from cordes.reports.facts import solution_facts
from cordes.reports.kit.page import plain_title
from cordes.reports.pages.answer import write_report

NOT_ASKED_FOR = Certificate(reasons=(Reason(Why.not_asked_for, "not asked for"),))


def reported(solution, path, condition=None):
    """The page of a solution, and the processor seconds that it took."""
    condition = condition or cordes.check(solution)
    facts = json.loads(as_json_text(solution_facts(solution, condition)))
    start = time.process_time()
    write_report(path, solution, facts, condition, ["solve", "it"])
    seconds = time.process_time() - start
    page = Page(path)
    page.check(facts)
    return page, facts, seconds


def test_missing_certificate_says_its_reason(tmp_path):
    problem = cordes.Linear(cordes.Box([0, 0], [1, 1]), 1.0, -1.0, name="soft")
    solution = cordes.solve(
        problem, method="least-squares", features=40, boundary="soft", progress=False
    )
    page, facts, _ = reported(solution, tmp_path / "page.html")
    assert facts["certificate"]["rms"] is None
    assert f"No bound of the error can be given: {facts['certificate']['reason']}" in page.words()
    assert "Proved" not in page.words()


def test_a_page_without_maps_is_better_than_none(tmp_path, monkeypatch):
    problem = cordes.Linear(cordes.Box([0, 0], [1, 1]), 1.0, -1.0, name="bare")
    solution = cordes.solve(
        problem, method="least-squares", features=40, progress=False, certify=False
    )
    solution = solution.replace(certificate=NOT_ASKED_FOR)
    monkeypatch.setattr("cordes.reports.pages.figures.planes_of", lambda domain: 1 / 0)
    with pytest.warns(UserWarning, match="The report has no maps: ZeroDivisionError"):
        page = Page(write_report(tmp_path / "page.html", solution))
    assert page.data["facts"]["problem"] == "bare"
    assert "The maps could not be drawn: ZeroDivisionError" in page.words()
    assert "The Cordès condition holds: ε = 1 (analytic)" in page.words()


def test_one_dimension_has_curves(tmp_path):
    problem = cordes.Linear(
        cordes.Box([0], [2]), lambda x: jnp.array([[1 + x[0]]]), 1.0, name="line"
    )
    page, _, _ = reported(
        cordes.solve(problem, method="least-squares", features=40, progress=False),
        tmp_path / "page.html",
    )
    assert page.data["maps"] == {}
    line = page.data["charts"]["u"]["series"][0]
    # (1 + x) u'' = 1, u(0) = u(2) = 0: u = (1 + x)(log(1 + x) - 1) + a + bx.
    x = np.array(line["x"])
    curve = (1 + x) * (np.log(1 + x) - 1)
    start, end = -1.0, 3 * (np.log(3) - 1)
    np.testing.assert_allclose(line["y"], curve - start - (end - start) * x / 2, atol=1e-6)
    assert "γ(x)" in page.words()


def test_line_charts_name_what_they_show(tmp_path):
    problem = cordes.HJB(
        cordes.Box([-1], [1]), [-1.0, 3.0], 1.0, lambda x, a: -1 + a * x[0], name="line control"
    )
    solution = cordes.solve(
        problem, method="least-squares", features=30, progress=False, certify=False
    )
    solution = solution.replace(certificate=NOT_ASKED_FOR)
    page, _, _ = reported(solution, tmp_path / "page.html")
    # The controls themselves, not their numbers.
    assert set(page.data["charts"]["policy a1"]["series"][0]["y"]) == {-1.0, 3.0}
    assert plain_title("best control, a<sub>12</sub>") == "best control, a₁₂"
    map_ = cordes.Transport(
        cordes.Box([0], [1]), 1.0, cordes.Box([0], [2]), 0.5, exact=lambda x: 2 * x, name="line map"
    )
    solution = cordes.solve(
        map_, method="least-squares", features=20, progress=False, certify=False
    )
    solution = solution.replace(certificate=NOT_ASKED_FOR)
    page, _, _ = reported(solution, tmp_path / "page.html")
    assert page.data["charts"]["error"]["series"][0]["name"] == "|T − T*|"
    assert "&lt;su" not in page.text


def test_control_problem_has_its_policy(tmp_path):
    problem = cordes.HJB(
        cordes.Ball([0, 0], 1), [-1.0, 1.0], 1.0, lambda x, a: -1 + a * x[0], name="steered"
    )
    solution = cordes.solve(
        problem, method="least-squares", features=60, progress=False, certify=False
    )
    # What is drawn is what is tested; the certificate of control problems has tests of its own.
    solution = solution.replace(certificate=NOT_ASKED_FOR)
    page, _, _ = reported(solution, tmp_path / "page.html")
    # The largest of Δu + 1 - a x1 over a = ±1 is that of a = -sign(x1).
    values, points = page.values("policy")
    inside = np.isfinite(values) & (np.abs(points[..., 0]) > 1e-3)
    assert page.data["maps"]["policy"]["categories"] == ["a = -1", "a = 1"]
    np.testing.assert_array_equal(values[inside], np.where(points[..., 0] > 0, 0, 1)[inside])
    assert "sup" in page.words()


def test_transport_has_its_grid(tmp_path):
    problem = cordes.Transport(
        cordes.Box([0, 0], [1, 1]),
        1.0,
        cordes.Box([0, 0], [2, 1]),
        0.5,
        exact=lambda x: jnp.array([2.0, 1.0]) * x,
        name="stretch",
    )
    solution = cordes.solve(
        problem, method="least-squares", features=40, progress=False, certify=False
    )
    solution = solution.replace(certificate=NOT_ASKED_FOR)
    page, facts, _ = reported(solution, tmp_path / "page.html")
    assert page.text.count("<polyline") == 100
    values, points = page.values("moved")
    np.testing.assert_allclose(values, points[..., 0], atol=1e-5)
    np.testing.assert_allclose(page.values("target")[0], 0.5, rtol=1e-5)
    assert page.facts["transport.W2"] == [facts["transport"]["W2"]]
    assert facts["transport"]["W2"] == pytest.approx(3**-0.5, rel=1e-6)
    # The exact solution of a transport problem is a map, in the file for ParaView too.
    assert solution.to_vtk(tmp_path / "map.vtu").is_file()


def test_three_dimensions_have_slices_in_time(tmp_path):
    problem = cordes.Linear(
        cordes.Ball([0, 0, 0], 1), 1.0, 6.0, exact=lambda x: jnp.dot(x, x) - 1, name="ball"
    )
    solution = cordes.solve(
        problem, method="least-squares", features=60, progress=False, certify=False
    )
    solution = solution.replace(certificate=NOT_ASKED_FOR)
    page, _, seconds = reported(solution, tmp_path / "page.html")
    assert {"u 1", "u 2", "u 3", "epsilon 1"} <= page.data["maps"].keys()
    assert page.data["maps"]["u 3"]["names"] == ["x₂", "x₃"]
    values, points = page.values("u 3")
    inside = np.isfinite(values)
    np.testing.assert_allclose(values[inside], (np.sum(points**2, axis=-1) - 1)[inside], atol=1e-4)
    # Nothing but the jet was compiled for it.
    assert seconds < 6
