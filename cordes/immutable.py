"""Values that do not change: they keep the arguments that they were made of, are closed once they
are made, and are copied, changed and pickled by their arguments."""

import abc
import functools
import inspect
from typing import Any, Self

from cordes.errors import ArgumentError, FrozenError, NotPickledError
from cordes.natural_names import missing
from cordes.runtime.plain import has_a_name


class Immutable(abc.ABC):
    """What is made of arguments and stays as it was made."""

    arguments: dict[str, Any]
    made: bool = False

    @abc.abstractmethod
    def _closed(self) -> None:
        """What is noted when everything is there, before nothing can be changed any more."""

    def __init_subclass__(cls) -> None:
        """Every kind keeps the arguments it was made of, and is closed once it is made."""
        initialise = cls.__init__
        known = inspect.signature(initialise).parameters

        @functools.wraps(initialise)
        def made(self: Any, *given: Any, **named: Any) -> None:
            for name in named.keys() - known.keys():
                what = missing(name) or f"Known: {', '.join(list(known)[1:])}."
                raise ArgumentError(f"{cls.__name__} has no argument {name!r}. {what}")
            initialise(self, *given, **named)
            if type(self) is not cls:
                return  # Of a subclass, which is not yet made.
            arguments = inspect.signature(initialise).bind(self, *given, **named).arguments
            self.arguments = {name: arguments[name] for name in list(arguments)[1:]}
            self._closed()
            self.made = True

        cls.__init__ = made

    def __setattr__(self, name: str, value: Any) -> None:
        if self.made:
            raise FrozenError(
                f"{name} of {self!r} cannot be changed: answers and certificates speak of the "
                f"problem as it was made. Make another one: problem.replace({name}=…)."
            )
        super().__setattr__(name, value)

    def replace(self, **changes: Any) -> Self:
        """The same with other arguments, made and checked anew; it belongs to no gallery and no
        file any more."""
        return type(self)(**(self.arguments | changes))

    def __copy__(self) -> Self:
        """Nothing is checked or compiled twice."""
        other = object.__new__(type(self))
        vars(other).update(vars(self))
        return other

    def __reduce__(self) -> tuple[Any, ...]:
        """For Python's own pickle, which takes functions by name."""
        for name, value in self.arguments.items():
            for function in value if isinstance(value, (list, tuple)) else (value,):
                if inspect.isfunction(function) and not has_a_name(function):
                    raise NotPickledError(
                        f"{self!r} cannot be pickled: {name} is a function without a name in a "
                        "module, and pickles take functions by name. Define it with `def` at the "
                        "top of a module, or write the problem as a TOML file and use "
                        "cordes.problem(path)."
                    )
        return _from_arguments, (type(self), self.arguments)


def _from_arguments(kind: type[Immutable], arguments: dict[str, Any]) -> Immutable:
    return kind(**arguments)
