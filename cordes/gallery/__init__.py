"""Named problems: `cordes.gallery["ex4.2-continuous"]`. A problem is made, and checked, when it is
first asked for."""

import functools
import importlib
import tomllib
from collections.abc import Iterator, Mapping
from importlib.resources import files

from cordes.errors import unknown
from cordes.problems.problem import AbstractProblem

# Which function of which module makes which problem; its names are also those of completion.
LISTED = tomllib.loads((files(__name__) / "problems.toml").read_text(encoding="utf-8"))


class Gallery(Mapping[str, AbstractProblem]):
    """A mapping from names to problems (`Linear`, `HJB`, `Parabolic`, …), made lazily;
    `describe(name)` is a line about one: the first paragraph of what its maker says of itself."""

    def __init__(self, entries: Mapping[str, functools.partial[AbstractProblem]]):
        self._entries = entries
        self._made: dict[str, AbstractProblem] = {}

    def __getitem__(self, name: str) -> AbstractProblem:
        if not isinstance(name, str) or name not in self._entries:
            raise unknown("gallery problem", name, self._entries)
        if name not in self._made:
            self._made[name] = self._entries[name]().labelled(source={"gallery": name})
        return self._made[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._entries)

    def __len__(self) -> int:
        return len(self._entries)

    def __contains__(self, name: object) -> bool:
        return isinstance(name, str) and name in self._entries

    def describe(self, name: str) -> str:
        entry = self._entries[name]
        line = " ".join((entry.func.__doc__ or "").split("\n\n")[0].split())
        plural = "" if entry.args == (1,) else "s"
        return f"{entry.args[0]} dimension{plural}, {line}" if entry.args else line


def _entries() -> Iterator[tuple[str, functools.partial[AbstractProblem]]]:
    for module, problems in LISTED.items():
        makers = importlib.import_module(f"cordes.gallery.{module}")
        for name, (function, *arguments) in problems.items():
            yield name, functools.partial(getattr(makers, function), *arguments)


gallery = Gallery(dict(_entries()))
