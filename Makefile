# `make demo` and `make test` each work alone on a fresh clone: they make .venv and install what they need.
PYTHON ?= python3
BIN := .venv/bin

.PHONY: demo test lint format clean

.venv/installed: pyproject.toml
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable .
	touch $@

.venv/installed-test: .venv/installed
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable ".[test]"
	touch $@

demo: .venv/installed
	$(BIN)/cordes solve ex4.2-discontinuous --out demo
	@echo "The figure is demo/solution.png, the answer demo/answer.cordes."

lint: .venv/installed-test
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/basedpyright --level error

test: lint
	OPENBLAS_NUM_THREADS=1 $(BIN)/python -m pytest -n 2 --dist loadfile

format: .venv/installed-test
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

clean:
	rm -rf .venv demo build dist *.egg-info
