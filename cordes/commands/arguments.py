"""What each command takes: its arguments and options with their help, as one object. The docstring
of the object is the help of the command. Nothing numerical is loaded to read them."""

import tomllib
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar, dataclass_transform

import typer

from cordes.commands.templates import KINDS

Given = TypeVar("Given")
# In the order of the help. Each is done by `make_report` of the module of its name.
COMMANDS: dict[str, type[Any]] = {}


@dataclass_transform(frozen_default=True)
def command(arguments: type[Given]) -> type[Given]:
    """Enters a class of arguments among the commands, by its name."""
    name = arguments.__name__.removesuffix("Arguments").lower()
    COMMANDS[name] = made = dataclass(frozen=True)(arguments)
    return made


def argument(metavar: str, sentence: str, complete: Any = None, **default: Any) -> Any:
    """What is given by its place. Its type is that of the field."""
    about = typer.Argument(
        metavar=metavar, help=sentence, show_default=False, autocompletion=complete
    )
    return field(metadata={"typer": about}, **default)


def option(default: Any, sentence: str, *names: str, **settings: Any) -> Any:
    """What is given by its name: that of the field, unless there is another."""
    about = typer.Option(*names, help=sentence, **settings)
    return field(default=default, metadata={"typer": about})


# What a shell may write after `cordes solve `: nothing numerical is loaded for it, since somebody
# waits at a key; the shell sets _CORDES_COMPLETE, and cordes/__init__.py looks for it.


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


def problem_argument(**default: Any) -> Any:
    return argument(
        "NAME|FILE.py|FILE.toml",
        "A name from `cordes gallery`, a FILE.toml, or a FILE.py that defines `problem`. A FILE.py "
        "is your own program and is run: trust it first.",
        problem_names,
        **default,
    )


def seed_option() -> Any:
    return option(0, "Seed of points and networks.", min=0)


def json_option() -> Any:
    return option(
        False, "Print one JSON object on standard output, and nothing else there.", "--json"
    )


def _place(text: str | Path) -> Path:
    """Most who give an empty name have a variable that is not set."""
    if not str(text):
        raise typer.BadParameter("it is empty. Give a name; the current folder is a dot.")
    return Path(text)


def out_option(sentence: str, default: Path | None = None, metavar: str = "DIR") -> Any:
    return option(default, sentence, metavar=metavar, parser=_place)


def overwrite_option() -> Any:
    return option(False, "Replace another run in the folder, when this one is done.", "--overwrite")


@command
class GalleryArguments:
    """List the built-in problems."""

    as_json: bool = json_option()


@command
class CheckArguments:
    """Measure the Cordès condition: ε, where it is worst, and the range of the multiplier. A
    violation is no failure: the exit status is 0."""

    problem: str = problem_argument()
    out: Path | None = out_option("Write report.html, check.json and condition.png here.")
    overwrite: bool = overwrite_option()
    as_json: bool = json_option()


@command
class SolveArguments:
    """Solve a problem and say how wrong the answer is."""

    problem: str = problem_argument()
    method: str = option("auto", "least-squares, gauss-newton, adam, cells, expansions, or auto.")
    tol: float | None = option(
        None, "Work until the certified root mean square error is this small."
    )
    seed: int = seed_option()
    preset: str | None = option(None, "`paper`: Adam as in the paper.")
    epochs: int | None = option(None, "Epochs (adam).", min=1)
    steps: int | None = option(None, "Steps (gauss-newton).", min=1)
    features: int | None = option(None, "Largest number of features (least-squares).", min=1)
    cells: int | None = option(None, "Largest number of cells (cells).", min=1)
    degree: int | None = option(None, "Degree of the polynomials (cells).", min=1)
    levels: int | None = option(None, "Sizes of the basis that are tried (expansions).", min=1)
    no_multiplier: bool = option(
        False, "Leave the Cordès multiplier out: the plain PINN loss.", "--no-multiplier"
    )
    boundary: str | None = option(
        None, "hard: boundary values exact by construction (default); soft: a penalty in the loss."
    )
    outer: str | None = option(
        None,
        "Nonlinear problems: newton (default), fixed-point (HJB), direct (adam on the nonlinear "
        "residual).",
    )
    form: str | None = option(
        None, "Monge–Ampère: determinant (default), convex (two dimensions), plain."
    )
    argmax: str | None = option(None, "HJB: scaled (default), or unscaled as in the paper.")
    max_seconds: float | None = option(None, "Stop then, with the best answer so far.")
    barrier: bool = option(
        False, "Train a barrier network for a sharper bound of the largest error.", "--barrier"
    )
    prove: bool = option(
        False,
        "Prove the bounds as well, with a file that `python -m cordes_check` confirms; needs "
        "--out, and the extra `proof`.",
        "--prove",
    )
    verbose: bool = option(
        False,
        "Print every theorem that gives no bound with its reason, not only the nearest.",
        "--verbose",
    )
    out: Path | None = out_option(
        "Write report.html, result.json, solution.png, policy.png (HJB), certificate.png, "
        "answer.cordes, solution.vtu here."
    )
    overwrite: bool = overwrite_option()
    coordinator: str | None = option(
        None,
        "Several processes: where process 0 runs, and a free port there.",
        metavar="HOST:PORT",
        show_default=False,
    )
    processes: int | None = option(
        None, "How many processes share the work.", metavar="N", min=1, show_default=False
    )
    process_id: int | None = option(
        None,
        "Which of them this one is, 0 to N-1. Process 0 prints and writes.",
        metavar="I",
        min=0,
        show_default=False,
    )
    as_json: bool = json_option()


@command
class ProveArguments:
    """Prove how wrong an answer is: write a theorem that `python -m cordes_check` confirms without
    this program. Needs the extra `proof`. Exit status 0 proved, 1 not proved."""

    source: str = argument(
        "ANSWER.cordes|NAME|FILE",
        "An answer that was saved, or a problem, which is solved first.",
        problem_names,
    )
    max_seconds: float | None = option(None, "Give up then.")
    out: Path | None = option(
        None,
        "Write the proof and the answer that it is about here, not beside the answer.",
        metavar="DIR",
    )
    overwrite: bool = option(False, "Replace a proof that exists.", "--overwrite")
    as_json: bool = json_option()


@command
class ReportArguments:
    """Compare several runs on one page: their numbers side by side, their convergence, their
    pictures."""

    folders: list[Path] = argument("DIR DIR…", "Folders that `cordes solve --out DIR` wrote.")
    out: Path = out_option("The page.", Path("comparison.html"), "FILE")
    as_json: bool = json_option()


@command
class BenchArguments:
    """Measure the cost of a solve in plain training epochs of this machine. Takes a minute in 2-D
    and longer beyond."""

    problem: str = problem_argument()
    seed: int = seed_option()
    as_json: bool = json_option()


@command
class SurfaceArguments:
    """Lay a surface flat: conformal map, area-correcting transport, distortion before and after."""

    mesh: str = argument(
        "MESH", "OBJ, OFF, PLY, STL or MAT file, or `folded`: a surface made in code."
    )
    corners: tuple[int, int, int, int] | None = option(
        None,
        "Vertex numbers of the corners, counted from 1, around the boundary.",
        metavar="A B C D",
    )
    network: bool = option(
        False, "Also transport by networks, which takes minutes.", "--network/--no-network"
    )
    seed: int = seed_option()
    out: Path | None = out_option(
        "Write report.html, surface.obj, surface.ply (with uv), surface.png, report.json here."
    )
    overwrite: bool = overwrite_option()
    as_json: bool = json_option()


@command
class StudyArguments:
    """Train C-PINN and PINN as the paper does, and compare: epochs to each target beside the
    paper's, dynamics, landscape, conditioning."""

    problem: str | None = problem_argument(default=None)
    seeds: int | None = option(
        None,
        "Seeds trained at once. By default 5 in two dimensions, 3 beyond.",
        min=1,
        show_default=False,
    )
    epochs: int = option(
        40_000,
        "Largest number of epochs; a run ends earlier when every seed has met the last target.",
        min=10,
    )
    everything: bool = option(False, "All tables and figures of the paper.", "--all")
    train_only: bool = option(
        False,
        "Train and keep the states; the same command without this judges them.",
        "--train-only",
    )
    mesh: list[Path] | None = option(
        None,
        "Surfaces for the last figure of --all; may be repeated. Without one, a folded surface.",
    )
    out: Path = out_option(
        "States, study.json, report.html and figures go to DIR/NAME. A study that was stopped "
        "goes on from there.",
        Path("study"),
    )
    as_json: bool = json_option()


@command
class NewArguments:
    """Write a commented problem file that solves as it is, to be changed into yours."""

    target: str = argument("NAME|FILE.py|FILE.toml", "A name, or the file to write.")
    kind: str = option(
        "linear",
        "linear, insulated-box, hjb, monge-ampere, heat, american-put, l-shape, plate-with-holes, "
        "or transport (in Python only).",
        autocompletion=lambda: list(KINDS),
    )
    as_python: bool = option(False, "A Python file: for functions of your own.", "--python")
    as_toml: bool = option(False, "A TOML file: data and formulas (default).", "--toml")
    force: bool = option(False, "Replace a file that exists.", "--force")
    as_json: bool = json_option()


@command
class DoctorArguments:
    """Look at versions, devices, precision, cache and cores, and solve a small problem: is all well
    here? If not, what to do."""

    as_json: bool = json_option()
