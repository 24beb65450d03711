"""A fingerprint of what functions compute: a hash over the operations that JAX traces, with all
constants. Equal formulas have equal ones, in any process and on any machine with the same JAX;
numbers count with twelve digits, since another machine may round what was computed beforehand
otherwise. Two ways to write one function have different ones.
"""

import hashlib
from collections.abc import Callable
from typing import Any

import jax
import numpy as np

# Binary digits of a constant that count.
DIGITS = 40
# Parameters that change names and places, but no number.
IGNORED = frozenset({"name", "jvp_jaxpr_fun", "jvp_jaxpr_thunk", "fwd_jaxpr_thunk", "bwd"})


def fingerprint(function: Callable, *arguments: Any) -> str | None:
    """Of a function of arguments that have these shapes; None where it calls back into Python,
    which no trace sees."""
    digest = hashlib.blake2b(digest_size=16)
    closed = jax.make_jaxpr(function)(*arguments)
    try:
        _add(digest, closed)
    except _OpaqueError:
        return None
    return digest.hexdigest()


class _OpaqueError(Exception):
    """Something that a trace does not show."""


def _add(digest: Any, value: Any) -> None:
    """Add what a trace is made of: functions, operations, constants, parameters."""
    if hasattr(value, "eqns") or hasattr(value, "jaxpr"):
        _add_body(digest, getattr(value, "jaxpr", value), getattr(value, "consts", ()))
    elif isinstance(value, (tuple, list)) and not hasattr(value, "_fields"):
        digest.update(b"(%d" % len(value))
        for each in value:
            _add(digest, each)
    elif isinstance(value, (np.ndarray, np.generic, jax.Array, float, complex)):
        _add_numbers(digest, np.asarray(value))
    else:
        text = repr(value)
        digest.update((type(value).__name__ if " at 0x" in text else text).encode() + b";")


def _add_body(digest: Any, body: Any, constants: Any) -> None:
    places = {variable: k for k, variable in enumerate((*body.constvars, *body.invars))}
    _add(digest, list(constants))

    def add(atoms: Any) -> None:
        for atom in atoms:
            if hasattr(atom, "val"):
                _add_numbers(digest, np.asarray(atom.val, dtype=atom.aval.dtype))
            else:
                digest.update(b"v%d" % places[atom])

    for equation in body.eqns:
        name = equation.primitive.name
        if "callback" in name:
            raise _OpaqueError(name)
        digest.update(name.encode())
        add(equation.invars)
        for key in sorted(equation.params.keys() - IGNORED):
            digest.update(key.encode())
            _add(digest, equation.params[key])
        for variable in equation.outvars:
            places[variable] = len(places)
            digest.update(str(variable.aval).encode())
    add(body.outvars)


def _add_numbers(digest: Any, array: np.ndarray) -> None:
    digest.update(f"{array.shape}{array.dtype}".encode())
    if array.dtype.kind not in "fc":
        digest.update(np.ascontiguousarray(array).tobytes())
        return
    for part in (np.real(array), np.imag(array)) if array.dtype.kind == "c" else (array,):
        plain = np.nan_to_num(np.asarray(part, dtype=np.float64))
        share, exponent = np.frexp(plain)
        share, carried = np.frexp(np.round(np.ldexp(share, DIGITS)))
        for each in (share, exponent + carried, np.isnan(part), np.isinf(part)):
            digest.update(np.ascontiguousarray(each).tobytes())
