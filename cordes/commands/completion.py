"""What a shell may write after `cordes solve `: names of the gallery and problem files. Nothing
numerical is loaded for it, since somebody waits at a key: the shell sets _CORDES_COMPLETE, and
cordes/__init__.py looks for it."""

import tomllib
from pathlib import Path


def gallery_names() -> list[str]:
    """The names of cordes.gallery, whose import takes seconds, from the list that it reads too."""
    listed = Path(__file__).parents[1] / "gallery" / "problems.toml"
    groups = tomllib.loads(listed.read_text(encoding="utf-8")).values()
    return [name for group in groups for name in group]


def problem_names(incomplete: str) -> list[str]:
    """Names of the gallery and problem files of this folder that begin like this. Where there are
    none the shell offers files of its own accord."""
    names = [name for name in gallery_names() if name.startswith(incomplete)]
    if "/" in incomplete:
        return names
    try:
        files = sorted(
            path.name
            for path in Path().iterdir()
            if path.suffix in (".toml", ".py") and not path.name.startswith(".")
        )
    except OSError:
        files = []
    return names + [file for file in files if file.startswith(incomplete)]
