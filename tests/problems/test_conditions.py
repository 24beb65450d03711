"""What may hold on the boundary, and what is refused with a sentence."""

import jax.numpy as jnp
import numpy as np
import pytest

import cordes
from cordes.domains.walls import Walled
from cordes.problems.written.toml_file import problem_from_toml
from cordes.reports.pages.equation import equation

BOX = cordes.Box([0, 0], [1, 2])
INSULATED = {"left": cordes.Dirichlet(), "outer": cordes.Neumann()}


def linear(boundary, domain=BOX, **more):
    return cordes.Linear(domain, A=np.eye(domain.dimension), f=1.0, boundary=boundary, **more)


def test_pieces_have_names():
    assert BOX.pieces == ("left", "right", "bottom", "top")
    long = cordes.Box([0] * 5, [1] * 5).pieces
    assert long[4:] == ("back", "front", "x4-", "x4+", "x5-", "x5+")
    triangle = cordes.Polygon([[0, 0], [1, 0], [0, 1]])
    assert triangle.pieces == ("side 1", "side 2", "side 3")
    assert cordes.Ball([0, 0], 1).pieces == ("boundary",)


def test_data_that_fit_up_to_rounding_are_taken():
    """The slope of cos at π is sin π, which is 1e-16."""
    waves = cordes.Dirichlet(lambda x: jnp.sin(jnp.pi * x[1]) ** 2)
    assert not linear({"left": waves, "outer": cordes.Neumann()}).free_constant


def test_a_dirichlet_condition_is_short_for_g():
    problem = linear(cordes.Dirichlet(lambda x: x[0]))
    assert isinstance(problem.domain, cordes.Box)
    assert float(problem.g(jnp.array([0.5, 0.0]))) == 0.5


def test_conditions_by_piece():
    problem = linear({**INSULATED, "right": cordes.Robin(2.0, 1.0)})
    assert isinstance(problem.domain, Walled)
    first, second = problem.domain.directions
    assert (first.first, first.last) == (None, 2.0)
    assert (second.first, second.last) == (0.0, 0.0)
    assert float(problem.g(jnp.array([1.0, 0.5]))) == 1.0
    assert problem.replace(f=2.0).domain == problem.domain
    periodic = linear(
        {"left": cordes.Periodic(), "right": cordes.Periodic(), "outer": cordes.Dirichlet()}
    )
    assert periodic.domain.directions[0].periodic


@pytest.mark.parametrize(
    ("boundary", "message"),
    [
        ("neumann", "boundary = 'neumann'.*'left', 'right', 'bottom', 'top'"),
        ({"left": cordes.Neumann()}, "says nothing about 'right', 'bottom', 'top'"),
        ({"west": cordes.Neumann()}, "west"),
        ({"left": 1.0, "outer": cordes.Neumann()}, r"boundary\['left'\] = 1.0"),
        ({"left": cordes.Periodic(), "outer": cordes.Neumann()}, "needs both"),
        # Values that jump, a slope along a face that is no flux of the next one, two fluxes.
        ({"left": cordes.Dirichlet(1.0), "outer": cordes.Dirichlet()}, "do not fit together"),
        (
            {"bottom": cordes.Dirichlet(lambda x: x[0]), "outer": cordes.Neumann()},
            "'left' and 'bottom' do not fit together.*r log r",
        ),
        (
            {"left": cordes.Neumann(lambda x: x[1]), "outer": cordes.Neumann()},
            "do not fit together",
        ),
    ],
)
def test_what_cannot_hold_is_refused(boundary, message):
    with pytest.raises(cordes.CordesError, match=message):
        linear(boundary)


def test_other_domains_and_other_numbers_are_refused():
    with pytest.raises(cordes.CoefficientError, match="on a pentagon with κ = 0 beside 5"):
        linear(cordes.Robin(5.0), cordes.Ball([0, 0, 0], 1))
    with pytest.raises(cordes.CoefficientError, match="With κ < 0 the boundary gives energy"):
        cordes.Robin(-1.0)
    with pytest.raises(cordes.CoefficientError, match="one number on each piece"):
        cordes.Robin(lambda x: x[0])
    with pytest.raises(cordes.CoefficientError, match="pass one"):
        linear(INSULATED, g=1.0)


FILE = """
schema = 2
kind = "linear"
[domain]
type = "box"
lower = [0, 0]
upper = [1, 2]
[boundary]
left = {type = "dirichlet", g = "x2**2*(3 - x2)"}
right = {type = "robin", kappa = "1/2", h = 3}
outer = {type = "neumann"}
[equation]
A = 1
f = 1
"""


def test_conditions_in_a_file():
    problem = problem_from_toml(FILE)
    first, second = problem.domain.directions
    assert (first.first, first.last, second.first, second.last) == (None, 0.5, 0.0, 0.0)
    assert float(problem.g(jnp.array([0.0, 1.0]))) == 2.0
    assert float(problem.g(jnp.array([1.0, 0.5]))) == 3.0
    for given, wrong, message in (
        ("outer =", "north =", "boundary.north: no such piece. Allowed: left, right"),
        ('"neumann"', '"flux"', "a type of: dirichlet, neumann, robin, periodic"),
        ("h = 3", "g = 3", "boundary.right.g: not for 'robin'"),
        ('kappa = "1/2", ', "", "kappa is missing"),
        ("[equation]", "[equation]\ng = 1", "pass one"),
    ):
        with pytest.raises(cordes.CordesError, match=message):
            problem_from_toml(FILE.replace(given, wrong))


def test_the_page_says_what_holds_where():
    text = equation(problem_from_toml(FILE)).headline
    assert "on left" in text.replace("\xa0", " ")
    assert "on bottom and top" in text.replace("\xa0", " ")
    assert "∂" in text


def test_where_a_constant_is_free():
    assert linear(cordes.Neumann()).free_constant
    assert not linear(cordes.Neumann(), c=1.0).free_constant
    assert not linear({**INSULATED}).free_constant
    assert not linear(cordes.Robin(0.5)).free_constant
    with pytest.raises(cordes.CoefficientError, match="one constant on the right only"):
        cordes.HJB(BOX, [1.0, 2.0], A=lambda x, a: a * jnp.eye(2), f=0.0, boundary=cordes.Neumann())


def test_what_is_not_built_with_fluxes_is_refused():
    with pytest.raises(cordes.CoefficientError, match="stopping is bounded by comparison"):
        cordes.Obstacle(linear(INSULATED), below=0.0)
    start = {"horizon": 1.0, "A": 1.0, "f": 0.0, "initial": 0.0}
    problem = cordes.Parabolic(BOX, **start, boundary=INSULATED)
    with pytest.raises(cordes.OptionError, match="nor fluxes in time"):
        cordes.solve(problem, boundary_rows="soft")
    with pytest.raises(cordes.CoefficientError, match="does not fulfil the conditions"):
        cordes.Parabolic(BOX, **start | {"initial": lambda x: x[0] * x[1]}, boundary=INSULATED)


def test_the_rows_of_the_composite_loss_have_a_name_of_their_own():
    problem = linear(INSULATED)
    with pytest.raises(cordes.OptionError, match="old name"):
        cordes.solve(problem, boundary="soft", boundary_rows="soft")
    with pytest.raises(cordes.OptionError, match="boundary_rows = 'neumann'"):
        cordes.solve(problem, boundary_rows="neumann")
