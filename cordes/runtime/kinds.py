"""Where kinds of problems register themselves: a new kind is a file in a folder, and no list has to
be told of it."""

import importlib
import pkgutil


def load_kinds(package: str) -> None:
    """Import every module of a package, so that what they register is registered."""
    for module in pkgutil.iter_modules(importlib.import_module(package).__path__):
        importlib.import_module(f"{package}.{module.name}")
