"""cordes: elliptic equations in non-divergence form, solved with neural networks and checked."""

import sys
from typing import TYPE_CHECKING

from cordes.commands.process import is_command
from cordes.natural_names import hint
from cordes.runtime.signals import listen_early

__version__ = "0.1.0"

if is_command():
    listen_early()
# A command gets its names when it needs them (`load_names`): help and completion wait for no JAX.
if TYPE_CHECKING or not is_command():
    from cordes.public import *  # noqa: F403
    from cordes.public import __all__

# Not for type checkers, which would take every wrong name for a right one.
if not TYPE_CHECKING:

    def __getattr__(name: str) -> object:
        """A name that is natural to look for is answered with what it is called here."""
        known = hint(name)
        if known is None:
            raise AttributeError(
                f"module 'cordes' has no attribute {name!r}", name=name, obj=sys.modules[__name__]
            )
        raise AttributeError(known)


def __dir__() -> list[str]:
    """What Tab shows: the public names, and neither modules nor what they are made of."""
    return sorted(__all__)
