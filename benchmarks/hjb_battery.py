"""Random attacks on the error bounds of Hamilton–Jacobi–Bellman equations, and how far the bounds
are from the truth.

Each case draws a domain in d = 2 or 3, one to six controls with their coefficients, a supremum or
an infimum, and an error v that vanishes on the boundary. The solution is u = 0 (L^a is linear, so
that any other gives the same residuals) with f^a = ±s_a, s_a ≥ 0 and min s_a = 0 attained by
controls that switch; the answer is -v. Some A^a are aligned against D²v, so that their equations
hide the error as well as they can. Every bound must be at least the truth, every lower bound at
most the truth.

All numbers of a case are part of its controls: one compiled function serves all cases of a
dimension. `python benchmarks/hjb_battery.py [cases] [seed]` prints the distribution of bound/truth.
"""

import copy
import functools
import sys
import time
from typing import Any, NamedTuple

import certificate_battery as linear_battery
import jax
import jax.numpy as jnp
import numpy as np

import cordes
from cordes.certificates.certificate import Certificate
from cordes.certificates.hjb.certify import controlled_bounds
from cordes.certificates.hjb.equation import ComparedControls, ControlledEquation, ControlState
from cordes.certificates.residual.norms import fixed_rule
from cordes.domains import Ball, Box, Ellipsoid, Polygon
from cordes.domains.constants import first_eigenvalue
from cordes.jet import Jet, jet_of
from cordes.runtime.blocks import in_blocks

SEED = 4_711
KINDS = {2: ("box", "disk", "ellipse", "polygon"), 3: ("box", "ball", "ellipsoid")}
LARGEST, WAVES, FACES = 6, 3, 6
# Truth and bound are integrals of the same rule, exact up to rounding for smooth functions.
ROUNDING = 1e-9


@functools.cache
def layout(d: int) -> dict[str, tuple[slice, tuple[int, ...]]]:
    """Where the numbers of a case lie in a control: the control's own first, then those of the
    error, of the domain and of all potentials."""
    shapes = {
        "matrix": (2, d, d),
        "wave": (2, d),
        "size": (),
        "anisotropy": (),
        "aligned": (),
        "direction": (d,),
        "drift": (),
        "reaction": (),
        "potential": (d + 1,),
        "waves": (WAVES, d + 2),
        "faces": (FACES, d + 1),
        "ellipsoid": (d, d),
        "center": (d,),
        "potentials": (LARGEST, d + 1),
        "depth": (),
        "sign": (),
    }
    found, start = {}, 0
    for name, shape in shapes.items():
        found[name] = slice(start, start + int(np.prod(shape))), shape
        start += int(np.prod(shape))
    return found


def part(a: Any, name: str, d: int) -> Any:
    place, shape = layout(d)[name]
    return a[place].reshape(shape)


def error(x: Any, a: Any) -> Any:
    """v: affine factors of the faces, one minus a quadratic form, and waves."""
    d = len(x)
    faces, waves = part(a, "faces", d), part(a, "waves", d)
    offset = part(a, "ellipsoid", d) @ (x - part(a, "center", d))
    rise = jnp.dot(waves[:, 1], jnp.cos(waves[:, 2:] @ x + waves[:, 0]))
    return jnp.prod(faces[:, :d] @ x + faces[:, d]) * (1 - jnp.dot(offset, offset)) * rise


def matrix(x: Any, a: Any) -> Any:
    """size (I + ρ √(d/(d-1)) U) with a unit trace-free U, from waves or opposite to D²v."""
    d = len(x)
    wave, fields = part(a, "wave", d), part(a, "matrix", d)
    smooth = jnp.cos(jnp.dot(wave[0], x)) * fields[0] + jnp.sin(jnp.dot(wave[1], x)) * fields[1]
    hessian = jax.hessian(error)(x, a)
    U = jnp.where(part(a, "aligned", d) > 0, -jnp.sign(jnp.trace(hessian)) * hessian, smooth)
    U = U - jnp.trace(U) / d * jnp.eye(d)
    U = U / jnp.sqrt(jnp.sum(U**2) + 1e-20)
    return part(a, "size", d) * (jnp.eye(d) + part(a, "anisotropy", d) * np.sqrt(d / (d - 1)) * U)


def drift(x: Any, a: Any) -> Any:
    return (
        part(a, "drift", len(x))
        * part(a, "direction", len(x))
        * jnp.cos(0.5 * jnp.dot(part(a, "wave", len(x))[0], x))
    )


def reaction(x: Any, a: Any) -> Any:
    return part(a, "reaction", len(x)) * (1 + 0.5 * jnp.cos(jnp.dot(part(a, "wave", len(x))[1], x)))


def right(x: Any, a: Any) -> Any:
    """±s_a, s_a = depth (p_a - min p) with potentials p."""
    d = len(x)
    potentials = part(a, "potentials", d)
    own = jnp.cos(jnp.dot(part(a, "potential", d)[:d], x) + part(a, "potential", d)[d])
    return (
        part(a, "sign", d)
        * part(a, "depth", d)
        * (own - jnp.min(jnp.cos(potentials[:, :d] @ x + potentials[:, d])))
    )


class Case(NamedTuple):
    """A drawn problem with its error at the points of a rule."""

    problem: Any
    kind: str
    x: np.ndarray
    weight: np.ndarray
    error: Jet

    def norm(self, values: np.ndarray) -> float:
        return float(np.sqrt(self.weight @ np.sum(values.reshape(len(values), -1) ** 2, axis=1)))


@functools.cache
def compiled_error(d: int) -> Any:
    return jax.jit(
        jax.vmap(lambda a, x: jet_of(lambda point: error(point, a))(x), in_axes=(None, 0))
    )


class Answer:
    """u_θ = -v as a candidate; its derivatives are exact but for rounding."""

    def __init__(self, a: np.ndarray):
        self.a = a

    def jet(self, x: np.ndarray) -> Jet:
        found = compiled_error(x.shape[1])
        return jax.tree.map(np.negative, in_blocks(lambda block: found(self.a, block), (x,)))

    def applied(
        self, x: np.ndarray, A: np.ndarray, b: np.ndarray, c: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        value, gradient, hessian = self.jet(x)
        value = np.sum(A * hessian, axis=(1, 2)) + np.sum(b * gradient, axis=1) - c * value
        return value, 1e-14 * np.abs(value)


@functools.cache
def template(d: int) -> cordes.HJB:
    """A problem whose functions all cases of this dimension share."""
    a = np.zeros(sum(int(np.prod(shape)) for _, shape in layout(d).values()))
    for name, value in {"size": 1.0, "faces": np.eye(d + 1)[[d] * FACES], "waves": 1.0}.items():
        a[layout(d)[name][0]] = np.ravel(value)
    return cordes.HJB(Box(np.zeros(d), np.ones(d)), a[None], matrix, right, b=drift, c=reaction)


def draw(number: int, seed: int = SEED) -> Case:
    """The case with this number: always the same one."""
    rng = np.random.default_rng([seed, number])
    d = (2, 2, 3)[number % 3]
    kind = str(rng.choice(KINDS[d]))
    domain, x, weight = linear_battery.draw_domain(rng, d, kind)
    m, sense = int(rng.integers(1, LARGEST + 1)), str(rng.choice(["sup", "inf"]))
    lower, upper = domain.bounding_box
    eigenvalue = first_eigenvalue(domain)
    terms = str(rng.choice(["none", "drift", "reaction", "both"], p=[0.5, 0.15, 0.15, 0.2]))
    waves = np.concatenate(
        [
            rng.uniform(0, 6, (WAVES, 1)),
            rng.standard_normal((WAVES, 1)),
            rng.standard_normal((WAVES, d)) / (upper - lower) * rng.uniform(0.1, 4),
        ],
        axis=1,
    )
    potentials = np.concatenate(
        [rng.standard_normal((m, d)) * 3, rng.uniform(0, 6, (m, 1))], axis=1
    )
    shared = {
        "waves": waves,
        "potentials": potentials[np.minimum(np.arange(LARGEST), m - 1)],
        "sign": 1.0 if sense == "sup" else -1.0,
    }
    shared |= _domain_numbers(domain)
    probe = Case(None, kind, x, weight, _jet(d, shared, x))
    # Deep potentials decide the controls alone, shallow ones leave it to the error.
    shared["depth"] = float(np.std(np.trace(probe.error.hessian, axis1=1, axis2=2))) * np.exp(
        rng.uniform(-4, 1)
    )
    largest, attack, speeds = rng.uniform(0.1, 0.9), rng.random(), 1.0
    if rng.random() < 0.2:
        # Nearly isotropic and of very different sizes: the bounds are sharp, and which control is
        # best depends on the multiplier.
        largest, speeds = 0.02, 2.0
    controls = []
    for k in range(m):
        size = np.exp(speeds * rng.uniform(-1, 1))
        fields = rng.standard_normal((2, d, d))
        own = {
            "matrix": fields + np.swapaxes(fields, 1, 2),
            "wave": rng.standard_normal((2, d)) * 2,
            "size": size,
            "anisotropy": largest * rng.uniform(0.3, 1),
            "aligned": float(attack < 0.3 or (attack < 0.5 and k == 0)),
            "direction": rng.standard_normal(d),
            "potential": potentials[k],
            "drift": 0.25 * rng.uniform(0, 1) * size * np.sqrt(eigenvalue / d)
            if terms in ("drift", "both")
            else 0.0,
            "reaction": size * eigenvalue * rng.uniform(0.01, 1)
            if terms in ("reaction", "both")
            else 0.0,
        }
        controls.append(_vector(d, shared | own))
    problem = copy.copy(template(d))
    # One compiled template serves thousands of cases: its fields are exchanged behind its back.
    vars(problem).update(
        domain=domain,
        controls=np.array(controls),
        sense=sense,
        sign=shared["sign"],
        has_drift=terms in ("drift", "both"),
        has_reaction=terms in ("reaction", "both"),
    )
    return probe._replace(problem=problem, kind=f"{d}-D {kind}, {terms}")


def _vector(d: int, numbers: dict[str, Any]) -> np.ndarray:
    return np.concatenate(
        [
            np.broadcast_to(np.asarray(numbers[name], float), shape).ravel()
            for name, (_, shape) in layout(d).items()
        ]
    )


def _jet(d: int, shared: dict[str, Any], x: np.ndarray) -> Jet:
    a = _vector(d, dict.fromkeys(layout(d), 0.0) | shared)
    return jax.tree.map(np.negative, Answer(a).jet(x))


def _domain_numbers(domain: Any) -> dict[str, np.ndarray]:
    """The affine factors or the quadratic form that vanish on the boundary."""
    d = domain.dimension
    faces, form, center = np.tile(np.eye(d + 1)[d], (FACES, 1)), np.zeros((d, d)), np.zeros(d)
    if isinstance(domain, Ball | Ellipsoid):
        form = (
            np.eye(d) / domain.radius if isinstance(domain, Ball) else np.linalg.inv(domain.matrix)
        )
        center = np.asarray(domain.center)
    elif isinstance(domain, Box):
        rows = np.eye(d) / domain.widths[:, None]
        faces[: 2 * d, :d] = np.concatenate([rows, -rows])
        faces[: 2 * d, d] = np.concatenate([-rows @ domain.lower, rows @ domain.upper])
    else:
        assert isinstance(domain, Polygon)
        count = len(domain.normals)
        faces[:count, :d], faces[:count, d] = (
            -domain.normals,
            np.sum(domain.normals * domain.vertices, axis=1),
        )
    return {"faces": faces, "ellipsoid": form, "center": center}


def certify_case(case: Case) -> Certificate:
    """The certificate on the points of the rule; suprema are those over these points, where the
    case lives."""
    thinned = case.x[:: max(len(case.x) // 150, 1)]
    compared = ComparedControls(case.problem, Answer(case.problem.controls[0]), thinned)  # pyright: ignore
    pilot, state = (compared.evaluate(points) for points in (thinned, case.x))
    assert isinstance(state, ControlState)
    equation = ControlledEquation(
        case.problem, compared, fixed_rule(case.x, case.weight), state, pilot, thinned
    )  # pyright: ignore[reportArgumentType]
    return controlled_bounds(equation, equation.coverage(enclosed=0))


def ratios(case: Case, certificate: Certificate) -> dict[str, float]:
    """bound/truth for each norm that has a bound, and truth/lower bound."""
    value, gradient, hessian = (np.asarray(entry) for entry in case.error)
    truth = {
        "H2": case.norm(hessian),
        "H1": case.norm(gradient),
        "L2": case.norm(value),
        "Linf": float(np.max(np.abs(value))),
    }
    found = {
        name: getattr(certificate, name) / size
        for name, size in truth.items()
        if getattr(certificate, name) is not None
    }
    for name, bound in certificate.alternatives.items():
        found[f"Linf by {name}"] = bound / truth["Linf"]
    if certificate.energy is not None:
        energy = case.norm(np.trace(hessian, axis1=1, axis2=2) - certificate.lambda_ * value)
        found["energy"] = certificate.energy[1] / energy
        found["lower"] = energy / certificate.energy[0] if certificate.energy[0] > 0 else np.inf
    return found


def run(cases: int, seed: int = SEED) -> list[tuple[int, Case, Certificate, dict[str, float]]]:
    results = []
    for number in range(cases):
        case = draw(number, seed)
        certificate = certify_case(case)
        results.append((number, case, certificate, ratios(case, certificate)))
    return results


def violations(results: list) -> list[str]:
    return [
        (
            f"case {number} ({case.kind}, {len(case.problem.controls)} controls, "
            f"{case.problem.sense}): {name} {ratio:.9f} by {certificate.theorem}"
        )
        for number, case, certificate, found in results
        for name, ratio in found.items()
        if not ratio >= 1 - ROUNDING
    ]


def main() -> None:
    count, seed = (
        int(sys.argv[k]) if len(sys.argv) > k else value for k, value in ((1, 200), (2, SEED))
    )
    start = time.perf_counter()
    results = run(count, seed)
    print(
        f"{'cases':<26} {'count':>5} {'refused':>7}  {'energy median':>13} {'max':>7}  "
        f"{'Linf median':>11} {'max':>7}  {'smallest bound/truth':>20}"
    )
    for kind in sorted({case.kind for _, case, _, _ in results}):
        mine = [
            (certificate, found) for _, case, certificate, found in results if case.kind == kind
        ]
        columns = []
        for name in ("energy", "Linf"):
            values = [found[name] for _, found in mine if name in found] or [np.nan]
            columns += [np.median(values), np.max(values)]
        smallest = min((value for _, found in mine for value in found.values()), default=np.nan)
        refused = sum(certificate.L2 is None for certificate, _ in mine)
        print(
            f"{kind:<26} {len(mine):>5} {refused:>7}  {columns[0]:>13.3g} {columns[1]:>7.3g}  "
            f"{columns[2]:>11.3g} {columns[3]:>7.3g}  {smallest:>20.4f}"
        )
    failed = violations(results)
    print(f"{count} cases in {time.perf_counter() - start:.0f} s")
    print("\n".join(failed) if failed else "every bound held")
    sys.exit(bool(failed))


if __name__ == "__main__":
    main()
