"""Shared by all tests: one BLAS thread (pools that fight for two cores are slower than one), one
temporary folder for what is compiled and solved, and the two tiers.

Nothing outside that folder is read or left, so that a run tells what a first run takes; both
workers and the processes that tests start share it, and the process that made it removes it."""

import os
import shutil
import signal
import tempfile
from pathlib import Path

os.environ.setdefault(
    "CORDES_TEST_FOLDER", f"{tempfile.gettempdir()}/cordes-tests-{os.getuid()}-{os.getpid()}"
)
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
os.environ["JAX_COMPILATION_CACHE_DIR"] = f"{os.environ['CORDES_TEST_FOLDER']}/compiled"
# What compiles faster than this is compiled again: reading it back would take as long.
os.environ.setdefault("JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS", "0.1")

import durations
import pytest
from answers import Answers

from cordes import cli

# Modules beside the tests whose assertions say their values too.
pytest.register_assert_rewrite("hjb_cases", "report_page", "transport_maps")

FOLDER = Path(os.environ["CORDES_TEST_FOLDER"])


@pytest.fixture
def invoke(capsys):
    """Run a command in this process: exit status, standard output, standard error."""

    def invoke(*arguments):
        capsys.readouterr()
        status = cli.run([str(argument) for argument in arguments])
        return status, *capsys.readouterr()

    return invoke


@pytest.fixture(scope="session")
def solved():
    """`solved(name, **options)`: a gallery problem solved once for all tests of all workers."""
    return Answers(FOLDER / "answers")


# Tiers: tests/support/durations.py says which test belongs where.


def pytest_addoption(parser):
    parser.addoption("--tier", choices=("quick", "long", "all"), default="all")
    parser.addoption("--record", metavar="FOLDER", help="note there what each test takes")


def pytest_configure(config):
    # What runs in the background of a shell ignores Ctrl-C or the end of its terminal, and so would
    # the tests that send them.
    for number, handler in (
        (signal.SIGINT, signal.default_int_handler),
        (signal.SIGHUP, signal.SIG_DFL),
    ):
        if signal.getsignal(number) == signal.SIG_IGN:
            signal.signal(number, handler)
    if config.getoption("--record"):
        worker = os.environ.get("PYTEST_XDIST_WORKER", "alone")
        path = Path(config.getoption("--record")) / f"{worker}.json"
        config.pluginmanager.register(durations.Recorder(path))


def pytest_collection_modifyitems(config, items):
    part = durations.parts(items)
    tier = config.getoption("--tier")
    if tier != "all":
        chosen = [
            item
            for item in items
            if durations.is_quick(item, part[item.nodeid]) == (tier == "quick")
        ]
        kept = {item.nodeid for item in chosen}
        config.hook.pytest_deselected(items=[item for item in items if item.nodeid not in kept])
        items[:] = chosen
    items[:] = durations.longest_first(items, part)


def pytest_unconfigure():
    if FOLDER.name.endswith(f"-{os.getpid()}"):
        shutil.rmtree(FOLDER, ignore_errors=True)
