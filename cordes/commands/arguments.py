"""What each command takes: its arguments and options with their help, as one object. The docstring
of the object is the help of the command. Nothing numerical is loaded to read them."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import typer

from cordes.commands.completion import problem_names
from cordes.commands.templates import KINDS

_PROBLEM = typer.Argument(
    metavar="NAME|FILE.py|FILE.toml",
    help=(
        "A name from `cordes gallery`, a FILE.toml, or a FILE.py that defines `problem`. A FILE.py "
        "is your own program and is run: trust it first."
    ),
    show_default=False,
    autocompletion=problem_names,
)
Problem = Annotated[str, _PROBLEM]
Json = Annotated[
    bool,
    typer.Option(
        "--json", help="Print one JSON object on standard output, and nothing else there."
    ),
]
Seed = Annotated[int, typer.Option(min=0, help="Seed of points and networks.")]


def folder(sentence: str) -> Any:
    """The option --out of a command that writes several files."""
    return typer.Option(metavar="DIR", help=sentence)


def flag(name: str, sentence: str) -> Any:
    """An option that is given or not."""
    return typer.Option(name, help=sentence)


@dataclass(frozen=True)
class GalleryArguments:
    """List the built-in problems."""

    as_json: Json = False


@dataclass(frozen=True)
class CheckArguments:
    """Measure the Cordès condition: ε, where it is worst, and the range of the multiplier. A
    violation is no failure: the exit status is 0."""

    problem: Problem
    out: Annotated[Path | None, folder("Write report.html, check.json and condition.png here.")] = (
        None
    )
    as_json: Json = False


@dataclass(frozen=True)
class SolveArguments:
    """Solve a problem and say how wrong the answer is."""

    problem: Problem
    method: Annotated[str, typer.Option(help="least-squares, gauss-newton, adam, or auto.")] = (
        "auto"
    )
    tol: Annotated[
        float | None,
        typer.Option(help="Work until the certified root mean square error is this small."),
    ] = None
    seed: Seed = 0
    preset: Annotated[str | None, typer.Option(help="`paper`: Adam as in the paper.")] = None
    epochs: Annotated[int | None, typer.Option(min=1, help="Epochs (adam).")] = None
    steps: Annotated[int | None, typer.Option(min=1, help="Steps (gauss-newton).")] = None
    features: Annotated[
        int | None, typer.Option(min=1, help="Largest number of features (least-squares).")
    ] = None
    no_multiplier: Annotated[
        bool, flag("--no-multiplier", "Leave the Cordès multiplier out: the plain PINN loss.")
    ] = False
    boundary: Annotated[
        str | None,
        typer.Option(
            help=(
                "hard: boundary values exact by construction (default); soft: a penalty in the "
                "loss."
            )
        ),
    ] = None
    outer: Annotated[
        str | None,
        typer.Option(
            help=(
                "Nonlinear problems: newton (default), fixed-point (HJB), direct (adam on the "
                "nonlinear residual)."
            )
        ),
    ] = None
    form: Annotated[
        str | None,
        typer.Option(help="Monge–Ampère: determinant (default), convex (two dimensions), plain."),
    ] = None
    argmax: Annotated[
        str | None, typer.Option(help="HJB: scaled (default), or unscaled as in the paper.")
    ] = None
    max_seconds: Annotated[
        float | None, typer.Option(help="Stop then, with the best answer so far.")
    ] = None
    barrier: Annotated[
        bool, flag("--barrier", "Train a barrier network for a sharper bound of the largest error.")
    ] = False
    verbose: Annotated[
        bool,
        flag(
            "--verbose",
            "Print every theorem that gives no bound with its reason, not only the nearest.",
        ),
    ] = False
    out: Annotated[
        Path | None,
        folder(
            "Write report.html, result.json, solution.png, policy.png (HJB), certificate.png, "
            "answer.cordes, solution.vtu here."
        ),
    ] = None
    coordinator: Annotated[
        str | None,
        typer.Option(
            metavar="HOST:PORT",
            help="Several processes: where process 0 runs, and a free port there.",
            show_default=False,
        ),
    ] = None
    processes: Annotated[
        int | None,
        typer.Option(
            metavar="N", min=1, help="How many processes share the work.", show_default=False
        ),
    ] = None
    process_id: Annotated[
        int | None,
        typer.Option(
            metavar="I",
            min=0,
            help="Which of them this one is, 0 to N-1. Process 0 prints and writes.",
            show_default=False,
        ),
    ] = None
    as_json: Json = False


@dataclass(frozen=True)
class ReportArguments:
    """Compare several runs on one page: their numbers side by side, their convergence, their
    pictures."""

    folders: Annotated[
        list[Path],
        typer.Argument(
            metavar="DIR DIR…",
            help="Folders that `cordes solve --out DIR` wrote.",
            show_default=False,
        ),
    ]
    out: Annotated[Path, typer.Option(metavar="FILE", help="The page.")] = Path("comparison.html")
    as_json: Json = False


@dataclass(frozen=True)
class BenchArguments:
    """Measure the cost of a solve in plain training epochs of this machine. Takes a minute in 2-D
    and longer beyond."""

    problem: Problem
    seed: Seed = 0
    as_json: Json = False


@dataclass(frozen=True)
class SurfaceArguments:
    """Lay a surface flat: conformal map, area-correcting transport, distortion before and after."""

    mesh: Annotated[
        str,
        typer.Argument(
            metavar="MESH",
            help="OBJ, OFF, PLY, STL or MAT file, or `folded`: a surface made in code.",
            show_default=False,
        ),
    ]
    corners: Annotated[
        tuple[int, int, int, int] | None,
        typer.Option(
            metavar="A B C D",
            help="Vertex numbers of the corners, counted from 1, around the boundary.",
        ),
    ] = None
    no_network: Annotated[
        bool, flag("--no-network", "The conformal map and the classical transport alone.")
    ] = False
    seed: Seed = 0
    out: Annotated[
        Path | None,
        folder(
            "Write report.html, surface.obj, surface.ply (with uv), surface.png, report.json here."
        ),
    ] = None
    as_json: Json = False


@dataclass(frozen=True)
class StudyArguments:
    """Train C-PINN and PINN as the paper does, and compare: epochs to each target beside the
    paper's, dynamics, landscape, conditioning."""

    problem: Annotated[str | None, _PROBLEM] = None
    seeds: Annotated[
        int | None,
        typer.Option(
            min=1,
            help="Seeds trained at once. By default 5 in two dimensions, 3 beyond.",
            show_default=False,
        ),
    ] = None
    epochs: Annotated[
        int,
        typer.Option(
            min=10,
            help=(
                "Largest number of epochs; a run ends earlier when every seed has met the last "
                "target."
            ),
        ),
    ] = 40_000
    everything: Annotated[bool, flag("--all", "All tables and figures of the paper.")] = False
    train_only: Annotated[
        bool,
        flag(
            "--train-only", "Train and keep the states; the same command without this judges them."
        ),
    ] = False
    mesh: Annotated[
        list[Path] | None,
        typer.Option(
            help=(
                "Surfaces for the last figure of --all; may be repeated. Without one, a folded "
                "surface."
            )
        ),
    ] = None
    out: Annotated[
        Path,
        folder(
            "States, study.json, report.html and figures go to DIR/NAME. A study that was stopped "
            "goes on from there."
        ),
    ] = Path("study")
    as_json: Json = False


@dataclass(frozen=True)
class NewArguments:
    """Write a commented problem file that solves as it is, to be changed into yours."""

    target: Annotated[
        str,
        typer.Argument(
            metavar="NAME|FILE.py|FILE.toml",
            help="A name, or the file to write.",
            show_default=False,
        ),
    ]
    kind: Annotated[
        str,
        typer.Option(
            help="linear, hjb, monge-ampere, or transport (in Python only).",
            autocompletion=lambda: list(KINDS),
        ),
    ] = "linear"
    as_python: Annotated[bool, flag("--python", "A Python file: for functions of your own.")] = (
        False
    )
    as_toml: Annotated[bool, flag("--toml", "A TOML file: data and formulas (default).")] = False
    force: Annotated[bool, flag("--force", "Replace a file that exists.")] = False
    as_json: Json = False


@dataclass(frozen=True)
class DoctorArguments:
    """Look at versions, devices, precision, cache and cores, and solve a small problem: is all well
    here? If not, what to do."""

    as_json: Json = False


# In the order of the help. Each is done by `make_report` of the module of its name.
COMMANDS: dict[str, Callable[..., Any]] = {
    "gallery": GalleryArguments,
    "check": CheckArguments,
    "solve": SolveArguments,
    "report": ReportArguments,
    "bench": BenchArguments,
    "surface": SurfaceArguments,
    "study": StudyArguments,
    "new": NewArguments,
    "doctor": DoctorArguments,
}
