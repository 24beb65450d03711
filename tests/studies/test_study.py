"""Studies: the training of many seeds, its resumption, the counting of milestones, and what is said
about them."""

import json
from pathlib import Path

import numpy as np
import pytest

import cordes
from cordes.errors import FileError, OptionError
from cordes.gallery.paper_tables import TABLES
from cordes.runtime.progress import Progress
from cordes.solutions.errors import error_points
from cordes.solvers.adam import PAPER
from cordes.studies import runs as runs_module
from cordes.studies.ensemble import Ensemble, Measured, Method, methods_of
from cordes.studies.runs import Run, TrainingRun
from cordes.studies.study import Study
from cordes.studies.time_to_accuracy import (
    Summary,
    finals,
    milestones,
    outer_steps,
    speed_up,
    targets_of,
)

SMALL = {**PAPER, "width": 12, "depth": 2, "points": 400}
QUIET = Progress("", False)
FINISHED = Path(__file__).parents[2] / "docs" / "reproduction" / "ex4.2-continuous.json"
MISSING = object()


def truth_of(problem):
    import jax

    return np.asarray(jax.jit(jax.vmap(problem.exact))(error_points(problem.domain)))


def trained(name, method, path, epochs, seeds=(0, 1), after=lambda: None, target=None):
    problem = cordes.gallery[name]
    run = TrainingRun(problem, method, seeds, truth_of(problem), SMALL, path)
    return run, run.train(epochs, target, QUIET, after)


class KilledError(Exception):
    pass


@pytest.mark.parametrize(
    ("name", "number"),
    [
        ("ex4.2-continuous", 0),
        ("ex4.5-hjb", 0),
        ("ex4.5-hjb", 1),
        ("ex4.6-monge-ampere", 0),
        ("ex4.6-monge-ampere", 2),
    ],
)
def test_a_resumed_run_equals_an_uninterrupted_one(name, number, tmp_path, monkeypatch):
    monkeypatch.setattr(runs_module, "INNER_EPOCHS", 200)
    monkeypatch.setattr(runs_module, "warm_up_of", lambda problem: 200 if problem.convex else 0)
    method = methods_of(cordes.gallery[name])[number]
    whole, expected = trained(name, method, tmp_path / "whole.npz", 500)
    chunks = []

    def kill():
        chunks.append(1)
        if len(chunks) == 3:
            raise KilledError

    with pytest.raises(KilledError):
        trained(name, method, tmp_path / "parts.npz", 500, after=kill)
    resumed, found = trained(name, method, tmp_path / "parts.npz", 500)
    assert resumed.resumed
    assert not whole.resumed
    assert np.array_equal(found.epochs, expected.epochs)
    for part, other in zip(found.measured, expected.measured, strict=True):
        assert np.array_equal(part, other)
    assert np.array_equal(found.contraction, expected.contraction)
    assert np.array_equal(np.asarray(whole.state.parameters), np.asarray(resumed.state.parameters))


def test_one_seed_is_the_training_of_the_library(tmp_path):
    """The same network, points and loss through `solve` with the same options: the last loss agrees
    to the rounding of single precision."""
    problem = cordes.gallery["ex4.2-continuous"]
    ensemble = Ensemble(problem, Method("C-PINN", True), [3], truth_of(problem), SMALL)
    state, data = ensemble.start(), ensemble.data()
    state, measured = ensemble.advance(ensemble.compiled(state, data, 10), state, data)
    from cordes.solvers.adam import _advance
    from cordes.solvers.rows.system import System
    from cordes.solvers.train import cast, initial_weights

    system = System(problem, True, singular=False, inputs="coordinates")
    lone = initial_weights(system, None, 12, 2, "silu", 3, "uniform", np.float32)
    rows = cast(system.rows(ensemble.points[0]), np.float32)
    carry, losses = (lone.parameters, ensemble.optimiser.init(lone.parameters)), None
    for _ in range(10):
        carry, losses = _advance(carry, lone, rows, PAPER["learning_rate"])
    assert float(measured.loss[-1, 0]) == pytest.approx(float(losses[-1]), rel=1e-4)


def test_methods_share_weights_and_points(tmp_path):
    problem = cordes.gallery["ex4.5-hjb"]
    lanes = [
        Ensemble(problem, method, [0, 1], truth_of(problem), SMALL)
        for method in methods_of(problem)
    ]
    assert [method.method.name for method in lanes] == ["C-PINN", "PINN", "PINN-Newton"]
    for other in lanes[1:]:
        assert np.array_equal(
            np.asarray(lanes[0].start().parameters), np.asarray(other.start().parameters)
        )
        assert all(
            np.array_equal(a.x, b.x) for a, b in zip(lanes[0].points, other.points, strict=True)
        )
    assert not np.array_equal(lanes[0].points[0].x, lanes[0].points[1].x)


def test_a_constant_multiplier_changes_nothing(tmp_path):
    """γ = 0.4 everywhere: Adam sees the same direction, so that both losses train the same network
    up to rounding and Adam's epsilon. Loss, gradient and curvature proxy are smaller by γ² = 0.16,
    which is the whole `smoothing`."""
    ours, theirs = (
        trained("ex4.2-discontinuous", m, tmp_path / f"{m.name}.npz", 100)[1].measured
        for m in (Method("C-PINN", True), Method("PINN", False))
    )
    assert ours.l2[-1] == pytest.approx(theirs.l2[-1], rel=1e-3)
    for name in ("loss", "gradient", "sharpness"):
        assert getattr(ours, name)[0] == pytest.approx(0.16 * getattr(theirs, name)[0], rel=5e-3)


def test_the_contraction_holds_and_is_sharp_enough_to_fail(tmp_path):
    problem = cordes.gallery["ex4.2-continuous"]
    run = trained("ex4.2-continuous", Method("PINN", False), tmp_path / "run.npz", 300)[1]
    assert np.all(run.contraction < run.contraction_bound)
    # √(1-ε) of the matrix alone, at the worst corner.
    x = np.array([[1.0, 1.0]])
    A = np.asarray(problem.coefficients(x).A)[0]
    assert run.contraction_bound[0, 0] == pytest.approx(
        np.sqrt(2 - np.trace(A) ** 2 / np.sum(A**2)), rel=2e-2
    )


def test_errors_are_those_of_the_answer(tmp_path):
    training, run = trained("ex4.1-singular", Method("C-PINN", True), tmp_path / "run.npz", 100)
    for lane in (0, 1):
        error = training.solution(lane).error()
        assert run.measured.l2[-1, lane] == pytest.approx(error.l2, rel=1e-4)
        assert run.measured.linf[-1, lane] == pytest.approx(error.linf, rel=1e-4)


def test_a_run_ends_when_all_seeds_met_the_target(tmp_path):
    _, whole = trained(
        "ex4.6-monge-ampere", Method("PINN", False, frozen=False), tmp_path / "a.npz", 400
    )
    target = float(np.max(whole.measured.l2[12]))
    _, short = trained(
        "ex4.6-monge-ampere",
        Method("PINN", False, frozen=False),
        tmp_path / "b.npz",
        400,
        target=target,
    )
    assert short.epochs[-1] < 400
    assert np.all(np.any(short.measured.l2 <= target, axis=0))


def test_other_settings_are_refused_and_damage_is_named(tmp_path):
    trained("ex4.2-continuous", Method("PINN", False), tmp_path / "run.npz", 100)
    with pytest.raises(FileError, match=r"other settings \(seeds \[0, 1\]\)"):
        trained(
            "ex4.2-continuous", Method("PINN", False), tmp_path / "run.npz", 100, seeds=(0, 1, 2)
        )
    (tmp_path / "run.npz").write_bytes(b"nothing")
    with pytest.raises(FileError, match=r"run\.npz cannot be read"):
        trained("ex4.2-continuous", Method("PINN", False), tmp_path / "run.npz", 100)


def rewritten(path, change):
    with np.load(path) as archive:
        arrays = dict(archive)
    change(arrays)
    np.savez(path, **arrays)


@pytest.mark.parametrize(
    "change",
    [
        lambda arrays: arrays.pop("state0"),
        lambda arrays: arrays.pop("fingerprint"),
        lambda arrays: arrays.pop("measured_l2"),
        lambda arrays: arrays.update(state0=arrays["state0"][:, :-1]),
        lambda arrays: arrays.update(state0=arrays["epochs"]),
        lambda arrays: arrays.update(state0=arrays["state0"].astype(complex)),
        lambda arrays: arrays.update(measured_l2=arrays["measured_l2"][1:]),
        lambda arrays: arrays.update(seconds=np.zeros(3)),
        lambda arrays: arrays.update(seconds=np.array(np.nan)),
        lambda arrays: arrays.update(epochs=arrays["epochs"] + 0.5),
        lambda arrays: arrays.update(epochs=arrays["epochs"] - 100),
        lambda arrays: arrays.update(contraction=arrays["contraction"][:, :1]),
        lambda arrays: arrays.update(devices=np.zeros(1)),
        lambda arrays: arrays.update(probe=arrays["probe"].astype(str)),
        lambda arrays: arrays.update(state99=arrays["state0"]),
    ],
)
def test_a_state_with_other_contents_is_refused(change, tmp_path):
    given = ("ex4.2-continuous", Method("PINN", False), tmp_path / "run.npz")
    trained(*given, 10)
    rewritten(tmp_path / "run.npz", change)
    with pytest.raises(FileError, match=r"run\.npz.*elete it, and its run starts anew"):
        trained(*given, 10)


def test_what_was_judged_is_read_or_refused(tmp_path):
    study = Study(cordes.gallery["ex4.2-continuous"], tmp_path, 1, 10)
    assert study.finished() is None
    for text in ('{"half": ', "[1]", "", "[" * 100_000):
        (tmp_path / "study.json").write_text(text)
        (tmp_path / "judged.json").write_text(text)
        with pytest.raises(FileError, match=r"study\.json cannot be read: .* Delete it"):
            study.finished()
        with pytest.raises(FileError, match=r"judged\.json cannot be read: .* Delete it"):
            study._parts({}, print)


def forged(facts, way, value):
    """A copy in which something else stands at one place; nothing where it is to be missing."""
    facts = json.loads(json.dumps(facts))
    holder = facts
    for key in way[:-1]:
        holder = holder[key]
    if value is MISSING:
        del holder[way[-1]]
    else:
        holder[way[-1]] = value
    return facts


@pytest.mark.parametrize(
    ("way", "value", "message"),
    [
        (["probe"], MISSING, "probe is missing"),
        (["probe", 0], [1.0], "probe: its rows have different lengths"),
        (["probe", 0, 0], "x", r"probe\[0\]\[0\] = 'x'"),
        (["milestones"], [], "milestones = "),
        (["milestones", 0, "epochs"], [None], r"milestones\[0\]\.epochs = "),
        (["milestones", 1, "l2", 0], 10**400, r"milestones\[1\]\.l2\[0\] = 1000"),
        (["final", "PINN"], MISSING, r"final\.PINN is missing"),
        (["final", "SPINN"], {}, r"final\.'SPINN' does not belong there"),
        (["cost", "PINN", "seconds"], float("nan"), r"cost\.PINN\.seconds = nan"),
        (["contraction", "PINN", "exceeded"], 0.5, r"contraction\.PINN\.exceeded = 0\.5"),
        (["curves", "PINN", "l2"], [1.0], r"curves\.PINN\.l2 = "),
        (["curves", "PINN", "epochs", 0], 0, r"curves\.PINN\.epochs\[0\] = 0"),
        (["speed_up"], [{}], r"speed_up\[0\]\.target is missing"),
        (["multiplier"], "x", "multiplier = 'x'"),
        (["conditioning", "end", "PINN", "kappa_10"], 0, r"conditioning\.end\.PINN\.kappa_10 = 0"),
        (["auto", "linf"], None, "auto: l2 and linf"),
    ],
)
def test_a_finished_study_with_other_contents_is_refused(way, value, message, tmp_path):
    study = Study(cordes.gallery["ex4.2-continuous"], tmp_path, 5)
    facts = json.loads(FINISHED.read_text())
    (tmp_path / "study.json").write_text(json.dumps(facts))
    assert study.finished() == facts
    (tmp_path / "study.json").write_text(json.dumps(forged(facts, way, value)))
    whole = rf"study\.json is damaged: {message}.* Delete it, and that part of the study is done"
    with pytest.raises(FileError, match=whole):
        study.finished()


@pytest.mark.parametrize(
    ("way", "value", "message"),
    [
        (["auto"], [], "auto = "),
        (["multiplier", "min"], "x", r"multiplier\.min = 'x'"),
        (["landscape", "PINN"], None, r"landscape\.PINN = None"),
        (["conditioning", "end"], MISSING, r"conditioning\.end is missing"),
        (["conditioning", "middle"], {}, r"conditioning\.'middle' does not belong"),
    ],
)
def test_parts_with_other_contents_are_refused(way, value, message, tmp_path):
    facts = json.loads(FINISHED.read_text())
    kept = {name: facts[name] for name in ("multiplier", "landscape", "conditioning", "auto")}
    run = Run(*[np.array([40])] * 5, 0.0, 0.0)
    runs, study = {"C-PINN": run, "PINN": run}, Study(cordes.gallery["ex4.2-continuous"], tmp_path)
    kept["epochs"] = dict.fromkeys(runs, 40)
    (tmp_path / "judged.json").write_text(json.dumps(kept))
    assert study._parts(runs, print).keys() == kept.keys() - {"epochs"}
    (tmp_path / "judged.json").write_text(json.dumps(forged(kept, way, value)))
    with pytest.raises(FileError, match=rf"judged\.json is damaged: {message}.* Delete it"):
        study._parts(runs, print)


def test_training_that_left_the_numbers_is_told():
    """No number becomes null, which is how files and pages say it."""
    l2 = np.array([[1.0, np.nan], [np.nan, np.nan]])
    run = Run(np.array([10, 20]), Measured(l2, l2, l2, l2, l2), *[np.zeros(0)] * 3, 1.0, 0.0)
    ends = finals(cordes.gallery["ex4.2-continuous"], {"PINN": run})["PINN"]
    assert (ends["l2"], ends["linf"], ends["best_l2"]) == ([None] * 2, [None] * 2, [1.0, None])


def test_more_epochs_go_on_and_fewer_are_refused(tmp_path):
    _, first = trained("ex4.2-continuous", Method("PINN", False), tmp_path / "run.npz", 200)
    _, longer = trained("ex4.2-continuous", Method("PINN", False), tmp_path / "run.npz", 300)
    assert np.array_equal(longer.measured.l2[:20], first.measured.l2)
    with pytest.raises(FileError, match="holds 300 epochs already, 100 are asked for"):
        trained("ex4.2-continuous", Method("PINN", False), tmp_path / "run.npz", 100)


def test_another_problem_of_the_same_name_is_refused(tmp_path):
    def problem(f):
        return cordes.Linear(
            cordes.Box([0, 0], [1, 1]), 1.0, f, exact=lambda x: 0 * x[0], name="mine"
        )

    for f, message in ((1.0, None), (2.0, "with other data")):
        made = problem(f)
        start = (made, Method("PINN", False), [0], truth_of(made), SMALL, tmp_path / "run.npz")
        if message is None:
            TrainingRun(*start).train(100, None, QUIET)
            continue
        with pytest.raises(FileError, match=message):
            TrainingRun(*start)


def test_a_settled_network_is_at_rest(tmp_path):
    """A rate that falls to zero takes the loss below where the swings of a constant rate left
    it."""
    training, _ = trained("ex4.2-discontinuous", Method("C-PINN", True), tmp_path / "run.npz", 600)
    settled = training.settled(1, epochs=300)
    x = cordes.gallery["ex4.2-discontinuous"].domain.interior_points(2000, seed=123)
    before, after = (
        np.sqrt(np.mean(solution.residual(x) ** 2)) for solution in (training.solution(1), settled)
    )
    assert after < before
    assert settled.facts["seed"] == 1


# Counting -----------------------------------------------------------------------------------------


def made_run(l2, seconds=1.0):
    l2 = np.asarray(l2, float)
    epochs = 10 * np.arange(1, len(l2) + 1)
    return Run(
        epochs,
        Measured(l2, 2 * l2, l2, l2, l2),
        np.zeros(0),
        np.zeros((0, l2.shape[1])),
        np.zeros((0, l2.shape[1])),
        seconds,
        0.0,
    )


def test_milestones_are_first_records_below_the_target():
    problem = cordes.gallery["ex4.2-continuous"]
    run = made_run([[1e-1, 1e-1], [4e-3, 1e-1], [6e-3, 1e-1], [9e-4, 3e-3]], seconds=0.8)
    rows = milestones(problem, {"C-PINN": run, "PINN": run})
    assert [row["target"] for row in rows] == [5e-3, 5e-3, 1e-3, 1e-3, 5e-4, 5e-4]
    assert rows[0]["epochs"] == [20, 40]
    assert rows[0]["l2"] == [4e-3, 3e-3]
    assert rows[0]["seconds"] == pytest.approx([20 * 0.01, 40 * 0.01])
    assert rows[2]["epochs"] == [40, None]
    assert rows[4]["epochs"] == [None, None]
    assert rows[0]["paper"] == {
        "epochs": 1840,
        "seconds": 26.39,
        "l2": 4.99e-3,
        "linf": 1.7e-2,
        "newton": None,
    }
    ends = finals(problem, {"C-PINN": run})["C-PINN"]
    assert ends["epochs"] == [40, 40]
    assert ends["best_l2"] == [9e-4, 3e-3]


def test_newton_steps_fit_the_paper_s_tables():
    """1000 epochs for each step, none of warm-up for HJB and 1000 for Monge–Ampère: every row of
    both tables."""
    rows = [
        (name, row)
        for name in ("ex4.5-hjb", "ex4.6-monge-ampere")
        for row in TABLES[name]
        if row.newton is not None
    ]
    assert len(rows) == 8
    for name, row in rows:
        assert outer_steps(cordes.gallery[name], row.epochs) == row.newton


def test_medians_do_not_flatter():
    assert Summary([3, 1, 2]).text(".0f") == "2 (1–3)"
    assert Summary([1, None, 2]).text(".0f") == "2 (1–2), 2 of 3"
    assert Summary([1, None, None]).text(".0f") == "not reached, 1 of 3"
    assert Summary([1, 2, None, None, None]).text(".0f") == "not reached (1–2), 2 of 5"
    assert Summary([None, None]).text(".0f") == "not reached"
    assert Summary([1.0, 4.0]).median == 4.0


def test_speed_up_is_taken_where_both_arrive():
    rows = [
        {"target": 1e-2, "method": "C-PINN", "epochs": [10, 20]},
        {"target": 1e-2, "method": "PINN", "epochs": [40, 40]},
        {"target": 1e-3, "method": "C-PINN", "epochs": [100, 200]},
        {"target": 1e-3, "method": "PINN", "epochs": [None, None]},
    ]
    last = {"target": 1e-3, "ours": 2, "theirs": 0}
    assert speed_up(rows) == {
        "target": 1e-2,
        "rival": "PINN",
        "ratios": [4.0, 2.0],
        "median": 3.0,
        "last": last,
    }
    assert speed_up(rows, "PINN-Newton") is None


def test_seeds_that_never_arrive_count_in_the_speed_up():
    rows = [
        {"target": 1e-2, "method": "C-PINN", "epochs": [10, 20, 30, None]},
        {"target": 1e-2, "method": "PINN", "epochs": [40, None, None, 50]},
    ]
    found = speed_up(rows)
    assert found["ratios"] == [4.0, None, None, 0.0]
    assert found["median"] is None


def test_targets_without_a_table_are_decades():
    assert targets_of(cordes.gallery["ex4.4-continuous"])[0] == 1e-1
    assert targets_of(cordes.gallery["ex4.3-cube5"]) == (5e-2, 1e-2, 5e-3, 1e-3)


def test_bad_settings_are_refused_before_any_work(tmp_path):
    with pytest.raises(OptionError, match="transport problem"):
        Study(cordes.gallery["ex5.1-square"], tmp_path)
    with pytest.raises(OptionError, match="seeds = 0"):
        Study(cordes.gallery["ex4.2-continuous"], tmp_path, seeds=0)
    with pytest.raises(OptionError, match="epochs = 5"):
        Study(cordes.gallery["ex4.2-continuous"], tmp_path, epochs=5)
