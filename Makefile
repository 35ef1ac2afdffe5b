# `make run`, `make demo` and `make test` set themselves up on a machine that has Python 3.11 or newer.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check
COVERAGE_FLOOR ?= 90

.PHONY: run demo test check

run: $(VENV)/.installed
	@exec $(BIN)/python -I -m service.cli serve

demo: $(VENV)/.installed
	@exec $(BIN)/python -I -m service.cli demo

test: $(VENV)/.installed-dev
	$(BIN)/python -m pytest --numprocesses 3 --dist loadfile --no-loadscope-reorder --cov --cov-report=term:skip-covered --cov-fail-under=$(COVERAGE_FLOOR)

check: $(VENV)/.installed-dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/mypy --explicit-package-bases tests benchmarks
	$(BIN)/lint-imports

$(VENV)/.installed: pyproject.toml | $(BIN)/pip
	@echo "Installing into $(VENV) …"
	@$(PIP) --editable .
	@touch $@

$(VENV)/.installed-dev: pyproject.toml | $(BIN)/pip
	@echo "Installing into $(VENV), with the tools for tests …"
	@$(PIP) --editable '.[dev]'
	@touch $(VENV)/.installed $@

$(BIN)/pip:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { \
	    echo "Gapless needs Python 3.11 or newer. Name one: make PYTHON=python3.12 $(MAKECMDGOALS)" >&2; exit 1; }
	@$(PYTHON) -m venv $(VENV)
