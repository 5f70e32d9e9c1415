# Everything a fresh machine needs, from Python, pip, make and gcc alone.
#   make scan       the embedded model over the Python manual; says where the results are
#   make test       the test suite, about 9 minutes on two cores
#   make check      lint, types, import rules, a search for unsafe code, and the documentation
#   make audit      known weaknesses of what is installed, where their database can be reached
#   make docs       the documentation site, in site/; a broken link is an error
#   make test-long  what takes minutes or needs weights that are fetched, about 25 minutes on two cores
#   make validate   the claims of the documentation again: thousands of draws, larger models; more than an hour
#   make fuzz       10,000 damaged inputs for every reader
#   make bench      the benchmarks; each prints ratios against a peer of the same run

PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready
PYTEST := $(BIN)/python -m pytest
# Compiled modules are kept for the many processes that tests start, whatever the environment says.
unexport PYTHONDONTWRITEBYTECODE
# Neighbouring tests stay in one process, which then makes their fixtures once.
PARALLEL := -q -n 2 --dist worksteal

.PHONY: scan test check audit docs test-long validate fuzz bench install clean

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
	$(PYTEST) $(PARALLEL) -m "not long and not validation"

test-long: $(READY)
	$(PYTEST) $(PARALLEL) -m "long and not validation"

validate: $(READY)
	$(PYTEST) $(PARALLEL) -m validation

fuzz: $(READY)
	ISOTROPE_FUZZ_INPUTS=10000 $(PYTEST) $(PARALLEL) -m long tests/fuzz

check: $(READY)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/bandit --quiet --configfile pyproject.toml --recursive src
	$(MAKE) docs

# Whether the database answers is asked with a version whose weaknesses are known: a mirror may hold packages alone.
# Without it there is nothing to compare with, which is no fault of what is installed.
PROBE := import json; from urllib.request import urlopen; \
	assert json.load(urlopen("https://pypi.org/pypi/jinja2/2.4.1/json", timeout=10))["vulnerabilities"]

audit: $(READY)
	@if $(BIN)/python -c '$(PROBE)' 2>&-; then $(BIN)/pip-audit --skip-editable; \
	else echo "make audit: the database of known weaknesses cannot be reached; nothing was compared."; fi

docs: $(READY)
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict

bench: $(READY)
	for file in benchmarks/*.py; do $(BIN)/python $$file || exit 1; done

clean:
	rm -rf $(VENV) .cache build dist site .mypy_cache .pytest_cache .ruff_cache
