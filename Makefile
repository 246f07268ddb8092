# Every target sets up what it needs, in .venv; a second time that costs nothing.
#
#   make run                          the dashboard on the sample runs
#   make run DIRS="logs/a logs/b"     … on your own; PORT=8600 to choose the port
#   make test                         what every change needs: formatting, lint, types, layers, tests
#   make test-all                     everything: also laws on all profiles, long fuzzing, calibration, live recordings
#   make test-core                    the core, in a copy without what only servers and teams need
#   make test-fast                    the tests of the numeric core alone: no app, no browser, no servers
#   make docs                         the reference pages of the documentation, from the code
#   make pictures                     the pictures of the documentation, in Chromium
#   make screenshots                  every page in Chromium, in build/screenshots/index.html, for reviewers

PYTHON ?= python3
BIN := .venv/bin
DIRS ?=
PORT ?=
TESTS ?= tests
NUMERIC_TESTS := tests/compare tests/frames tests/views
# Something of every layer, and the pages that would call what is missing: less than a minute on two cores.
CORE_TESTS := $(addprefix tests/,test_imports.py test_loading.py test_run.py commands/test_cli.py \
	compare/test_diff.py sources/capture/test_page.py views/steps/test_view.py views/ops/test_view.py \
	ui/test_home.py ui/test_comparisons.py)
WORKERS ?= 2
# JavaScript is tested where there is npm.
NODE_MODULES := $(if $(shell command -v npm 2>/dev/null),tests/javascript/node_modules)
SOURCES := app.py pages tfcompare tests benchmarks sample_logs docs

.DEFAULT_GOAL := run
.PHONY: run test test-all test-core test-fast check lint format bench docs pictures screenshots clean

run: .venv/run.stamp
	$(BIN)/tfcompare serve $(DIRS) $(if $(PORT),--port $(PORT))

# The tests of a file share what they read and compare, so one worker runs them all.
test: check test-core $(NODE_MODULES)
	$(BIN)/pytest -n $(WORKERS) --dist loadfile --no-loadscope-reorder -m "not thorough" $(TESTS)

test-all: check test-core $(NODE_MODULES)
	LAW_FACTOR=5 $(BIN)/pytest -n $(WORKERS) --dist loadfile --no-loadscope-reorder $(TESTS)

test-core: .venv/test.stamp
	rm -rf build/core && mkdir -p build/core
	cp -a app.py pages .streamlit pyproject.toml sample_logs tfcompare tests build/core
	rm -rf $(foreach room,server fleet,build/core/tfcompare/$(room) build/core/tests/$(room))
	cd build/core && PYTHONPATH=$$PWD $(CURDIR)/$(BIN)/python -m pytest -q -p no:cacheprovider -n $(WORKERS) --dist loadfile \
		-m "not thorough" $(CORE_TESTS)

test-fast: .venv/test.stamp
	$(BIN)/pytest -n $(WORKERS) --dist loadfile --no-loadscope-reorder -m "not thorough" $(NUMERIC_TESTS)

check: lint
	$(BIN)/ruff format --check $(wildcard $(SOURCES))
	$(BIN)/mypy
	$(BIN)/lint-imports

lint: .venv/test.stamp
	$(BIN)/ruff check $(wildcard $(SOURCES))

format: .venv/test.stamp
	$(BIN)/ruff format $(wildcard $(SOURCES))
	$(BIN)/ruff check --fix $(wildcard $(SOURCES))

docs: .venv/run.stamp
	$(BIN)/python -m docs.reference

pictures: .venv/test.stamp
	$(BIN)/python -m tests.screenshots.pictures

screenshots: .venv/test.stamp
	$(BIN)/python -m tests.screenshots

bench: .venv/test.stamp
	$(BIN)/python -m benchmarks

clean:
	rm -rf .venv tests/javascript/node_modules .pytest_cache .mypy_cache .ruff_cache .import_linter_cache .hypothesis build dist
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

.venv/bin/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11, 4))' \
		|| { echo "tfcompare needs Python 3.11.4 or newer; say which, as in: make PYTHON=python3.12" >&2; exit 1; }
	$(PYTHON) -m venv .venv

# Looking at runs needs no TensorFlow, so `make run` does not wait for it.
# Modules are compiled when they are first imported: to compile all of them takes as long as the rest of the installation.
.venv/run.stamp: pyproject.toml | .venv/bin/python
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-compile --editable .
	@touch $@

# Tests start hundreds of processes, some where nothing compiled may be written; a file of a package may not compile.
# The loops over profile data are compiled by their first use, here, so that no test is charged with that.
.venv/test.stamp: requirements.txt .venv/run.stamp
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --requirement requirements.txt
	-@$(BIN)/python -m compileall -q -j 0 .venv/lib
	@TFCOMPARE_STORE=off $(BIN)/tfcompare diff sample_logs/autoencoder_gpu/h100_512_128/*_run-1 sample_logs/autoencoder_gpu/h100_16_8/*_run-1 >/dev/null
	@touch $@

tests/javascript/node_modules: tests/javascript/package.json
	-npm install --prefix tests/javascript --no-package-lock --no-audit --no-fund --loglevel=error && touch $@
