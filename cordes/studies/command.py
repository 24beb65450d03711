"""What `cordes study` does: one problem, or all tables and figures of the paper."""

from collections.abc import Mapping, Sequence
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
from cordes.studies.study import Say, Study, write_json

# Seeds of a study that names none: fewer where an epoch costs more.
SEEDS, SEEDS_BEYOND = 5, 3
# Examples of the paper that are compared with a spectral solution, in a figure only.
UNKNOWN, UNKNOWN_EPOCHS = ("ex4.4-continuous", "ex4.4-discontinuous"), 2000
# All that have a folder of their own in a study of everything.
STUDIED = (*TABLES, *UNKNOWN)


def study_problem(
    problem: AbstractProblem,
    folder: Path,
    seeds: int | None,
    epochs: int | None,
    train_only: bool,
    say: Say,
    argument: str | None = None,
) -> dict[str, Any]:
    """Train and judge; what is finished is not done again. `argument` is what the problem was
    called by: a file has another name than its problem."""
    if seeds is None:
        seeds = SEEDS if problem.domain.dimension <= 2 else SEEDS_BEYOND
    study = Study(problem, folder, seeds, PAPER["epochs"] if epochs is None else epochs)
    facts = None if train_only else study.finished()
    if facts is not None:
        say(f"{problem.name}: finished already, read from {folder}")
    else:
        runs = study.train()
        if train_only:
            return study.costs(runs)
        facts = study.judge(runs, say)
        plot_errors(facts, runs, folder / "error.png")
        plot_dynamics(facts, runs, folder / "dynamics.png")
        facts["files"] = [str(folder / name) for name in ("study.json", "report.html", *FIGURES)]
        write_json(folder / "study.json", facts)
    options = {"--seeds": seeds, "--epochs": study.epochs, "--out": folder.parent}
    words = ["study", argument or problem.name, *_words(options)]
    write_study_report(folder / "report.html", facts, folder, words)
    return facts


def _words(options: Mapping[str, Any]) -> list[str]:
    """Options as they are typed; those without a value are left out."""
    given = {name: value for name, value in options.items() if value is not None}
    return [word for name, value in given.items() for word in (name, str(value))]


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
    found = {
        name: study_problem(gallery[name], out / name, seeds, epochs, train_only, say)
        for name in TABLES
    }
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
    files = [out / name for name in ("summary.json", "report.html", "speed_up.png")]
    files += sorted((out / "figures").glob("*.png"))
    facts = {**together, "studies": list(found.values()), "files": [str(path) for path in files]}
    words = ["study", "--all", *_words({"--seeds": seeds, "--epochs": epochs})]
    words += [word for mesh in meshes for word in ("--mesh", str(mesh))]
    write_all_report(out / "report.html", facts, out, [*words, "--out", str(out)])
    return facts


def _missing_figures(out: Path) -> list[str]:
    """Examples without a figure, or with one that is older than the trained network in it: some
    take minutes, and a study may have been stopped."""

    def outdated(name: str) -> bool:
        drawn = [path.stat().st_mtime for path in (out / "figures").glob(f"{name}*.png")]
        trained = out / name / "C-PINN.cordes"
        return not drawn or (trained.exists() and min(drawn) < trained.stat().st_mtime)

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
        explained = {"spread": spread["ratio"], "variation": spread["variation"], "gain": gain}
        rows += [{"problem": name, **explained, **ratio} for ratio in facts["speed_up"]]
    last = {row["problem"]: row for row in rows}.values()
    alike = [row for row in last if row["median"] is not None and row["gain"] is not None]
    narrow = sorted(alike, key=lambda row: row["variation"])[:-2]
    return {
        "speed_up": rows,
        "correlation": {"all": _correlations(alike), "rest": _correlations(narrow)},
    }


def _correlations(rows: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    medians = [row["median"] for row in rows]
    found = {key: spearman([row[key] for row in rows], medians) for key in ("variation", "gain")}
    return {"problems": len(rows), **found}


def spearman(x: Sequence[float], y: Sequence[float]) -> float | None:
    """The correlation of the ranks, from three pairs on; numbers that differ by rounding share a
    rank."""
    rounded = np.round([x, y], 9)
    if len(x) < 3 or np.any(np.ptp(rounded, axis=1) == 0):
        return None
    return float(np.corrcoef(rankdata(rounded, axis=1))[0, 1])
