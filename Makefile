# The interface of the repository: people and CI call these targets and nothing else.
# What takes long leaves a stamp behind and is done again only when its lock file has changed.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check
PAGE := chatserve/gateway/static/index.html
# Tests that only compute share the cores. Those of processes, sockets and clocks run one by one.
COMPUTING_TESTS := tests/unit tests/kernels tests/engine
WEB_SOURCES := $(shell find web -name node_modules -prune -o -type f -print)

.DEFAULT_GOAL := help
.PHONY: help install run test check fmt bench bench-peers bench-sharing bench-memory \
	bench-differential bench-quality bench-start bench-gateway bench-routing bench-fleet \
	bench-page screenshots \
	profile lock clean

help: ## Show this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-18s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

install: $(VENV)/.project $(PAGE) ## Install pinned packages into .venv, build page and kernels
	@$(BIN)/python kernels/cpu/build.py >/dev/null

run: install ## Start everything and print the address; ARGS="--port 9000" adds flags
	@$(BIN)/chatserve serve $(ARGS)

test: install $(VENV)/.dev ## Run all tests
	$(BIN)/chatserve models fetch
	scripts/npm test
	$(BIN)/pytest -q --numprocesses auto --maxprocesses 4 --dist loadfile $(COMPUTING_TESTS)
	$(BIN)/pytest -q $(foreach tests,$(COMPUTING_TESTS),--ignore $(tests))

check: install $(VENV)/.dev ## Lint, types, import rules, spelling
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/codespell
	scripts/npm run check

fmt: install $(VENV)/.dev ## Format the code and refresh the README's table of settings
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .
	$(BIN)/python scripts/settings_table.py README.md

bench: install $(VENV)/.dev ## Compare with llama.cpp and vLLM on this machine; ARGS="--quick"
	$(BIN)/chatserve models fetch
	$(BIN)/python -m benchmarks.versus $(ARGS)

bench-peers: install $(VENV)/.dev ## Install llama.cpp and vLLM for `make bench`: 20 minutes, 6 GB
	$(BIN)/chatserve models fetch
	$(BIN)/python -m benchmarks.peers setup

bench-sharing: install $(VENV)/.dev ## Measure what prefix sharing is worth
	$(BIN)/python -m benchmarks.prefix_sharing

bench-memory: install $(VENV)/.dev ## Measure what paging and sharing save, and draw the page map
	$(BIN)/chatserve models fetch
	$(BIN)/python -m benchmarks.memory

bench-differential: install $(VENV)/.dev ## Compare the engine with itself: batches, chunks, cache
	$(BIN)/chatserve models fetch
	$(BIN)/python -m benchmarks.differential

bench-quality: install $(VENV)/.dev ## Measure what 8 and 4 bits cost: perplexity and logits
	$(BIN)/chatserve models fetch
	$(BIN)/python -m benchmarks.quality

bench-start: install $(VENV)/.dev ## Time a warm start, phase by phase
	$(BIN)/chatserve models fetch
	$(BIN)/python -m benchmarks.start_time

bench-gateway: install $(VENV)/.dev ## Find the knee of one gateway process; ARGS="--quick"
	$(BIN)/python -m benchmarks.gateway $(ARGS)

bench-routing: install $(VENV)/.dev ## Measure routing with two workers and eight tenants
	$(BIN)/python -m benchmarks.routing

bench-fleet: install $(VENV)/.dev ## Simulate routing with a thousand workers; ARGS="--quick"
	$(BIN)/python -m benchmarks.fleet $(ARGS)

bench-page: install $(VENV)/.dev ## Measure the page with 500 messages in a slowed-down Chromium
	$(BIN)/chatserve models fetch
	$(BIN)/python -m benchmarks.page

screenshots: install $(VENV)/.dev ## Take the pictures of the page in docs/ anew
	$(BIN)/chatserve models fetch
	$(BIN)/python -m scripts.screenshots

profile: install $(VENV)/.dev ## Show where the time of a decode step goes; draws docs/step-time.svg
	$(BIN)/chatserve models fetch
	$(BIN)/python -m benchmarks.step_profile

lock: ## Resolve the newest versions that pyproject.toml and the .in files allow
	rm -rf build/lock
	$(PYTHON) -m venv build/lock
	build/lock/bin/python -m pip install --quiet -r requirements.in
	$(PYTHON) scripts/lock.py build/lock/bin/python requirements.in requirements.lock
	build/lock/bin/python -m pip install --quiet -c requirements.lock -r requirements-dev.in
	$(PYTHON) scripts/lock.py build/lock/bin/python requirements-dev.in requirements-dev.lock \
		requirements.lock

clean: ## Remove what the other targets made, but no model and no conversation
	rm -rf $(VENV) build dist web/node_modules chatserve/gateway/static kernels/cpu/lib
	rm -rf .pytest_cache .mypy_cache .ruff_cache .import_linter_cache .hypothesis

$(VENV)/.created:
	@$(PYTHON) -c 'import sys; sys.exit("chatserve needs Python 3.11 or newer; set PYTHON=" \
		if sys.version_info < (3, 11) else 0)'
	$(PYTHON) -m venv --clear $(VENV)
	@touch $@

$(VENV)/.packages: requirements.lock $(VENV)/.created
	@echo "installing the pinned packages, about a minute"
	$(PIP) -r requirements.lock
	@touch $@

$(VENV)/.dev: requirements-dev.lock $(VENV)/.packages
	$(PIP) -r requirements-dev.lock
	@touch $@
$(VENV)/.project: pyproject.toml $(VENV)/.packages
	$(PIP) --no-deps --no-build-isolation --editable .
	@touch $@

web/node_modules/.installed: web/package-lock.json $(VENV)/.packages
	scripts/npm ci
	@touch $@

$(PAGE): web/node_modules/.installed $(WEB_SOURCES)
	scripts/npm run build
	@touch $@
