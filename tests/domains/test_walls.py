"""Boxes with conditions on their faces: the functions that fulfil them, their lift, and the
constants on which the bounds rest, against independent computations."""

import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.linalg

from cordes.ansatz.cells.axis import Axis, axes_of
from cordes.ansatz.networks.inputs import Inputs
from cordes.domains import Box
from cordes.domains.constants import first_eigenvalue
from cordes.domains.polar import largest_polar_factor, polar_factor
from cordes.domains.walls import Direction, FaceData, Walled
from cordes.domains.walls.constants import modes_constant, second_eigenvalue

# Both ends D, D and N, both N, D and R, both R, and the other ways round.
ENDS = {
    "DD": (None, None),
    "DN": (None, 0.0),
    "NN": (0.0, 0.0),
    "DR": (None, 2.5),
    "RR": (0.7, 3.0),
    "ND": (0.0, None),
    "RD": (4.0, None),
    "RN": (1.5, 0.0),
}
FIVE = ("DD", "DN", "NN", "DR", "RR")
PAIRS = list(itertools.product(FIVE, FIVE))
NODES, WEIGHTS = np.polynomial.legendre.leggauss(40)


def direction(kind, lower=0.3, upper=1.7):
    if kind == "periodic":
        return Direction(lower, upper, None, None, True)
    return Direction(lower, upper, *ENDS[kind])


def walled(*kinds, lower=(0.3, -0.5, 0.1), upper=(1.7, 0.6, 0.8)):
    d = len(kinds)
    own = [direction(kind, lower[k], upper[k]) for k, kind in enumerate(kinds)]
    return Walled(Box(lower[:d], upper[:d]), own)


def condition(own, function, end):
    """What is given at an end, of a function of one number."""
    place = own.upper if end else own.lower
    kappa, sign = own.kappa(end), 1.0 if end else -1.0
    value, slope = jax.value_and_grad(function)(jnp.asarray(place))
    return float(value if kappa is None else sign * slope + kappa * value)


@pytest.mark.parametrize("kind", ENDS)
def test_functions_of_a_direction_fulfil_its_conditions(kind):
    own = direction(kind)

    def homogeneous(x):
        z = jnp.stack(own.coordinates(x))
        return own.factor(x) * jnp.sin(jnp.sum(z * jnp.array([1.3, -0.7])[: len(z)]) + 0.4)

    for end in (0, 1):
        assert abs(condition(own, homogeneous, end)) <= 1e-13
        for k in (0, 1):
            wanted = 1.0 if k == end else 0.0
            found = condition(own, lambda x, k=k: own.cardinal(x)[k], end)
            assert abs(found - wanted) <= 1e-13
    inside = np.linspace(own.lower, own.upper, 50)[1:-1]
    assert np.min([own.factor(x) for x in inside]) > 0
    # The opposite end as well: a factor without slope where u is given would lose functions.
    for end in (0, 1):
        if own.kappa(end) is None:
            place = own.upper if end else own.lower
            assert abs(float(jax.grad(own.factor)(place))) > 0.5


def test_periodic_functions_go_on_at_the_other_end():
    own = direction("periodic")
    function = lambda x: jnp.exp(own.coordinates(x)[0]) * own.coordinates(x)[1]  # noqa: E731
    for derivative in (function, jax.grad(function), jax.grad(jax.grad(function))):
        assert abs(derivative(own.lower) - derivative(own.upper)) <= 1e-11
    (axis,) = axes_of([[own.lower, own.upper]], True, [8], [own])
    low, high = (axis.tables(np.array([x])) for x in (own.lower, own.upper))
    np.testing.assert_allclose(low[0], high[0], atol=1e-13)
    np.testing.assert_allclose(low[1], high[1], atol=1e-12)


@pytest.mark.parametrize("lines", [[0.3, 1.7], [0.3, 0.8, 1.7]])
@pytest.mark.parametrize("kind", ENDS)
def test_polynomials_of_an_axis_fulfil_the_conditions(kind, lines):
    own = direction(kind)
    (axis,) = axes_of([lines], True, [9], [own])
    values, slopes, _ = axis.tables(np.array([own.lower, own.upper]))
    for end, sign in ((0, -1.0), (1, 1.0)):
        kappa = own.kappa(end)
        given = values[end] if kappa is None else sign * slopes[end] + kappa * values[end]
        np.testing.assert_allclose(given, 0, atol=1e-12)
    # The same functions in a trace, and all that there are: two conditions less than polynomials.
    traced = jax.vmap(lambda x: axis.values(x, jnp))(jnp.array([0.5, 1.1]))
    np.testing.assert_allclose(traced, axis.tables(np.array([0.5, 1.1]))[0], atol=1e-13)
    pieces = len(lines) - 1
    assert len(axis.ranks) == pieces * 10 - 2 * (pieces - 1) - 2
    grid = np.linspace(0.3, 1.7, 60)
    assert np.linalg.matrix_rank(axis.tables(grid)[0]) == len(axis.ranks)


def spectrum(own, degree=24):
    """Eigenvalues of -u'' with the conditions by Galerkin, in functions that fulfil them."""
    axis: Axis = axes_of([[own.lower, own.upper]], True, [degree], [own])[0]
    x = (own.lower + own.upper) / 2 + own.width / 2 * NODES
    values, _, second = axis.tables(x)
    weight = WEIGHTS[:, None] * own.width / 2
    stiffness = -values.T @ (weight * second)
    mass = values.T @ (weight * values)
    return scipy.linalg.eigh((stiffness + stiffness.T) / 2, mass, eigvals_only=True)


@pytest.mark.parametrize("kind", [*ENDS, "periodic"])
def test_eigenvalues_are_lower_bounds_and_the_first_one_is_sharp(kind):
    own = direction(kind)
    found = spectrum(own)
    assert own.first_eigenvalue <= found[0] + 1e-9
    assert own.first_eigenvalue >= found[0] - 1e-6
    if own.free:
        assert own.second_eigenvalue == pytest.approx(found[1], rel=1e-6)
    elif not own.periodic:
        bounds, _ = own.modes(8)
        assert np.all(bounds <= found[:8] * (1 + 1e-9) + 1e-9)


def test_the_first_eigenvalue_of_a_box_is_a_sum_and_needs_a_diagonal_matrix():
    domain = walled("DN", "RR")
    parts = [spectrum(own)[0] for own in domain.directions]
    assert first_eigenvalue(domain) == pytest.approx(sum(parts), rel=1e-8)
    matrix = np.diag([2.0, 0.5])
    wanted = 2 * parts[0] + 0.5 * parts[1]
    assert first_eigenvalue(domain, matrix) == pytest.approx(wanted, rel=1e-8)
    assert first_eigenvalue(domain, np.array([[1.0, 0.1], [0.1, 1.0]])) == 0.0
    free = walled("NN", "NN")
    assert first_eigenvalue(free) == 0.0
    assert second_eigenvalue(free) == pytest.approx((np.pi / 1.4) ** 2)


def data_of(domain, function):
    """What a function has on the faces."""
    functions = {face: domain.boundary_operator(function, *face) for face in domain.faces}
    return FaceData(domain, functions)


def smooth(x):
    return jnp.exp(0.7 * x[0] - 0.3 * x[-1]) + jnp.sin(1.3 * x[0] * x[1] + 0.5 + x[-1])


def assert_lifted(domain, function):
    lift = jax.jit(jax.vmap(domain.lift(data_of(domain, function))))
    slopes = jax.jit(jax.vmap(jax.grad(domain.lift(data_of(domain, function)))))
    points, normals = domain.boundary_points(300, 1)
    known, slope, value = domain.condition_at(normals)
    wanted = data_of(domain, function).on(points, normals)
    found = slope * np.sum(slopes(points) * normals, axis=1) + value * lift(points)
    np.testing.assert_allclose(found[known], wanted[known], atol=1e-12)


# All 25 are solved in tests/certificates/test_walls.py.
@pytest.mark.parametrize("kinds", [("DN", "RR"), ("NN", "NN"), ("DD", "NN"), ("periodic", "DR")])
def test_the_lift_has_the_data_on_every_face(kinds):
    function = smooth
    if "periodic" in kinds:
        function = lambda x: jnp.cos(2 * jnp.pi * (x[0] - 0.3) / 1.4) * jnp.exp(x[1])  # noqa: E731
    assert_lifted(walled(*kinds), function)


def test_the_lift_in_three_dimensions():
    assert_lifted(walled("DN", "RR", "NN"), smooth)


def test_data_that_do_not_fit_together_are_told():
    domain = walled("NN", "DD")
    assert domain.mismatch(data_of(domain, smooth))[0] <= 1e-12
    functions = dict(data_of(domain, smooth).functions)
    functions[0, 1] = lambda x: functions[0, 0](x) + 1.0
    size, place, faces = domain.mismatch(FaceData(domain, functions))
    assert size > 1e-3
    assert faces[0] == "right"
    assert place[0] == domain.upper[0]


# The identity and the bounds of theorem B, with functions that fulfil the conditions


class Sampled:
    """A random function that fulfils the conditions, on a tensor grid of Gauss points."""

    def __init__(self, domain, generator, degree=7):
        lines = [[own.lower, own.upper] for own in domain.directions]
        axes = axes_of(lines, True, [degree] * len(lines), domain.directions)
        x = [(own.lower + own.upper) / 2 + own.width / 2 * NODES for own in domain.directions]
        tables = [axis.tables(part) for axis, part in zip(axes, x, strict=True)]
        decay = [1.0 / (1 + axis.ranks) ** generator.uniform(0, 3) for axis in axes]
        c = generator.standard_normal([len(axis.ranks) for axis in axes])
        c = c * decay[0][:, None] * decay[1]
        at = lambda i, j: tables[0][i] @ c @ tables[1][j].T  # noqa: E731
        self.value, self.xx, self.yy, self.xy = at(0, 0), at(2, 0), at(0, 2), at(1, 1)
        self.slopes = at(1, 0), at(0, 1)
        self.weight = np.outer(WEIGHTS, WEIGHTS) * domain.volume / 4
        grid = np.meshgrid(*x, indexing="ij")
        self.points = np.stack([part.ravel() for part in grid], axis=1)

    def norm(self, *parts):
        return float(np.sqrt(np.sum(self.weight * sum(part**2 for part in parts))))

    def residual(self, generator, aligned):
        """A:D²v for random elliptic A, or one that makes it small, and det A^{1/2}, sup ρ'."""
        t = np.exp(generator.uniform(-1, 1, self.value.shape))
        rho = generator.uniform(0.2, 0.9)
        # A₀ against the trace-free part of D²v.
        first, second = (self.xx - self.yy) / 2, self.xy
        length = np.maximum(np.hypot(first, second), 1e-300)
        sign = -np.sign(self.xx + self.yy) if aligned else generator.choice([-1, 1])
        share = rho if aligned else rho * generator.random(self.value.shape)
        p, q = share * sign * first / length, share * sign * second / length
        r = t / 2 * ((1 + p) * self.xx + (1 - p) * self.yy + 2 * q * self.xy)
        return r, t, np.sqrt(t**2 / 4 * (1 - p**2 - q**2)), rho


def violations(wrong=1.0, cases=12):
    """Over all 25 combinations: the smallest quotients of bound and truth."""
    generator, worst = np.random.default_rng(7), {}

    def seen(name, bound, truth):
        worst[name] = min(worst.get(name, np.inf), wrong * bound / truth)

    for kinds, case in itertools.product(PAIRS, range(cases)):
        domain = walled(*kinds)
        v = Sampled(domain, generator)
        laplacian, hessian = v.norm(v.xx + v.yy), v.norm(v.xx, v.yy, v.xy, v.xy)
        seen("D2", laplacian, hessian)
        r, t, root, rho = v.residual(generator, case % 2 == 0)
        energy = v.norm(2 * r / t) / (1 - rho)
        seen("T1b", energy, laplacian)
        eigenvalue = first_eigenvalue(domain)
        if eigenvalue > 0:
            seen("L2", laplacian / eigenvalue, v.norm(v.value))
            seen("H1", laplacian / np.sqrt(eigenvalue), v.norm(*v.slopes))
            constant = modes_constant(domain, np.eye(2), 0.0)
            seen("modes", constant * laplacian, np.max(np.abs(v.value)))
        else:
            centred = v.value - np.sum(v.weight * v.value) / domain.volume
            seen("mean", laplacian / second_eigenvalue(domain), v.norm(centred))
            constant = modes_constant(domain, np.eye(2), 0.0, without_mean=True)
            seen("modes", constant * laplacian, np.max(np.abs(centred)))
        lambda_ = generator.uniform(0.1, 5)
        shifted = v.norm(v.xx + v.yy - lambda_ * v.value)
        constant = modes_constant(domain, np.eye(2), lambda_)
        seen("modes with λ", constant * shifted, np.max(np.abs(v.value)))
        if np.isfinite(largest_polar_factor(domain)):
            own = polar_factor(domain, v.points).reshape(v.value.shape) * v.norm(r / root)
            seen("ABP", float(np.min(own / np.maximum(np.abs(v.value), 1e-300))), 1.0)
    return worst


def test_bounds_lie_above_the_truth_for_all_combinations():
    worst = violations()
    assert set(worst) == {"D2", "T1b", "L2", "H1", "mean", "modes", "modes with λ", "ABP"}
    assert min(worst.values()) >= 1 - 1e-9
    assert worst["D2"] <= 1 + 1e-9


def test_the_battery_sees_a_wrong_constant():
    worst = violations(wrong=0.9, cases=2)
    assert worst["D2"] < 1


@pytest.mark.parametrize("kinds", [("DD", "DD"), ("DN", "RR"), ("NN", "DD"), ("DR", "periodic")])
def test_the_constant_of_modes_is_above_the_best_one_and_near_it(kinds):
    """The best C with |v(x)| ≤ C ‖Δv‖ at a point has C² = φ(x)ᵀG⁻¹φ(x), G the products of Δφ."""
    domain = walled(*kinds)
    lines = [[own.lower, own.upper] for own in domain.directions]
    axes = axes_of(lines, True, [16, 16], domain.directions)
    x = [(own.lower + own.upper) / 2 + own.width / 2 * NODES for own in domain.directions]
    one, other = (axis.tables(part) for axis, part in zip(axes, x, strict=True))
    basis = np.einsum("ia,jb->ijab", one[0], other[0]).reshape(1600, -1)
    second = np.einsum("ia,jb->ijab", one[2], other[0]) + np.einsum("ia,jb->ijab", one[0], other[2])
    weight = np.sqrt(np.outer(WEIGHTS, WEIGHTS).ravel() * domain.volume / 4)
    triangle = np.linalg.qr(weight[:, None] * second.reshape(1600, -1), mode="r")
    best = np.max(np.linalg.norm(np.linalg.solve(triangle.T, basis.T), axis=0))
    constant = modes_constant(domain, np.eye(2), 0.0)
    assert best <= constant <= 1.35 * best


def test_inputs_of_a_walled_box_are_its_coordinates():
    domain = walled("DN", "DD")
    inputs = Inputs(domain, coordinates=domain.coordinates)
    assert inputs.count == 3
    jet = inputs.jet(jnp.asarray(domain.center))
    plain = jax.hessian(domain.coordinates)(jnp.asarray(domain.center))
    np.testing.assert_allclose(jet.hessian, plain, atol=1e-12)
