"""The landscape of a loss: measures on surfaces that are known, losses against the residual of
perturbed solutions, and what a constant multiplier changes."""

import json

import jax.numpy as jnp
import matplotlib.image
import numpy as np
import pytest

import cordes
from cordes.ansatz.networks.mlp import MLP
from cordes.errors import FileError, OptionError
from cordes.problems.condition import cordes_multiplier
from cordes.studies.landscape import Landscape, LossSquare, filter_normalised, landscape
from cordes.studies.pages.plots import plot_landscape
from cordes.studies.trained import initial_solution, state_of

T = np.linspace(-1, 1, 41)
X, Y = np.meshgrid(T, T, indexing="ij")


def varying_problem():
    """γ varies twelvefold, boundary values are not zero."""
    return cordes.Linear(
        cordes.Box([-1, -1], [1, 2]),
        lambda x: jnp.diag(jnp.array([1.0, 2.0])) * jnp.exp(1.2 * x[0]),
        lambda x: x[1],
        c=1.0,
        g=lambda x: x[0],
    )


def constant_problem():
    """γ = 3/5 everywhere."""
    return cordes.Linear(cordes.Ball([0, 0], 1), np.diag([1.0, 2.0]), lambda x: jnp.sin(3 * x[0]))


def two_controls():
    """Controls that switch, with multipliers that differ."""
    return cordes.HJB(
        cordes.Box([-1, -1], [1, 1]),
        [0.0, 1.0],
        lambda x, a: jnp.eye(2) + a * jnp.diag(jnp.array([1.0, 3.0])),
        lambda x, a: 1 + a * jnp.sin(4 * x[0]),
    )


@pytest.fixture(scope="module")
def solutions():
    """Small networks as they are made: the loss around them is a loss like any other."""
    made = {}
    for seed, (name, problem) in enumerate(
        {
            "varying": varying_problem(),
            "constant": constant_problem(),
            "hjb": two_controls(),
        }.items()
    ):
        made[name] = initial_solution(problem)
        made[name] = made[name].replace(network=MLP(made[name].network.inputs, 12, 2, seed=seed))
    return made


def moved(solution, first, second, seed=0):
    """The solution with its weights moved along the two directions."""
    state = state_of(solution)
    (layers, last), _ = filter_normalised(state, seed, 0)
    (other_layers, other_last), _ = filter_normalised(state, seed, 1)
    weights = tuple(
        (weight + first * one + second * two, bias)
        for (weight, bias), (one, _), (two, _) in zip(
            state.network.layers, layers, other_layers, strict=True
        )
    )
    moved = (weights, state.network.coefficients + first * last + second * other_last)
    return solution.replace(network=state.network.with_parameters(moved))


# Measures -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("angle", [0.0, 0.7])
def test_measures_of_a_quadratic(angle):
    x, y = np.cos(angle) * X + np.sin(angle) * Y, -np.sin(angle) * X + np.cos(angle) * Y
    surface = Landscape(0.5 * T, 5 + 0.5 * (8 * x**2 + 2 * y**2))
    measures = surface.measures
    assert measures.curvature_ratio == pytest.approx(4, rel=1e-9)
    assert measures.sharpness == pytest.approx(1, rel=1e-9)
    assert measures.nonconvex == 0
    assert measures.decades == pytest.approx(np.log10(np.max(surface.losses) / 5), rel=1e-12)
    assert surface.centre == 5
    assert surface.as_data()["radius"] == 0.5


def test_sharpness_tells_floors_from_peaks():
    """On a product grid the fit of g(x) + g(y) is the sum of two fits in one variable."""
    near = T[15:26]
    for function, sharper in ((lambda t: t**4, False), (lambda t: np.sqrt(t**2 + 1e-3), True)):
        surface = Landscape(T, function(X) + function(Y))
        quadratic, _, constant = np.polyfit(near, function(near), 2)
        rim = np.maximum(np.abs(X), np.abs(Y)) == 1
        expected = np.mean(quadratic * (X**2 + Y**2)[rim]) / (
            np.mean(surface.losses[rim]) - 2 * constant
        )
        assert surface.measures.sharpness == pytest.approx(expected, rel=1e-9)
        assert (surface.measures.sharpness > 1) is sharper


def test_nonconvex_share_is_counted():
    # Second differences of a cosine have the sign of the cosine.
    waves = Landscape(T, 3 - np.cos(5 * X) + Y**2)
    assert waves.measures.nonconvex == pytest.approx(np.mean(np.cos(5 * T[1:-1]) < 0), abs=1e-12)
    # The mixed derivative counts: both second derivatives are positive, the determinant is not.
    assert Landscape(T, 9 + X**2 + Y**2 + 3 * X * Y).measures.nonconvex == 1
    assert Landscape(T, 9 + X**2 + Y**2 + 1.9 * X * Y).measures.nonconvex == 0


def test_saddle_has_no_curvature_ratio():
    saddle = Landscape(T, 5 + X**2 - Y**2)
    assert saddle.measures.curvature_ratio == np.inf
    assert saddle.as_data()["curvature_ratio"] is None
    assert saddle.measures.nonconvex == 1


@pytest.mark.parametrize("factor", [0.4**2, 1e-9, 1e9])
def test_measures_do_not_see_a_constant_factor(factor):
    losses = 0.1 + X**2 + 0.3 * X * Y + 2 * Y**2 + X**3 * Y + 0.5 * np.sin(4 * X) ** 2
    one, other = Landscape(T, losses).measures, Landscape(T, factor * losses).measures
    assert other == pytest.approx(one, rel=1e-9)
    assert 0 < one.nonconvex < 1


def test_overflow_leaves_gaps():
    losses = 1 + X**2 + Y**2
    losses[0, 0] = np.inf
    data = Landscape(T, losses).as_data()
    assert data["curvature_ratio"] == pytest.approx(1, rel=1e-9)
    assert data["decades"] is None
    assert data["sharpness"] is None
    json.dumps(data, allow_nan=False)


# Directions ---------------------------------------------------------------------------------------


def test_directions_are_filter_normalised(solutions):
    first, second = (state_of(solutions[name]) for name in ("varying", "constant"))
    (layers, last), amplitudes = filter_normalised(first, 3, 0)
    (other_layers, other_last), _ = filter_normalised(second, 3, 0)
    for k, (weight, bias) in enumerate(first.network.layers):
        own = np.linalg.norm(weight, axis=0)
        assert np.linalg.norm(layers[k][0], axis=0) == pytest.approx(own, rel=1e-12)
        assert layers[k][1].shape == bias.shape
        assert not np.any(layers[k][1])
        # Two networks of one shape share the directions, but for the lengths.
        assert np.allclose(
            layers[k][0] / own,
            other_layers[k][0] / np.linalg.norm(second.network.layers[k][0], axis=0),
            rtol=1e-12,
        )
    assert np.linalg.norm(last) == pytest.approx(
        np.linalg.norm(first.network.coefficients), rel=1e-12
    )
    assert np.allclose(
        last / np.linalg.norm(last), other_last / np.linalg.norm(other_last), rtol=1e-12
    )
    assert amplitudes.shape == (0,)
    assert not np.allclose(filter_normalised(first, 3, 1)[0][1], last)
    assert not np.allclose(filter_normalised(first, 4, 0)[0][1], last)


# Losses -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("multiplier", [True, False])
@pytest.mark.parametrize("form", ["frozen", "direct"])
def test_losses_are_those_of_moved_solutions(solutions, multiplier, form):
    """300 points do not fill the last block."""
    solution = solutions["varying"]
    problem = solution.problem
    surface = landscape(
        problem, solution, multiplier, seed=2, window=LossSquare(9, 0.5), points=300, form=form
    )
    x = problem.domain.interior_points(300, 2, "sobol")
    gamma = cordes_multiplier(np.asarray(problem.coefficients(x).A)) if multiplier else 1.0
    for i, j in ((4, 4), (0, 8), (7, 2)):
        other = moved(solution, surface.coordinates[i], surface.coordinates[j], seed=2)
        assert surface.losses[i, j] == pytest.approx(
            np.mean((gamma * other.residual(x)) ** 2), rel=1e-4
        )
    assert np.ptp(surface.losses) > 0.1 * surface.centre


def test_nonlinear_forms(solutions):
    """The frozen equation stays where it is, the direct residual and its multiplier move with the
    network; at the centre both are the same."""
    solution = solutions["hjb"]
    problem, options = (
        solution.problem,
        {"seed": 1, "window": LossSquare(9), "points": 500, "choices": {"scaled": False}},
    )
    frozen = landscape(problem, solution, True, **options)
    direct = landscape(problem, solution, True, form="direct", **options)
    x = problem.domain.interior_points(500, 1, "sobol")
    A, _, _, f = problem.coefficients(x, solution.jet(x), scaled=False)
    other = moved(solution, 1.0, -1.0, seed=1)
    jet = other.jet(x)
    still = cordes_multiplier(np.asarray(A)) * (
        np.sum(A * np.asarray(jet.hessian), axis=(1, 2)) - f
    )
    along = cordes_multiplier(
        np.asarray(problem.coefficients(x, jet, scaled=False).A)
    ) * other.residual(x)
    assert frozen.losses[8, 0] == pytest.approx(np.mean(still**2), rel=1e-4)
    assert direct.losses[8, 0] == pytest.approx(np.mean(along**2), rel=1e-4)
    assert abs(np.mean(still**2) / np.mean(along**2) - 1) > 1e-2
    assert direct.centre == pytest.approx(frozen.centre, rel=1e-4)


def test_constant_multiplier_changes_no_shape(solutions):
    solution = solutions["constant"]
    plain, scaled = (
        landscape(solution.problem, solution, multiplier, window=LossSquare(9), points=500)
        for multiplier in (False, True)
    )
    assert scaled.losses == pytest.approx(0.36 * plain.losses, rel=1e-5)
    assert scaled.measures == pytest.approx(plain.measures, rel=2e-3)


def test_refusals(solutions):
    solution = solutions["constant"]
    problem = solution.problem
    with pytest.raises(OptionError, match="resolution = 10"):
        landscape(problem, solution, True, window=LossSquare(10))
    with pytest.raises(OptionError, match="radius = -1"):
        landscape(problem, solution, True, window=LossSquare(radius=-1.0))
    with pytest.raises(OptionError, match="points = 0"):
        landscape(problem, solution, True, points=0)
    with pytest.raises(OptionError, match="Did you mean frozen"):
        landscape(problem, solution, True, form="froze")
    with pytest.raises(OptionError, match="pass the problem that was solved"):
        landscape(varying_problem(), solution, True)
    with pytest.raises(OptionError, match="has no choices"):
        landscape(problem, solution, True, choices={"scaled": False})
    features = cordes.solve(problem, method="least-squares", features=20, progress=False)
    with pytest.raises(OptionError, match="RandomFeatures"):
        landscape(problem, features, True)
    with pytest.raises(OptionError, match="transport"):
        landscape(cordes.gallery["ex5.1-square"], solution, True)


# Figure -------------------------------------------------------------------------------------------


def test_figure(tmp_path):
    surfaces = {
        "C-PINN": Landscape(T, 0.1 + X**2 + 2 * Y**2),
        "PINN": Landscape(T, 10 + 900 * X**2 + 90 * X**3 * Y),
    }
    path = tmp_path / "landscape.png"
    figure = plot_landscape(surfaces, path, title="two bowls")
    assert [axes.get_title() for axes in figure.axes if axes.get_title()] == ["C-PINN", "PINN"]
    words = [text.get_text() for axes in figure.axes for text in axes.texts]
    assert f"{surfaces['C-PINN'].measures.curvature_ratio:.3g}" in words[0]
    assert "indefinite" in words[1]
    # One scale for all: both surfaces have the same limits.
    assert figure.axes[0].get_zlim() == figure.axes[3].get_zlim()
    image = matplotlib.image.imread(path)[..., :3]
    assert all(np.all(edge == 1) for edge in (image[0], image[-1], image[:, 0], image[:, -1]))
    height, width = image.shape[:2]
    for part in (
        image[: height // 2, : width // 2],
        image[: height // 2, width // 2 :],
        image[height // 2 :, : width // 2],
        image[height // 2 :, width // 2 :],
    ):
        assert part.std() > 0.05
    with pytest.raises(FileError, match="does not exist"):
        plot_landscape(surfaces, tmp_path / "missing" / "landscape.png")
    with pytest.raises(OptionError, match="empty"):
        plot_landscape({})
