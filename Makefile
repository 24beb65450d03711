# `make demo`, `make test` and `make test-all` each work alone on a fresh clone: they make .venv and
# install what they need.
PYTHON ?= python3
BIN := .venv/bin
# compat: a path instead of a finder, or a folder that holds the clone would hide the package of the
# same name.
INSTALL = $(BIN)/python -m pip install --quiet --disable-pip-version-check \
	--config-settings editable_mode=compat --editable
# Two processes that get whole files, the longest first (tests/conftest.py); -rs: what did not run is
# named with its reason, such as the browser tests where there is no Chromium.
PYTEST = OPENBLAS_NUM_THREADS=1 $(BIN)/python -m pytest -n 2 --dist loadfile --no-loadscope-reorder -rs

.PHONY: demo docs test test-all quick long durations lint types format clean

.venv/installed: pyproject.toml
	$(PYTHON) -m venv .venv
	$(INSTALL) .
	touch $@

# The checker of proofs, which the extra `proof` asks for, is a package of this repository.
.venv/installed-test: .venv/installed checker/pyproject.toml
	$(INSTALL) ./checker
	$(INSTALL) ".[test]"
	touch $@

demo: .venv/installed
	$(BIN)/cordes solve ex4.2-discontinuous --out demo
	@echo "Open demo/report.html. The answer itself is demo/answer.cordes."

.venv/installed-docs: .venv/installed
	$(INSTALL) ".[docs]"
	touch $@

# Strict: a broken link or anchor, or a page that is not in the navigation, ends the build; --quiet
# would hide these from --strict too. `python docs/regenerate.py` runs what the pages show.
docs: .venv/installed-docs
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict
	@echo "The documentation is site/index.html."

lint: .venv/installed-test
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: .venv/installed-test
	$(BIN)/basedpyright --level error

quick: .venv/installed-test
	$(PYTEST) --tier quick

long: .venv/installed-test
	$(PYTEST) --tier long

# Lint, types and the quick tier: four minutes on two cores, every room, every theorem, every
# command. The type check uses one core; beside the tests it takes half of its time.
test: lint
	@$(MAKE) --no-print-directory -j 2 types quick

# The rest: batteries, studies, processes, browser, examples, long solves, documentation.
# What the quick tier has compiled and solved serves the long one.
test-all:
	@folder=$$(mktemp -d) && trap 'rm -rf "$$folder"' EXIT && export CORDES_TEST_FOLDER="$$folder" \
		&& $(MAKE) --no-print-directory test docs && $(MAKE) --no-print-directory long

# Which test is slow is measured: this renews tests/durations.json.
durations: .venv/installed-test
	OPENBLAS_NUM_THREADS=1 $(BIN)/python tests/support/durations.py

format: .venv/installed-test
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

clean:
	rm -rf .venv demo site build dist *.egg-info
