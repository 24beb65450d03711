"""Named problems: `cordes.gallery["ex4.2-continuous"]`. A problem is made, and checked, when it is
first asked for."""

from collections.abc import Callable, Iterator, Mapping

from cordes.errors import unknown
from cordes.gallery import (
    high_dimension,
    literature_linear,
    literature_nonlinear,
    paper_linear,
    paper_nonlinear,
    transport_problems,
)
from cordes.problems.problem import AbstractProblem


class Gallery(Mapping[str, AbstractProblem]):
    """A mapping from names to problems (`Linear`, `HJB`, `MongeAmpere`), made lazily;
    `describe(name)` is a line about one: the first paragraph of what its maker says of itself."""

    def __init__(self, entries: Mapping[str, Callable[[], AbstractProblem]]):
        self._entries = entries
        self._made: dict[str, AbstractProblem] = {}

    def __getitem__(self, name: str) -> AbstractProblem:
        if name not in self._entries:
            raise unknown("gallery problem", name, self._entries)
        if name not in self._made:
            self._made[name] = self._entries[name]().labelled(source={"gallery": name})
        return self._made[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._entries)

    def __len__(self) -> int:
        return len(self._entries)

    def __contains__(self, name: object) -> bool:
        return name in self._entries

    def describe(self, name: str) -> str:
        return " ".join((self._entries[name].__doc__ or "").split("\n\n")[0].split())


gallery = Gallery(
    paper_linear.PROBLEMS
    | paper_nonlinear.PROBLEMS
    | literature_linear.PROBLEMS
    | literature_nonlinear.PROBLEMS
    | transport_problems.PROBLEMS
    | high_dimension.PROBLEMS
)
