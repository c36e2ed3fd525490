# make run     install into .venv and open the web app (ARGS="..." for any other command)
# make test    run the tests
# make soak    run the tests that "make test" leaves out
# make lint    check formatting, lint and types

PYTHON ?= $(shell for p in python3 python3.14 python3.13 python3.12 python3.11; do \
	"$$p" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && echo "$$p" && break; done)
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check --quiet
# One more than there are cores: tests often wait for other processes.
WORKERS ?= $(shell echo $$(($$(getconf _NPROCESSORS_ONLN 2>/dev/null || echo 1) + 1)))

# Tests write many small files and sync them to the disk. A file system in memory is faster, if it has 2 GB free.
MEMORY_DISK := $(shell df -Pm /dev/shm 2>/dev/null | awk '$$6 == "/dev/shm" && $$4 > 2000 { print $$6 }')
PYTEST := $(if $(MEMORY_DISK),PYTEST_DEBUG_TEMPROOT=$(MEMORY_DISK)) $(BIN)/pytest -q -n $(WORKERS) --dist worksteal

# Versions of Claude Code for test-judge; "latest" is the newest.
JUDGE_VERSIONS ?= 0.2.126 1.0.69 2.0.76 2.1.105 2.1.212 latest

# The tests start the command hundreds of times. Without cached bytecode, each start compiles the program.
export PYTHONDONTWRITEBYTECODE :=

.PHONY: setup run test test-judge judge-matrix lint shape bench bench-large fuzz soak pictures lock clean
.DEFAULT_GOAL := run

setup: $(VENV)/.installed

# An editable install has no bytecode. Without it, `list` takes 1.5 times as long where Python may not write any.
$(VENV)/.installed: requirements.lock pyproject.toml
	@test -n "$(PYTHON)" || { echo "Backscroll needs Python 3.11 or newer. Set PYTHON=/path/to/python3."; exit 1; }
	@test -x $(BIN)/python || "$(PYTHON)" -m venv $(VENV)
	@$(PIP) install --require-hashes -r requirements.lock
	@$(PIP) install --no-deps --no-build-isolation -e .
	@$(BIN)/python -m compileall -q -j 0 src
	@touch $@

$(VENV)/.tested: $(VENV)/.installed requirements-dev.lock
	@$(PIP) install --require-hashes -r requirements-dev.lock
	@touch $@

run: setup
	@$(BIN)/backscroll $(or $(ARGS),serve)

test: $(VENV)/.tested
	@command -v git >/dev/null || { test "$$(id -u)" = 0 && command -v apt-get >/dev/null && apt-get install -qqy git >/dev/null; } \
		|| echo "git is not installed: tests that need it are skipped."
	@command -v chromium >/dev/null || command -v chromium-browser >/dev/null || command -v google-chrome >/dev/null \
		|| { test "$$(id -u)" = 0 && command -v apt-get >/dev/null && apt-get install -qqy chromium >/dev/null 2>&1; } \
		|| echo "Chromium is not installed: the browser tests are skipped."
	@$(PYTEST)

# Runs Claude Code itself, without a network, and compares what Backscroll reads with what was said.
test-judge: $(VENV)/.tested
	@versions=$$($(BIN)/python -m tests.judge.install $(JUDGE_VERSIONS)) \
		&& { test -z "$$versions" || $(BIN)/pytest -q -n $(WORKERS) tests/judge --judge "$$versions" $(ARGS); }

# Thirty versions, spread over all that were published.
judge-matrix: $(VENV)/.tested
	@$(MAKE) test-judge JUDGE_VERSIONS="--spread 30" ARGS="-m 'not terminal' $(ARGS)"

lint: $(VENV)/.tested
	@$(BIN)/ruff format --check
	@$(BIN)/ruff check
	@$(BIN)/mypy

# Modules, lines, share of imports, modules that run for a request, CPU seconds of the last `make test`.
shape: $(VENV)/.tested
	@$(BIN)/python tools/shape.py $(ARGS)

bench: $(VENV)/.tested
	@$(BIN)/python -m benchmarks $(ARGS)

# 10,000 sessions, 5 GB: needs 15 GB of disk space and half an hour.
bench-large: $(VENV)/.tested
	@$(BIN)/python -m benchmarks --scale L --check $(ARGS)

fuzz: $(VENV)/.tested
	@HYPOTHESIS_PROFILE=long $(BIN)/pytest -q -n $(WORKERS) tests/properties tests/readers tests/sources tests/index

# Slow tests, and property tests with 300 examples. Then, unless FOLDERS is set, kill and overload for a long time.
# Exit code 5 of pytest: no test was selected.
soak: $(VENV)/.tested
	@HYPOTHESIS_PROFILE=soak $(PYTEST) -m "soak or hypothesis" $(FOLDERS) || test $$? = 5
	@$(if $(FOLDERS),true,KILLS=50 MESSAGES=1000000 $(BIN)/pytest -q tests/robustness \
		tests/backup/test_killed_restore.py tests/hooks/test_spool.py tests/transfer/test_killed_migration.py \
		tests/transfer/test_killed_workspace.py tests/transfer/test_killed_restore_sessions.py)

# The screenshots and diagrams in docs/pictures, from the demo history.
pictures: $(VENV)/.tested
	@{ test "$$(id -u)" = 0 && command -v apt-get >/dev/null && apt-get install -qqy chromium fonts-noto-cjk >/dev/null; } || true
	@$(BIN)/python tools/pictures.py

# Needs uv. The lock files contain versions and hashes, but no index URL.
lock:
	uv pip compile --quiet --universal --generate-hashes --no-header --no-annotate --no-emit-index-url \
		--extra all --extra build pyproject.toml -o requirements.lock
	uv pip compile --quiet --universal --generate-hashes --no-header --no-annotate --no-emit-index-url \
		--extra dev pyproject.toml -o requirements-dev.lock

clean:
	rm -rf $(VENV) .pytest_cache .mypy_cache .ruff_cache .hypothesis
