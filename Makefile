# `make demo` and `make test` each work alone on a fresh clone: they make .venv and install what they need.
PYTHON ?= python3
BIN := .venv/bin

.PHONY: demo docs test lint format clean

# compat: a path instead of a finder, or a folder that holds the clone would hide the package of the same name.
.venv/installed: pyproject.toml
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --config-settings editable_mode=compat --editable .
	touch $@

.venv/installed-test: .venv/installed
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --config-settings editable_mode=compat --editable ".[test]"
	touch $@

demo: .venv/installed
	$(BIN)/cordes solve ex4.2-discontinuous --out demo
	@echo "Open demo/report.html. The answer itself is demo/answer.cordes."

.venv/installed-docs: .venv/installed
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --config-settings editable_mode=compat --editable ".[docs]"
	touch $@

# Strict: a broken link or anchor, or a page that is not in the navigation, ends the build; --quiet would hide these from --strict too.
# `python docs/regenerate.py` runs what the pages show.
docs: .venv/installed-docs
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict
	@echo "The documentation is site/index.html."

lint: .venv/installed-test
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/basedpyright --level error

# -rs: what did not run is named with its reason, such as the browser tests where there is no Chromium.
test: lint
	OPENBLAS_NUM_THREADS=1 $(BIN)/python -m pytest -n 2 --dist loadfile --no-loadscope-reorder -rs

format: .venv/installed-test
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

clean:
	rm -rf .venv demo site build dist *.egg-info
