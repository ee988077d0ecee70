# `make demo` and `make test` set up and run. Everything made here lies under .venv/, var/, static/vendor/ and
# node_modules/, which git ignores. Every target may be repeated, and interrupted.

.PHONY: help setup demo test check soak bench lock clean
.DEFAULT_GOAL := help
# The tests start hundreds of processes: compiled once is enough, also where the environment keeps no bytecode.
unexport PYTHONDONTWRITEBYTECODE

PYTHON ?= $(firstword $(foreach name,python3 python3.13 python3.12 python3.11,\
	$(shell $(name) -c 'import sys; sys.version_info < (3, 11) or print("$(name)")' 2>/dev/null)))
BIN := .venv/bin
PORT := 8000
PIP := $(BIN)/python -m pip --disable-pip-version-check --no-input
# One process more than there are cores, since many tests wait for a time limit to pass. Tests of one group go to one
# process: what they share, such as a large ledger, is made once.
PROCESSES := $(shell expr $$(getconf _NPROCESSORS_ONLN) + 1)
PYTEST := $(BIN)/python -m pytest --numprocesses=$(PROCESSES) --maxprocesses=4 --dist=loadgroup

# Stamps are named after what they stand for, so that a changed lock, or a moved checkout, is a new stamp.
sum = $(shell (cat $(1); echo $(CURDIR)) | cksum | cut -d' ' -f1)
LOCKED := .venv/.locked-$(call sum,requirements/dev.txt)
INSTALLED := .venv/.installed-$(call sum,pyproject.toml)

help:
	@echo 'make setup   install all that is needed, into this folder'
	@echo 'make demo    a running Sendonce: database, simulated provider, worker, dashboard; PORT=8001 for another port'
	@echo 'make test    the whole test suite'
	@echo 'make check   format, lint, types, then the tests'
	@echo 'make soak    the long forms of the tests'
	@echo 'make bench   measure'
	@echo 'make lock    bring requirements/ in step with pyproject.toml; UPGRADE=--upgrade takes the newest of all'
	@echo 'make clean   remove all that was made here'

setup: $(INSTALLED)
	@$(BIN)/python -m dashboard.cli.assets

# An install that was cut short (.venv/.unfinished) starts from nothing, since pip does not repair half a package.
$(LOCKED):
	@test -n "$(PYTHON)" || { echo 'Sendonce needs Python 3.11 or newer, as python3 or PYTHON=…' >&2; exit 2; }
	@if test -e .venv/.unfinished || ! $(BIN)/python -c '' 2>/dev/null; then \
		echo 'Making .venv …'; $(PYTHON) -m venv --clear .venv; fi
	@touch .venv/.unfinished
	@echo 'Installing the locked packages …'
	@$(PIP) install --quiet --require-hashes --requirement requirements/dev.txt
	@rm -f .venv/.unfinished .venv/.locked-* .venv/.installed-*
	@touch $@

$(INSTALLED): $(LOCKED)
	@$(PIP) install --quiet --no-deps --no-index --no-build-isolation --editable .
	@rm -f .venv/.installed-*
	@touch $@

demo: setup
	@$(BIN)/sendonce demo --port $(PORT)

test: setup
	@$(PYTEST)

check: setup
	@$(BIN)/ruff format --check .
	@$(BIN)/ruff check .
	@$(BIN)/mypy
	@$(PYTEST)

soak: setup
	@SENDONCE_SOAK=1 $(PYTEST)

bench: setup
	@$(BIN)/python -m bench
	@$(BIN)/python -m bench.verify
	@$(BIN)/python -m bench.finding
	@$(BIN)/python -m bench.overview

# Only hashes and versions: where a package is fetched from is each machine's own business.
COMPILE := UV_CUSTOM_COMPILE_COMMAND='make lock' $(BIN)/uv pip compile --quiet $(UPGRADE) --universal --python-version 3.11 \
	--generate-hashes --no-annotate --no-emit-index-url --no-config
lock: setup
	@$(COMPILE) pyproject.toml --group install --output-file requirements/run.txt
	@$(COMPILE) pyproject.toml --extra traces --group install --constraint requirements/run.txt \
		--output-file requirements/traces.txt
	@$(COMPILE) pyproject.toml --extra demo --extra traces --group install --group dev --constraint requirements/run.txt \
		--output-file requirements/dev.txt
	@$(COMPILE) --group assets --output-file requirements/assets.txt

clean:
	@rm -rf .venv var static/vendor node_modules .hypothesis
	@find . -name __pycache__ -type d -prune -exec rm -rf {} +
