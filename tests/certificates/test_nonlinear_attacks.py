"""Attacks on certificates of nonlinear equations: answers and equations made to be certified
wrongly, against known solutions."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import cordes
from cordes.certificates.hjb.energy import Pairs, SeenControls
from cordes.formulas.regularity import kink
from cordes.problems.checks import fingerprints

SQUARE = cordes.Box([0, 0], [1, 1])
PLACE = jnp.array([0.3713, 0.6127])
SWAP = jnp.array([[0.0, 1.0], [1.0, 0.0]])
MATRICES = jnp.asarray(
    [[[1.0, 0.0], [0.0, 1.0]], [[1.0, 0.5], [0.5, 1.0]], [[2.0, -0.3], [-0.3, 1.0]]]
)


def wave(x):
    return jnp.sin(jnp.pi * x[0]) * jnp.sin(jnp.pi * x[1])


def bubble(x):
    return jnp.prod(x * (1 - x))


def paraboloid(x):
    return jnp.dot(x, x) / 2


def dip(x, radius, height):
    """Zero outside of a small ball, with bounded second derivatives."""
    return height * jnp.maximum(1 - jnp.sum((x - PLACE[0]) ** 2) / radius**2, 0) ** 4


def planted(controls, A, u=wave, extra=lambda x, a: 0.0, domain=SQUARE, **options):
    """f^a = A^a:D²u + extra with extra ≥ 0 and zero for one control: u solves the equation with
    sup."""
    return cordes.HJB(
        domain,
        controls,
        A,
        lambda x, a: jnp.sum(A(x, a) * jax.hessian(u)(x)) + extra(x, a),
        **options,
    )


def isotropic(x, a):
    return (1 + a) * jnp.eye(2)


def holds(certificate, v, largest, domain=SQUARE, count=40):
    """Every bound against quadrature of the planted error v, and none more than `largest` times too
    large."""
    x, weight = domain.quadrature(count)
    value, gradient, hessian = (
        np.asarray(part)
        for part in jax.jit(jax.vmap(lambda x: (v(x), jax.grad(v)(x), jax.hessian(v)(x))))(x)
    )

    def norm(values):
        return float(np.sqrt(weight @ np.sum(values.reshape(len(x), -1) ** 2, axis=1)))

    truth = {
        "L2": norm(value),
        "rms": norm(value) / np.sqrt(domain.volume),
        "Linf": float(np.max(np.abs(value))),
    }
    if isinstance(certificate.picture.problem, cordes.HJB):
        truth |= {"H1": norm(gradient), "H2": norm(hessian)}
        energy = norm(np.trace(hessian, axis1=1, axis2=2) - certificate.lambda_ * value)
        assert certificate.energy[0] <= energy <= certificate.energy[1]
    for name, true in truth.items():
        assert true * (1 - 1e-9) <= getattr(certificate, name) <= largest * true, name


# Answers that are not what their derivatives say


@pytest.mark.parametrize(
    "rounded",
    [
        lambda y: jax.lax.reduce_precision(y, 8, 3),
        lambda y: y.astype(jnp.float16).astype(jnp.float64),
        lambda y: y.astype(jnp.float32).astype(jnp.float64),
    ],
)
@pytest.mark.parametrize(
    "problem",
    [
        cordes.MongeAmpere(SQUARE, 1.0, g=paraboloid),
        planted([0.0, 1.0], isotropic, paraboloid, g=paraboloid),
    ],
)
def test_values_of_a_lower_precision(rounded, problem):
    """A step function whose derivatives are those of the smooth one: the residual is zero."""
    certificate = cordes.certify(problem, lambda x: paraboloid(x) + rounded(bubble(x)) - bubble(x))
    assert certificate.Linf is None
    assert "not known" in certificate.reason


@pytest.mark.parametrize(
    "kinked",
    [
        lambda s: jnp.arccos(jnp.cos(s)),
        lambda s: jnp.sqrt(1 - jnp.cos(s) ** 2),
        lambda s: jnp.exp(jnp.log(s**2) / 2),
        lambda s: (s**2) ** 0.5,
        lambda s: jnp.sort(jnp.array([s, -s]))[1],
        lambda s: jnp.hypot(s, 0.0),
    ],
)
def test_kinks_in_disguise(kinked):
    """|x₁ - c| has no second derivatives at almost every point, and is far from harmonic."""

    def g(x):
        return kinked(x[0] - PLACE[0])

    problem = cordes.HJB(SQUARE, [0.0, 1.0], isotropic, 0.0, g=g)
    certificate = cordes.certify(problem, g)
    assert certificate.Linf is None
    assert "kink" in certificate.reason


@pytest.mark.parametrize(
    ("function", "smooth"),
    [
        (cordes.gallery["froese-oberman-c1"].g, True),
        (lambda x: jnp.maximum(jnp.linalg.norm(x - PLACE) - 0.2, 0) ** 2, True),
        (lambda x: jnp.minimum(0.2 - jnp.abs(x[0] - PLACE[0]), 0) ** 2, True),
        (lambda x: jnp.maximum(0.2 - jnp.linalg.norm(x - PLACE), 0) ** 2, False),
        (lambda x: jnp.maximum(jnp.linalg.norm(x - PLACE) - 0.2, 0), False),
        (
            lambda x: (
                jnp.maximum(jnp.linalg.norm(x - PLACE) - 0.2, 0) ** 2 + jnp.linalg.norm(x - PLACE)
            ),
            False,
        ),
        (lambda x: jnp.maximum(jnp.abs(x[0] - PLACE[0]) - 0.2 + 0.3 * x[1], 0) ** 2, False),
    ],
)
def test_kinks_that_a_maximum_cuts_off(function, smooth):
    """A kink is none where the maximum takes its other branch everywhere around it, and is one
    where it does not."""
    assert (kink(function, SQUARE) is None) == smooth


def ridge_and_problem(kind, steepness):
    """x tanh(kx) is smooth, and D² vanishes but for a strip that no point meets."""

    def answer(x):
        ridge = (x[0] - PLACE[0]) * jnp.tanh(steepness * (x[0] - PLACE[0]))
        return ridge + (paraboloid(x) if kind == "monge-ampere" else 0.0)

    problem = {
        "linear": lambda: cordes.Linear(SQUARE, np.eye(2), 0.0, g=answer),
        "hjb": lambda: cordes.HJB(SQUARE, [0.0, 1.0], isotropic, 0.0, g=answer),
        "monge-ampere": lambda: cordes.MongeAmpere(SQUARE, 1.0, g=answer),
    }[kind]()
    return problem, answer


@pytest.mark.filterwarnings("ignore::cordes.KinkWarning")
@pytest.mark.parametrize("kind", ["linear", "hjb", "monge-ampere"])
def test_a_ridge_between_all_points_of_the_norms(kind):
    """What is seen is zero, and not believed; where norms are enclosed they say how large it is."""
    certificate = cordes.certify(*ridge_and_problem(kind, 1e6))
    assert certificate.Linf is None
    if kind == "linear":
        assert certificate.energy is None or certificate.energy[1] >= second_derivative(1e6)
    else:
        words = ("a ridge or a layer lies between them", "which is no proof that it is zero")
        assert any(each in certificate.reason for each in words)


@pytest.mark.filterwarnings("ignore::cordes.KinkWarning")
@pytest.mark.parametrize("kind", ["linear", "hjb", "monge-ampere"])
def test_a_ridge_that_cells_follow(kind):
    """It is integrated, or said to be not resolved, or seen to be not convex."""
    steepness = 1e4
    certificate = cordes.certify(*ridge_and_problem(kind, steepness))
    assert certificate.Linf is None
    if kind == "monge-ampere":
        assert "convexity lost" in certificate.reason
        return
    if certificate.energy is None:
        words = ("did not converge", "which is no proof that it is zero")
        assert any(each in certificate.reason for each in words)
        return
    truth = second_derivative(steepness)
    assert certificate.energy[0] <= truth <= certificate.energy[1]


def second_derivative(steepness):
    """‖(x tanh kx)''‖ over the whole line."""
    s = np.linspace(-40, 40, 400_001)
    second = 2 * (1 - s * np.tanh(s)) / np.cosh(s) ** 2
    return np.sqrt(steepness * np.sum(second**2) * (s[1] - s[0]))


@pytest.mark.parametrize("sign", [1, -1])
def test_a_small_dent_of_a_convex_function(sign):
    """It has radius 0.01, less than the distance of the points that are looked at first."""
    problem = cordes.MongeAmpere(SQUARE, 1.0, g=paraboloid)
    certificate = cordes.certify(problem, lambda x: paraboloid(x) + sign * dip(x, 0.01, 1e-3))
    assert certificate.Linf is None
    assert "convexity lost" in certificate.reason


@pytest.mark.parametrize("d", [3, 4])
def test_a_dent_in_more_dimensions(d):
    problem = cordes.MongeAmpere(cordes.Box([0] * d, [1] * d), 1.0, g=paraboloid)
    certificate = cordes.certify(problem, lambda x: paraboloid(x) - dip(x, 0.1, 1e-3))
    # In four dimensions too few points of a sample see it: no bound, then.
    assert certificate.Linf >= 1e-3 if d == 3 else certificate.Linf is None


# Monge–Ampère


@pytest.mark.parametrize(
    ("scale", "length"),
    [(1e-100, 1.0), (1e-8, 1.0), (1e100, 1.0), (1.0, 1e-4), (1.0, 1e4), (1e-8, 1e4)],
)
def test_monge_ampere_at_all_scales(scale, length):
    """The bound of u·scale on a domain of another size is the same number in other units: one where
    norms are enclosed, and one where their numbers would leave the range of float64."""
    box = cordes.Box([0, 0], [length, length])

    def answer(x, share):
        return scale * (paraboloid(x / length) - share * bubble(x / length))

    problem = cordes.MongeAmpere(box, (scale / length**2) ** 2, g=lambda x: answer(x, 0.0))
    certificate = cordes.certify(problem, lambda x: answer(x, 0.1))
    bound = 0.01248 if certificate.levels["Linf"] == "enclosed" else 0.01224
    assert (certificate.levels["Linf"] == "enclosed") == (1e-50 < scale < 1e50)
    assert 0.00625 * scale <= certificate.Linf == pytest.approx(bound * scale, rel=1e-3)
    holds(certificate, lambda x: answer(x, 0.1) - answer(x, 0.0), 4.0, box)


@pytest.mark.parametrize("size", [0.1, 5.0, -5.0])
def test_one_dimension_needs_no_convexity(size):
    problem = cordes.MongeAmpere(cordes.Box([0], [1]), 1.0, g=paraboloid)
    certificate = cordes.certify(problem, lambda x: paraboloid(x) + size * bubble(x))
    assert abs(size) / 4 <= certificate.Linf <= abs(size) / 2 * (1 + 1e-9)


@pytest.mark.parametrize("weight", [1.0, 1e-3])
def test_a_density_whose_integral_is_infinite_along_a_line(weight):
    problem = cordes.MongeAmpere(
        SQUARE, lambda x: 1 + weight / jnp.abs(x[0] - PLACE[0]), g=paraboloid
    )
    certificate = cordes.certify(problem, paraboloid)
    assert certificate.Linf is None
    assert "f may jump or have a pole" in certificate.reason


# Hamilton–Jacobi–Bellman


def test_a_small_support_of_the_right_side_of_one_control():
    """Of the two controls one alone sees that the answer lacks a bump of radius 0.01."""

    def extra(x, a):
        return jnp.where(a == 0, 5.0, 0.0)

    problem = planted([0.0, 1.0], isotropic, lambda x: wave(x) + dip(x, 0.01, 1e-2), extra)
    certificate = cordes.certify(problem, wave)
    assert certificate.Linf >= 1e-2
    assert certificate.H2 >= 5.0


def test_a_strip_of_one_control_that_no_interface_declares():
    """It is found in the formula, and the bound knows of it: zero is wrong by 3/8 at least, which
    is what the other control alone would make of it."""

    def f(x, a):
        return jnp.where(a == 0, jnp.where(jnp.abs(x[0] - PLACE[0]) < 2e-4, -1e4, 0.0), 3.0)

    problem = cordes.HJB(SQUARE, [0.0, 1.0], isotropic, f)
    certificate = cordes.certify(problem, lambda x: 0.0 * x[0])
    assert certificate.Linf is None or certificate.Linf >= 0.1


@pytest.mark.parametrize("name", ["A", "f"])
def test_a_jump_of_one_control_of_many(name):
    """All controls are searched, in blocks: control 1 alone has the strip."""

    def strip(x, a, size):
        return jnp.where((a == 1) & (jnp.abs(x[0] - PLACE[0]) < 2e-4), size, 0.0)

    def A(x, a):
        return jnp.eye(2) + (strip(x, a, 0.5) * SWAP if name == "A" else 0.0)

    def f(x, a):
        return jnp.where(a == 1, 0.0, 3.0) - (strip(x, a, 1e4) if name == "f" else 0.0)

    problem = cordes.HJB(SQUARE, np.arange(40.0), A, f)
    certificate = cordes.certify(problem, lambda x: 0.0 * x[0])
    assert certificate.Linf is None
    assert f"{name} jumps near x = [0.37" in certificate.reason


def test_more_controls_than_can_be_searched_for_jumps():
    def f(x, a, jumps):
        return jnp.where((a == 1) & (x[0] > 0.5), -1e4, 1.0) if jumps else 1.0 + 0 * a

    problems = [
        cordes.HJB(SQUARE, np.arange(600.0), isotropic, lambda x, a, jumps=jumps: f(x, a, jumps))
        for jumps in (True, False)
    ]
    first, second = (cordes.certify(problem, lambda x: 0.0 * x[0]) for problem in problems)
    assert first.Linf is None
    assert "600 controls are too many" in first.reason
    assert second.Linf > 0


# The other sign of the error is the other sense, with -u for u.
@pytest.mark.parametrize("sense", ["sup", "inf"])
def test_ties_of_controls_that_are_numbers_of_matrices(sense):
    """At u all controls are equally good everywhere."""
    problem = planted([0, 1, 2], lambda x, a: MATRICES[a.astype(int)], sense=sense)
    certificate = cordes.certify(problem, lambda x: wave(x) - 0.01 * bubble(x))
    holds(certificate, lambda x: 0.01 * bubble(x), 8.0)


def test_controls_of_very_different_sizes():
    """10⁻⁸ to 10⁸ times the same equation: only with the multiplier inside of the supremum is
    nothing lost."""
    problem = planted(np.arange(-8.0, 9.0), lambda x, a: 10.0**a * jnp.eye(2))
    holds(
        cordes.certify(problem, lambda x: wave(x) + 0.01 * bubble(x)),
        lambda x: 0.01 * bubble(x),
        1.4,
    )


@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_one_control_is_nearly_degenerate_on_a_line(sign):
    def A(x, a):
        return jnp.diag(
            jnp.stack([1.0 + 0 * a, jnp.where(a == 1, 1e-3 + (x[0] - PLACE[0]) ** 2, 1.0)])
        )

    problem = planted(
        [0.0, 1.0], A, extra=lambda x, a: jnp.where(a == 1, 1 + jnp.cos(9 * x[1]), 0.0)
    )
    certificate = cordes.certify(problem, lambda x: wave(x) - sign * 0.01 * bubble(x))
    holds(certificate, lambda x: sign * 0.01 * bubble(x), 1e4)
    assert certificate.Linf <= 0.02


def test_a_maximiser_that_is_wrong_for_large_hessians_only():
    def A(x, a):
        return jnp.diag(jnp.stack([1.0 + 0 * a, 1 - 0.9 * a]))

    def maximiser(x, jet):
        second = jet.hessian[1, 1]
        return jnp.where(jnp.abs(second) < 50, jnp.clip(0.5 - 0.09 * second, 0, 1), 0.5)

    problem = cordes.HJB(
        SQUARE, np.linspace(0, 1, 9), A, lambda x, a: 5.0 * (a - 0.5) ** 2, maximiser=maximiser
    )
    certificate = cordes.certify(problem, lambda x: 100 * wave(x))
    assert certificate.Linf is None
    assert "maximiser is not the best" in certificate.reason


@pytest.mark.parametrize(
    "maximiser", [None, lambda x, jet: jnp.clip(0.5 - 0.95 * jet.hessian[1, 1], 0, 1)]
)
def test_controls_that_the_answer_never_shows(maximiser):
    """At the answer 0 the best control is 1/2; at the solution, which the nearly degenerate control
    1 shapes, it is 1 in most of the strip.

    The solution by finite differences (800 × 60) has Linf = 2.187, rms = 1.542, ‖∂u/∂x₂‖ = 33.6,
    ‖Δu‖ = 119.3; of these 2 % are taken off."""

    def A(x, a):
        return jnp.diag(jnp.stack([1.0 + 0 * a, 1 - 0.95 * a]))

    strip = cordes.Box([0, 0], [50, 1])
    problem = cordes.HJB(
        strip, np.linspace(0, 1, 11), A, lambda x, a: -1 + (a - 0.5) ** 2 / 2, maximiser=maximiser
    )
    certificate = cordes.certify(problem, lambda x: 0.0 * x[0])
    for name, least in (("Linf", 2.15), ("rms", 1.51), ("H1", 32.9), ("H2", 117.0)):
        assert least <= getattr(certificate, name) <= 20 * least, name


def test_a_sample_of_a_continuum_without_its_ends():
    """At the answer 0 the best control is 1/2; at the solution it is 1, where the equation is
    nearly degenerate: the sample must show it."""

    def A(x, a):
        return jnp.diag(jnp.stack([1.0 + 0 * a, 1 - 0.95 * a]))

    def problem(controls, maximiser):
        return cordes.HJB(
            cordes.Box([0, 0], [50, 1]),
            controls,
            A,
            lambda x, a: -1 + (a - 0.5) ** 2 / 2,
            maximiser=maximiser,
        )

    def clipped(x, jet):
        return jnp.clip(0.5 - 0.95 * jet.hessian[1, 1], 0, 1)

    with pytest.raises(
        cordes.CordesError,
        match=r"leaves the control set.*between 0\.05 and 0\.95\. "
        r"Include the ends of the set in controls",
    ):
        problem((np.arange(10) + 0.5) / 10, clipped)
    assert problem(np.linspace(0, 1, 11), clipped).maximiser is clipped

    # What the states tried at first do not show, those of the answer may.
    narrow = problem(np.linspace(0, 1, 11), clipped)
    vars(narrow)["controls"] = np.linspace(0.2, 0.8, 7)
    vars(narrow)["marks"] = fingerprints(narrow)
    certificate = cordes.certify(narrow, lambda x: 1e-3 * x[0] * (50 - x[0]) * x[1] * (1 - x[1]))
    assert certificate.Linf is None
    assert "leaves the control set" in certificate.reason


@pytest.mark.parametrize("offset", [0.0, 5e-7])
def test_large_values_are_known_to_their_rounding(offset):
    """At 10⁶ the offset lies within what rounding explains."""

    def g(x):
        return 1e6 + paraboloid(x)

    for problem in (cordes.MongeAmpere(SQUARE, 1.0, g=g), planted([0.0, 1.0], isotropic, g, g=g)):
        certificate = cordes.certify(problem, lambda x: g(x) + offset)
        assert max(offset, 3.5e-10) <= certificate.rms <= certificate.Linf <= 1e-5


def test_a_harmonic_function_of_large_values():
    """The answer is the solution itself, known to the rounding of its values."""

    def g(x):
        return 1e4 * jnp.exp(x[0]) * jnp.sin(x[1])

    solution = cordes.solve(cordes.HJB(SQUARE, [0.0, 1.0], isotropic, 0.0, g=g, exact=g))
    assert solution.error().linf <= solution.certificate.Linf <= 1e-9
    assert solution.error().l2 <= solution.certificate.rms


@pytest.mark.parametrize(("power", "integrable"), [(2.0, False), (1.5, True)])
@pytest.mark.parametrize("weight", [1.0, 1e-3])
def test_a_density_around_a_line_in_space(power, integrable, weight):
    """1/ρ² has an infinite integral around a line in space, ρ^(-3/2) a finite one."""
    cube = cordes.Box([0] * 3, [1] * 3)
    problem = cordes.MongeAmpere(
        cube, lambda x: 1 + weight * jnp.sum((x[:2] - PLACE) ** 2) ** (-power / 2), g=paraboloid
    )
    certificate = cordes.certify(problem, paraboloid)
    if integrable:
        assert "not a density" not in certificate.reason
    else:
        assert certificate.Linf is None
        assert "f may jump or have a pole" in certificate.reason


def test_what_is_not_a_number_for_a_control_of_the_first_block():
    """The other blocks of controls must not hide it."""

    def f(x, a):
        return jnp.where(a == 3, jnp.sqrt(x[0] - 1e-4), 1.0)

    problem = cordes.HJB(SQUARE, np.arange(40.0), isotropic, 1.0)
    # Past the checks, which would refuse it.
    vars(problem)["f"] = f
    points = np.array([[0.5, 0.5], [1e-5, 0.5]])
    best = Pairs(problem).best(
        points, SeenControls.nothing(2, 2), [lambda at: np.ones(len(at.trace))]
    )[0]
    assert np.isnan(best.lower).tolist() == np.isnan(best.upper).tolist() == [False, True]


@pytest.mark.parametrize("count", [20, 40])
def test_a_drift_of_many_controls_is_not_taken_for_granted(count):
    """b = 1/|x - p| for one control; with few controls enclosures see it, with many nothing is
    said."""

    def b(x, a):
        return jnp.where(a == 1, 1.0, 0.0) * (x - PLACE) / jnp.sum((x - PLACE) ** 2)

    def certificate(drift):
        return cordes.certify(
            cordes.HJB(SQUARE, np.arange(float(count)), lambda x, a: jnp.eye(2), -1.0, b=drift),
            lambda x: 0.0 * x[0],
        )

    refused = certificate(b)
    assert refused.Linf is None
    assert certificate(lambda x, a: jnp.array([0.1, 0.0]) * a / count).Linf >= 0.07


def test_a_solution_of_another_equation():
    """The answer of one equation, certified for another one with the same boundary values."""
    answer = cordes.solve(cordes.Linear(SQUARE, np.eye(2), lambda x: -2 * jnp.pi**2 * wave(x)))
    problem = planted([0.0, 1.0], isotropic, lambda x: 2 * wave(x))
    certificate = cordes.certify(problem, answer)
    assert 1.0 <= certificate.Linf <= 1.2
    assert 0.5 * (1 - 1e-9) <= certificate.rms <= 0.51
