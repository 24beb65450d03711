"""The gallery, and problems of a user's own, to the accuracy that is promised: exact solutions,
reference values, agreement of independent answers."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import cordes
from cordes.errors import OptionError
from cordes.gallery.paper_tables import TABLES, tightest
from cordes.jet import jet_of

SQUARE = cordes.Box([-1, -1], [1, 1])
PENTAGON = cordes.Polygon(
    [[np.cos(a), np.sin(a)] for a in np.pi / 2 + 2 * np.pi * np.arange(5) / 5]
)


@pytest.mark.parametrize(
    ("name", "l2"),
    [
        ("ex4.1-smooth", 1e-10),
        ("ex4.1-singular", 1e-6),
        ("ex4.2-continuous", 1e-10),
        ("ex4.2-discontinuous", 1e-10),
        ("ex4.3-ellipsoid", 1e-8),
    ],
)
def test_errors_against_exact_solutions(solved, name, l2):
    solution = solved(name)
    error = solution.error()
    assert error.l2 <= l2
    assert error.l2 <= error.linf
    assert solution.result == cordes.Result.converged_uncertified
    assert solution.method in ("least-squares", "cells")


# Values of a Chebyshev collocation and of independent refinements, to all digits given.
REFERENCES = {
    "ex4.4-continuous": (
        1e-6,
        {
            (0, 0): -0.054308043894,
            (0.25, 0.25): -0.030738849505,
            (-0.25, 0.25): -0.032998964028,
            (0.45, 0.45): -0.002254875059,
        },
    ),
    "ex4.4-discontinuous": (
        1e-5,
        {
            (0, 0): -0.229951724298,
            (0.5, 0.5): -0.154650201153,
            (0.25, 0.75): -0.110084489534,
            (0.9, -0.9): -0.023470230508,
        },
    ),
}


@pytest.mark.parametrize("name", list(REFERENCES))
def test_reference_values_where_no_solution_is_known(solved, name):
    tolerance, values = REFERENCES[name]
    solution = solved(name)
    np.testing.assert_allclose(
        solution(np.array(list(values))), list(values.values()), rtol=0, atol=tolerance
    )
    assert solution.error() is None
    boundary, _ = solution.problem.domain.boundary_points(50, seed=1)
    assert np.max(np.abs(solution(boundary))) < 1e-12


def test_torsion_of_the_square():
    solution = cordes.solve(cordes.Linear(cordes.Box([0, 0], [1, 1]), 1.0, 1.0), progress=False)
    assert float(solution([0.5, 0.5])) == pytest.approx(-0.0736713533, abs=1e-9)


def pentagon():
    return cordes.Linear(PENTAGON, [[3, 1], [1, 2]], 1.0)


def checkerboard():
    def A(x):
        s = jnp.sign(x[0] * x[1])
        return jnp.array([[2.0, s], [s, 2.0]])

    return cordes.Linear(
        SQUARE, A, lambda x: 2 + x[0] * x[1], interfaces=[lambda x: x[0], lambda x: x[1]]
    )


@pytest.mark.parametrize("make", [pentagon, checkerboard])
def test_independent_answers_agree(make):
    problem = make()
    answers = [
        cordes.solve(problem, seed=seed, features=features, progress=False)
        for seed, features in ((0, 500), (1, 500), (0, 250))
    ]
    assert (
        answers[2].parameters < answers[0].parameters
    )  # Two resolutions, not the same answer twice.
    points = problem.domain.interior_points(50, seed=77)
    values = np.stack([answer(points) for answer in answers])
    assert np.max(np.abs(values - values[0])) <= 1e-6
    assert np.max(np.abs(values)) > 1e-2
    assert all(answer.residual_rms < 1e-4 for answer in answers)


def residual_of_exact(problem):
    return jax.jit(lambda x: problem.residual(x, jet_of(problem.exact)(x)))


def test_source_terms_belong_to_the_exact_solutions():
    for name in cordes.gallery:
        problem = cordes.gallery[name]
        if (
            problem.exact is None
            or name == "ex4.1-singular"
            or isinstance(problem, cordes.Transport)
        ):
            continue
        point = problem.domain.interior_points(1, seed=3)[0]
        assert float(residual_of_exact(problem)(point)) == pytest.approx(0, abs=1e-10)


def test_the_singular_source_term():
    problem = cordes.gallery["ex4.1-singular"]
    assert float(residual_of_exact(problem)(np.array([0.7, -0.4]))) == pytest.approx(0, abs=1e-10)


def test_exact_solutions_fit_the_boundary_values():
    for name in cordes.gallery:
        problem = cordes.gallery[name]
        if problem.exact is not None and not isinstance(problem, cordes.Transport):
            points, _ = problem.domain.boundary_points(50, seed=4)
            difference = jax.jit(
                jax.vmap(lambda x, problem=problem: problem.exact(x) - problem.g(x))
            )(points)
            assert np.max(np.abs(difference)) < 1e-12


def test_exact_maps_carry_the_densities():
    """ν(T) det DT = μ inside, T(∂X) on ∂Y, and DT is symmetric: a gradient."""
    for name in cordes.gallery:
        problem = cordes.gallery[name]
        if not isinstance(problem, cordes.Transport) or problem.exact is None:
            continue
        points = problem.domain.interior_points(50, seed=5)
        slopes = np.asarray(jax.jit(jax.vmap(jax.jacfwd(problem.exact)))(points))
        carried = problem.target_density(
            np.asarray(jax.vmap(problem.exact)(points))
        ) * np.linalg.det(slopes)
        np.testing.assert_allclose(carried, problem.source_density(points), rtol=1e-8)
        np.testing.assert_allclose(slopes, np.swapaxes(slopes, 1, 2), atol=1e-12)
        boundary, normals = problem.domain.boundary_points(50, seed=6)
        image = np.asarray(jax.vmap(problem.exact)(boundary))
        directions, heights = problem.boundary_condition(normals, image)
        np.testing.assert_allclose(np.sum(directions * image, axis=1), heights, atol=1e-12)


def test_the_mapping():
    assert len(cordes.gallery) == len(list(cordes.gallery)) >= 8
    assert cordes.gallery["ex4.2-continuous"] is cordes.gallery["ex4.2-continuous"]
    assert "ex4.2-continuous" in cordes.gallery
    assert "ex9" not in cordes.gallery
    assert "smooth u" in cordes.gallery.describe("ex4.2-continuous")
    with pytest.raises(OptionError, match=r"ex4\.2-continuous"):
        cordes.gallery["ex4.2-continous"]


def test_paper_tables_name_problems_and_their_tightest_row():
    assert tightest("ex4.2-continuous").target == 5e-4
    assert tightest("ex4.4-continuous") is None
    assert all(
        row.l2 <= row.target for rows in TABLES.values() for row in rows if row.epochs is not None
    )
