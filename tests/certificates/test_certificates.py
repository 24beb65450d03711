"""Certificates as a user gets them: bounds that hold against known solutions, and refusals with
their reasons."""

import json
import os
import subprocess
import sys

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import cordes
from cordes.certificates.certificate import Certificate, directed
from cordes.certificates.residual.candidate import Evaluated
from cordes.certificates.residual.norms import fixed_rule
from cordes.certificates.theorems.energy import Local
from cordes.certificates.theorems.maximum import Barrier, MaximumPrinciple
from cordes.domains.domain import AbstractDomain
from cordes.gallery.paper_linear import manufactured

SQUARE = cordes.Box([0, 0], [1, 1])
POISSON = cordes.Linear(SQUARE, np.eye(2), 1.0)
# Certified root mean square errors that the answers must reach.
BARS = {
    "ex4.1-smooth": 1e-7,
    "ex4.1-singular": 1e-4,
    "ex4.2-continuous": 1e-7,
    "ex4.2-discontinuous": 1e-7,
    "ex4.3-ellipsoid": 1e-7,
    "ex4.4-continuous": 1e-5,
    "ex4.4-discontinuous": 1e-5,
}


def zero(x):
    return 0.0 * x[0]


def bubble(x):
    return x[0] * (1 - x[0]) * x[1] * (1 - x[1])


def no_bound(certificate) -> bool:
    return all(
        getattr(certificate, name) is None for name in ("H2", "H1", "L2", "rms", "Linf", "energy")
    )


@pytest.mark.parametrize("name", BARS)
def test_the_gallery_is_certified(solved, name):
    solution = solved.certified(name)
    certificate = solution.certificate
    assert certificate.level in ("quadrature", "enclosed")
    assert certificate.spread is None or certificate.spread <= 0.01
    assert certificate.rms <= BARS[name]
    assert certificate.rms == pytest.approx(
        certificate.L2 / np.sqrt(solution.problem.domain.volume)
    )
    assert 0 < certificate.energy[0] <= certificate.energy[1]
    if solution.problem.exact is not None:
        error = solution.error()
        assert error.l2 <= certificate.rms
        assert error.linf <= certificate.Linf


@pytest.mark.parametrize("name", ["ex4.1-smooth", "ex4.2-discontinuous"])
def test_every_norm_of_an_answer(solved, name):
    """Derivatives of the error against the exact ones, by the mean over many points."""
    solution = solved.certified(name)
    certificate, domain = solution.certificate, solution.problem.domain
    points = domain.interior_points(20_000, seed=3)
    jet = solution.jet(points)
    gradient = np.asarray(jax.jit(jax.vmap(jax.grad(solution.problem.exact)))(points))
    hessian = np.asarray(jax.jit(jax.vmap(jax.hessian(solution.problem.exact)))(points))

    def norm(values):
        return np.sqrt(
            domain.volume * np.mean(np.sum(values.reshape(len(points), -1) ** 2, axis=1))
        )

    assert norm(jet.gradient - gradient) <= certificate.H1
    assert norm(jet.hessian - hessian) <= certificate.H2


def test_the_torsion_problem():
    """Δu = 1, u_θ = 0 on the unit square: the error is the torsion function, with maximum 0.0737
    and known bounds."""
    certificate = cordes.certify(POISSON, zero)
    assert 0.073671 <= certificate.Linf <= 0.1126
    assert pytest.approx(1 / (2 * np.pi**2), rel=1e-9) == certificate.L2
    assert pytest.approx(1 / np.sqrt(2 * np.pi**2), rel=1e-9) == certificate.H1
    assert certificate.energy == pytest.approx((1.0, 1.0), rel=1e-9)
    assert certificate.alternatives["ABP"] == pytest.approx(np.sqrt(2) / 8, rel=1e-9)
    assert certificate.epsilon_source == "analytic"
    assert certificate.reason is None


def test_a_barrier_network_is_sharper():
    """The torsion problem has the maximum 0.0737: ABP gives 0.177, Green 0.113, the network nearly
    the truth."""
    certificate = cordes.certify(POISSON, zero, norm="Linf", barrier=True)
    assert certificate.maximum_theorem == "barrier (network)"
    assert 0.073671 <= certificate.Linf <= 0.08


@pytest.mark.parametrize("size", [0.01, 0.3, 5.0])
def test_any_barrier_gives_a_bound(size):
    """w = size · x(1-x)y(1-y) is far from the torsion function: what it lacks goes into the ABP
    term."""
    x, weight = SQUARE.quadrature(24)
    ones = np.ones(len(x))
    evaluated = Evaluated(
        Local(np.tile(np.eye(2), (len(x), 1, 1)), np.zeros_like(x), 0 * ones), ones, 0 * ones
    )
    principle = MaximumPrinciple(SQUARE, fixed_rule(x, weight), evaluated, False)
    products = x * (1 - x)
    barrier = Barrier(
        "bubble", size * np.prod(products, axis=1), 2 * size * np.sum(products, axis=1), size / 16
    )
    assert 0.073671 <= principle.with_barrier(barrier).bound < np.inf


def test_a_function_of_a_user():
    """Any function may be certified; a drift without a reaction is covered."""

    def exact(x):
        return jnp.sin(jnp.pi * x[0]) * x[1] * (1 - x[1])

    def A(x):
        return jnp.array([[2 + x[0], 0.3], [0.3, 1 + x[1] ** 2]])

    problem = cordes.Linear(
        SQUARE,
        A,
        manufactured(A, exact, lambda x: jnp.array([1.0, -x[0]])),
        b=lambda x: jnp.array([1.0, -x[0]]),
    )
    certificate = cordes.certify(problem, lambda x: exact(x) + 0.01 * bubble(x) * jnp.cos(3 * x[0]))
    points = SQUARE.interior_points(20_000, seed=1)
    error = 0.01 * np.prod(points * (1 - points), axis=1) * np.cos(3 * points[:, 0])
    assert np.sqrt(np.mean(error**2)) <= certificate.rms <= 10 * np.sqrt(np.mean(error**2))
    assert np.max(np.abs(error)) <= certificate.Linf
    assert certificate.theorem.startswith("T2")
    assert certificate.epsilon_source == "interval"


def test_rescued_by_a_constant_preconditioner():
    certificate = cordes.certify(cordes.gallery["constant-3d"], cordes.gallery["constant-3d"].exact)
    assert "T1d" in certificate.theorem
    assert certificate.contraction < 1e-9
    assert certificate.H2 is not None


def test_large_drifts_need_the_exponential_transform():
    """Constant coefficients with |b| far beyond T2: the transform covers them; a strong rotation is
    left to the maximum principle."""
    problem = cordes.Linear(SQUARE, np.eye(2), 1.0, b=[12.0, 5.0])
    certificate = cordes.certify(problem, zero)
    assert "exponential transform" in certificate.theorems["energy"]
    rotation = cordes.Linear(
        SQUARE, np.eye(2), 1.0, b=lambda x: 40 * jnp.array([x[1] - 0.5, 0.5 - x[0]])
    )
    certificate = cordes.certify(rotation, zero)
    # Derivatives follow from the bound of the error itself.
    assert certificate.theorems["H1"].startswith("interpolation")
    assert certificate.theorems["H2"].startswith("interpolation")
    assert certificate.rms <= certificate.Linf
    assert "T2 needs a contraction below 1" in certificate.reason


def test_statistical_levels():
    """In five dimensions: asymptotic without a bound of the residual, guaranteed with one."""
    domain = cordes.Box([0] * 5, [1] * 5)

    def exact(x):
        return jnp.prod(jnp.sin(jnp.pi * x))

    problem = cordes.Linear(domain, np.eye(5), lambda x: -5 * jnp.pi**2 * exact(x))
    asymptotic = cordes.certify(problem, zero)
    guaranteed = cordes.certify(problem, zero, residual_bound=5 * np.pi**2)
    truth = 0.5**2.5
    assert asymptotic.level == "statistical (asymptotic)"
    assert guaranteed.level == "statistical"
    assert (asymptotic.confidence, guaranteed.confidence) == (0.99, 0.99)
    assert truth <= asymptotic.rms <= 1.05 * truth
    assert asymptotic.rms <= guaranteed.rms <= 2 * truth
    assert asymptotic.Linf >= 1
    assert guaranteed.Linf is None


# Refusals -----------------------------------------------------------------------------------------


def test_a_kink_is_refused():
    """The residual of min(x, 1-x, y, 1-y) is zero and its error is 1/2."""
    problem = cordes.Linear(SQUARE, np.eye(2), 0.0)
    certificate = cordes.certify(
        problem, lambda x: jnp.min(jnp.stack([x[0], 1 - x[0], x[1], 1 - x[1]]))
    )
    assert no_bound(certificate)
    assert "kink" in certificate.reason


def test_relu_is_refused_and_its_square_is_not():
    assert no_bound(cordes.certify(POISSON, lambda x: bubble(x) * jax.nn.relu(x[0] - 0.3)))
    assert (
        cordes.certify(POISSON, lambda x: bubble(x) * jax.nn.relu(x[0] - 0.3) ** 2).rms is not None
    )


class Tent(AbstractDomain):
    """The unit square with a distance function that has kinks."""

    dimension = property(lambda self: 2)
    volume = property(lambda self: 1.0)
    bounding_box = property(lambda self: SQUARE.bounding_box)
    center = property(lambda self: SQUARE.center)

    def distance(self, x):
        return jnp.min(jnp.concatenate([x, 1 - x]))

    def contains(self, points, tolerance=0.0):
        return SQUARE.contains(points, tolerance)

    def interior_points(self, count, seed=0, kind="uniform"):
        return SQUARE.interior_points(count, seed, kind)

    def quadrature(self, count):
        return SQUARE.quadrature(count)

    def boundary_at(self, directions):
        return SQUARE.boundary_at(directions)

    def boundary_points(self, count, seed=0):
        return SQUARE.boundary_points(count, seed)

    def lift(self, g, interfaces=()):
        return SQUARE.lift(g, interfaces)


def test_a_kink_in_the_distance_of_a_domain_is_refused():
    solution = cordes.solve(cordes.Linear(Tent(), np.eye(2), 1.0), features=50)
    assert no_bound(solution.certificate)
    assert "the distance function of the domain: min" in solution.certificate.reason


def test_a_boundary_mismatch_is_refused():
    certificate = cordes.certify(POISSON, lambda x: bubble(x) + 1e-4 * x[0] ** 4)
    assert no_bound(certificate)
    assert "boundary values are not exact" in certificate.reason
    assert "g = 0 at x = [1." in certificate.reason


def test_a_soft_boundary_is_refused():
    solution = cordes.solve(POISSON, boundary="soft", features=60)
    assert no_bound(solution.certificate)
    assert 'boundary_rows="hard"' in solution.certificate.reason


def test_a_planted_mismatch_in_an_answer_is_refused(solved):
    """The answer of one problem shown as that of another with other boundary values."""
    solution = cordes.solve(POISSON, features=60)
    other = cordes.Linear(SQUARE, np.eye(2), 1.0, g=lambda x: 1e-3 * x[0])
    assert no_bound(solution.replace(problem=other).certify())


def test_the_discontinuous_example_in_three_dimensions():
    """A = I + 9 x̂x̂ᵀ: the residual of 1 - |x|^0.8 is zero, so no bound may be given for u_θ =
    0."""
    certificate = cordes.certify(
        cordes.Linear(cordes.Ball([0, 0, 0], 1), cordes.gallery["discontinuous-3d"].A, 0.0), zero
    )
    assert no_bound(certificate)
    assert "continuous A" in certificate.reason


def test_no_energy_bound_for_an_axis_that_covers_the_sphere():
    certificate = cordes.certify(cordes.gallery["turning-3d"], cordes.gallery["turning-3d"].exact)
    assert certificate.H2 is None
    assert certificate.energy is None
    assert certificate.Linf is not None  # A is continuous: the maximum principle holds.


def test_coefficients_that_nothing_covers():
    """c below -λ₁: the equation may have no unique solution."""
    certificate = cordes.certify(cordes.Linear(SQUARE, np.eye(2), 1.0, c=-25.0), zero)
    assert no_bound(certificate)
    assert "T2 needs a contraction below 1" in certificate.reason
    assert "c is negative" in certificate.reason


def test_a_violation_between_the_samples_is_found():
    """A spike of width 1e-3 in three dimensions, which no sampled point sees, breaks the Cordès
    condition."""
    place = jnp.array([0.3127, 0.6121, 0.4711])

    def A(x):
        return jnp.diag(jnp.array([1 + 20 * jnp.exp(-jnp.sum((x - place) ** 2) / 1e-6), 1.0, 1.0]))

    problem = cordes.Linear(cordes.Box([0, 0, 0], [1, 1, 1]), A, 1.0)
    certificate = cordes.certify(problem, zero)
    assert certificate.H2 is None
    assert certificate.energy is None
    assert "T1b needs a contraction below 1" in certificate.reason
    assert not cordes.check(problem).satisfied
    np.testing.assert_allclose(cordes.check(problem).worst_point, place, atol=2e-3)


def test_a_loss_of_ellipticity_between_the_samples_is_found():
    def A(x):
        return jnp.diag(
            jnp.array(
                [1.0, 1 - 20 * jnp.exp(-((x[0] - 0.3127) ** 2 + (x[1] - 0.6121) ** 2) / 1e-7)]
            )
        )

    certificate = cordes.certify(cordes.Linear(SQUARE, A, 1.0), zero)
    assert no_bound(certificate)
    assert "not positive definite near x = [0.312" in certificate.reason


def steep_beyond_a_line(x):
    return jnp.diag(jnp.array([1.0, jnp.where(x[0] > 0.3, 2.0, 1.0)]))


def steep_in_a_disk(x):
    return jnp.diag(jnp.array([1.0, jnp.where(jnp.sum((x - 0.6) ** 2) < 0.01, 2.0, 1.0)]))


UNDECLARED = {
    "line": ({"A": steep_beyond_a_line}, lambda x: x[0] - 0.3),
    "disk": ({"A": steep_in_a_disk}, lambda x: jnp.sum((x - 0.6) ** 2) - 0.01),
    "source": (
        {"f": lambda x: jnp.where(x[0] + 0.3 * x[1] > 0.6, 2.0, 1.0)},
        lambda x: x[0] + 0.3 * x[1] - 0.6,
    ),
}


@pytest.mark.parametrize("name", UNDECLARED)
def test_jumps_that_formulas_show_need_no_declaration(name):
    """The bound covers the difference from the answer with the interface declared."""
    coefficients, interface = UNDECLARED[name]
    data = {"A": np.eye(2), "f": 1.0} | coefficients
    solution = cordes.solve(cordes.Linear(SQUARE, **data), features=250)
    declared = cordes.solve(cordes.Linear(SQUARE, **data, interfaces=[interface]), features=400)
    x = SQUARE.interior_points(500, seed=3)
    assert 0 < solution.certificate.Linf < 5e-3
    both = solution.certificate.Linf + declared.certificate.Linf
    assert np.max(np.abs(solution(x) - declared(x))) <= both


@pytest.mark.filterwarnings("ignore::cordes.UndeclaredJumpWarning")
def test_more_undeclared_jumps_than_are_looked_for_are_refused():
    def f(x):
        return 1.0 + sum(jnp.where(x[0] > place, 1.0, 0.0) for place in np.arange(1, 9) / 9)

    solution = cordes.solve(cordes.Linear(SQUARE, np.eye(2), f), features=250)
    assert no_bound(solution.certificate)
    assert "no interface is declared there" in solution.certificate.reason


def test_single_precision_is_refused():
    program = (
        "import cordes, json, numpy as np\ncertificate = "
        "cordes.certify(cordes.Linear(cordes.Box([0, 0], [1, 1]), np.eye(2), 1.0), lambda x: 0.0 "
        "* x[0])\nprint(json.dumps(certificate.facts()))"
    )
    environment = {**os.environ, "JAX_ENABLE_X64": "0"}
    output = subprocess.run(
        [sys.executable, "-c", program], env=environment, capture_output=True, text=True, check=True
    ).stdout
    facts = json.loads(output.splitlines()[-1])
    assert facts["rms"] is None
    assert "double precision is off" in facts["reason"]


# Seeing it ----------------------------------------------------------------------------------------


def test_the_printed_certificate(solved):
    text = str(solved.certified("ex4.2-continuous").certificate)
    for words in (
        "root mean square error  ≤",
        "largest error",
        "between",
        "theorem",
        "contraction",
        "quadrature:",
        "converged, not proved",
    ):
        assert words in text
    refused = str(cordes.certify(POISSON, lambda x: jnp.minimum(x[0], 1 - x[0])))
    assert "no bound" in refused
    assert "reason" in refused


def test_the_figure_of_a_certificate(solved, tmp_path):
    certificate = solved.certified("ex4.1-smooth").certificate
    figure = certificate.plot(tmp_path / "certificate.png")
    assert (tmp_path / "certificate.png").stat().st_size > 20_000
    titles = [axes.get_title() for axes in figure.axes]
    assert "bound of |error|" in titles
    assert "|residual|" in titles
    points = solved("ex4.1-smooth").problem.domain.interior_points(500, seed=9)
    bound = certificate.picture.bound(points)
    assert np.all(bound <= certificate.Linf * (1 + 1e-12))
    assert np.all(
        np.abs(
            solved("ex4.1-smooth")(points) - jax.vmap(solved("ex4.1-smooth").problem.exact)(points)
        )
        <= bound
    )


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"norm": "L7"}, "L7"),
        ({"confidence": 1.5}, "confidence = 1.5"),
        ({"residual_bound": -1.0}, "residual_bound = -1.0"),
        ({"norm": "L2", "barrier": True}, "norm='Linf'"),
    ],
)
def test_bad_arguments(arguments, message):
    with pytest.raises(cordes.CordesError, match=message):
        cordes.certify(POISSON, zero, **arguments)


def test_rounding_of_the_residual_is_covered(solved):
    """The residual of a network of sines in extended precision differs by less than the bound of
    its rounding."""
    from cordes.certificates.residual.candidate import AnswerCandidate

    solution = solved("ex4.2-continuous", method="least-squares")
    network, x = solution.network, solution.problem.domain.interior_points(200, seed=5)
    (weight, bias), coefficients = (
        network.layers[0],
        np.asarray(network.coefficients).astype(np.longdouble),
    )
    y = x.astype(np.longdouble)
    z = (y - network.inputs.center) / network.inputs.scale
    s = z @ np.asarray(weight).astype(np.longdouble) + np.asarray(bias).astype(np.longdouble)
    value = np.sin(s) @ coefficients
    slope = [
        (np.cos(s) * (np.asarray(weight)[i] / network.inputs.scale[i])) @ coefficients
        for i in range(2)
    ]
    W = np.asarray(weight) / network.inputs.scale[:, None]
    bend = [[-(np.sin(s) * W[i] * W[j]) @ coefficients for j in range(2)] for i in range(2)]
    D, D1 = (
        (1 - y[:, 0] ** 2) * (1 - y[:, 1] ** 2),
        [-2 * y[:, 0] * (1 - y[:, 1] ** 2), -2 * y[:, 1] * (1 - y[:, 0] ** 2)],
    )
    D2 = [
        [-2 * (1 - y[:, 1] ** 2), 4 * y[:, 0] * y[:, 1]],
        [4 * y[:, 0] * y[:, 1], -2 * (1 - y[:, 0] ** 2)],
    ]
    u1 = [D * slope[i] + value * D1[i] for i in range(2)]
    u2 = [
        [D * bend[i][j] + value * D2[i][j] + D1[i] * slope[j] + D1[j] * slope[i] for j in range(2)]
        for i in range(2)
    ]
    A, b, c, _ = solution.problem.coefficients(x)
    zero_weight = np.zeros(len(solution.amplitudes))
    applied, size = solution.ansatz.apply(network, zero_weight, x, A, b, c)
    exact = (
        sum(A[:, i, j] * u2[i][j] for i in range(2) for j in range(2))
        + sum(b[:, i] * u1[i] for i in range(2))
        - c * D * value
    )
    evaluated = AnswerCandidate(solution.problem, solution).evaluate(x)
    difference = np.abs((applied - exact).astype(float))
    assert np.max(difference / (np.finfo(float).eps * size)) < 2
    assert np.all(difference <= evaluated.rounding)


@pytest.mark.parametrize(
    ("value", "digits", "above", "below"),
    [
        (1.333e-7, 2, 1.4e-7, 1.3e-7),
        (9.991, 2, 10.0, 9.9),
        (0.25, 2, 0.25, 0.25),
        (0.0, 3, 0.0, 0.0),
    ],
)
def test_bounds_are_printed_rounded_outwards(value, digits, above, below):
    assert directed(value, digits, up=True) == pytest.approx(above, rel=1e-15)
    assert directed(value, digits, up=False) == pytest.approx(below, rel=1e-15)
    rows = dict(
        Certificate(
            rms=1.0001e-3, Linf=1.0, L2=1.0, level="quadrature", energy=(1.9999, 2.0001), points=1
        ).rows()
    )
    assert rows["root mean square error"] == "≤ 0.00101"
    assert rows["‖Δv‖"] == "between 1.99 and 2.01"
