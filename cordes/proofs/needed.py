"""What proofs need beside cordes, and why there is none."""

import importlib.util

from cordes.errors import CordesError

# Why there is no proof, in the words of whoever stopped it.
INTERRUPTED = "it was interrupted"


class NotProvedError(CordesError):
    """Why there is no proof, in a sentence."""

    kind = "not-proved"


class NotInstalledError(CordesError):
    """A package that is asked for, and is not here."""

    kind = "not-installed"


def check_installed() -> None:
    missing = [name for name in ("cordes_check", "flint") if importlib.util.find_spec(name) is None]
    if missing:
        raise NotInstalledError(
            f"Proofs need {' and '.join(missing)}, which are not installed: pip install "
            '"cordes[proof]"; from a checkout, pip install ./checker ".[proof]".'
        )
