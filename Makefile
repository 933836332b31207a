# make            sets everything up, then builds tables/main.tex on built-in data
# make view       prints that table and opens it in a browser
# make test       runs the fast tests and one tiny build, in minutes
# make test-full  runs all of them: Snakemake in every situation, SLURM
# make lint       style and types
# make docs       builds the documentation as a site, with a reference of commands, config and classes
# make report     report.html with the tables and figures that are built, in seconds
# make report-all builds the target all (hours), and report.html of it
#                 SCALE=mine make report    of another scale than the demo; make view too
# make pictures   remakes the pictures of README and docs, but for gap.png
# make findings   remakes the tables of results in README.md and docs/ from docs/results
# make bench      measures speed into benchmarks/README.md; bench-workflow: the workflow;
#                 bench-gpu: pretraining on a GPU at the paper's size
# PYTHON=python3.12 make ...   chooses the Python (3.11 or newer) of the environment
PYTHON ?= python3
VENV := .venv/bin/python

.PHONY: all view test test-full lint docs report report-all pictures findings bench bench-workflow bench-gpu
# Each module is compiled once, when it is first imported; some environments forbid that.
unexport PYTHONDONTWRITEBYTECODE
# In a terminal one line for each rule, with jobs done of all; the whole log is in .snakemake/log.
PROGRESS := $(shell test -t 2 && echo --logger rich)
OF_SCALE := $(if $(SCALE),--config scale=$(SCALE))

all: .venv/installed
	$(VENV) -m snakemake --cores all $(PROGRESS) $(OF_SCALE) -- tables/main.tex

view: .venv/installed
	$(VENV) -m epcore show --open $(if $(SCALE),--scale $(SCALE))

PYTEST := OMP_NUM_THREADS=1 $(VENV) -m pytest -n 2 --dist loadfile --no-loadscope-reorder
test: .venv/installed
	$(PYTEST) -m "smoke or not (workflow or slurm or slow or latex)"

# Snakemake and SLURM wait at times, so that three at once use two cores.
test-full: .venv/installed
	$(PYTEST) -n 3 --durations=20

lint: .venv/installed
	$(VENV) -m ruff check .
	$(VENV) -m ruff format --check .
	$(VENV) -m mypy
	$(VENV) -m snakefmt --check Snakefile workflow
	$(VENV) -m snakemake --lint

docs: .venv/installed
	NO_MKDOCS_2_WARNING=1 $(VENV) -m mkdocs build --strict
	@echo "The documentation is in site/index.html"

# One file, to be opened in any browser, without a network too.
REPORT := $(VENV) -m snakemake --report report.html --report-stylesheet workflow/report/report.css $(OF_SCALE)
BUILT = results/$(or $(SCALE),$(shell awk '/^scale:/ {print $$2}' config/config.yaml))
report: .venv/installed
	$(REPORT) -- $(or $(wildcard $(BUILT)/tables/*.tex $(BUILT)/figures/*.pdf),tables/main.tex)

report-all: .venv/installed
	$(VENV) -m snakemake --cores all $(PROGRESS) $(OF_SCALE) -- all
	$(REPORT) -- all

# The upper part of the page is the table. docs/gap.png is figures/gap.png of scale batch-epochs.
pictures: all
	$(VENV) -m snakemake --cores all data_pictures figures/two-moons.png
	cp results/demo/figures/data/glyph-mini.png figures/two-moons.png docs
	latexmk -pdf -silent -output-directory=results/demo/page tables/main.tex
	pdftoppm -png -singlefile -r 130 -x 60 -y 90 -W 960 -H 1040 results/demo/page/main.pdf docs/demo-table
	$(VENV) docs/predictions.py

# docs/results/<snapshot>/source.json says which command made a snapshot, and where.
findings: .venv/installed
	$(VENV) docs/findings/pages.py

bench: .venv/installed
	$(VENV) benchmarks/collect.py

bench-workflow: .venv/installed
	$(VENV) benchmarks/collect.py workflow

bench-gpu: .venv/installed
	$(VENV) benchmarks/collect.py gpu

# Remade when the lock changes; the stamp is written last, so a broken install is tried again.
.venv/installed: requirements.txt pyproject.toml
	@$(PYTHON) -c 'import sys; sys.version_info >= (3, 11) or sys.exit("Python 3.11 or newer is needed, and " \
	  "$(PYTHON) is " + sys.version.split()[0] + "; say which: PYTHON=python3.12 make")'
	@echo "Installing the packages of requirements.txt into .venv, which takes some minutes"
	$(PYTHON) -m venv .venv
	$(VENV) -m pip install --disable-pip-version-check --quiet --no-compile -r requirements.txt
	$(VENV) -m pip install --disable-pip-version-check --quiet --no-deps --editable .
	$(VENV) -m epcore schema > /dev/null
	touch .venv/installed
