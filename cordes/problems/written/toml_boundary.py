"""The table [boundary] of problem files: a condition for each piece of the boundary, such as
`left = {type = "robin", kappa = 2, h = "x2"}`, `outer` for the rest."""

from collections.abc import Callable
from typing import Any

from cordes.domains.domain import AbstractDomain
from cordes.errors import FileError, shown
from cordes.problems.boundary_conditions import Dirichlet, Neumann, Periodic, Robin, piece_names

# The class of each type, and its keys.
TYPES: dict[str, tuple[Callable[..., Any], tuple[str, ...]]] = {
    "dirichlet": (Dirichlet, ("g",)),
    "neumann": (Neumann, ("h",)),
    "robin": (Robin, ("kappa", "h")),
    "periodic": (Periodic, ()),
}
# Kinds of problems that have it.
KINDS = ("linear", "hjb", "isaacs", "parabolic")
Read = Callable[[Any, str], Any]


def boundary_of(
    table: Any, kind: str, domain: AbstractDomain, scalar: Read, constant: Read, label: str
) -> dict[str, Any]:
    """The conditions by the names of pieces; `scalar` reads an expression, `constant` a number."""
    if kind not in KINDS:
        raise FileError(f"{label}: a problem of the kind {kind!r} has g in [equation] alone.")
    if not isinstance(table, dict) or not table:
        raise FileError(f"{label} must be a table [boundary], not {shown(table)}.")
    known = (*piece_names(domain), "outer")
    found = {}
    for name, given in table.items():
        if name not in known:
            raise FileError(f"{label}.{name}: no such piece. Allowed: {', '.join(known)}.")
        found[name] = _condition(given, scalar, constant, f"{label}.{name}")
    return found


def _condition(given: Any, scalar: Read, constant: Read, label: str) -> Any:
    types = ", ".join(TYPES)
    kind = given.get("type") if isinstance(given, dict) else None
    if not isinstance(kind, str) or kind not in TYPES:
        raise FileError(f'{label} must be {{type = "…", …}} with a type of: {types}.')
    make, keys = TYPES[kind]
    values = {}
    for key in given:
        if key not in ("type", *keys):
            allowed = ", ".join(("type", *keys))
            raise FileError(f"{label}.{key}: not for {kind!r}. Allowed: {allowed}.")
    for key in keys:
        if key in given:
            read = constant if key == "kappa" else scalar
            values[key] = read(given[key], f"{label}.{key}")
    if kind == "robin" and "kappa" not in values:
        raise FileError(f"{label}: kappa is missing.")
    return make(**values)
