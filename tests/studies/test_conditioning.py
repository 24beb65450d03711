"""The spectrum of the Gauss–Newton matrix: derivatives against automatic ones, eigenvalues against
both products, and what a constant multiplier changes."""

import json

import jax
import jax.numpy as jnp
import matplotlib.image
import numpy as np
import pytest
from jax.flatten_util import ravel_pytree

import cordes
from cordes.ansatz.ansatz import Ansatz
from cordes.ansatz.networks.mlp import MLP
from cordes.errors import OptionError
from cordes.jet import jet_of
from cordes.problems.condition import cordes_multiplier
from cordes.studies.conditioning import (
    Spectrum,
    gauss_newton_spectrum,
    jacobian,
    multiplier_spread,
    spectra,
    spectrum_of,
)
from cordes.studies.pages.plots import plot_spectra
from cordes.studies.trained import initial_solution, rows_at, state_of, system_at


@pytest.fixture(scope="module")
def tiny():
    """A constant matrix with lower-order terms and boundary values; γ = 4/10."""
    problem = cordes.Linear(
        cordes.Box([0, 0], [1, 2]),
        np.diag([1.0, 3.0]),
        lambda x: x[0],
        b=[1.0, -1.0],
        c=2.0,
        g=lambda x: x[1],
    )
    solution = initial_solution(problem)
    solution = solution.replace(network=MLP(solution.network.inputs, 5, 2))
    return solution


def test_jacobian_is_the_derivative_of_the_residual(tiny):
    """Against jax.jacobian of the equation written out with full Hessians."""
    problem, count, seed = tiny.problem, 7, 4
    state = state_of(tiny)
    flat, unflatten = ravel_pytree(state.parameters)
    x = jnp.asarray(problem.domain.interior_points(count, seed, "sobol"))
    lift, distance = (
        jax.jit(jax.vmap(jet_of(function)))(x) for function in (tiny.lift, problem.domain.distance)
    )

    def residuals(parameters):
        network = state.with_parameters(unflatten(parameters)).network
        value, gradient, hessian = Ansatz.combine(lift, distance, network.jet(x))
        equation = (
            hessian[:, 0, 0]
            + 3 * hessian[:, 1, 1]
            + gradient[:, 0]
            - gradient[:, 1]
            - 2 * value
            - x[:, 0]
        )
        return 0.4 * equation / count**0.5

    expected = np.asarray(jax.jit(jax.jacobian(residuals))(flat))
    computed = jacobian(state, rows_at(system_at(problem, tiny, True), count, seed))
    assert computed.shape == (count, len(flat))
    assert np.allclose(computed, expected, rtol=1e-9, atol=1e-12 * np.max(np.abs(expected)))
    found = gauss_newton_spectrum(problem, tiny, True, points=count, seed=seed)
    assert found.eigenvalues == pytest.approx(
        np.linalg.eigvalsh(expected @ expected.T)[::-1], rel=1e-6, abs=1e-12 * found.largest
    )
    assert found.parameters == len(flat)


@pytest.mark.parametrize("shape", [(6, 40), (40, 6)])
def test_spectrum_of_both_products(shape):
    J = np.random.default_rng(0).standard_normal(shape)
    found = spectrum_of(J).eigenvalues
    assert len(found) == 6
    for product in (J.T @ J, J @ J.T):
        assert found == pytest.approx(np.linalg.eigvalsh(product)[::-1][:6], rel=1e-10)


def test_small_eigenvalues_are_resolved_or_left_out():
    """Eigenvalues 10⁰, 10⁻², …, 10⁻³⁸: double precision knows them down to about 10⁻²⁸ through
    singular values, 10⁻¹⁴ through the product."""
    generator = np.random.default_rng(1)
    left, right = (
        np.linalg.qr(generator.standard_normal((20, 20)))[0],
        np.linalg.qr(generator.standard_normal((50, 20)))[0],
    )
    found = spectrum_of((left * 10.0 ** -np.arange(20)) @ right.T)
    assert found.eigenvalues[:12] == pytest.approx(10.0 ** (-2 * np.arange(12)), rel=1e-3)
    assert 14 <= found.resolved <= 17
    assert found.kappa(11) == pytest.approx(1e20, rel=1e-3)
    data = found.as_data()
    assert data["kappa_10"] == pytest.approx(1e18, rel=1e-3)
    assert data["kappa_last"] is None
    assert found.kappa(20) == np.inf
    json.dumps(data, allow_nan=False)


def test_summary_of_known_eigenvalues():
    flat = Spectrum(np.full(30, 7.0), 100)
    assert flat.effective_rank == pytest.approx(30)
    assert flat.kappa(30) == flat.as_data()["kappa_last"] == 1
    falling = Spectrum(2.0 ** -np.arange(12), 100)
    assert falling.as_data()["kappa_10"] == 512
    assert "kappa_30" not in falling.as_data()
    # Entropy of the geometric series: two bits, but for the twelve terms.
    share = 2.0 ** -np.arange(1, 13) / (1 - 2.0**-12)
    assert falling.effective_rank == pytest.approx(2 ** np.sum(-share * np.log2(share)))
    with pytest.raises(OptionError, match="k = 13"):
        falling.kappa(13)


@pytest.mark.parametrize(("name", "gamma"), [("ex4.2-discontinuous", 0.4), ("ex4.3-cube5", 5 / 29)])
def test_constant_multiplier_scales_the_spectrum(name, gamma):
    problem = cordes.gallery[name]
    start = initial_solution(problem)
    plain, scaled = (
        gauss_newton_spectrum(problem, start, multiplier, points=60) for multiplier in (False, True)
    )
    known = slice(0, min(plain.resolved, 20))
    assert scaled.eigenvalues[known] == pytest.approx(gamma**2 * plain.eigenvalues[known], rel=1e-6)
    assert scaled.kappa(10) == pytest.approx(plain.kappa(10), rel=1e-6)
    assert scaled.largest / plain.largest == pytest.approx(gamma**2, rel=1e-12)


def test_varying_multiplier_weighs_rows():
    """With the multiplier the matrix is that of rows times γ, and κ is another one."""
    problem = cordes.gallery["ex4.1-smooth"]
    start = initial_solution(problem, seed=1)
    state = state_of(start)
    plain, scaled = (
        jacobian(state, rows_at(system_at(problem, start, multiplier), 50, 3))
        for multiplier in (False, True)
    )
    gamma = cordes_multiplier(
        np.asarray(problem.coefficients(problem.domain.interior_points(50, 3, "sobol")).A)
    )
    assert np.allclose(
        scaled, gamma[:, None] * plain, rtol=1e-9, atol=1e-12 * np.max(np.abs(scaled))
    )
    found = spectra(problem, start, points=50, seed=3)
    assert list(found) == ["PINN", "C-PINN", "Laplacian"]
    assert found["PINN"].eigenvalues == pytest.approx(spectrum_of(plain).eigenvalues)
    assert found["C-PINN"].eigenvalues == pytest.approx(spectrum_of(scaled).eigenvalues)
    assert found["PINN"].kappa(10) > 2 * found["C-PINN"].kappa(10)


def test_laplacian_is_what_the_multiplier_makes_of_multiples_of_the_identity():
    problem = cordes.Linear(cordes.Ball([0, 0], 1), lambda x: (2 + x[0]) * jnp.eye(2), 1.0)
    start = initial_solution(problem)
    found = spectra(problem, start, points=40)
    known = slice(0, 15)
    assert found["C-PINN"].eigenvalues[known] == pytest.approx(
        found["Laplacian"].eigenvalues[known], rel=1e-6
    )
    assert abs(found["PINN"].kappa(10) / found["Laplacian"].kappa(10) - 1) > 1e-2


def test_initial_solution_is_where_adam_starts():
    """The first entry of the history is the loss of the untrained network."""
    problem = cordes.gallery["ex4.1-smooth"]
    trained = cordes.solve(
        problem, method="adam", preset="paper", points=500, epochs=10, seed=5, progress=False
    )
    start = initial_solution(problem, seed=5)
    x = problem.domain.interior_points(500, 5, "sobol")
    gamma = cordes_multiplier(np.asarray(problem.coefficients(x).A))
    assert np.mean((gamma * start.residual(x)) ** 2) == pytest.approx(
        trained.history[0]["loss"], rel=1e-4
    )
    assert start.parameters == trained.parameters == 12_736
    assert not np.allclose(
        start.network.coefficients, initial_solution(problem, seed=6).network.coefficients
    )


def test_nonlinear_equation_is_frozen_at_the_network():
    """A = cof(D²u) of the state in two dimensions: the rows are those of that linear equation."""
    problem = cordes.gallery["ex4.6-monge-ampere"]
    start = initial_solution(problem)
    found = gauss_newton_spectrum(
        problem, start, False, points=30, seed=2, choices={"form": "plain"}
    )
    x = problem.domain.interior_points(30, 2, "sobol")
    hessian = start.hessian(x)
    cofactors = np.stack(
        [[hessian[:, 1, 1], -hessian[:, 0, 1]], [-hessian[:, 0, 1], hessian[:, 0, 0]]]
    ).transpose(2, 0, 1)
    rows = system_at(problem, start, False).ansatz.freeze(
        x, cofactors, np.zeros((30, 2)), np.zeros(30), np.zeros(30), np.full(30, 30**-0.5)
    )
    expected = spectrum_of(jacobian(state_of(start), rows))
    assert found.eigenvalues[:12] == pytest.approx(expected.eigenvalues[:12], rel=1e-6)


def test_multiplier_spread(tiny):
    expected = {"min": 0.4, "max": 0.4, "ratio": 1.0, "variation": 0.0, "mean_square": 0.16}
    assert multiplier_spread(tiny.problem) == pytest.approx(expected, abs=1e-12)
    heterogeneous = multiplier_spread(cordes.gallery["ex4.1-smooth"])
    assert heterogeneous["ratio"] == heterogeneous["max"] / heterogeneous["min"] > 40
    # γ = e^x on (0, 1): mean e - 1, mean square (e² - 1)/2.
    exponential = cordes.Linear(
        cordes.Box([0, 0], [1, 1]), lambda x: jnp.exp(-x[0]) * jnp.eye(2), 1.0
    )
    found = multiplier_spread(exponential)
    mean = np.e - 1
    assert found["variation"] == pytest.approx(
        np.sqrt((np.e**2 - 1) / 2 - mean**2) / mean, rel=0.02
    )
    assert found["ratio"] == pytest.approx(np.e, rel=1e-3)
    hjb = cordes.gallery["ex4.5-hjb"]
    with pytest.raises(OptionError, match="Pass a solution"):
        multiplier_spread(hjb)
    found = multiplier_spread(hjb, initial_solution(hjb))
    assert (found["min"], found["max"]) == pytest.approx((1 / 3, 1))


def test_refusals(tiny):
    with pytest.raises(OptionError, match="Did you mean laplacian"):
        gauss_newton_spectrum(tiny.problem, tiny, operator="laplace")
    with pytest.raises(OptionError, match="points = 1"):
        gauss_newton_spectrum(tiny.problem, tiny, points=1)
    with pytest.raises(OptionError, match="not finite"):
        spectrum_of(np.full((2, 3), np.nan))
    with pytest.raises(OptionError, match="transport"):
        initial_solution(cordes.gallery["ex5.1-square"])


def test_figure(tmp_path):
    index = np.arange(1, 201)
    group = {
        name: Spectrum(index**-power, 300)
        for name, power in (("PINN", 6.0), ("C-PINN", 5.0), ("Laplacian", 4.0))
    }
    path = tmp_path / "spectra.png"
    figure = plot_spectra({"at the start": group, "at the end": group}, path, title="spectra")
    assert [axes.get_title() for axes in figure.axes] == ["at the start", "at the end"]
    left = figure.axes[0]
    assert [text.get_text().split(":")[0] for text in left.get_legend().get_texts()] == [
        "PINN",
        "C-PINN",
        "Laplacian",
    ]
    assert "1.0e+06" in left.get_legend().get_texts()[0].get_text()
    assert left.lines[0].get_ydata()[9] == pytest.approx(1e-6)
    image = matplotlib.image.imread(path)[..., :3]
    assert all(np.all(edge == 1) for edge in (image[0], image[-1], image[:, 0], image[:, -1]))
    assert all(half.std() > 0.05 for half in np.array_split(image, 2, axis=1))
    with pytest.raises(OptionError, match="no entry"):
        plot_spectra({})
