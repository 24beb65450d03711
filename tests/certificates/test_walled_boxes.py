"""Boxes with conditions on their faces, the whole way: manufactured solutions are found, and bounds
lie above the truth."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import cordes

KAPPA = (1.5, 2.5, 0.7, 4.0, 1.0, 3.0)


def exact(x):
    return jnp.exp(0.7 * x[0] - 0.3 * x[1]) * jnp.sin(1.3 * x[-1] + 0.5) + jnp.cos(x[0] * x[1])


def conditions(domain, kinds, u=exact):
    """Those of a function, with its data."""
    found = {}
    for k, name in enumerate(domain.pieces):
        axis, end = divmod(k, 2)
        kind, sign = kinds[axis][end], 1.0 if end else -1.0
        slope = lambda x, axis=axis, sign=sign: sign * jax.grad(u)(x)[axis]  # noqa: E731
        flow = lambda x, s=slope, kappa=KAPPA[k]: s(x) + kappa * u(x)  # noqa: E731
        found[name] = {
            "D": cordes.Dirichlet(u),
            "N": cordes.Neumann(slope),
            "R": cordes.Robin(KAPPA[k], flow),
        }[kind]
    return found


def manufactured(kinds, c=0.0, b=None, u=exact):
    d = len(kinds)
    domain = cordes.Box([0.0, -0.5, 0.2][:d], [1.3, 0.4, 1.0][:d])
    A = jnp.array([[2.0, 0.3, 0.0], [0.3, 1.0, 0.1], [0.0, 0.1, 1.5]])[:d, :d]
    drift = jnp.zeros(d) if b is None else jnp.asarray(b)

    def f(x):
        return jnp.sum(A * jax.hessian(u)(x)) + drift @ jax.grad(u)(x) - c * u(x)

    boundary = conditions(domain, kinds, u)
    return cordes.Linear(domain, A=A, f=f, b=b, c=c, boundary=boundary, exact=u)


def assert_certified(solution, limit):
    error, certificate = solution.error(), solution.certificate
    assert error.linf <= limit
    assert solution.converged
    assert certificate.level == "enclosed"
    assert certificate.Linf >= error.linf * (1 - 1e-9)
    assert certificate.rms >= error.l2 * (1 - 1e-9)
    assert None not in (certificate.H1, certificate.H2, certificate.energy)


@pytest.mark.long
@pytest.mark.parametrize("kinds", [("DN", "RR"), ("DR", "NN")])
def test_manufactured_solutions_are_certified(kinds):
    assert_certified(cordes.solve(manufactured(kinds)), 1e-10)


@pytest.mark.long
def test_features_fulfil_the_conditions_as_polynomials_do():
    solution = cordes.solve(manufactured(("DN", "RR")), method="least-squares", features=400)
    domain = solution.problem.domain
    points, normals = domain.boundary_points(100, 1)
    _, slope, value = domain.condition_at(normals)
    given = slope * np.sum(solution.gradient(points) * normals, axis=1) + value * solution(points)
    np.testing.assert_allclose(given, solution.problem.g.on(points, normals), atol=1e-9)
    assert solution.error().linf <= 1e-6
    assert solution.certificate.Linf >= solution.error().linf


@pytest.mark.long
def test_a_free_constant_is_found_and_the_answer_has_mean_zero(tmp_path):
    problem = manufactured(("NN", "NN"))
    # A solution for f + 0.25, which the answer's constant must take back.
    given = problem.f
    problem = problem.replace(f=lambda x: given(x) + 0.25, exact=None)
    solution = cordes.solve(problem)
    assert solution.constant == pytest.approx(-0.25, abs=1e-9)
    x, weight = problem.domain.quadrature(20)
    difference = solution(x) - np.asarray(jax.vmap(exact)(x))
    assert abs(weight @ solution(x)) <= 1e-12
    assert np.ptp(difference) <= 1e-9
    assert np.ptp(difference) <= 2 * solution.certificate.Linf
    assert solution.certificate.energy[0] == 0
    assert "free constant" in str(solution.certificate.citation)
    solution.save(tmp_path / "answer.cordes")
    loaded = cordes.load(tmp_path / "answer.cordes", problem)
    assert loaded.constant == solution.constant
    np.testing.assert_array_equal(loaded(x), solution(x))


def certify(problem, error):
    """The certificate of the exact solution plus a function."""
    return cordes.certify(problem, lambda x: exact(x) + error(x))


@pytest.mark.long
def test_the_bounds_of_a_wrong_answer_lie_above_its_error():
    problem = manufactured(("DN", "NN"))
    # Zero at x1 = 0, without slope at x1 = 1.3 and along x2.
    size, (low, high) = 1e-3, problem.domain.bounding_box

    def error(x):
        s = (x - low) / (high - low)
        return size * jnp.sin(jnp.pi / 2 * s[0]) * jnp.cos(jnp.pi * s[1])

    found = certify(problem, error)
    assert size <= found.Linf <= 20 * size
    x, weight = problem.domain.quadrature(20)
    hessian = jax.vmap(jax.hessian(error))(x)
    D2 = np.sqrt(weight @ np.sum(np.asarray(hessian) ** 2, axis=(1, 2)))
    assert D2 <= found.H2 <= 5 * D2
    assert found.energy[0] <= D2 * (1 + 1e-9) <= found.energy[1] * (1 + 1e-9)


def test_an_answer_that_misses_a_flux_has_no_bound():
    problem = manufactured(("DN", "NN"))
    found = certify(problem, lambda x: 1e-6 * x[0])
    assert found.Linf is None
    assert "conditions on the boundary are not fulfilled" in str(found.reason)


def test_without_values_and_with_c_zero_somewhere_there_is_no_bound():
    domain, constant = cordes.Box([0, 0], [1, 1]), lambda x: jnp.cos(jnp.pi * x[0])
    problem = cordes.Linear(domain, 1.0, f=0.0, c=lambda x: 1 - x[0], boundary=cordes.Neumann())
    found = cordes.certify(problem, constant)
    assert found.L2 is None
    assert "no value of u is given anywhere" in str(found.reason)


@pytest.mark.long
@pytest.mark.filterwarnings("ignore::cordes.CordesConditionWarning")
def test_a_strong_wind_between_insulated_walls_is_bounded():
    domain = cordes.Box([0, 0], [1, 1])
    boundary = {
        "left": cordes.Dirichlet(1.0),
        "right": cordes.Dirichlet(),
        "outer": cordes.Neumann(),
    }
    problem = cordes.Linear(domain, np.eye(2), f=0.0, b=[20.0, 0.0], boundary=boundary)
    solution = cordes.solve(problem)
    truth = lambda x: (np.exp(-20 * x[:, 0]) - np.exp(-20)) / (1 - np.exp(-20))  # noqa: E731
    error = solution.error(truth)
    assert error.linf <= 1e-8
    assert error.linf <= solution.certificate.Linf <= 1e-4


@pytest.mark.long
def test_a_controlled_walk_between_reflecting_walls_is_bounded():
    u = lambda x: jnp.cos(jnp.pi * x[0]) * (1 + x[1] ** 2 * (3 - 2 * x[1]))  # noqa: E731
    controls = np.array([[1.0, 0.0], [-1.0, 0.0], [0.0, 1.0]])

    def f(x, a):
        rest = 0.3 * jnp.sum((a - controls[0]) ** 2) * (1 + x[0])
        return 0.5 * jnp.trace(jax.hessian(u)(x)) + a @ jax.grad(u)(x) - 2 * u(x) + rest

    problem = cordes.HJB(
        cordes.Box([0, 0], [1, 1]),
        controls,
        A=0.5 * np.eye(2),
        b=lambda x, a: a,
        c=2.0,
        f=f,
        boundary=cordes.Neumann(),
        exact=u,
    )
    solution = cordes.solve(problem)
    assert solution.error().linf <= 1e-9
    assert solution.error().linf <= solution.certificate.Linf <= 1e-6


def in_time(x, t):
    return jnp.exp(-0.5 * t) * jnp.sin(1.3 * x[0] + 0.5) + jnp.cos(x[0] + 0.7 * t)


@pytest.mark.long
@pytest.mark.parametrize("kinds", ["DR", "NN"])
def test_sides_with_fluxes_in_time_are_certified(kinds):
    """Up to a constant is enough at all times but the first: λ₁ = 0 is allowed in time."""
    domain, boundary = cordes.Box([0.0], [1.3]), {}
    for end, name in enumerate(domain.pieces):
        sign, kappa = (-1.0, 1.0)[end], KAPPA[end]
        slope = lambda x, t, sign=sign: sign * jax.grad(in_time)(x, t)[0]  # noqa: E731
        flow = lambda x, t, s=slope, k=kappa: s(x, t) + k * in_time(x, t)  # noqa: E731
        boundary[name] = {
            "D": cordes.Dirichlet(in_time),
            "N": cordes.Neumann(slope),
            "R": cordes.Robin(kappa, flow),
        }[kinds[end]]

    def f(x, t):
        rate = jax.grad(lambda s: in_time(x, s))(t)
        return 2 * jnp.trace(jax.hessian(in_time)(x, t)) - rate

    start = lambda x: in_time(x, 0.0)  # noqa: E731
    problem = cordes.Parabolic(domain, 1.0, 2.0, f, initial=start, boundary=boundary, exact=in_time)
    solution = cordes.solve(problem)
    error, certificate = solution.error(), solution.certificate
    assert error.linf <= 1e-8
    assert error.l2 <= certificate.rms <= 1e-6
    assert certificate.level == "enclosed"
    assert certificate.Linf is None
    assert "comparison is not shown where a flux is given" in str(certificate.reason)
    assert certificate.at(1.0).L2 <= 1e-6
    with pytest.raises(cordes.CoefficientError, match="does not fulfil the conditions"):
        problem.replace(initial=lambda x: start(x) + x[0] ** 2 * (1 + x[0]))
