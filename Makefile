# `make run` starts a chat with the local model, `make test` runs the checks and tests, `make test-all` the long ones as well.
# All of them set up what they need.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
CODE := src tests benchmarks docs/examples docs/plugin-example
PREFIX ?= $(HOME)/.local
# Tests wait a good deal: two processes more than there are cores keep the cores busy.
JOBS ?= $(shell expr $$(getconf _NPROCESSORS_ONLN) + 2)
PARALLEL := -n $(JOBS) --dist worksteal --inline-snapshot=disable
# They start hundreds of processes: what Python compiles is kept, even where the environment says otherwise.
export PYTHONDONTWRITEBYTECODE :=

# The reference scorers and their data, which are not part of the repository.
SHARED ?= ../shared

.PHONY: run install test test-all check figures compiled fix screenshots constraints clean

run: $(VENV)/.run compiled
	$(BIN)/duckflow models pull --if-missing
	@$(BIN)/python -m duckflow.cli.sandboxes
	$(BIN)/duckflow -m local

# `duckflow` in every folder: a link to the one in the virtual environment.
install: $(VENV)/.run compiled
	mkdir -p "$(PREFIX)/bin"
	ln -sf "$(CURDIR)/$(BIN)/duckflow" "$(PREFIX)/bin/duckflow"
	@case ":$$PATH:" in *":$(PREFIX)/bin:"*) ;; *) echo 'Now: export PATH="$(PREFIX)/bin:$$PATH"' ;; esac

# The checks run beside the tests and tell what they found after them; either can fail it. In a fresh clone the tests are
# compiled once before: else every worker would compile all of them.
test: $(VENV)/.dev
	@make --no-print-directory check > $(VENV)/checks.txt 2>&1 & checks=$$!; \
	[ -n "$$PYTHONDONTWRITEBYTECODE" ] || [ -e tests/__pycache__ ] || $(BIN)/pytest --collect-only > /dev/null; \
	$(BIN)/pytest $(PARALLEL); tests=$$?; \
	wait $$checks; checks=$$?; cat $(VENV)/checks.txt; \
	exit $$((tests || checks))

# Also what needs more (other programs, the large local model) or takes minutes; says what it has to leave out.
test-all: check
	.ci/programs
	$(BIN)/duckflow models pull --if-missing || echo "No local model: its tests are left out."
	$(BIN)/pytest $(PARALLEL) -m 'not slow' -rs --hypothesis-profile=thorough
	$(BIN)/pytest -m slow -rs --hypothesis-profile=thorough -o faulthandler_timeout=7200

# The type checker makes very many objects that are soon gone: more room for new ones saves Node a fifth of the time.
check: $(VENV)/.dev
	$(BIN)/ruff check $(CODE)
	$(BIN)/ruff format --check $(CODE)
	NODE_OPTIONS="$$NODE_OPTIONS --max-semi-space-size=128" $(BIN)/basedpyright
	$(BIN)/lint-imports
	@$(BIN)/python -m tests.i18n.missing

# Every figure that must not get worse, beside its record; QUICK=1: within five minutes, RECORD=1: what differs is recorded.
figures: $(VENV)/.dev
	@$(BIN)/python -m benchmarks.figures --shared "$(SHARED)" $(if $(QUICK),--quick) $(if $(RECORD),--record)

# Python would compile every file at each start where the environment forbids it to keep what it compiled.
compiled: $(VENV)/.run
	@$(BIN)/python -m compileall -q src

fix: $(VENV)/.dev
	$(BIN)/python -m tests.tools.offer
	$(BIN)/python -m duckflow.ui.stream_lines > docs/stream-json.schema.json
	$(BIN)/ruff check --fix $(CODE)
	$(BIN)/ruff format $(CODE)

# Every picture in the README, from runs of the program itself with a scripted model.
screenshots: $(VENV)/.dev
	$(BIN)/python -m benchmarks.pictures

# Every package is pinned and checked by its hash; the project itself is installed without looking for anything else.
$(VENV)/.run: constraints/run.txt pyproject.toml | $(VENV)/.made
	$(BIN)/pip install --quiet --require-hashes -r constraints/run.txt
	$(BIN)/pip install --quiet --no-deps --no-build-isolation -e .
	touch $@

$(VENV)/.dev: constraints/dev.txt pyproject.toml | $(VENV)/.made
	$(BIN)/pip install --quiet --require-hashes -r constraints/dev.txt
	$(BIN)/pip install --quiet --no-deps --no-build-isolation -e .
	touch $@ $(VENV)/.run

$(VENV)/.made:
	$(PYTHON) -m venv $(VENV)
	touch $@

# Pins anew. The files name packages, versions and hashes, never where they came from.
constraints: $(VENV)/.dev
	$(BIN)/pip-compile --quiet --upgrade --generate-hashes --no-strip-extras --allow-unsafe --no-header --no-annotate \
	  --no-emit-index-url --no-emit-trusted-host --no-emit-find-links \
	  --extra local --extra code --extra build -o constraints/run.txt pyproject.toml
	$(BIN)/pip-compile --quiet --upgrade --generate-hashes --no-strip-extras --allow-unsafe --no-header --no-annotate \
	  --no-emit-index-url --no-emit-trusted-host --no-emit-find-links \
	  --extra local --extra code --extra keyring --extra web --extra fleet --extra telemetry --extra pdf --extra pictures --extra dev --extra build -o constraints/dev.txt pyproject.toml

clean:
	rm -rf $(VENV) .pytest_cache .ruff_cache .hypothesis dist build
