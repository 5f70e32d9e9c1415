# Everything a fresh machine needs, from Python, pip, make and gcc alone.
#   make scan       the embedded model over the Python manual; says where the results are
#   make test       the test suite, at most 15 minutes on two cores
#   make check      lint, types, import rules and the documentation
#   make docs       the documentation site, in site/; a broken link is an error
#   make test-long  what takes minutes or needs weights that are fetched
#   make bench      the benchmarks; each prints ratios against a peer of the same run

PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready
PYTEST := $(BIN)/python -m pytest

.PHONY: scan test check docs test-long bench install clean

install: $(READY)

# torch first and by its exact version: a range would bring the CUDA build and its gigabytes.
$(READY): pyproject.toml constraints.txt
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade pip
	$(BIN)/python -m pip install --quiet --constraint constraints.txt torch==2.13.0
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --editable '.[dev]'
	touch $(READY)

scan: $(READY)
	$(BIN)/isotrope scan

test: $(READY)
	$(PYTEST) -q -n 2 -m "not long"

test-long: $(READY)
	$(PYTEST) -q -m long

check: $(READY)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(MAKE) docs

docs: $(READY)
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict

bench: $(READY)
	for file in benchmarks/*.py; do $(BIN)/python $$file || exit 1; done

clean:
	rm -rf $(VENV) .cache build dist site .mypy_cache .pytest_cache .ruff_cache
