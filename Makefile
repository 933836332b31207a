# make            sets everything up, then builds tables/main.tex on embedded data
# make test       runs the tests
# make lint       style and types
# PYTHON=python3.12 make ...   chooses the Python (3.11 or newer) of the environment
PYTHON ?= python3
VENV := .venv/bin/python

.PHONY: all test lint
all: .venv/installed
	$(VENV) -m snakemake --cores all tables/main.tex

test: .venv/installed
	OMP_NUM_THREADS=1 $(VENV) -m pytest -n 2 --dist loadfile

lint: .venv/installed
	$(VENV) -m ruff check .
	$(VENV) -m ruff format --check .
	$(VENV) -m mypy
	$(VENV) -m snakefmt --check Snakefile workflow
	$(VENV) -m snakemake --lint

# Remade when the lock changes; the stamp is written last, so a broken install is tried again.
.venv/installed: requirements.txt pyproject.toml
	$(PYTHON) -m venv .venv
	$(VENV) -m pip install --disable-pip-version-check --quiet -r requirements.txt
	$(VENV) -m pip install --disable-pip-version-check --quiet --no-deps --editable .
	touch .venv/installed
