"""Where kinds of problems register themselves: a new one is a file, and no list is told of it."""

import importlib
import pkgutil


def load_kinds(package: str) -> None:
    """Import every module of a package, so that what they register is registered."""
    for module in pkgutil.iter_modules(importlib.import_module(package).__path__):
        importlib.import_module(f"{package}.{module.name}")
