# Two commands do everything: `make demo` and `make test`. Each makes the virtual environment it needs.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
INSTALL := PIP_CONSTRAINT=constraints.txt PIP_DISABLE_PIP_VERSION_CHECK=1 $(BIN)/python -m pip install --quiet

.PHONY: help demo test lint types check bench results vectors clean

help:  ## List the targets
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 12

$(BIN)/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "AgentMark needs Python 3.11 or newer; call: make PYTHON=python3.11 ...")'
	$(PYTHON) -m venv $(VENV)

$(VENV)/.runtime: $(BIN)/python pyproject.toml constraints.txt
	$(INSTALL) --editable .
	@touch $@

$(VENV)/.dev: $(VENV)/.runtime
	$(INSTALL) --editable '.[dev]'
	@touch $@

demo: $(VENV)/.runtime  ## Mark an agent's decisions, damage its log, read the identity back
	@$(BIN)/agentmark demo

test: $(VENV)/.dev  ## Run the tests
	$(BIN)/python -m pytest

lint: $(VENV)/.dev  ## Style
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: $(VENV)/.dev  ## Types
	$(BIN)/mypy

check: lint types test  ## All of the above

bench: $(VENV)/.runtime  ## Speed, as ratios to a bare keyed hash
	@$(BIN)/agentmark lab run speed

results: $(VENV)/.runtime  ## Every figure of docs/results.md (about half an hour)
	$(BIN)/agentmark lab run all
	$(BIN)/agentmark lab table

vectors: $(BIN)/python  ## Write the test vectors anew; leaves no diff
	$(BIN)/python tools/make_vectors.py

clean:  ## Remove what the other targets made
	rm -rf $(VENV) .mypy_cache .ruff_cache .pytest_cache .hypothesis demo-output
