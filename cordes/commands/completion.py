"""What a shell may write after `cordes solve `: names of the gallery and problem files. Nothing
numerical is loaded for it, since somebody waits at a key: the shell sets _CORDES_COMPLETE, and
cordes/__init__.py looks for it."""

from pathlib import Path

# The names of cordes.gallery, whose import takes seconds. A test compares the two.
GALLERY_NAMES = (
    "ex4.1-smooth",
    "ex4.1-singular",
    "ex4.2-continuous",
    "ex4.2-discontinuous",
    "ex4.3-ellipsoid",
    "ex4.3-cube5",
    "ex4.4-continuous",
    "ex4.4-discontinuous",
    "ex4.5-hjb",
    "ex4.6-monge-ampere",
    "smears-suli-2013",
    "feng-neilan-schnake-5.1",
    "lakkis-pryer-4.1",
    "lakkis-pryer-4.2",
    "weak-ellipticity",
    "constant-3d",
    "rotating-3d",
    "turning-3d",
    "discontinuous-3d",
    "smears-suli-2014",
    "switching-control",
    "froese-oberman-c1",
    "monge-ampere-3d",
    "ex5.1-square",
    "ex5.2-surface",
    "transport-ellipses",
    "transport-ellipses-nonuniform",
    "transport-disk-to-pentagon",
    "transport-box",
    "transport-box-3d",
    *(f"coupled-{shape}-{d}" for shape in ("ball", "cube") for d in (10, 20, 50, 100)),
    *(f"coupled-hjb-{d}" for d in (10, 100)),
)


def problem_names(incomplete: str) -> list[str]:
    """Names of the gallery and problem files of this folder that begin like this. Where there are
    none the shell offers files of its own accord."""
    names = [name for name in GALLERY_NAMES if name.startswith(incomplete)]
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
