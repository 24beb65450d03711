"""What data from a file must look like, in the rules of `cordes.arguments`: each takes the name of
a place and the value there, and refuses what it does not allow."""

from typing import Any

from cordes.arguments import Rule
from cordes.errors import OptionError, shown


def _refuse(name: str, value: Any, wanted: str) -> None:
    raise OptionError(f"{name} = {shown(value)}: {wanted} is needed.")


def text(most: int) -> Rule:
    def rule(name: str, value: Any) -> None:
        if not isinstance(value, str) or len(value) > most:
            _refuse(name, value, f"a text of at most {most} characters")

    return rule


def real(name: str, value: Any) -> None:
    """A number, also one that is infinite or none: a solve may have ended there."""
    if not isinstance(value, int | float) or isinstance(value, bool):
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


def record(required: dict[str, Rule], others: dict[str, Rule] | None = None) -> Rule:
    """An object that has all of these, and may have the others; what is neither is not looked
    at."""

    def checked(name: str, value: Any) -> None:
        data(name, value)
        for key in required.keys() - value.keys():
            raise OptionError(f"{name}.{key} is missing.")
        for key, rule in (required | (others or {})).items():
            if key in value:
                rule(f"{name}.{key}" if name else key, value[key])

    return checked
