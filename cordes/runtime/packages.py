"""The packages that cordes asks for, as its installation or else pyproject.toml says."""

import importlib
import importlib.metadata
import pkgutil
import re
import tomllib
from collections.abc import Iterator
from pathlib import Path

import cordes


def requirements() -> dict[str | None, dict[str, str]]:
    """For each extra (None: cordes itself) the packages and their least versions."""
    found: dict[str | None, dict[str, str]] = {}
    for line in _lines():
        package = re.match(r"[\w.-]+", line)
        least = re.search(r"[>=]=\s*([\d.]+)", line.partition(";")[0])
        extra = re.search(r"extra\s*==\s*['\"]([\w-]+)", line)
        if package:
            group = found.setdefault(extra[1] if extra else None, {})
            group[package[0]] = least[1] if least else "0"
    return found


def required_names() -> set[str]:
    """The names of all these packages, and of the one that JAX brings along."""
    return {"jaxlib", *(package for group in requirements().values() for package in group)}


def _lines() -> list[str]:
    try:
        return importlib.metadata.requires("cordes") or []
    except importlib.metadata.PackageNotFoundError:
        return list(_project_lines(Path(cordes.__file__).parents[1] / "pyproject.toml"))


def _project_lines(file: Path) -> Iterator[str]:
    """The requirements of a project file, written as an installed package writes them."""
    if file.is_file():
        project = tomllib.loads(file.read_text(encoding="utf-8"))["project"]
        yield from project["dependencies"]
        for extra, lines in project["optional-dependencies"].items():
            yield from (f'{line}; extra == "{extra}"' for line in lines)


def installed_version(package: str) -> str | None:
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return None


def numbers(version: str) -> tuple[int, ...]:
    """A version as numbers that can be compared; what follows a letter does not count."""
    plain = re.split(r"[a-z+]", version, maxsplit=1)[0]
    return tuple([*map(int, re.findall(r"\d+", plain)), 0, 0, 0, 0][:4])


def load_kinds(package: str) -> None:
    """Import every module of a package, so that what they register is registered: a new kind
    of problem is a file, and no list is told of it."""
    for module in pkgutil.iter_modules(importlib.import_module(package).__path__):
        importlib.import_module(f"{package}.{module.name}")
