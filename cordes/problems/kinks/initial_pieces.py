"""Initial values with kinks, |x|, max(S - K, 0), butterflies, read as what they are: smooth pieces,
and which of them holds where.

The operations of the function are followed with selections in the place of numbers: pieces with
weights that sum to one. Of two selections A and B, max(A, B) is A's piece i with the weight a_i Σ_j
b_j [p_i > q_j] and B's piece j likewise. With comparisons that are 0 or 1 this is the function
itself; with comparisons that know the time, Φ(ξ) in the place of a step, it is what diffusion makes
of it (`cordes.ansatz.singular.similarity`): each pair that was compared has a number, and whoever
asks says what its comparison is.
"""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

# Pieces of a selection beyond which it is summed up.
MOST_PIECES = 16
CALLS = ("jit", "pjit", "closed_call", "core_call", "remat", "remat2", "checkpoint")
CUSTOM = ("custom_jvp_call", "custom_vjp_call", "custom_vjp_call_jaxpr")
LINEAR = ("add", "add_any", "sub", "neg", "mul", "div", "convert_element_type", "copy")


class ComparedPieces(NamedTuple):
    """How two numbers p and q compare: the share of p in max(p, q), and what the sum of shares of
    both falls short of the smoothed maximum."""

    first: Any
    rest: Any


# (number of the pair, p, q) -> Compared.
Comparison = Callable[[int, Any, Any], ComparedPieces]


class Selection(NamedTuple):
    """Pieces, their weights, and what is added to their sum."""

    pieces: tuple[Any, ...]
    weights: tuple[Any, ...]
    extra: Any

    @property
    def value(self) -> Any:
        terms = [w * p for w, p in zip(self.weights, self.pieces, strict=True)]
        return sum(terms[1:], terms[0]) + self.extra

    def changed(self, piece: Callable[[Any], Any], factor: Any = 1.0) -> "Selection":
        pieces = tuple(piece(each) for each in self.pieces)
        return Selection(pieces, self.weights, factor * self.extra)


class UnknownPiecesError(Exception):
    """An operation chooses in a way that is not followed."""


def plain(value: Any) -> Selection:
    return value if isinstance(value, Selection) else Selection((value,), (1.0,), 0.0)


class Reader:
    """Evaluates a function of one point with selections; `compare` decides. Pairs are numbered in
    the order in which they are compared, which does not depend on the point."""

    def __init__(self, compare: Comparison):
        self.compare, self.pairs = compare, 0

    def read(self, function: Callable[..., Any], x: Array) -> Selection:
        closed = jax.make_jaxpr(function)(x)
        return plain(_scalar(self._run(closed.jaxpr, closed.consts, [x])[0]))

    def _run(self, jaxpr: Any, constants: Sequence[Any], arguments: Sequence[Any]) -> list[Any]:
        names = (*jaxpr.constvars, *jaxpr.invars)
        known = dict(zip(names, (*constants, *arguments), strict=True))

        def value(variable: Any) -> Any:
            return variable.val if hasattr(variable, "val") else known[variable]

        for equation in jaxpr.eqns:
            found = self._step(equation, [value(each) for each in equation.invars])
            known.update(zip(equation.outvars, found, strict=True))
        return [value(each) for each in jaxpr.outvars]

    def _step(self, equation: Any, inputs: list[Any]) -> list[Any]:
        name, params = equation.primitive.name, equation.params
        inner = [params[key] for key in ("jaxpr", "call_jaxpr", "fun_jaxpr") if key in params]
        if inner and name in (*CALLS, *CUSTOM):
            body = inner[0]
            closed = hasattr(body, "consts")
            return self._run(body.jaxpr if closed else body, body.consts if closed else (), inputs)
        if name in ("max", "min"):
            return [_elementwise(lambda a, b: self._larger(a, b, name == "max"), *inputs)]
        if name == "abs":
            return [_elementwise(lambda a: self._larger(a, _times(a, -1.0), True), *inputs)]
        if name == "clamp":
            low, middle, high = inputs
            return [
                _elementwise(
                    lambda a, b, c: self._larger(self._larger(b, a, True), c, False),
                    low,
                    middle,
                    high,
                )
            ]
        if name in ("reduce_max", "reduce_min"):
            return [self._reduced(inputs[0], params["axes"], name == "reduce_max")]
        if name in ("select_n", "sort", "argmax", "argmin", "floor", "sign", "while", "cond"):
            raise UnknownPiecesError(name)
        if not any(_selects(each) for each in inputs):
            found = equation.primitive.bind(*inputs, **params)
            return found if equation.primitive.multiple_results else [found]
        return [self._through(equation, inputs)]

    def _through(self, equation: Any, inputs: list[Any]) -> Any:
        """Sums and multiples of selections are selections; of all else their value is taken."""
        name, params = equation.primitive.name, equation.params
        if name == "neg":
            return _elementwise(lambda a: _times(a, -1.0), *inputs)
        if name in ("add", "add_any", "sub"):
            sign = -1.0 if name == "sub" else 1.0
            return _elementwise(lambda a, b: _sum(a, _times(b, sign)), *inputs)
        if name == "mul":
            return _elementwise(_product, *inputs)
        if name == "div":
            return _elementwise(lambda a, b: _product(a, 1.0 / _value(b)), *inputs)
        if name == "reduce_sum":
            return self._total(inputs[0], params["axes"])
        if name in ("convert_element_type", "copy", "copy_p"):
            return inputs[0]
        if name in MOVES:
            return MOVES[name](inputs[0], params)
        values = [_array(each) for each in inputs]
        return equation.primitive.bind(*values, **params)

    def _larger(self, a: Any, b: Any, largest: bool) -> Any:
        """max(a, b), or min."""
        one, other = plain(a), plain(b)
        first = [0.0 for _ in one.pieces]
        second = [0.0 for _ in other.pieces]
        extra, wins = 0.0, 0.0
        for i, (p, w) in enumerate(zip(one.pieces, one.weights, strict=True)):
            for j, (q, v) in enumerate(zip(other.pieces, other.weights, strict=True)):
                number, self.pairs = self.pairs, self.pairs + 1
                compared = self.compare(number, p, q) if largest else self.compare(number, q, p)
                # Of max(p, q) the share of p is that of p > q, of min(p, q) that of q > p.
                share = compared.first
                first[i] = first[i] + w * v * share
                second[j] = second[j] + w * v * (1.0 - share)
                extra = extra + (1.0 if largest else -1.0) * w * v * compared.rest
                wins = wins + w * v * share
        extra = extra + wins * one.extra + (1.0 - wins) * other.extra
        found = Selection((*one.pieces, *other.pieces), (*first, *second), extra)
        return found if len(found.pieces) <= MOST_PIECES else found.value

    def _reduced(self, values: Any, axes: tuple[int, ...], largest: bool) -> Any:
        objects = np.moveaxis(_objects(values), axes, range(len(axes)))
        flat = objects.reshape(-1, *objects.shape[len(axes) :])
        found = flat[0]
        for row in flat[1:]:
            found = _elementwise(lambda a, b: self._larger(a, b, largest), found, row)
        return found

    def _total(self, values: Any, axes: tuple[int, ...]) -> Any:
        objects = np.moveaxis(_objects(values), axes, range(len(axes)))
        flat = objects.reshape(-1, *objects.shape[len(axes) :])
        found = flat[0]
        for row in flat[1:]:
            found = _elementwise(_sum, found, row)
        return found


# Arrays of selections are arrays of objects -------------------------------------------------------


def _selects(value: Any) -> bool:
    return isinstance(value, Selection) or (isinstance(value, np.ndarray) and value.dtype == object)


def _objects(value: Any) -> np.ndarray:
    """An array of numbers, or of selections, as one of objects."""
    if isinstance(value, np.ndarray) and value.dtype == object:
        return value
    if isinstance(value, Selection):
        single = np.empty((), object)
        single[()] = value
        return single
    shape = np.shape(value)
    found = np.empty(shape, object)
    for index in np.ndindex(*shape):
        found[index] = value[index] if shape else value
    return found


def _scalar(value: Any) -> Any:
    return value[()] if isinstance(value, np.ndarray) and value.dtype == object else value


def _value(value: Any) -> Any:
    value = _scalar(value)
    return value.value if isinstance(value, Selection) else value


def _array(value: Any) -> Any:
    """Numbers in the place of selections."""
    if not _selects(value):
        return value
    objects = _objects(value)
    flat = [jnp.asarray(_value(each), float) for each in objects.ravel()]
    return jnp.stack(flat).reshape(objects.shape) if objects.shape else flat[0]


def _elementwise(function: Callable[..., Any], *values: Any) -> Any:
    """A function of numbers or selections, entry by entry."""
    if all(np.ndim(_objects_shape(each)) == 0 for each in values):
        return function(*(_scalar(each) for each in values))
    objects = np.broadcast_arrays(*(_objects(each) for each in values))
    found = np.empty(objects[0].shape, object)
    for index in np.ndindex(*found.shape):
        found[index] = function(*(_scalar(each[index]) for each in objects))
    return found


def _objects_shape(value: Any) -> Any:
    """Something that has the number of axes of a value."""
    shape = () if isinstance(value, Selection) else np.shape(value)
    return np.zeros(shape)


def _times(value: Any, factor: float) -> Any:
    if isinstance(value, Selection):
        return value.changed(lambda piece: factor * piece, factor)
    return factor * value


def _sum(a: Any, b: Any) -> Any:
    if not isinstance(a, Selection) and not isinstance(b, Selection):
        return a + b
    one, other = plain(a), plain(b)
    if len(one.pieces) * len(other.pieces) > MOST_PIECES:
        return one.value + other.value
    pieces = tuple(p + q for p in one.pieces for q in other.pieces)
    weights = tuple(w * v for w in one.weights for v in other.weights)
    return Selection(pieces, weights, one.extra + other.extra)


def _product(a: Any, b: Any) -> Any:
    """With a number that changes from point to point too: its pieces are products."""
    if isinstance(a, Selection) and isinstance(b, Selection):
        return a.value * b.value
    if isinstance(b, Selection):
        a, b = b, a
    return a.changed(lambda piece: piece * b, b) if isinstance(a, Selection) else a * b


def _moved(function: Callable[[np.ndarray, Any], np.ndarray]) -> Callable[[Any, Any], Any]:
    return lambda value, params: function(_objects(value), params)


MOVES: dict[str, Callable[[Any, Any], Any]] = {
    "squeeze": _moved(lambda a, p: np.squeeze(a, tuple(p["dimensions"]))),
    "reshape": _moved(lambda a, p: a.reshape(p["new_sizes"])),
    "broadcast_in_dim": _moved(
        lambda a, p: np.broadcast_to(
            a.reshape(
                [
                    a.shape[p["broadcast_dimensions"].index(k)]
                    if k in p["broadcast_dimensions"]
                    else 1
                    for k in range(len(p["shape"]))
                ]
            ),
            p["shape"],
        )
    ),
    "transpose": _moved(lambda a, p: np.transpose(a, p["permutation"])),
    "slice": _moved(
        lambda a, p: a[
            tuple(
                slice(low, high, step)
                for low, high, step in zip(
                    p["start_indices"],
                    p["limit_indices"],
                    p["strides"] or (1,) * a.ndim,
                    strict=True,
                )
            )
        ]
    ),
}


def pieces_of(function: Callable[..., Any], dimension: int) -> int:
    """How many pairs are compared in a function of one point; UnknownPiecesError where its choices
    are not followed."""
    reader = Reader(_hard)

    def count(x: Array) -> Any:
        return reader.read(function, x).value

    jax.eval_shape(count, jax.ShapeDtypeStruct((dimension,), np.float64))
    return reader.pairs


def _hard(number: int, p: Any, q: Any) -> ComparedPieces:
    return ComparedPieces(jnp.where(p >= q, 1.0, 0.0), 0.0)


def differences(function: Callable[..., Any], x: Array) -> Array:
    """p - q of all pairs that are compared at a point."""
    found: list[Any] = []

    def noted(number: int, p: Any, q: Any) -> ComparedPieces:
        found.append(jnp.asarray(p - q, float))
        return _hard(number, p, q)

    Reader(noted).read(function, x)
    return jnp.stack(found)


def smoothed(function: Callable[..., Any], x: Array, compare: Comparison) -> Any:
    """The value with comparisons of somebody's own."""
    return Reader(compare).read(function, x).value
