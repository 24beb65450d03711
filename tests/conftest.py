"""Shared by all tests: one BLAS thread (pools that fight for two cores are slower than one), no cache outside the run, and solutions made once."""

import os

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import pytest

import cordes


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
LONGEST = ["test_study_command.py", "test_examples.py", "test_browser.py", "test_certificates.py", "test_transport_certificates.py", "test_docs.py"]


def pytest_collection_modifyitems(items):
    items.sort(key=lambda item: LONGEST.index(item.path.name) if item.path.name in LONGEST else len(LONGEST))
