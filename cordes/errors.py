"""What a user can get wrong, as one family of exceptions.

Every message names what is wrong, where (the point) and with which value, and says what to do about
it. The command line turns these into exit status 2 and `{"error": {"kind", "message"}}`.
"""

import difflib
from collections.abc import Iterable


class CordesError(ValueError):
    """Bad input. `kind` is a short stable word for programs that read the JSON output."""

    kind = "bad_input"


class DomainError(CordesError):
    """A domain that is degenerate, unbounded or not convex."""

    kind = "domain"


class CoefficientError(CordesError):
    """A coefficient or datum of a problem that cannot be used."""

    kind = "coefficient"


class FileError(CordesError):
    """A problem file or a saved answer that cannot be read, or an output that cannot be written."""

    kind = "file"


class OptionError(CordesError):
    """An unknown name or an option that makes no sense here."""

    kind = "option"


class UnknownNameError(OptionError, KeyError):
    """An unknown name; also a KeyError, so that mappings behave as mappings do."""

    def __str__(self) -> str:
        return str(self.args[0])


class ArgumentError(OptionError, TypeError):
    """An argument that a problem does not have."""


class FrozenError(CordesError, AttributeError):
    """Something that does not change was to be changed."""

    kind = "frozen"


class NotPickledError(CordesError, TypeError):
    """Something that Python's pickle cannot take."""

    kind = "pickle"


class SurfaceError(CordesError):
    """A mesh that cannot be laid flat."""

    kind = "surface"


class MemoryLimitError(CordesError, MemoryError):
    """Something that would need more memory than there is."""

    kind = "memory"


# Characters of a value that a message shows.
SHOWN = 60


def shown(value: object) -> str:
    """A value in a message: a long one is cut, and a number of thousands of digits, which Python
    does not write, is told by its size."""
    try:
        text = repr(value)
    except ValueError:
        bits = value.bit_length() if isinstance(value, int) else 0
        return f"a number of about {bits * 3 // 10} digits" if bits else type(value).__name__
    return text if len(text) <= SHOWN else text[: SHOWN - 3] + "..."


def unknown(what: str, name: object, known: Iterable[str]) -> UnknownNameError:
    """The error for an unknown name, with the nearest known ones."""
    known, text = sorted(known), name if isinstance(name, str) else shown(name)
    text = text if len(text) <= SHOWN else text[: SHOWN - 3] + "..."
    near = difflib.get_close_matches(text, known, n=3, cutoff=0.4)
    hint = f"Did you mean {' or '.join(near)}?" if near else f"Known: {', '.join(known)}."
    return UnknownNameError(f"There is no {what} '{text}'. {hint}")
