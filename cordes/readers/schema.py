"""What data from a file must look like, in the rules of `cordes.arguments`: each takes the name of
a place and the value there, and refuses what it does not allow."""

from typing import Any

import numpy as np

from cordes.arguments import Rule, is_number
from cordes.errors import FileError, OptionError, shown


def check_file(rule: Rule, value: Any, what: str, remedy: str) -> None:
    """Refuse a file whose data are not what the rule allows; `what` begins the message, `remedy`
    ends it."""
    try:
        rule("", value)
    except OptionError as error:
        raise FileError(f"{what} is damaged: {error}{remedy}") from error


def _refuse(name: str, value: Any, wanted: str) -> None:
    raise OptionError(f"{name} = {shown(value)}: {wanted} is needed.")


def text(most: int) -> Rule:
    def rule(name: str, value: Any) -> None:
        if not isinstance(value, str) or len(value) > most:
            _refuse(name, value, f"a text of at most {most} characters")

    return rule


def real(name: str, value: Any) -> None:
    """A number, also one that is infinite or none: a solve may have ended there."""
    if not is_number(value):
        _refuse(name, value, "a number")


def data(name: str, value: Any) -> None:
    """An object that nothing is built from."""
    if not isinstance(value, dict):
        _refuse(name, value, "an object")


def optional(rule: Rule) -> Rule:
    """What may be null."""
    return lambda name, value: None if value is None else rule(name, value)


def list_of(rule: Rule, most: int, least: int = 0) -> Rule:
    def checked(name: str, value: Any) -> None:
        if not isinstance(value, list) or not least <= len(value) <= most:
            _refuse(name, value, f"a list of {least} to {most} entries")
        for k, entry in enumerate(value):
            rule(f"{name}[{k}]", entry)

    return checked


def tuple_of(*rules: Rule) -> Rule:
    """A list of one entry for each rule."""

    def checked(name: str, value: Any) -> None:
        if not isinstance(value, list) or len(value) != len(rules):
            _refuse(name, value, f"a list of {len(rules)} entries")
        for k, (rule, entry) in enumerate(zip(rules, value, strict=True)):
            rule(f"{name}[{k}]", entry)

    return checked


def record(
    required: dict[str, Rule], others: dict[str, Rule] | None = None, closed: bool = False
) -> Rule:
    """An object that has all of these, and may have the others; what is neither is not looked at,
    or, in a closed one, refused."""
    rules = required | (others or {})

    def checked(name: str, value: Any) -> None:
        data(name, value)
        for key in required:
            if key not in value:
                raise OptionError(f"{_inside(name, key)} is missing.")
        for key, rule in rules.items():
            if key in value:
                rule(_inside(name, key), value[key])
        for key in value if closed else ():
            if key not in rules:
                raise OptionError(f"{_inside(name, shown(key))} does not belong there.")

    return checked


def array(kind: Any, *shape: int | None) -> Rule:
    """An array of a type and of a shape; None stands for any length."""

    def rule(name: str, value: Any) -> None:
        found = np.shape(value)
        alike = len(found) == len(shape) and all(
            wanted in (None, length) for wanted, length in zip(shape, found, strict=True)
        )
        if not alike or not np.issubdtype(value.dtype, kind):
            raise OptionError(f"{name} is an array of {value.dtype} and of the shape {found}.")

    return rule


def _inside(name: str, key: str) -> str:
    return f"{name}.{key}" if name else key
