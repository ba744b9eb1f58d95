# Two commands on a machine with only Python and make: `make demo` and `make test`.
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin

OTHERS ?= 3.10 3.13

.PHONY: help demo test lint unit package test-pythons bench lock clean
help:  ## show the targets
	@grep -E '^[a-z-]+:.*##' Makefile | sed -E 's/:.*## /\t/'

$(VENV)/server: requirements.lock pyproject.toml setup.py
	@$(PYTHON) -c 'import sys; sys.exit(not (3, 10) <= sys.version_info[:2] <= (3, 13))' || \
		{ echo "$(PYTHON) must be Python 3.10 to 3.13: make PYTHON=python3.12 $(MAKECMDGOALS)"; exit 1; }
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements.lock
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --editable .
	touch $@

$(VENV)/dev: requirements-dev.lock $(VENV)/server
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements-dev.lock
	touch $@

demo: $(VENV)/server  ## run the whole system on real input, into demo-output/
	$(BIN)/hushcount demo --out demo-output --overwrite

test: lint unit package  ## everything that CI checks

lint: $(VENV)/dev  ## style, types, trust domains
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

unit: $(VENV)/dev  ## the tests, with coverage
	$(BIN)/python -m pytest --cov --cov-report=term:skip-covered

package: $(VENV)/dev  ## build sdist and wheel, and use the wheel in a fresh environment
	$(BIN)/python tests/package/check.py

test-pythons:  ## the tests on the oldest and the newest Python, those of them that are installed
	@for version in $(OTHERS); do \
		python=$$(sh tests/package/find_python.sh $$version); \
		if [ -z "$$python" ]; then echo "SKIPPED: Python $$version is not installed, its tests were NOT run"; continue; fi; \
		$(MAKE) --no-print-directory VENV=.venv-$$version PYTHON=$$python .venv-$$version/dev && \
		.venv-$$version/bin/python -m pytest -q || exit 1; \
	done

bench: $(VENV)/server  ## CPU time a report of each stage beside the cryptography's
	$(BIN)/python benchmarks/stages.py

lock:  ## renew the lock files (needs uv)
	uv pip compile --universal --python-version 3.10 --generate-hashes --quiet --extra server pyproject.toml -o requirements.lock
	uv pip compile --universal --python-version 3.10 --generate-hashes --quiet --extra dev -c requirements.lock pyproject.toml -o requirements-dev.lock

clean:  ## remove what the other targets made
	rm -rf $(VENV) .venv-* build dist demo-output .coverage .mypy_cache .pytest_cache .ruff_cache .import_linter_cache *.egg-info
