# Everything goes through .venv, which `make setup` makes; no active environment is needed.
SHELL := /bin/bash
.DEFAULT_GOAL := help
MAKEFLAGS += --no-print-directory
BIN := .venv/bin
# More arguments for pytest and for the grader: make test ARGS="-k rewrite -x", make grade ARGS=--help
ARGS ?=
# The environment of another project must not leak into ours.
unexport PYTHONPATH PYTHONHOME VIRTUAL_ENV

.PHONY: help setup test nightly bench grade check lint types layers lines format constraints clean

help:  ## Show this list
	@grep -hE '^[a-z]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/:[^#]*## /\t/' | expand -t 14

setup:  ## Make .venv from constraints.txt, when needed
	@./.ci/setup

test: setup  ## Run all tests but the nightly ones
	@$(BIN)/pytest -q -n 2 --timeout 600 $(ARGS)

nightly: setup  ## Run the long tests
	@$(BIN)/pytest -q -m nightly $(ARGS)

bench: setup  ## Compare speed with other compilers and libraries, as ratios
	@$(BIN)/python -m grader.bench $(or $(ARGS),--suite rewrite --suite compiling --suite week5)

grade: setup  ## Run the grader; say what it shall do in ARGS
	@$(BIN)/grader $(ARGS)

check: lint types layers lines  ## All checks that run nothing

lint: setup  ## Check format and style
	@$(BIN)/ruff format --check . || { echo "lint: 'make format' puts this right"; exit 1; }
	@$(BIN)/ruff check .

types: setup  ## Check types
	@$(BIN)/mypy

layers: setup  ## Check that imports run from later weeks to earlier ones
	@$(BIN)/lint-imports --no-logo

lines:  ## Check that no Python file has more than 400 lines
	@git ls-files -z --cached --others --exclude-standard '*.py' | xargs -0 -r wc -l | awk '$$2 != "total" && $$1 > 400 { print "lines: " $$2 " has " $$1 " lines, 400 are allowed"; bad = 1 } END { exit bad }'

format: setup  ## Put every file into the house's format
	@$(BIN)/ruff check --fix --quiet --exit-zero . >/dev/null
	@$(BIN)/ruff format .

constraints: setup  ## Write the versions now in .venv to constraints.txt
	@{ echo '# The whole set of packages that the course is tested with; written by `make constraints`.'; \
	  $(BIN)/pip freeze --all --exclude-editable | grep -v '^pip==' | sed -E 's/\+[^ ]*$$//' | LC_ALL=C sort -f; } > .constraints.new
	@mv .constraints.new constraints.txt

clean:  ## Remove caches and build outputs; .venv stays
	@rm -rf build dist .pytest_cache .mypy_cache .ruff_cache .import_linter_cache .hypothesis .benchmarks *.egg-info
	@find . -name __pycache__ -not -path './.venv/*' -prune -exec rm -rf {} +
