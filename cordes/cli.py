"""The command line. Every command makes one `Report`; it is printed as a table for people or, with
--json, as one object for programs.

Exit status: 0 done, 1 solved but not as asked, 2 bad input, 130 interrupted before there was an
answer. Numerical modules are imported inside the commands, so that help and wrong options do not
wait for them.
"""

import contextlib
import re
import sys
import traceback
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.text import Text

from cordes.commands.completion import problem_names
from cordes.commands.files import (
    files_for,
    load_argument,
    needs_answer,
    prepare_folder,
    write_all,
    write_files,
)
from cordes.commands.output import (
    DONE,
    INTERRUPTED,
    NOT_AS_ASKED,
    Report,
    complain,
    plain_warnings,
    refuse,
    show,
    usage_message,
)
from cordes.commands.process import load_names, process_seconds
from cordes.commands.templates import KINDS
from cordes.errors import CordesError, OptionError

PROBLEM_HELP = (
    "A name from `cordes gallery`, a FILE.toml, or a FILE.py that defines `problem`. A FILE.py is "
    "your own program and is run: trust it first."
)

app = typer.Typer(
    name="cordes",
    pretty_exceptions_enable=False,
    help="Solve elliptic equations in non-divergence form, Hamilton–Jacobi–Bellman and "
    "Monge–Ampère equations with neural networks, and certify how wrong the answers can be.",
)
_PROBLEM = typer.Argument(
    metavar="NAME|FILE.py|FILE.toml",
    help=PROBLEM_HELP,
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


def main() -> None:
    """The entry point of the `cordes` command."""
    sys.exit(run(sys.argv[1:], own_process=True))


def run(arguments: Sequence[str], own_process: bool = False) -> int:
    """Run one command and return its exit status. `own_process` says that nothing ran before, so
    that the time of the imports is known."""
    as_json = "--json" in arguments
    # Whatever a problem file prints must not mix with the object on standard output.
    guard = contextlib.redirect_stdout(sys.stderr) if as_json else contextlib.nullcontext()
    try:
        with guard, plain_warnings():
            words = [word for word in arguments if word != "--json"]
            report = app(
                list(arguments),
                prog_name="cordes",
                standalone_mode=False,
                obj={"own_process": own_process, "words": words},
            )
    except CordesError as error:
        return refuse(as_json, error.kind, str(error))
    except (KeyboardInterrupt, typer.Abort):
        report = INTERRUPTED
    except Exception as error:
        # Usage errors belong to typer, or to click below it, depending on the version; both can
        # format themselves.
        if hasattr(error, "format_message"):
            return refuse(as_json, "option", usage_message(error))
        traceback.print_exc()
        return refuse(
            as_json,
            "internal",
            (
                f"{type(error).__name__}: {error}. This is a fault of cordes, or of a function in "
                "the problem file."
            ),
        )
    if report == INTERRUPTED:
        return refuse(
            as_json, "interrupted", "Interrupted before there was an answer.", INTERRUPTED
        )
    if isinstance(report, Report):
        show(report, as_json)
        return report.status
    return report if isinstance(report, int) else DONE


def _print_version(wanted: bool) -> None:
    if wanted:
        from cordes import __version__

        print(f"cordes {__version__}")
        raise typer.Exit


def _print_citation(wanted: bool) -> None:
    if wanted:
        from cordes.citation import citation

        print(citation())
        raise typer.Exit


@app.callback(invoke_without_command=True)
def _root(
    context: typer.Context,
    version: Annotated[
        bool,
        typer.Option(
            "--version", callback=_print_version, is_eager=True, help="Show the version and exit."
        ),
    ] = False,
    citation: Annotated[
        bool,
        typer.Option(
            "--citation",
            callback=_print_citation,
            is_eager=True,
            help="Show how to cite cordes, and exit.",
        ),
    ] = False,
) -> None:
    if context.invoked_subcommand is None:
        # Depending on its version typer returns the help, or prints it and returns nothing.
        text = context.get_help()
        if text:
            print(text)
    elif context.invoked_subcommand != "new":
        load_names()


@app.command("gallery")
def gallery_command(as_json: Json = False) -> Report:
    """List the built-in problems."""
    from cordes.gallery import gallery
    from cordes.reports.tables import gallery_table

    problems = [{"name": name, "description": gallery.describe(name)} for name in gallery]
    return Report({"problems": problems}, gallery_table(problems))


@app.command("check")
def check_command(
    context: typer.Context,
    problem: Problem,
    out: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="Write report.html, check.json and condition.png here."),
    ] = None,
    as_json: Json = False,
) -> Report:
    """Measure the Cordès condition: ε, where it is worst, and the range of the multiplier. A
    violation is no failure: the exit status is 0."""
    from cordes.certificates.condition import check
    from cordes.reports.facts import condition_facts, negative_facts
    from cordes.reports.tables import condition_table

    made, solution = load_argument(problem), None
    names = (
        ["condition.png", "report.html", "check.json"]
        if made.domain.dimension > 1
        else ["report.html", "check.json"]
    )
    folder = prepare_folder(out, names) if out is not None else None
    if needs_answer(made):
        import cordes

        complain("The condition depends on the answer: solving first.", "dim")
        solution = cordes.solve(made)
    condition = check(made if solution is None else solution)
    facts = {
        "problem": made.name,
        "domain": repr(made.domain),
        **condition_facts(condition),
        "worst_point": condition.worst_point.tolist(),
        "multiplier_range": list(condition.multiplier_range),
        "negative_c": negative_facts(condition),
    }
    complete = True
    if folder is not None:
        from cordes.reports.pages.condition import plot_condition, write_check_report

        writers = {
            "condition.png": lambda path: plot_condition(made, condition, path, solution),
            "report.html": lambda path: write_check_report(
                path, made, facts, condition, context.obj["words"], solution
            ),
        }
        complete = write_all(
            folder,
            "check.json",
            facts,
            {name: write for name, write in writers.items() if name in names},
            stale=writers,
        )
    return Report(facts, condition_table(facts), DONE if complete else NOT_AS_ASKED)


@app.command("solve")
def solve_command(
    context: typer.Context,
    problem: Problem,
    method: Annotated[
        str, typer.Option(help="least-squares, gauss-newton, adam, or auto.")
    ] = "auto",
    tol: Annotated[
        float | None,
        typer.Option(help="Work until the certified root mean square error is this small."),
    ] = None,
    seed: Seed = 0,
    preset: Annotated[str | None, typer.Option(help="`paper`: Adam as in the paper.")] = None,
    epochs: Annotated[int | None, typer.Option(min=1, help="Epochs (adam).")] = None,
    steps: Annotated[int | None, typer.Option(min=1, help="Steps (gauss-newton).")] = None,
    features: Annotated[
        int | None, typer.Option(min=1, help="Largest number of features (least-squares).")
    ] = None,
    no_multiplier: Annotated[
        bool,
        typer.Option(
            "--no-multiplier", help="Leave the Cordès multiplier out: the plain PINN loss."
        ),
    ] = False,
    boundary: Annotated[
        str | None,
        typer.Option(
            help=(
                "hard: boundary values exact by construction (default); soft: a penalty in the "
                "loss."
            )
        ),
    ] = None,
    outer: Annotated[
        str | None,
        typer.Option(
            help=(
                "Nonlinear problems: newton (default), fixed-point (HJB), direct (adam on the "
                "nonlinear residual)."
            )
        ),
    ] = None,
    form: Annotated[
        str | None,
        typer.Option(help="Monge–Ampère: determinant (default), convex (two dimensions), plain."),
    ] = None,
    argmax: Annotated[
        str | None, typer.Option(help="HJB: scaled (default), or unscaled as in the paper.")
    ] = None,
    max_seconds: Annotated[
        float | None, typer.Option(help="Stop then, with the best answer so far.")
    ] = None,
    barrier: Annotated[
        bool,
        typer.Option(
            "--barrier", help="Train a barrier network for a sharper bound of the largest error."
        ),
    ] = False,
    verbose: Annotated[
        bool,
        typer.Option(
            "--verbose",
            help="Print every theorem that gives no bound with its reason, not only the nearest.",
        ),
    ] = False,
    out: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR",
            help=(
                "Write report.html, result.json, solution.png, policy.png (HJB), certificate.png, "
                "answer.cordes, solution.vtu here."
            ),
        ),
    ] = None,
    coordinator: Annotated[
        str | None,
        typer.Option(
            metavar="HOST:PORT",
            help="Several processes: where process 0 runs, and a free port there.",
            show_default=False,
        ),
    ] = None,
    processes: Annotated[
        int | None,
        typer.Option(
            metavar="N", min=1, help="How many processes share the work.", show_default=False
        ),
    ] = None,
    process_id: Annotated[
        int | None,
        typer.Option(
            metavar="I",
            min=0,
            help="Which of them this one is, 0 to N-1. Process 0 prints and writes.",
            show_default=False,
        ),
    ] = None,
    as_json: Json = False,
) -> Report | int:
    """Solve a problem and say how wrong the answer is."""
    import cordes
    from cordes.reports.facts import solution_facts
    from cordes.reports.tables import solution_table
    from cordes.runtime import distribution

    seconds = {"import": process_seconds() if context.obj["own_process"] else None}
    own = ("process_id", "out", "as_json", "verbose")
    same = {name: value for name, value in context.params.items() if name not in own} | {
        "version": cordes.__version__
    }
    # Before the problem is made, since that already uses a device.
    with distribution.session(coordinator, processes, process_id, same):
        made = load_argument(problem)
        condition = None if needs_answer(made) else cordes.check(made)
        given = {
            "preset": preset,
            "epochs": epochs,
            "steps": steps,
            "features": features,
            "boundary": boundary,
            "outer": outer,
            "form": form,
            "argmax": argmax,
        }
        options = {name: value for name, value in given.items() if value is not None}
        if preset is not None and method == "auto":
            method = "adam"
        folder = (
            prepare_folder(out, files_for(made))
            if out is not None and distribution.is_first()
            else None
        )
        if barrier and not made.linear:
            raise OptionError(
                f"--barrier is for linear problems; {made.name} is not one: leave it out."
            )
        if barrier and made.domain.dimension > 3:
            raise OptionError(
                "--barrier needs quadrature, which there is in up to three dimensions; "
                f"{made.name} has {made.domain.dimension}."
            )
        solution = cordes.solve(
            made, method, tol, seed, not no_multiplier, max_seconds=max_seconds, **options
        )
        if barrier:
            solution.certify(norm="Linf", barrier=True)
        condition = condition if condition is not None else cordes.check(solution)
        facts = solution_facts(solution, condition, seconds) | distribution.facts()
        complete = folder is None or write_files(
            folder, solution, facts, condition, context.obj["words"]
        )
        done = solution.result is cordes.Result.converged and complete
        status = DONE if done else NOT_AS_ASKED
        return (
            Report(facts, solution_table(facts, solution.certificate.rows(verbose)), status)
            if distribution.is_first()
            else status
        )


@app.command("report")
def report_command(
    context: typer.Context,
    folders: Annotated[
        list[Path],
        typer.Argument(
            metavar="DIR DIR…",
            help="Folders that `cordes solve --out DIR` wrote.",
            show_default=False,
        ),
    ],
    out: Annotated[Path, typer.Option(metavar="FILE", help="The page.")] = Path("comparison.html"),
    as_json: Json = False,
) -> Report:
    """Compare several runs on one page: their numbers side by side, their convergence, their
    pictures."""
    from cordes.reports.pages.comparison import write_comparison
    from cordes.solutions.storage import check_writable

    runs = write_comparison(check_writable(out), folders, context.obj["words"])
    return Report(
        {"runs": {run.name: run.facts for run in runs}, "file": str(out)},
        Text(f"{len(runs)} runs: {out}"),
    )


@app.command("bench")
def bench_command(problem: Problem, seed: Seed = 0, as_json: Json = False) -> Report:
    """Measure the cost of a solve in plain training epochs of this machine. Takes a minute in 2-D
    and longer beyond."""
    from cordes.reports.tables import bench_table
    from cordes.studies.bench import bench

    facts = bench(load_argument(problem), seed)
    return Report(
        facts, bench_table(facts), DONE if facts["result"] == "converged" else NOT_AS_ASKED
    )


@app.command("surface")
def surface_command(
    context: typer.Context,
    mesh: Annotated[
        str,
        typer.Argument(
            metavar="MESH",
            help="OBJ, OFF, PLY, STL or MAT file, or `folded`: a surface made in code.",
            show_default=False,
        ),
    ],
    corners: Annotated[
        tuple[int, int, int, int] | None,
        typer.Option(
            metavar="A B C D",
            help="Vertex numbers of the corners, counted from 1, around the boundary.",
        ),
    ] = None,
    no_network: Annotated[
        bool,
        typer.Option("--no-network", help="The conformal map and the classical transport alone."),
    ] = False,
    seed: Seed = 0,
    out: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR",
            help=(
                "Write report.html, surface.obj, surface.ply (with uv), surface.png, report.json "
                "here."
            ),
        ),
    ] = None,
    as_json: Json = False,
) -> Report:
    """Lay a surface flat: conformal map, area-correcting transport, distortion before and after."""
    from cordes.reports.tables import surface_table
    from cordes.surfaces.flatten import flatten
    from cordes.surfaces.folded import folded_surface
    from cordes.surfaces.mesh import read_mesh, write_mesh
    from cordes.surfaces.pages.plots import plot_surface
    from cordes.surfaces.pages.surface import moved, shown_maps, write_surface_report

    made = folded_surface() if mesh == "folded" else read_mesh(mesh)
    names = ["surface.obj", "surface.ply", "surface.png", "report.json", "report.html"]
    folder = prepare_folder(out, names) if out is not None else None
    found = flatten(
        made, corners, not no_network, seed, lambda line: complain(line, "dim"), count_from=1
    )
    facts: dict[str, Any] = {
        "mesh": mesh,
        **found.as_data(),
        "moved": moved(found),
        "seed": seed,
        "files": [],
    }
    facts["corners"] = [corner + 1 for corner in facts["corners"]]
    complete = True
    if folder is not None:
        best, shown = (
            found.maps[found.best].uv,
            {name: found.maps[name].uv for name in shown_maps(found)},
        )

        drawn: list[Any] = []

        def draw(path: Path | None = None) -> Any:
            drawn.append(plot_surface(found.disk, shown, found.size, path, title=Path(mesh).stem))
            return drawn[-1]

        writers: dict[str, Any] = {
            name: lambda path: write_mesh(path, found.disk.mesh, best)
            for name in ("surface.obj", "surface.ply")
        }
        writers["surface.png"] = draw
        writers["report.html"] = lambda path: write_surface_report(
            path, found, facts, drawn[0] if drawn else draw(), context.obj["words"]
        )
        complete = write_all(folder, "report.json", facts, writers)
    return Report(facts, surface_table(facts), DONE if complete else NOT_AS_ASKED)


@app.command("study")
def study_command(
    problem: Annotated[str | None, _PROBLEM] = None,
    seeds: Annotated[
        int | None,
        typer.Option(
            min=1,
            help="Seeds trained at once. By default 5 in two dimensions, 3 beyond.",
            show_default=False,
        ),
    ] = None,
    epochs: Annotated[
        int,
        typer.Option(
            min=10,
            help=(
                "Largest number of epochs; a run ends earlier when every seed has met the last "
                "target."
            ),
        ),
    ] = 40_000,
    everything: Annotated[
        bool, typer.Option("--all", help="All tables and figures of the paper.")
    ] = False,
    train_only: Annotated[
        bool,
        typer.Option(
            "--train-only",
            help="Train and keep the states; the same command without this judges them.",
        ),
    ] = False,
    mesh: Annotated[
        list[Path] | None,
        typer.Option(
            help=(
                "Surfaces for the last figure of --all; may be repeated. Without one, a folded "
                "surface."
            )
        ),
    ] = None,
    out: Annotated[
        Path,
        typer.Option(
            metavar="DIR",
            help=(
                "States, study.json, report.html and figures go to DIR/NAME. A study that was "
                "stopped goes on from there."
            ),
        ),
    ] = Path("study"),
    as_json: Json = False,
) -> Report:
    """Train C-PINN and PINN as the paper does, and compare: epochs to each target beside the
    paper's, dynamics, landscape, conditioning."""
    if everything == (problem is not None):
        raise OptionError(
            "Name one problem, or give --all: `cordes study ex4.2-continuous`, `cordes study "
            "--all`."
        )
    if mesh and not everything:
        raise OptionError("--mesh is for --all, whose last figure shows surfaces: leave it out.")
    if problem is not None:
        made = load_argument(problem)
    folder = prepare_folder(out, [])
    from cordes.studies.command import study_all, study_problem
    from cordes.studies.pages.tables import all_table, study_table

    def say(line: str) -> None:
        complain(line, "dim")

    try:
        if everything:
            facts = study_all(folder, seeds, epochs, train_only, mesh or (), say)
            return Report(facts, all_table(facts))
        facts, _ = study_problem(
            made,
            folder / re.sub(r"[^\w.-]+", "-", made.name).strip("."),
            seeds,
            epochs,
            train_only,
            say,
            problem,
        )
    except KeyboardInterrupt:
        complain(
            f"Stopped. What was trained is kept in {folder}: the same command goes on from there.",
            "yellow",
        )
        raise
    return Report(facts, study_table(facts))


@app.command("new")
def new_command(
    target: Annotated[
        str,
        typer.Argument(
            metavar="NAME|FILE.py|FILE.toml",
            help="A name, or the file to write.",
            show_default=False,
        ),
    ],
    kind: Annotated[
        str,
        typer.Option(
            help="linear, hjb, monge-ampere, or transport (in Python only).",
            autocompletion=lambda: list(KINDS),
        ),
    ] = "linear",
    as_python: Annotated[
        bool, typer.Option("--python", help="A Python file: for functions of your own.")
    ] = False,
    as_toml: Annotated[
        bool, typer.Option("--toml", help="A TOML file: data and formulas (default).")
    ] = False,
    force: Annotated[bool, typer.Option("--force", help="Replace a file that exists.")] = False,
    as_json: Json = False,
) -> Report:
    """Write a commented problem file that solves as it is, to be changed into yours."""
    from cordes.commands.new import new_message, new_problem

    if as_python and as_toml:
        raise OptionError("--python and --toml were both given: leave one of them out.")
    facts = new_problem(target, kind, ".py" if as_python else ".toml" if as_toml else None, force)
    return Report(facts, new_message(facts))


@app.command("doctor")
def doctor_command(as_json: Json = False) -> Report:
    """Look at versions, devices, precision, cache and cores, and solve a small problem: is all well
    here? If not, what to do."""
    from cordes.commands.doctor import doctor_table, examine

    facts = examine()
    return Report(facts, doctor_table(facts), DONE if facts["healthy"] else NOT_AS_ASKED)
