"""What the formulas of the data do not exclude is kept: strips beside interfaces, poles; and what
they do exclude costs no certificate: interfaces written as distances."""

import jax.numpy as jnp
import numpy as np
import pytest
from scipy import integrate

import cordes
from cordes.certificates.residual.jumps import ONE_SIDED

SQUARE = cordes.Box([0, 0], [1, 1])
POLE = np.array([0.3713, 0.6127])


def nothing(x):
    return 0.0 * x[0]


@pytest.mark.parametrize("width", [pytest.param(1e-6, marks=pytest.mark.long), 1e-10])
def test_a_strip_beside_an_interface_is_not_forgiven(width):
    """f = 1/w in 0 < x₁ - ½ < w: no chord sees it, and ‖f‖ = w^(-½)."""

    def f(x):
        return jnp.where((x[0] > 0.5) & (x[0] < 0.5 + width), 1 / width, 0.0)

    problem = cordes.Linear(SQUARE, np.eye(2), f, interfaces=[lambda x: x[0] - 0.5])
    certificate = cordes.certify(problem, nothing)
    assert certificate.energy is None or certificate.energy[1] >= 0.99 * width**-0.5
    assert certificate.rms is not None or "f may jump" in certificate.reason


def norm_of_pole(exponent):
    """∫ r^(-2a) over the square, in polar coordinates around the pole."""

    def reach(angle):
        ways = zip(POLE, (np.cos(angle), np.sin(angle)), strict=True)
        return min((1 - q) / t if t > 0 else -q / t for q, t in ways if t)

    power = 2 - 2 * exponent
    corners = np.arctan2(*(np.array([[0, 0], [0, 1], [1, 0], [1, 1]]) - POLE).T[::-1])
    whole = integrate.quad(
        lambda t: reach(t) ** power / power, -np.pi, np.pi, points=sorted(corners), limit=200
    )
    return float(np.sqrt(whole[0]))


@pytest.mark.parametrize(
    "exponent", [*(pytest.param(a, marks=pytest.mark.long) for a in (0.5, 0.97)), 0.7, 0.9]
)
def test_a_pole_inside_is_right_or_refused(exponent):
    problem = cordes.Linear(
        SQUARE, np.eye(2), lambda x: jnp.sum((x - POLE) ** 2) ** (-exponent / 2)
    )
    certificate = cordes.certify(problem, nothing)
    truth = norm_of_pole(exponent)
    if exponent > 0.75:
        assert certificate.energy is None
        assert "pole" in certificate.reason
    else:
        lower, upper = certificate.energy
        assert lower <= truth <= upper <= 1.01 * truth


@pytest.mark.long
@pytest.mark.parametrize("compared", [lambda x: jnp.abs(x[0]) - 0.5, lambda x: x[0] ** 2 - 0.25])
def test_an_interface_may_be_a_distance(compared):
    """In one dimension the answer is known: u'' = -1/3 inside of |x| < ½, -1 outside."""
    problem = cordes.Linear(
        cordes.Box([-1], [1]),
        lambda x: jnp.where(compared(x) < 0, 3.0, 1.0) * jnp.eye(1),
        -1.0,
        interfaces=[lambda x: jnp.abs(x[0]) - 0.5],
    )
    solution = cordes.solve(problem)
    assert solution.certificate.reason is None
    # u' = -x/3 up to ½ and -x + 1/3 beyond; u(0) = -∫ u'.
    error = abs(float(solution(np.array([0.0]))) - (1 / 24 + 3 / 8 - 1 / 6))
    assert error <= solution.certificate.Linf < 1e-6


def test_a_jump_of_a_gradient_is_told_from_what_bends_on_both_sides():
    """Slopes and curvatures of the sides leave nothing, and the jump stays as it is."""

    def gradient(t, jump):
        return np.where(t > 0, jump + 2 * t + 5 * t**2, -t + 30 * t**2)

    steps = np.array([distance for _, distance in ONE_SIDED])
    weights = np.array([weight for weight, _ in ONE_SIDED])
    for jump in (0.0, 0.7):
        assert weights @ gradient(1e-3 * steps, jump) == pytest.approx(jump, abs=1e-15)


@pytest.mark.long
def test_smooth_sides_of_a_ray_are_no_kink():
    """D²u jumps across x₁ = 1, and with it the third derivatives of the answer: the bound was
    refused for 5.6e-10, which was the step of the difference."""

    def A(x):
        left = jnp.array([[2.0, 0.5], [0.5, 1.0]])
        return jnp.where(x[0] < 1, left, jnp.array([[1.0, -0.5], [-0.5, 3.0]]))

    plate, line = cordes.Box([0, 0], [2, 1]), lambda x: x[0] - 1
    solution = cordes.solve(cordes.Linear(plate, A, -1.0, c=1.0, interfaces=[line]))
    assert solution.certificate.reason is None
    assert solution.certificate.Linf <= 1e-7
