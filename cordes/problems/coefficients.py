"""Turning what a user writes into checked functions of one point: shape, dtype, traceability, NaN;
and matrices with a structure that saves work in many dimensions."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from cordes.domains.domain import LARGEST_VALUE
from cordes.errors import CoefficientError
from cordes.jet import Jet, contract
from cordes.runtime.blocks import BLOCK, in_blocks, is_traced, with_matrices
from cordes.runtime.plain import show

# An array with more numbers is taken for a table.
LARGEST_COEFFICIENT = 9

# Of the operator fourth powers are needed; where A is less, nothing made of it is a number.
LARGEST_OPERATOR, SMALLEST_MATRIX = 1e50, 1e-205
# What to do instead of jax.grad or jax.vmap around a solve.
TRACED = (
    "is traced by JAX: jit, grad and vmap go through answers (jax.grad(solution)), not through "
    "problems and solves. Solve once for each value of a parameter; its derivative solves the same "
    "equation with the differentiated data on the right-hand side."
)


def as_function(
    name: str, given: Any, shape: tuple[int, ...], signature: str = "x"
) -> tuple[Callable[..., Array], bool]:
    """A function of one point with values of `shape`, and whether it is constant."""
    if callable(given):
        return given, False  # pyright: ignore[reportReturnType]
    wanted = f"it must be a number, an array of shape {shape} or a function of {signature}."
    if given is None:
        raise CoefficientError(f"{name} is missing: {wanted}")
    if isinstance(given, str):
        raise CoefficientError(
            f"{name} is the text {given!r}: {wanted} Formulas in quotes belong into TOML files; "
            f"in Python write {name}=lambda {signature.strip('()')}: … with jax.numpy."
        )
    if is_traced(given):
        raise CoefficientError(f"{name} {TRACED}")
    try:
        constant = np.asarray(given, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise CoefficientError(f"{name} is {given!r}: {wanted}") from error
    if constant.shape != shape:
        raise CoefficientError(
            f"{name} has shape {constant.shape}, but shape {shape} is needed."
            f"{_hint(constant.shape)}"
        )
    if not np.all(np.isfinite(constant)):
        raise CoefficientError(f"{name} = {show(constant)} is not finite.")
    if np.max(np.abs(constant), initial=0.0) > _largest(name):
        raise CoefficientError(f"{name} = {show(constant)}: {_too_large(name)}")
    return (lambda *_: jnp.asarray(constant)), True


def _hint(shape: tuple[int, ...]) -> str:
    """What to do with a table, which has more numbers than any coefficient."""
    if math.prod(shape) <= LARGEST_COEFFICIENT:
        return ""
    if len(shape) == 2 and shape[1] <= 3 < shape[0]:
        return " Samples of a density become one by cordes.density(samples, domain)."
    return (
        " Values over the domain become a function of one point by "
        "cordes.interpolate(values, domain)."
    )


def check_shape(
    name: str, function: Callable[..., Array], shape: tuple[int, ...], *arguments: Any
) -> None:
    """Trace the function once: it must be written with jax.numpy and return a float array of
    `shape`."""
    try:
        result = jax.eval_shape(function, *arguments)
    except jax.errors.JAXTypeError as error:
        reason = str(error).splitlines()[0]
        raise CoefficientError(
            f"{name} cannot be traced by JAX: write it with jax.numpy (jnp.sin instead of "
            f"math.sin or numpy.sin; jnp.where instead of if). JAX says: {reason}"
        ) from error
    except Exception as error:
        # numpy and math functions fail on tracers in many ways (TypeError, AttributeError, ...);
        # all of them are the user's function failing.
        raise CoefficientError(
            f"{name} failed at x = {show(arguments[0])} of shape {arguments[0].shape}: "
            f"{type(error).__name__}: {error}{_cure(str(error), len(arguments))}"
        ) from error
    if not hasattr(result, "shape"):
        pack = " Write jnp.array([…])." if isinstance(result, list | tuple) else ""
        raise CoefficientError(
            f"{name} returns {type(result).__name__}; it must return an array of shape "
            f"{shape}.{pack}"
        )
    if result.shape != shape:
        raise CoefficientError(
            f"{name}(x) has shape {result.shape}, but shape {shape} is needed.{_hint(result.shape)}"
        )
    if not jnp.issubdtype(result.dtype, jnp.number) or jnp.issubdtype(
        result.dtype, jnp.complexfloating
    ):
        raise CoefficientError(f"{name}(x) has dtype {result.dtype}; real numbers are needed.")


def _cure(message: str, arguments: int) -> str:
    """What helps where a function with controls fails."""
    if arguments > 1 and "positional argument" in message:
        return ". With controls it is a function of two arguments, x and the control a."
    if arguments > 1 and "Indexer must have integer" in message:
        return ". Controls are numbers of float64: index with a.astype(int)."
    return ""


def check_exact(exact: Any, x: Array) -> None:
    """The exact solution, if there is one, is a function of one point."""
    if exact is None:
        return
    if not callable(exact):
        raise CoefficientError(
            f"exact is {exact!r}: it must be a function of one point, or left out."
        )
    check_shape("exact", exact, (), x)  # pyright: ignore[reportArgumentType]


def check_finite(
    name: str, values: np.ndarray, points: np.ndarray, where: str = "", which: str = ""
) -> None:
    """No NaN, no infinity, and nothing that is nearly one; `which` names the control, where there
    are several."""
    size = np.max(np.abs(values.reshape(len(points), -1)), axis=1)
    bad = ~np.isfinite(size)
    if np.any(bad):
        i = int(np.argmax(bad))
        raise CoefficientError(
            f"{name} is not finite at {np.sum(bad)} of {len(points)} sampled points{where}: "
            f"{name}({show(points[i])}) = {show(values[i])}{_of(which)}. Guard powers and "
            "divisions (jnp.cbrt for cube roots, jnp.where with a safe argument)."
        )
    if np.any(size > _largest(name)):
        i = int(np.argmax(size))
        raise CoefficientError(
            f"{name}({show(points[i])}) = {show(values[i])}{_of(which)}: {_too_large(name)}"
        )


def _largest(name: str) -> float:
    return LARGEST_OPERATOR if name in ("A", "b", "c") else LARGEST_VALUE


def _too_large(name: str) -> str:
    return f"numbers up to {_largest(name):g} are computed with here. Choose another unit."


def _of(which: str) -> str:
    return f" for {which}" if which else ""


def check_elliptic(name: str, matrices: np.ndarray, points: np.ndarray, which: str = "") -> None:
    """Symmetric and positive definite at every sampled point."""
    size = np.max(np.abs(matrices), axis=(1, 2))
    skew = np.max(np.abs(matrices - np.swapaxes(matrices, 1, 2)), axis=(1, 2))
    if np.any(skew > 1e-10 * size):
        i = int(np.argmax(skew / size))
        raise CoefficientError(
            f"{name} is not symmetric: {name}({show(points[i])}) = "
            f"{show(matrices[i])}{_of(which)}. Only the symmetric part acts on D²u: pass (A + "
            "Aᵀ)/2."
        )
    smallest = np.linalg.eigvalsh(matrices)[:, 0]
    if np.any(smallest <= 0):
        i = int(np.argmin(smallest))
        cure = "if all eigenvalues are negative, change the sign of the whole equation."
        if smallest[i] >= -1e-12 * size[i]:
            cure = (
                "degenerate equations (time as a coordinate, a volatility of zero) are not "
                "covered. A small multiple of the identity, added to it, makes it elliptic."
            )
        raise CoefficientError(
            f"{name} is not positive definite: {name}({show(points[i])}) = "
            f"{show(matrices[i])}{_of(which)} has the eigenvalue {smallest[i]:.6g}. The equation "
            f"is not elliptic there; {cure}"
        )
    if np.any(size < SMALLEST_MATRIX):
        i = int(np.argmin(size))
        raise CoefficientError(
            f"{name}({show(points[i])}) = {show(matrices[i])}{_of(which)} is so small that its "
            "squares are zero. Multiply the whole equation by a number."
        )


def coefficient_functions(
    d: int, A: Any, b: Any, c: Any, f: Any, signature: str = "x"
) -> list[tuple[Callable[..., Array], bool]]:
    """A, b, c, f as functions, and whether each is constant. A number A is a multiple of the
    identity; b and c are zero where they are not given."""
    if isinstance(A, (int, float)):
        A = A * np.eye(d)
    b, c = (np.zeros(d) if b is None else b), (0.0 if c is None else c)
    given = (("A", A, (d, d)), ("b", b, (d,)), ("c", c, ()), ("f", f, ()))
    return [as_function(name, value, shape, signature) for name, value, shape in given]


def checked_sample(
    name: str,
    function: Callable[..., Any],
    shape: tuple[int, ...],
    points: np.ndarray,
    where: str = "",
) -> np.ndarray:
    """The values of a function of one point, whose shape is checked first, at many: all finite."""
    check_shape(name, function, shape, jnp.asarray(points[0]))
    try:
        values = sample(function, points)
    except jax.errors.TracerArrayConversionError as error:
        raise CoefficientError(f"{name} {TRACED}") from error
    check_finite(name, values, points, where)
    return values


class Coefficients(NamedTuple):
    """A linear equation at one point (or, with leading axes, at many): arrays of JAX inside a
    trace, of NumPy outside."""

    A: Any
    b: Any
    c: Any
    f: Any

    def defect(self, jet: Jet) -> Any:
        """A:D²u + b·∇u - cu - f."""
        first = (self.b * jet.gradient).sum(axis=-1)
        return contract(self.A, jet.hessian) + first - self.c * jet.value - self.f


def at_points(function: Callable[..., Any]) -> Callable[..., Any]:
    """A function of one point (and of more) as one of arrays of them, compiled once for all
    lengths."""
    compiled = jax.jit(jax.vmap(function))
    return lambda *arrays: in_blocks(compiled, arrays, with_matrices(BLOCK, arrays[0].shape[-1]))


def sample(function: Callable[[Array], Array], points: np.ndarray) -> np.ndarray:
    """Values of a function of one point at many points, in float64."""
    return np.asarray(jax.jit(jax.vmap(function))(jnp.asarray(points)), dtype=np.float64)


@dataclass(frozen=True)
class DiagonalPlusRank:
    """A(x) = diag(diagonal(x)) + V(x)V(x)ᵀ, to be passed as the matrix of a problem: `diagonal`
    gives (d,), `columns` gives V of shape (d, r).

    Solvers in many dimensions then multiply with A for the price of 1 + 2r vectors instead of d.
    With controls both are functions of (x, a).
    """

    diagonal: Callable[..., Array]
    columns: Callable[..., Array]

    def parts(self, *arguments: Any) -> tuple[Array, Array]:
        return self.diagonal(*arguments), self.columns(*arguments)

    def __call__(self, *arguments: Any) -> Array:
        diagonal, columns = self.parts(*arguments)
        return jnp.diag(diagonal) + columns @ columns.T


def at_states(function: Callable[..., Any]) -> Callable[..., Any]:
    """A function of one point, a state there and more as one of many points, their jet and arrays,
    compiled once."""

    def at(x: Array, value: Array, gradient: Array, hessian: Array, *more: Array) -> Any:
        return function(x, Jet(value, gradient, hessian), *more)

    compiled = at_points(at)
    return lambda points, jet, *more: compiled(points, *jet, *more)
