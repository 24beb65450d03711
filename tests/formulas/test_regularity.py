"""Kinks and jumps are found from the operations of a function: what is refused, what is proved to
be fine, and that no proof is wrong."""

import itertools
import time

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import cordes
from cordes.formulas.regularity import jump, kink

SQUARE = cordes.Box([-1, -1], [1, 1])
UNIT = cordes.Box([0, 0], [1, 1])
DISK = cordes.Ball([0, 0], 1)
BALL = cordes.Ball([0, 0, 0], 1)
DOMAINS = [
    SQUARE,
    cordes.Box([-1] * 5, [1] * 5),
    DISK,
    cordes.Ball([1, 2, 3, 4], 2),
    cordes.Ellipsoid([0, 0, 0], [1.5, 1.0, 0.8]),
    cordes.Polygon([[0, 0], [2, 0], [1, 1.5]]),
    cordes.Polygon([[np.cos(a), np.sin(a)] for a in 2 * np.pi * np.arange(7) / 7]),
]

# Problems of the gallery, and whether A jumps.
GALLERY = {
    "ex4.1-smooth": False,
    "ex4.1-singular": False,
    "ex4.2-discontinuous": True,
    "ex4.3-cube5": True,
    "ex4.4-continuous": False,
    "feng-neilan-schnake-5.1": False,
    "lakkis-pryer-4.1": False,
    "weak-ellipticity": True,
    "turning-3d": False,
    "discontinuous-3d": True,
}


def network(activation, width=40):
    generator = np.random.default_rng(0)
    first, second, last = (
        generator.standard_normal(shape) for shape in ((width, 2), (width, width), (width,))
    )
    return lambda x: last @ activation(second @ activation(first @ x + last) / width)


SMOOTH_ENOUGH = {
    "power of abs": (lambda x: jnp.abs(x[0]) ** 3 * jnp.cos(x[1]) / 6, SQUARE),
    "power 8/3": (lambda x: jnp.abs(x[0] - x[1]) ** (8 / 3), SQUARE),
    "power of cbrt": (lambda x: jnp.cbrt(x[0] - x[1]) ** 8, SQUARE),
    "x|x|": (lambda x: x[0] * jnp.abs(x[0]), SQUARE),
    "multiples and opposites": (lambda x: (2 * (x[0] - x[1])) * jnp.abs((x[1] - x[0]) / 3), SQUARE),
    "function of x|x|": (lambda x: jnp.exp(jnp.sin(x[1] + x[0] * jnp.abs(x[0]))), SQUARE),
    "x² sign": (lambda x: x[0] ** 2 * jnp.sign(x[0]) * jnp.exp(x[1]), SQUARE),
    "relu²": (lambda x: jnp.maximum(x[0] - 0.3, 0) ** 2 * jnp.exp(x[1]), SQUARE),
    "relu³ network": (lambda x: network(lambda s: jax.nn.relu(s) ** 3)(x), SQUARE),
    "chosen squares": (
        lambda x: jnp.where(x[0] > x[1], (x[0] - x[1]) ** 2, -3 * (x[1] - x[0]) ** 2),
        SQUARE,
    ),
    "two kinks, both smoothed": (lambda x: jnp.abs(x[0]) * jnp.abs(x[1]) * x[0] * x[1], SQUARE),
    "odd exponential": (lambda x: x[0] * jnp.exp(1 - jnp.abs(x[0])) - x[0], SQUARE),
    "abs away from zero": (lambda x: jnp.abs(x[0] - 5), SQUARE),
    "abs on the boundary": (lambda x: jnp.abs(x[0]) + jnp.minimum(x[1], 1), UNIT),
    "radius squared": (lambda x: 1 - x @ x, DISK),
    "norm squared": (lambda x: jnp.linalg.norm(x) ** 2, BALL),
    "norm to 2.5": (lambda x: jnp.linalg.norm(x) ** 2.5 + (x @ x) ** 1.25, BALL),
    "x times norm": (lambda x: x[0] * jnp.linalg.norm(x), BALL),
    "norm away from the origin": (lambda x: jnp.linalg.norm(x), cordes.Ball([3, 0], 1)),
    "inactive clip": (lambda x: jnp.clip(x[0], -2, 2), SQUARE),
    "quotient and root": (
        lambda x: (
            jnp.sqrt(1 + x @ x) / (2 + x[0]) + jnp.log(3 - x[1]) + jnp.arctan2(x[0], x[1] + 2)
        ),
        SQUARE,
    ),
    "guarded power": (
        lambda x: jnp.where(x[0] == 0, 0.0, jnp.abs(jnp.where(x[0] == 0, 1.0, x[0])) ** 2.25),
        SQUARE,
    ),
    "choice that never changes": (lambda x: jnp.where(x[0] < 2, x[1], jnp.abs(x[1])), SQUARE),
    "loop": (lambda x: jax.lax.fori_loop(0, 4, lambda i, y: jnp.sin(y), x[0]), SQUARE),
    "many dimensions": (lambda x: jnp.sum(jnp.abs(x) * x), cordes.Box([-1] * 12, [1] * 12)),
}

KINKED = {
    "distance of the square": (
        lambda x: jnp.minimum(jnp.minimum(x[0], 1 - x[0]), jnp.minimum(x[1], 1 - x[1])),
        UNIT,
        "min of two functions that meet",
    ),
    "the same, reduced": (
        lambda x: jnp.min(jnp.array([x[0], 1 - x[0], x[1], 1 - x[1]])),
        UNIT,
        "min of functions that can meet",
    ),
    "abs": (lambda x: jnp.abs(x[0]), SQUARE, "abs whose argument vanishes, near x ="),
    "distance of the ball": (
        lambda x: 1 - jnp.linalg.norm(x),
        DISK,
        "sqrt whose argument can vanish",
    ),
    "smoothed too little": (lambda x: jnp.sqrt(x @ x + 1e-30), DISK, "sqrt"),
    "power 1.9": (lambda x: jnp.abs(x[0] - x[1]) ** 1.9, SQUARE, "abs"),
    "norm to 1.5": (lambda x: jnp.linalg.norm(x) ** 1.5, BALL, "sqrt"),
    "root on the boundary": (lambda x: jnp.sqrt(x[0]), UNIT, "sqrt"),
    "power at a corner": (lambda x: (jnp.abs(x[0]) + jnp.abs(x[1])) ** 1.5, UNIT, "power"),
    "x sign": (lambda x: x[0] * jnp.sign(x[0]), SQUARE, "sign"),
    "relu": (lambda x: jnp.maximum(x[0] - 0.3, 0), SQUARE, "max"),
    "wrong factor": (lambda x: jnp.abs(x[0]) * x[1], SQUARE, "abs"),
    "kink in an exponent": (lambda x: jnp.exp(-jnp.abs(x[0])), SQUARE, "abs"),
    "kink of a kink": (lambda x: jnp.abs(jnp.abs(x[0]) - 0.5), SQUARE, "abs"),
    "clip": (lambda x: jnp.clip(x[0], -0.5, 0.5), SQUARE, "max|min"),
    "choice": (
        lambda x: jnp.where(x[0] > 0, x[0], 2 * x[0]),
        SQUARE,
        "a choice between two formulas",
    ),
    "choice by a sign": (lambda x: jnp.where(jnp.sign(x[0]) > 0, 1.0, -1.0), SQUARE, "sign|choice"),
    "quotient": (lambda x: x[1] / x[0], SQUARE, "division by a function that vanishes"),
    "step": (lambda x: jnp.floor(2 * x[0]), SQUARE, "floor"),
    "angle": (lambda x: jnp.arctan2(x[1], x[0]), SQUARE, "atan2"),
    "sorting": (lambda x: jnp.sort(x)[0], SQUARE, "sort"),
    "unknown": (
        lambda x: jax.lax.while_loop(lambda y: y < 3, lambda y: y + 1, x[0]),
        SQUARE,
        "'while' is not known",
    ),
    "many dimensions": (lambda x: 1 - jnp.sqrt(x @ x), cordes.Ball([0] * 12, 1), "sqrt"),
}


@pytest.mark.parametrize("name", list(SMOOTH_ENOUGH))
def test_bounded_second_derivatives_are_proved(name):
    assert kink(*SMOOTH_ENOUGH[name]) is None


@pytest.mark.parametrize("name", list(KINKED))
def test_kinks_are_refused(name):
    function, domain, words = KINKED[name]
    found = kink(function, domain)
    assert found is not None
    assert any(part in found for part in words.split("|"))


@pytest.mark.parametrize(
    "activation", [jnp.tanh, jnp.sin, jax.nn.silu, jax.nn.softplus, jax.nn.gelu]
)
def test_smooth_networks_are_fine(activation):
    assert kink(network(activation), SQUARE) is None


@pytest.mark.parametrize("activation", [jax.nn.relu, jax.nn.leaky_relu, jax.nn.relu6, jnp.abs])
def test_kinked_networks_are_refused(activation):
    assert kink(network(activation), SQUARE) is not None


def test_distances_and_interfaces_of_our_own_are_fine():
    for domain in DOMAINS:
        assert kink(domain.distance, domain) is None
    for name in GALLERY:
        problem = cordes.gallery[name]
        for function in (
            problem.g,
            *problem.interfaces,
            *([] if problem.exact is None else [problem.exact]),
        ):
            assert kink(function, problem.domain) is None


def test_lifts_of_the_box_are_proved():
    for name in ("ex4.1-smooth", "lakkis-pryer-4.1"):
        problem = cordes.gallery[name]
        assert kink(problem.domain.lift(problem.g, problem.interfaces), problem.domain) is None


def test_the_place_is_named():
    found = kink(lambda x: jnp.abs(x[0] - 0.7) + jnp.linalg.norm(x - 5), SQUARE)
    assert found is not None
    first, _ = (float(part) for part in found.split("[")[1].rstrip("]").split(","))
    assert first == pytest.approx(0.7, abs=0.2)


@pytest.mark.parametrize(
    ("power", "modulus", "sign"),
    list(itertools.product(range(4), (0.0, 0.5, 1.0, 1.5, 2.0), range(3))),
)
def test_monomials_of_one_source(power, modulus, sign):
    """a^i |a|^p sign(a)^k has bounded second derivatives if its degree is at least two, or if it is
    a polynomial; it is continuous if its degree is positive."""

    def function(x):
        a = x[0] - x[1] ** 2
        product = 1.0 + 0 * x[0]
        for factor in [a] * power + [jnp.abs(a) ** modulus] * (modulus > 0) + [jnp.sign(a)] * sign:
            product = product * factor
        return product * jnp.cos(x[1])

    degree = power + modulus
    trivial = modulus == 0 and sign == 0
    assert (kink(function, SQUARE) is None) == (degree >= 2 or trivial)
    assert (jump(function, SQUARE) is None) == (degree > 0 or trivial)


def test_no_proof_is_wrong_for_two_sources():
    """Products of monomials in x0 and in x1: what is proved has second differences that stay
    bounded."""
    factors = {
        "abs": (jnp.abs, 1.0),
        "sign": (jnp.sign, 0.0),
        "root": (lambda a: jnp.sqrt(jnp.abs(a)), 0.5),
        "itself": (lambda a: a, 1.0),
    }
    proved = 0
    for first, second in itertools.product(
        itertools.combinations_with_replacement(factors, 2),
        itertools.combinations_with_replacement(factors, 2),
    ):

        def function(x, first=first, second=second):
            return jnp.prod(
                jnp.stack(
                    [
                        factors[name][0](x[k])
                        for k, names in enumerate((first, second))
                        for name in names
                    ]
                )
            )

        degrees = [sum(factors[name][1] for name in names) for names in (first, second)]
        smooth = [all(name == "itself" for name in names) for names in (first, second)]
        true = all(degree >= 2 or fine for degree, fine in zip(degrees, smooth, strict=True))
        if kink(function, SQUARE) is None:
            proved += 1
            assert true
        if jump(function, SQUARE) is None:
            assert all(degree > 0 for degree in degrees)
    assert proved >= 4


def test_coefficients_of_the_gallery():
    for name, jumps in GALLERY.items():
        problem = cordes.gallery[name]
        assert (jump(problem.A, problem.domain) is not None) == jumps
        # Only the radial axis jumps away from its interfaces: it has none.
        assert (jump(problem.A, problem.domain, problem.interfaces) is not None) == (
            name == "discontinuous-3d"
        )
        assert jump(problem.f, problem.domain, problem.interfaces) is None


CONTINUOUS = {
    "norm": lambda x: jnp.linalg.norm(x),
    "cbrt": lambda x: jnp.cbrt(x[0] - x[1]),
    "small power": lambda x: jnp.abs(x[0]) ** 0.25,
    "max": lambda x: jnp.maximum(x, 0.0),
    "sign that vanishes": lambda x: x[0] * jnp.sign(x[0]) * jnp.ones((2, 2)),
    "choice that fits": lambda x: jnp.where(x[0] > 0, x[0] * x[1], jnp.sin(x[0])),
    "sign away from zero": lambda x: jnp.sign(x - 3),
}
DISCONTINUOUS = {
    "direction": lambda x: x / jnp.linalg.norm(x),
    "guarded direction": lambda x: x / jnp.sqrt(jnp.maximum(x @ x, 1e-300)),
    "radial matrix": lambda x: jnp.outer(x, x) / (x @ x),
    "sign": lambda x: jnp.sign(x[0]) * jnp.sign(x[1]),
    "choice": lambda x: jnp.where(x[0] ** 3 > x[1], 2.0, 1.0),
    "floor": lambda x: jnp.floor(3 * x[0]),
}


@pytest.mark.parametrize("name", list(CONTINUOUS))
def test_continuity_is_proved(name):
    assert jump(CONTINUOUS[name], SQUARE) is None


@pytest.mark.parametrize("name", list(DISCONTINUOUS))
def test_jumps_are_reported(name):
    assert jump(DISCONTINUOUS[name], SQUARE) is not None


def test_jumps_on_interfaces_do_not_count():
    axes = [lambda x: x[0], lambda x: x[1]]
    assert jump(lambda x: jnp.sign(x[0] * x[1]), SQUARE, axes) is None
    assert jump(lambda x: jnp.sign(-2 * x[0]) * jnp.sign(x[1] ** 3), SQUARE, axes) is None
    assert jump(lambda x: jnp.where(x[0] > x[1], 1.0, 2.0), SQUARE, [lambda x: x[1] - x[0]]) is None
    # Zero on the axis and nowhere else, which the formula does not tell: chords do not decide.
    assert jump(lambda x: jnp.sign(x[0] + x[0] * x[1] ** 2), SQUARE, axes) is not None
    assert jump(lambda x: jnp.sign(x[0] * x[1]), SQUARE, axes[:1]) is not None
    assert jump(lambda x: jnp.sign(x[0] - 1e-4), SQUARE, axes) is not None
    assert jump(lambda x: jnp.sign(x[0] + x[0] * x[1] ** 2 - 1e-4), SQUARE, axes) is not None


POLE = jnp.array([0.13, -0.21])
POLES = {
    # Exponents at a point of the plane, where 1 is no longer square integrable.
    "weak": (lambda x: jnp.linalg.norm(x - POLE) ** -0.7, True),
    "by a division": (lambda x: 1 / jnp.sqrt(jnp.linalg.norm(x - POLE)), True),
    "times a smooth function": (lambda x: jnp.sin(x[0]) * ((x - POLE) @ (x - POLE)) ** -0.3, True),
    "softened": (lambda x: (x[0] - POLE[0]) / ((x - POLE) @ (x - POLE)) ** 0.7, True),
    "direction": (lambda x: x / jnp.linalg.norm(x), True),
    "logarithm": (lambda x: x[1] * jnp.log((x - POLE) @ (x - POLE)), True),
    "radial matrix": (lambda x: jnp.outer(x, x) / (x @ x), True),
    "inverse power": (lambda x: x[0] * (x @ x) ** -1.0 * jnp.linalg.norm(x) ** 0.5, True),
    "logarithm along a line": (lambda x: jnp.log(jnp.abs(x[0])), False),
    "strong": (lambda x: jnp.linalg.norm(x - POLE) ** -0.9, False),
    "square of a weak one": (lambda x: (jnp.linalg.norm(x - POLE) ** -0.5) ** 2, False),
    "product of weak ones": (
        lambda x: jnp.linalg.norm(x) ** -0.5 * ((x - POLE) @ (x - POLE)) ** -0.45,
        False,
    ),
    "essential": (lambda x: jnp.exp(1 / jnp.linalg.norm(x)), False),
    "along a line": (lambda x: jnp.abs(x[0]) ** -0.2, False),
    "oscillating": (lambda x: jnp.sin(1 / jnp.linalg.norm(x)), False),
}


@pytest.mark.parametrize("name", POLES)
def test_poles_at_points_are_left_to_refinement_where_they_are_weak(name):
    function, weak = POLES[name]
    assert jump(function, SQUARE) is not None
    assert (jump(function, SQUARE, spots=True) is None) == weak


def test_an_interface_excuses_a_jump_and_no_pole():
    axis = [lambda x: x[0]]
    assert jump(lambda x: x[0] / jnp.abs(x[0]), SQUARE, axis) is None
    assert jump(lambda x: jnp.abs(x[0]) ** -0.4, SQUARE, axis) is not None
    assert jump(lambda x: 1 / x[0], SQUARE, axis, spots=True) is not None


def test_it_is_quick():
    problem = cordes.gallery["rotating-3d"]
    for check in (
        lambda: kink(network(jax.nn.softplus), SQUARE),
        lambda: jump(problem.f, problem.domain),
        lambda: kink(KINKED["norm to 1.5"][0], BALL),
    ):
        seconds = []
        for _ in range(3):
            start = time.perf_counter()
            check()
            seconds.append(time.perf_counter() - start)
        assert min(seconds) < 0.3
