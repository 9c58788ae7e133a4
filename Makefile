# Two commands do everything: `make demo` runs the example, `make test` passes the tests.
# Both set up what they need: a virtual environment in .venv, Python packages, and (for the
# tests) PostgreSQL and Chromium from the system's packages.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
DEMO_ARGS ?=

.PHONY: demo test check docs install system bench clean

demo: $(VENV)/.demo
	$(BIN)/rungent demo $(DEMO_ARGS)

test: install system
	$(BIN)/python -m tests.gate

install: $(VENV)/.dev

system:
	@sh tests/system_packages.sh

docs: install
	$(BIN)/python -m tests.docs.site

bench: install
	$(BIN)/python -m tests.benchmarks

$(VENV)/.venv:
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "Rungent needs Python 3.11 or newer; set PYTHON=…")'
	$(PYTHON) -m venv $(VENV)
	touch $@

$(VENV)/.demo: pyproject.toml $(VENV)/.venv
	$(BIN)/python -m pip install --quiet --editable '.[demo]'
	touch $@

$(VENV)/.dev: pyproject.toml $(VENV)/.venv
	$(BIN)/python -m pip install --quiet --editable '.[dev]'
	touch $@ $(VENV)/.demo

clean:
	rm -rf $(VENV) build dist .coverage .mypy_cache .pytest_cache .ruff_cache .hypothesis
