# Everything a newcomer needs: `make run` shows what there is, `make test` proves it. Both set up what they use.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
SOURCES := src tests tools bench
ROUNDS ?= 5
TARGET ?=
SECONDS ?= 60
MINUTES ?= 60
SEEDS ?= 100
NODES ?= 3
SEED ?= $(shell date +%s)
WORKERS ?= $(shell expr 2 \* $$(nproc 2>/dev/null || echo 2))
JAVA_PACKAGE := openjdk-17-jre-headless
BROWSER_PACKAGES := chromium chromium-driver
# Recipe lines with $(MAKE) run even under `make -n`. Under another name they do not.
THIS_MAKE := $(MAKE)

.PHONY: help install lake dev java chromium compile run test fuzz lint fmt generate bench interop screenshots soak crash simulate clean

help: ## What there is to make
	@grep -hE '^[a-z]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 12

install: $(VENV)/.installed ## A virtual environment with all that a node and its console need
lake: $(VENV)/.lake ## ... and with Spark, for `barnabas lake`
dev: $(VENV)/.developed ## ... and with all that tests, checks and benchmarks need

$(VENV)/bin/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo "barnabas needs Python 3.11 or newer; $(PYTHON) is $$($(PYTHON) --version). Try: make PYTHON=python3.12 $(MAKECMDGOALS)"; exit 1; }
	@$(PYTHON) -m venv $(VENV) || { echo "cannot make a virtual environment; on Debian: apt-get install python3-venv"; exit 1; }

$(VENV)/.installed: $(VENV)/bin/python pyproject.toml constraints.txt
	@echo "installing barnabas into $(VENV)"
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt --editable '.[console]'
	@touch $@

$(VENV)/.lake: $(VENV)/.installed
	@echo "installing Spark into $(VENV): about 500 MB to download, once"
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt --editable '.[lake]'
	@touch $@

$(VENV)/.developed: $(VENV)/.installed
	@echo "installing Spark and the tools for development into $(VENV)"
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt --editable '.[dev,lake]'
	@touch $@ $(VENV)/.lake

java: ## Java 17, which Spark needs; installed with apt where there is none and this is root
	@command -v java >/dev/null || [ -x "$$JAVA_HOME/bin/java" ] || { \
	  [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null || \
	    { echo "Spark needs Java 17: apt-get install $(JAVA_PACKAGE) (as root), or set JAVA_HOME"; exit 1; }; \
	  echo "Spark needs Java 17: installing $(JAVA_PACKAGE) with apt-get"; \
	  apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -qq -y --no-install-recommends $(JAVA_PACKAGE) >/dev/null; }

chromium: ## Chromium for the tests of the console and of the report; installed with apt where there is none and this is root
	@command -v chromedriver >/dev/null || { \
	  [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null || \
	    { echo "tests in a browser are skipped: apt-get install $(BROWSER_PACKAGES) (as root)"; exit 0; }; \
	  echo "the tests of the console and of the report need Chromium: installing $(BROWSER_PACKAGES) with apt-get"; \
	  apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -qq -y --no-install-recommends $(BROWSER_PACKAGES) >/dev/null || \
	    echo "Chromium could not be installed: tests in a browser are skipped"; }

compile: install ## Compile the sources, so that a node starts at once
	@$(BIN)/python -m compileall -q src

# The node comes first. Spark and Java are fetched while it runs; where they cannot be had, it runs on without a report.
run: compile ## A node on 127.0.0.1:9092 with a small shop in ./data, a console on 127.0.0.1:8080, and a report
	@$(BIN)/barnabas demo --prepare '$(THIS_MAKE) --no-print-directory --keep-going lake java'

test: java chromium lint ## All checks and tests
	$(BIN)/python -m pytest -n $(WORKERS) -m 'not spark and not browser'
	$(BIN)/python -m pytest -n 2 --dist loadscope -m browser tests/console tests/lake/report
	$(BIN)/python -m pytest -n 2 --dist loadscope -m spark tests/lake

fuzz: dev ## New cases: the property tests ROUNDS times, then each target for SECONDS; or only TARGET=codec
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt --editable '.[fuzz]' 2>/dev/null || \
	  echo "atheris cannot be installed here: mutations are not guided by coverage"
	@[ -n '$(TARGET)' ] || for round in $$(seq $(ROUNDS)); do BARNABAS_FUZZ=1 $(BIN)/python -m pytest -n auto -q -m 'hypothesis' || exit 1; done
	nice -n 15 $(BIN)/python -m tests.fuzz $(TARGET) --seconds $(SECONDS)

lint: dev ## Style, types and layers
	$(BIN)/ruff check $(SOURCES)
	$(BIN)/ruff format --check --quiet $(SOURCES)
	$(BIN)/mypy
	$(BIN)/lint-imports

fmt: dev ## Format the sources
	$(BIN)/ruff check --fix $(SOURCES)
	$(BIN)/ruff format $(SOURCES)

generate: dev ## Write what follows from the schema: classes of barnabas.wire, the table of APIs, blocking clients, reference pages
	$(BIN)/python tools/generate.py
	$(BIN)/python tools/compatibility.py
	$(BIN)/python tools/authorization.py
	$(BIN)/python tools/sync_client.py
	$(BIN)/python tools/reference.py

bench: dev compile ## Measure barnabas beside its peers in one run
	$(BIN)/python -m bench

interop: dev ## Apache Kafka 4.3.1 and its tools against barnabas (needs Java 17 and Maven)
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt --editable '.[pipelines]'
	BARNABAS_INTEROP=1 $(BIN)/python -m pytest tests/interop

screenshots: dev chromium ## Pictures of the console for docs/console.md
	$(BIN)/python tools/console_screenshots.py

soak: dev ## Six client libraries at work for MINUTES, with kills; SEED repeats what is sent (Java and Go take part if installed)
	$(BIN)/python -m tests.soak --minutes $(MINUTES) --seed $(SEED) --json soak.json

crash: dev ## Three processes killed, paused, cut off and without room under load, ROUNDS times for each kind of load
	BARNABAS_CRASH_ROUNDS=$(ROUNDS) $(BIN)/python -m pytest -q -s -n 0 --timeout 0 tests/crash/test_cluster_kill.py tests/crash/test_cluster_operations.py tests/crash/test_share_kill.py

simulate: dev ## Whole nodes in virtual time, with faults from SEEDS seeds; NODES=1 for one node (docs/reliability.md)
	$(BIN)/python -m tests.simulation --seeds $(SEEDS) --nodes $(NODES) --shrink

clean: ## Remove what was made here, except ./data, ./lake and ./report
	rm -rf $(VENV) .cache .pytest_cache .mypy_cache .ruff_cache .hypothesis dist build
