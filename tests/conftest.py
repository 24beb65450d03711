"""Shared by all tests: one BLAS thread (pools that fight for two cores are slower than one), no
cache outside the run, and solutions made once."""

import os

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import pytest

import cordes
from cordes import cli

# Modules beside the tests whose assertions say their values too.
pytest.register_assert_rewrite("hjb_cases", "report_page", "transport_maps")


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
    """`solved(name, **options)`: a gallery problem solved once for all tests."""
    made = {}

    def make(name: str, **options):
        key = (name, tuple(sorted(options.items())))
        if key not in made:
            made[key] = cordes.solve(cordes.gallery[name], progress=False, **options)
        return made[key]

    return make


# Files are shared out whole: the longest ones first, or one worker waits at the end for the other.
LONGEST = [
    *(
        "test_study_command.py",
        "test_examples.py",
        "test_battery.py",
        "test_newton.py",
        "test_browser.py",
        "test_certificates.py",
    ),
    *(
        "test_distribution.py",
        "test_hjb_certificates.py",
        "test_docs.py",
        "test_transport.py",
        "test_gallery.py",
        "test_transport_certificates.py",
    ),
    *("test_rivals.py", "test_monge_ampere_certificates.py", "test_mathml_equations.py"),
]


def pytest_collection_modifyitems(items):
    items.sort(
        key=lambda item: (
            LONGEST.index(item.path.name) if item.path.name in LONGEST else len(LONGEST)
        )
    )
