"""What `cordes study` does: one problem, or all tables and figures of the paper."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from scipy.stats import rankdata

from cordes.gallery import gallery
from cordes.gallery.paper_tables import TABLES
from cordes.problems.problem import AbstractProblem
from cordes.solutions.solution import Solution
from cordes.solvers.adam import PAPER
from cordes.solvers.solve import solve
from cordes.storage import load
from cordes.studies.pages.plots import plot_dynamics, plot_errors, plot_speed_ups
from cordes.studies.pages.study import FIGURES, write_all_report, write_study_report
from cordes.studies.paper_figures import EXAMPLES, paper_figures, read_surfaces
from cordes.studies.study import Study, write_json

Say = Callable[[str], None]
# Seeds of a study that names none: fewer where an epoch costs more.
SEEDS, SEEDS_BEYOND = 5, 3
# Examples of the paper that are compared with a spectral solution, in a figure only.
UNKNOWN, UNKNOWN_EPOCHS = ("ex4.4-continuous", "ex4.4-discontinuous"), 2000


def default_seeds(problem: AbstractProblem) -> int:
    return SEEDS if problem.domain.dimension <= 2 else SEEDS_BEYOND


def study_problem(
    problem: AbstractProblem,
    folder: Path,
    seeds: int | None,
    epochs: int | None,
    train_only: bool,
    say: Say,
    argument: str | None = None,
) -> tuple[dict[str, Any], Study]:
    """Train and judge; what is finished is not done again. `argument` is what the problem was
    called by: a file has another name than its problem."""
    study = Study(
        problem,
        folder,
        default_seeds(problem) if seeds is None else seeds,
        PAPER["epochs"] if epochs is None else epochs,
    )
    if not train_only and (facts := study.finished()) is not None:
        say(f"{problem.name}: finished already, read from {folder}")
        _write_page(facts, study, argument)
        return facts, study
    runs = study.train()
    if train_only:
        costs = {
            name: {
                "epochs": int(run.epochs[-1]),
                "ms_per_epoch_and_seed": 1e3 * run.seconds_per_epoch,
            }
            for name, run in runs.items()
        }
        return {
            "problem": problem.name,
            "seeds": list(study.seeds),
            "trained": costs,
            "files": [str(folder)],
        }, study
    facts = study.judge(runs, say)
    plot_errors(facts, runs, folder / "error.png")
    plot_dynamics(facts, runs, folder / "dynamics.png")
    facts["files"] = [str(folder / name) for name in ("study.json", "report.html", *FIGURES)]
    write_json(folder / "study.json", facts)
    _write_page(facts, study, argument)
    return facts, study


def _write_page(facts: dict[str, Any], study: Study, argument: str | None) -> None:
    words = [
        "study",
        argument or study.problem.name,
        "--seeds",
        str(len(study.seeds)),
        "--epochs",
        str(study.epochs),
        "--out",
        str(study.folder.parent),
    ]
    write_study_report(study.folder / "report.html", facts, study.folder, words)


def study_all(
    out: Path,
    seeds: int | None,
    epochs: int | None,
    train_only: bool,
    meshes: Sequence[Path],
    say: Say,
) -> dict[str, Any]:
    """All eight tables, then what they say together, then the figures of the paper with the answers
    of the trained networks beside ours."""
    read_surfaces(meshes)  # Refused now, and not after hours.
    found: dict[str, Any] = {}
    for name in TABLES:
        found[name], _ = study_problem(gallery[name], out / name, seeds, epochs, train_only, say)
    if train_only:
        return {"studies": list(found.values()), "files": [str(out)]}
    together = compare(found)
    plot_speed_ups(together, out / "speed_up.png")
    write_json(out / "summary.json", together)
    trained = {name: load(out / name / "C-PINN.cordes") for name in TABLES}
    trained |= {
        name: trained_once(name, out / name, min(epochs or UNKNOWN_EPOCHS, UNKNOWN_EPOCHS), say)
        for name in UNKNOWN
    }
    paper_figures(out / "figures", trained, _missing_figures(out), meshes, say)
    files = [
        out / "summary.json",
        out / "report.html",
        out / "speed_up.png",
        *sorted((out / "figures").glob("*.png")),
    ]
    facts = {**together, "studies": list(found.values()), "files": [str(path) for path in files]}
    given = {"--seeds": seeds, "--epochs": epochs}
    options = [
        word for name, value in given.items() if value is not None for word in (name, str(value))
    ]
    options += [word for mesh in meshes for word in ("--mesh", str(mesh))]
    write_all_report(
        out / "report.html", facts, out, ["study", "--all", *options, "--out", str(out)]
    )
    return facts


def _missing_figures(out: Path) -> list[str]:
    """Examples without a figure, or with one that is older than the trained network in it: some
    take minutes, and a study may have been stopped."""

    def outdated(name: str) -> bool:
        drawn, trained = list((out / "figures").glob(f"{name}*.png")), out / name / "C-PINN.cordes"
        return not drawn or (
            trained.exists()
            and min(path.stat().st_mtime for path in drawn) < trained.stat().st_mtime
        )

    return [name for name in EXAMPLES if outdated(name)]


def trained_once(name: str, folder: Path, epochs: int, say: Say) -> Solution:
    """C-PINN, seed 0, on a problem without an exact solution: for its figure, there is no table to
    fill."""
    path = folder / "C-PINN.cordes"
    answer = load(path) if path.exists() else None
    if answer is None or answer.history[-1]["epoch"] != epochs:
        folder.mkdir(parents=True, exist_ok=True)
        say(f"{name}: training C-PINN for {epochs} epochs")
        solve(gallery[name], "adam", preset="paper", epochs=epochs, certify=False).save(path)
    return load(path)


def compare(found: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
    """Speed-up over all problems against two things that may explain it: how much the multiplier
    varies, and by how much it improves the conditioning at the end of the run. Correlations of the
    ranks are taken with the rival that differs in the multiplier alone, which for nonlinear
    problems is the one inside the Newton loop; `rest` leaves the two problems with the widest
    multiplier out."""
    rows = []
    for name, facts in found.items():
        end, spread = facts["conditioning"]["end"], facts["multiplier"]
        kappas = [end[method]["kappa_10"] for method in ("PINN", "C-PINN")]
        gain = None if None in kappas else kappas[0] / kappas[1]
        for ratio in facts["speed_up"]:
            rows.append(
                {
                    "problem": name,
                    "spread": spread["ratio"],
                    "variation": spread["variation"],
                    "gain": gain,
                    **ratio,
                }
            )
    alike = [
        row
        for row in {row["problem"]: row for row in rows}.values()
        if row["median"] is not None and row["gain"] is not None
    ]
    widest = sorted(alike, key=lambda row: row["variation"])
    return {
        "speed_up": rows,
        "correlation": {"all": _correlations(alike), "rest": _correlations(widest[:-2])},
    }


def _correlations(rows: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    return {
        "problems": len(rows),
        **{
            key: spearman([row[key] for row in rows], [row["median"] for row in rows])
            for key in ("variation", "gain")
        },
    }


def spearman(x: Sequence[float], y: Sequence[float]) -> float | None:
    """The correlation of the ranks, from three pairs on; numbers that differ by rounding share a
    rank."""
    if len(x) < 3 or np.ptp(np.round(x, 9)) == 0 or np.ptp(np.round(y, 9)) == 0:
        return None
    return float(np.corrcoef(rankdata(np.round(x, 9)), rankdata(np.round(y, 9)))[0, 1])
