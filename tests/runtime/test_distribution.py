"""Many processes and devices give the answer of one. This file is also what the processes run:
`python test_distribution.py [COORDINATOR N I]`."""

import contextlib
import json
import os
import socket
import subprocess
import sys
import threading
from pathlib import Path

import numpy as np
import pytest

import cordes
from cordes import cli
from cordes.errors import CordesError, OptionError
from cordes.runtime import distribution
from cordes.runtime.clock import Clock
from cordes.runtime.roll_call import ProcessError, call_roll
from cordes.solvers.rows.rank_revealing import solve_rank_revealing

PROBLEM = "ex4.2-continuous"
# A single process takes about 15 s on a busy machine; whoever is not done after this hangs, and is
# ended.
LIMIT = 240
# An odd number of points, so that not all devices have the same number of rows.
TRAINED = {
    "adam": {"width": 16, "depth": 1, "points": 501, "epochs": 20},
    "gauss-newton": {"width": 8, "depth": 2, "points": 151, "steps": 10, "singular": False},
}
# In many dimensions the points are drawn on the devices.
DUAL = "coupled-ball-10"


def solve_all() -> dict:
    """The values of trained networks at points, with the points and the residuals as the solvers
    saw them."""
    x = np.stack(
        np.meshgrid(np.linspace(-0.9, 0.9, 7), np.linspace(-0.9, 0.9, 7)), axis=-1
    ).reshape(-1, 2)
    made = {}
    for method, options in TRAINED.items():
        solution = cordes.solve(
            cordes.gallery[PROBLEM], method, seed=2, max_seconds=1000, progress=False, **options
        )
        residuals = [step["residual"] for step in solution.history]
        made[method] = {
            "values": np.asarray(solution(x)).tolist(),
            "points": solution.points,
            "residuals": residuals,
        }
    problem = cordes.gallery[DUAL]
    solution = cordes.solve(
        problem, "gauss-newton", seed=2, progress=False, width=8, depth=1, points=61, steps=10
    )
    residuals = [step["residual"] for step in solution.history]
    made[DUAL] = {
        "values": np.asarray(solution(problem.domain.interior_points(50, 1))).tolist(),
        "points": solution.points,
        "residuals": residuals,
    }
    return made


def work(coordinator: str | None = None, processes: str = "1", process_id: str = "0") -> None:
    """What one process does; process 0 prints."""
    numbers = (int(processes), int(process_id)) if coordinator else (None, None)
    with distribution.session(coordinator, *numbers):
        made = {**solve_all(), **distribution.facts(), "listening": gather_text(listening())}
        late = Clock(limit=50.0)
        # The clock of process 1 says that the time is up.
        late.start -= 100.0 * int(process_id)
        made["over"] = distribution.gather(np.asarray(late.over)).tolist()
    if distribution.is_first():
        print(json.dumps(made))


def listening() -> list[str]:
    """The addresses at which this process listens, as the system writes them."""
    addresses = {}
    for table in ("/proc/net/tcp", "/proc/net/tcp6"):
        with contextlib.suppress(OSError):
            lines = [line.split() for line in Path(table).read_text().splitlines()[1:]]
            addresses |= {
                f"socket:[{line[9]}]": line[1].partition(":")[0]
                for line in lines
                if line[3] == "0A"
            }
    mine = set()
    for number in os.listdir("/proc/self/fd") if Path("/proc/self/fd").exists() else []:
        with contextlib.suppress(OSError):
            mine.add(os.readlink(f"/proc/self/fd/{number}"))
    return sorted({address for name, address in addresses.items() if name in mine})


def gather_text(lines: list[str]) -> list[list[str]]:
    padded = np.frombuffer(" ".join(lines).ljust(500).encode(), np.uint8)
    return [bytes(row).decode().split() for row in distribution.gather(padded)]


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def run_all(commands: list[list[str]], **environment: str) -> list[tuple[int, str, str]]:
    """Start processes together; status, standard output and standard error of each. None outlives
    the test."""
    started = [
        subprocess.Popen(
            [sys.executable, *command],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env={**os.environ, "OPENBLAS_NUM_THREADS": "1", "JAX_PLATFORMS": "cpu", **environment},
        )
        for command in commands
    ]
    try:
        outputs = [process.communicate(timeout=LIMIT) for process in started]
        return [
            (process.returncode, *output) for process, output in zip(started, outputs, strict=True)
        ]
    finally:
        for process in started:
            if process.poll() is None:
                process.kill()
                process.communicate()


@pytest.fixture(scope="module")
def alone():
    return solve_all()


def check_same(made: dict, alone: dict) -> None:
    """Sums in another order differ in the last digit: of single precision for Adam, of double
    precision for Gauss–Newton, whose ten steps solve ill-conditioned systems and lose some more."""
    for method, tolerance in (("adam", 2e-6), ("gauss-newton", 1e-7), (DUAL, 1e-7)):
        one, many = alone[method], made[method]
        assert many["points"] == one["points"]
        size = np.max(np.abs(one["values"]))
        assert size > 1e-3
        assert np.max(np.abs(np.subtract(many["values"], one["values"]))) < tolerance * size
        np.testing.assert_allclose(many["residuals"], one["residuals"], rtol=10 * tolerance)
        # Something was trained.
        assert one["residuals"][-1] < one["residuals"][0]


@pytest.mark.long
def test_two_processes_train_as_one(alone):
    coordinator = f"127.0.0.1:{free_port()}"
    first, second = run_all([[__file__, coordinator, "2", str(i)] for i in range(2)])
    assert (first[0], second[0]) == (0, 0), first[2] + second[2]
    assert second[1] == ""
    made = json.loads(first[1])
    assert (made["processes"], made["devices"]) == (2, 2)
    check_same(made, alone)
    # Process 0 says for both that there is time left.
    assert made["over"] == [False, False]
    loopback = {"0100007F", "0000000000000000FFFF00000100007F"}
    assert all(set(addresses) <= loopback for addresses in made["listening"])


@pytest.mark.long
def test_three_devices_train_as_one(alone):
    ((status, output, errors),) = run_all(
        [[__file__]], XLA_FLAGS="--xla_force_host_platform_device_count=3"
    )
    assert status == 0, errors
    made = json.loads(output)
    assert (made["processes"], made["devices"]) == (1, 3)
    check_same(made, alone)


@pytest.mark.long
def test_two_processes_fit_as_one(tmp_path):
    shared = [
        "-m",
        "cordes",
        "solve",
        PROBLEM,
        "--features",
        "60",
        "--seed",
        "3",
        # The first process alone draws, and asks the others for the time no more.
        "--max-seconds",
        "1000",
        "--json",
        "--coordinator",
        f"127.0.0.1:{free_port()}",
        "--processes",
        "2",
    ]
    first, second = run_all(
        [[*shared, "--process-id", str(i), "--out", str(tmp_path / str(i))] for i in range(2)]
    )
    assert (first[0], second[0]) == (0, 0), first[2] + second[2]
    assert second[1] == ""
    assert not (tmp_path / "1").exists()
    facts = json.loads(first[1])
    assert (facts["processes"], facts["devices"]) == (2, 2)
    assert all(Path(name).exists() for name in facts["files"])
    alone = cordes.solve(cordes.gallery[PROBLEM], features=60, seed=3, progress=False)
    assert (facts["result"], facts["points"], facts["parameters"]) == (
        alone.result.value,
        alone.points,
        alone.parameters,
    )
    assert facts["residual"] == pytest.approx(alone.residual_rms, rel=1e-4)
    x = alone.problem.domain.interior_points(500, 9)
    values, expected = cordes.load(tmp_path / "0" / "answer.cordes")(x), alone(x)
    assert np.max(np.abs(values - expected)) < 1e-8 * np.max(np.abs(expected))
    # Both are near the exact solution, and much further from it than from each other.
    error = alone.error()
    assert error is not None
    assert 1e-9 < error.linf < 1e-3
    assert facts["error"]["linf"] == pytest.approx(error.linf, rel=1e-2)


def test_triangles_of_shares_have_the_solution_of_all_rows(monkeypatch):
    random = np.random.default_rng(0)
    matrix, target = (
        random.standard_normal((50, 20)) * 10.0 ** random.uniform(-6, 6, 20),
        random.standard_normal(50),
    )
    expected = np.linalg.lstsq(matrix / np.linalg.norm(matrix, axis=0), target)[0] / np.linalg.norm(
        matrix, axis=0
    )
    # Shares of 17, 17 and 16 rows: fewer than columns.
    triangles = []
    monkeypatch.setattr(distribution.jax, "process_count", lambda: 3)
    monkeypatch.setattr(
        distribution, "gather", lambda array: triangles.append(array) or np.stack(triangles)
    )
    for process in range(3):
        monkeypatch.setattr(distribution.jax, "process_index", lambda process=process: process)
        part, right = distribution.share((matrix, target))
        assert part.base is not None
        assert len(part) == len(right) == len(range(process, 50, 3))
        small, small_target = distribution.reduced(part, right)
    assert small.shape == (63, 20)
    np.testing.assert_allclose(solve_rank_revealing(small, small_target), expected, rtol=1e-11)
    with pytest.raises(OptionError, match="2 rows cannot be shared by 3 processes"):
        distribution.share((matrix[:2], target[:2]))


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--processes", 2, "--process-id", 0], "--coordinator missing"),
        (["--coordinator", "127.0.0.1:29500"], "--processes and --process-id missing"),
        (
            ["--coordinator", "127.0.0.1:29500", "--processes", 2, "--process-id", 2],
            "--process-id 2 with --processes 2",
        ),
        (
            ["--coordinator", "127.0.0.1", "--processes", 2, "--process-id", 1],
            "--coordinator 127.0.0.1: give the host",
        ),
        (
            ["--coordinator", "127.0.0.1:99999", "--processes", 2, "--process-id", 1],
            "--coordinator 127.0.0.1:99999: give the host",
        ),
        (
            ["--coordinator", "127.0.0.1:x", "--processes", 2, "--process-id", 1],
            "--coordinator 127.0.0.1:x: give the host",
        ),
    ],
)
def test_bad_options_are_refused(options, words, capsys):
    status = cli.run(["solve", PROBLEM, "--json", *map(str, options)])
    error = json.loads(capsys.readouterr().out)["error"]
    assert (status, error["kind"]) == (2, "option")
    assert words in error["message"]


def test_a_problem_made_before_the_session_is_refused():
    assert cordes.gallery[PROBLEM].domain.dimension == 2
    with (
        pytest.raises(OptionError, match="make problems, and whatever else calls JAX, inside"),
        distribution.session("127.0.0.1:29500", 2, 0),
    ):
        pass


@pytest.mark.long
def test_a_program_may_end_inside_the_session(tmp_path):
    path = tmp_path / "ends.py"
    path.write_text(
        (
            "import sys\nfrom cordes import distribution\nwith distribution.session(sys.argv[1], "
            "2, int(sys.argv[2])):\n    sys.exit()\n"
        ),
        encoding="utf-8",
    )
    address = f"127.0.0.1:{free_port()}"
    assert [
        status for status, _, _ in run_all([[str(path), address, str(i)] for i in range(2)])
    ] == [0, 0]


def test_a_port_that_is_taken_or_silent_is_named(monkeypatch):
    monkeypatch.setattr(distribution, "_backend_used", lambda: False)
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with (
            pytest.raises(OptionError, match=f"127.0.0.1:{port}: process 0 cannot listen there"),
            distribution.session(f"127.0.0.1:{port}", 2, 0),
        ):
            pass
    with pytest.raises(ProcessError, match=f"Nothing answers at 127.0.0.1:{port} after 0.5 s"):
        call_roll(("127.0.0.1", port), 2, 1, 7, wait=0.5)


def called(numbers: list[tuple[int, int]], processes: int, wait: float) -> list[str | None]:
    """What each of several callers, given by number and mark, is told."""
    address, told = ("127.0.0.1", free_port()), {}

    def call(k: int) -> None:
        try:
            told[k] = call_roll(address, processes, *numbers[k], wait)
        except CordesError as error:
            told[k] = str(error)

    callers = [threading.Thread(target=call, args=(k,), daemon=True) for k in range(len(numbers))]
    for caller in callers:
        caller.start()
    for caller in callers:
        caller.join(30)
    return [told.get(k, "nothing") for k in range(len(numbers))]


def test_the_roll_call_says_who_is_missing_or_differs():
    assert called([(0, 7), (1, 7), (2, 7)], 3, 20.0) == [None, None, None]
    for said in called([(0, 7), (2, 7)], 3, 1.0):
        assert said is not None
        assert "within 1 s: 1." in said
    for said in called([(0, 7), (1, 8)], 2, 20.0):
        assert said is not None
        assert "Process 1 was started with other arguments than process 0" in said


if __name__ == "__main__":
    work(*sys.argv[1:])
