"""How long every test takes, and which of two tiers it belongs to.

    python tests/support/durations.py [PATH …]     run the tests (all, or those of the paths) on two
                                                   processes and renew tests/durations.json
    python tests/support/durations.py --quick      the same for the quick tier alone
    python tests/support/durations.py --show       what the record says, nothing run

Kept are processor seconds of the worker and of the processes that it started and waited for: unlike
the seconds of a clock they hardly depend on what else the machine does. A fixture that several
tests share is kept apart from the test that happens to come first, and counts for each of them in
equal parts; so the slow test is named, and not its neighbour.

`pytest --tier quick` runs the tests whose part is at most `QUICK` seconds, those marked `quick`,
and those that are not in the record yet; `--tier long` runs the others; without it all are run.
"""

import json
import os
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

import pytest

TESTS = Path(__file__).resolve().parents[1]
RECORD = TESTS / "durations.json"
# The largest part of a test in the quick tier, and the most that the tier may take together: four
# minutes of two cores, less what lint, types and the start of three Python processes need.
QUICK, BUDGET = 0.35, 210.0
# What is shorter than this is not worth a line in the record.
SHORTEST = 0.1


def read() -> dict[str, dict[str, float]]:
    if not RECORD.exists():
        return {"tests": {}, "fixtures": {}}
    return json.loads(RECORD.read_text(encoding="utf-8"))


def processor_seconds() -> float:
    return sum(os.times()[:4])


# What a test shares


def shared_fixtures(item: pytest.Item) -> list[str]:
    """The names, in the record, of the fixtures that a test does not have for itself."""
    information = getattr(item, "_fixtureinfo", None)
    if information is None:
        return []
    indices = item.callspec.indices if hasattr(item, "callspec") else {}
    return [
        fixture_key(definitions[-1].baseid, name, indices.get(name))
        for name, definitions in information.name2fixturedefs.items()
        if definitions[-1].scope != "function"
    ]


def fixture_key(place: str, name: str, index: int | None) -> str:
    return f"{place}::{name}" + ("" if index is None else f"[{index}]")


# Choosing a tier


def parts(items: list[pytest.Item]) -> dict[str, float]:
    """Seconds of each test with its part of what it shares; 0 where nothing is recorded, so that a
    new test is not sent away before anybody has measured it."""
    record = read()
    users = Counter(key for item in items for key in shared_fixtures(item))

    def part(item: pytest.Item) -> float:
        shared = shared_fixtures(item)
        return record["tests"].get(item.nodeid, 0.0) + sum(
            record["fixtures"].get(key, 0.0) / users[key] for key in shared
        )

    return {item.nodeid: part(item) for item in items}


def is_quick(item: pytest.Item, part: float) -> bool:
    if item.get_closest_marker("quick"):
        return True
    return item.get_closest_marker("long") is None and part <= QUICK


def longest_first(items: list[pytest.Item], part: dict[str, float]) -> list[pytest.Item]:
    """Files are shared out whole, for what they compile and solve serves all their tests: the
    longest ones first, or one worker waits at the end for the other."""
    total: Counter[Path] = Counter()
    for item in items:
        total[item.path] += part[item.nodeid]
    return sorted(items, key=lambda item: (-total[item.path], str(item.path)))


# Measuring, inside the processes that run tests


class Recorder:
    """Notes what each test and each shared fixture of this process takes, and writes it to a file
    when the process ends."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.found: dict[str, dict[str, float]] = {"tests": {}, "fixtures": {}}
        self.shared = 0.0

    @pytest.hookimpl(hookwrapper=True)
    def pytest_fixture_setup(self, fixturedef, request):
        start, inner = processor_seconds(), self.shared
        yield
        if fixturedef.scope != "function":
            index = request.param_index if hasattr(request, "param") else None
            key = fixture_key(fixturedef.baseid, fixturedef.argname, index)
            # A fixture that asks for another by name is charged for its own work alone.
            own = processor_seconds() - start - (self.shared - inner)
            self.found["fixtures"][key] = own
            self.shared += own

    @pytest.hookimpl(hookwrapper=True)
    def pytest_runtest_protocol(self, item):
        start, self.shared = processor_seconds(), 0.0
        yield
        self.found["tests"][item.nodeid] = processor_seconds() - start - self.shared

    def pytest_sessionfinish(self):
        self.path.parent.mkdir(parents=True, exist_ok=True)
        self.path.write_text(json.dumps(self.found), encoding="utf-8")


# The command


def measure(arguments: list[str]) -> tuple[int, dict[str, dict[str, float]]]:
    """Run the tests on two processes, and collect what they noted."""
    found: dict[str, dict[str, float]] = {"tests": {}, "fixtures": {}}
    with tempfile.TemporaryDirectory() as folder:
        # fmt: off
        command = [
            sys.executable, "-m", "pytest", "-n", "2", "--dist", "loadfile",
            "--no-loadscope-reorder", "-rs", f"--record={folder}", *arguments,
        ]
        # fmt: on
        status = subprocess.run(command, cwd=TESTS.parent).returncode
        for path in Path(folder).glob("*.json"):
            for kind, seconds in json.loads(path.read_text(encoding="utf-8")).items():
                found[kind] |= seconds
    return status, found


def renew(found: dict[str, dict[str, float]], whole: bool) -> None:
    """What was measured replaces what stood there; a whole run forgets what is no more."""
    record = read()
    for kind, seconds in found.items():
        kept = {} if whole else {k: v for k, v in record[kind].items() if k not in seconds}
        kept |= {key: round(value, 2) for key, value in seconds.items() if value >= SHORTEST}
        record[kind] = dict(sorted(kept.items()))
    RECORD.write_text(json.dumps(record, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


def show() -> None:
    record = read()
    seconds = record["tests"] | record["fixtures"]
    print(
        f"{len(seconds)} tests and shared fixtures over {SHORTEST} s: {sum(seconds.values()):.0f} s"
    )
    files: Counter[str] = Counter()
    for key, value in seconds.items():
        files[key.partition("::")[0]] += value
    for name, value in files.most_common(12):
        print(f"{value:8.1f} s  {name}")


if __name__ == "__main__":
    start = time.monotonic()
    if "--show" not in sys.argv:
        quick = "--quick" in sys.argv
        paths = [argument for argument in sys.argv[1:] if argument != "--quick"]
        status, found = measure([*paths, *(["--tier", "quick"] if quick else [])])
        renew(found, whole=not paths and not quick and status in (0, 1))
        print(f"{time.monotonic() - start:.0f} s by the clock, exit status {status}")
    show()
