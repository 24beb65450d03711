"""What an argument may be, in the same words wherever it is given: in Python, on the command line,
or in a file. A rule takes the name and the value, and refuses what it does not allow."""

import dataclasses
import errno
import math
import os
from collections.abc import Callable, Container, Iterable, Mapping
from numbers import Integral, Real
from pathlib import Path
from typing import Any

from cordes.errors import OptionError, shown, unknown

Rule = Callable[[str, Any], None]


def is_number(value: Any) -> bool:
    """Whether a value is a real number that can be computed with: a whole number of 400 digits
    cannot."""
    if not isinstance(value, Real) or isinstance(value, bool):
        return False
    try:
        float(value)
    except OverflowError:
        return False
    return True


def whole(least: int, most: float = math.inf) -> Rule:
    """A whole number."""

    def rule(name: str, value: Any) -> None:
        known = isinstance(value, Integral) and not isinstance(value, bool)
        if not (known and least <= int(value) <= most):
            range_ = f"of at least {least}" if most == math.inf else f"from {least} to {most:g}"
            raise OptionError(f"{name} = {shown(value)}: a whole number {range_} is needed.")

    return rule


def number(least: float, below: float = math.inf) -> Rule:
    """A finite number that is not less than the one and less than the other."""

    def rule(name: str, value: Any) -> None:
        if not (is_number(value) and least <= value < below):
            range_ = f"of at least {least:g}" + (f", below {below:g}" if below < math.inf else "")
            raise OptionError(f"{name} = {shown(value)}: a finite number {range_} is needed.")

    return rule


def positive(name: str, value: Any) -> None:
    """A finite number above zero."""
    if not (is_number(value) and 0 < value < math.inf):
        infinite = " and finite" if is_number(value) and value == math.inf else ""
        raise OptionError(f"{name} = {shown(value)}: it must be a positive number{infinite}.")


def lasting(name: str, value: Any) -> None:
    """A time; an infinite one is none."""
    if not (is_number(value) and value == math.inf):
        positive(name, value)


def flag(name: str, value: Any) -> None:
    if not isinstance(value, bool):
        raise OptionError(f"{name} = {shown(value)}: True or False is needed.")


def one_of(what: str, names: Iterable[str]) -> Rule:
    """One of a few words."""
    known = tuple(names)

    def rule(name: str, value: Any) -> None:
        if not isinstance(value, str) or value not in known:
            raise unknown(what, value, known)

    return rule


def check_arguments(
    rules: Mapping[str, Rule], values: Mapping[str, Any], optional: Container[str] = ()
) -> None:
    """Ask the rules of all values that are given. Of what is `optional`, None stands for a value
    that is not."""
    for name, rule in rules.items():
        if name in values and (values[name] is not None or name not in optional):
            rule(name, values[name])


def check_fields(rules: Mapping[str, Rule], given: Any) -> None:
    """Ask the rules of the fields of a dataclass, of which those are optional that are None unless
    they are said."""
    fields = dataclasses.fields(given)
    optional = {field.name for field in fields if field.default is None}
    check_arguments(rules, {field.name: getattr(given, field.name) for field in fields}, optional)


def as_path(given: Any, what: str = "path") -> Path:
    """The path of a file that a user names."""
    if not isinstance(given, str | Path) or not str(given) or "\0" in str(given):
        raise OptionError(f"{what} = {shown(given)}: the path of a file is needed.")
    try:
        os.lstat(given)
    except OSError as error:
        # The one that pathlib raises where it is asked whether there is a file.
        if error.errno == errno.ENAMETOOLONG:
            raise OptionError(f"{what} = {shown(given)}: the name is too long.") from error
    return Path(given)
