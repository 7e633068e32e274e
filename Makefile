# `make help` lists what there is. Everything runs from .venv, which is made on first use.

.DEFAULT_GOAL := help
SHELL := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c
.DELETE_ON_ERROR:
MAKEFLAGS += --no-print-directory --no-builtin-rules

VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready

# More options for the command behind run, test or bench: make test ARGS="-m 'not slow' -k search"
ARGS ?=
# One worker a core, at most four: each keeps a model in memory and databases of its own.
TEST_WORKERS ?= logical

.PHONY: help
help: ## list the commands
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-12s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

.PHONY: run
run: $(READY) ## start the service on its own embedded PostgreSQL, or on DATABASE_URL
	@exec $(BIN)/contextforge run $(ARGS)

.PHONY: test
test: $(READY) ## run every test
	@echo "test: pytest"
	@$(BIN)/pytest -n $(TEST_WORKERS) --maxprocesses 4 --dist loadgroup $(ARGS)

.PHONY: check
check: $(READY) ## lint, format, types, layers, SQL: all must be clean
	@echo "check: ruff" && $(BIN)/ruff check --quiet .
	@echo "check: format" && $(BIN)/ruff format --check --quiet --diff .
	@echo "check: mypy" && $(BIN)/mypy --no-error-summary
	@echo "check: layers" && { report=$$($(BIN)/lint-imports --no-logo) || { echo "$$report"; exit 1; }; }
	@echo "check: sqlfluff" && $(BIN)/sqlfluff lint --nocolor --disable-progress-bar sql | sed '/^All Finished/d'
	@echo "check: SQL width" && ! grep -rnE --include='*.sql' '.{101}' sql migrations

.PHONY: format
format: $(READY) ## format Python and SQL, and fix what can be fixed
	@echo "format: ruff" && $(BIN)/ruff check --quiet --fix-only . && $(BIN)/ruff format --quiet .
	@echo "format: sqlfluff" && $(BIN)/sqlfluff fix --quiet --disable-progress-bar sql

.PHONY: bench
bench: $(READY) ## measure, and write the figures and their page: docs/benchmarks.md
	@echo "bench: all" && $(BIN)/python -m benchmarks --output docs/benchmarks/results.json --page docs $(ARGS)

.PHONY: bench-quick
bench-quick: $(READY) ## the same on small data: does it still run, not how fast is it
	@echo "bench: quick" && $(BIN)/python -m benchmarks --quick --output build/bench-quick.json --page build/bench-quick $(ARGS)

.PHONY: wheel
wheel: $(READY) ## build the wheel and the source archive into dist/
	@echo "wheel: dist/" && $(BIN)/python -m build --no-isolation --outdir dist . >/dev/null && ls dist

.PHONY: clean
clean: ## remove what make made: .venv, dist and caches (never a database)
	@echo "clean: .venv dist caches"
	@rm -rf $(VENV) dist .hypothesis .import_linter_cache .mypy_cache .pytest_cache .ruff_cache
	@find . -name __pycache__ -type d -prune -exec rm -rf {} +

# The first Python that runs and is new enough; a name on the PATH alone proves nothing (pyenv shims).
$(READY): pyproject.toml constraints.txt
	@python=""; \
	for candidate in $(PYTHON) python3.11 python3; do \
	    if "$$candidate" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then \
	        python="$$candidate"; break; \
	    fi; \
	done; \
	if [ -z "$$python" ]; then \
	    echo "ContextForge needs Python 3.11 or newer: install it, or name it with make PYTHON=..." >&2; \
	    exit 1; \
	fi; \
	echo "venv: installing into $(VENV) (minutes the first time)"; \
	[ -x $(BIN)/python ] || "$$python" -m venv $(VENV); \
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[dev]'
	@touch $@
