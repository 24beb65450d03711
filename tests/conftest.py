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
