# The only thing that CI and the README call. `make help` lists the targets.
SHELL := bash
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
# Nested for their many dependencies: nobody else gets them.
NESTED := api/go/goka api/go/otel
GO_MODULES := api/go $(NESTED)
# Packages of api/go whose tests run with the race detector: they, or their tests, start goroutines.
RACING := internal/server|internal/stage|internal/workermain|stream|wallarootest
# Tests of internal/stage that run without it: one goroutine works at a time, and they would take ten times as long.
ONE_GOROUTINE := TestDrawnTimesAreThoseOfAPlainReference|TestTimerVectors|TestAbove64MiBNothingEnds
# What the runtime has in Java, compiled against the Spark that PySpark brings.
OPERATORS := runtime/build/java/realtime.jar
CONTRACTS := $(wildcard topology-schema/*.proto) topology-schema/errors.json
SPARK = $$($(BIN)/python -c 'from importlib.util import find_spec; print(find_spec("pyspark").submodule_search_locations[0])')
# A short process loses more processor time to Java's optimizing compiler than it gains: Maven, and Sparks of tests.
export MAVEN_OPTS ?= -XX:TieredStopAtLevel=1 -XX:+UseSerialGC
MAVEN = mvn -q -B -f runtime/java/pom.xml -Dspark.jars=$(SPARK)/jars
GO_TOOLS := $(CURDIR)/$(VENV)/gobin
# Tests wait more than they compute: more processes of pytest than processors, each with at most one Spark (2 GiB).
# tests/conftest.py says which tests stay together.
PROCESSES = 4
test-long: PROCESSES = 2
test-kafka test-cluster: PROCESSES = 3
test-long: export WALLAROO_LONG_UNITS = $(or $(DRAWN),0)
SIDE_BY_SIDE = -n $(PROCESSES) --dist loadscope --no-loadscope-reorder
# Marks of the tests that `make test-unit` leaves out.
PROCESS_MARKS = jvm or slow or long or kafka or connector or cluster or javascript
# The files with a mark: each process of pytest would read all others for nothing.
marked = $$(grep -rl 'mark\.$(1)\b' --include='test_*.py' tests api runtime)
# What fails beside other tests runs once more, alone: on a slow machine deadlines pass. The first that fails again ends it.
define tests
$(BIN)/pytest --durations=15 $(2) -m $(1) || { [ $$? = 1 ] && echo "--- what failed beside other tests runs once more, alone" && \
	$(BIN)/pytest -x --last-failed --last-failed-no-failures none -m $(1); }
endef

# Of runs that are killed: make poison MODE=realtime
MODE_OPTION = $(if $(MODE),--mode $(MODE))

# A machine may say that Python shall not keep what it compiled; then each process of a test compiles all it imports.
unexport PYTHONDONTWRITEBYTECODE

.DEFAULT_GOAL := help
.PHONY: help setup ready browser run build go-module docs bench bench-dataframe bench-expiry bench-goka bench-keys bench-peers bench-realtime bench-windows lint test test-go test-java test-unit unit-python unit-go test-python test-rest test-connectors test-javascript test-kafka test-long features test-cluster soak soak-model fault fault-go fault-goka windows poison conformance golden generate check-generated clean

help: ## list the targets
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 18

setup: ## make .venv with all packages, and fetch the Go modules and tools, side by side
	@$(MAKE) --no-print-directory -j2 ready

browser: ## install chromium, with which a test looks at the page of a run; `make test` does it, too
	@command -v chromium >/dev/null || { test "$$(id -u)" = 0 && command -v apt-get >/dev/null && echo "installing chromium" && \
		apt-get -qq update && DEBIAN_FRONTEND=noninteractive apt-get -qq install --no-install-recommends chromium >/dev/null; } || \
		echo "chromium was not found; install it (Debian: apt-get install chromium), or the test of the page fails"

ready: $(STAMP) $(GO_TOOLS)/.installed $(OPERATORS)
	@:

$(OPERATORS): runtime/java/pom.xml $(shell find runtime/java/src/main -name '*.java') $(CONTRACTS) | $(VENV)/.pyspark
	@command -v mvn >/dev/null || { echo "mvn was not found; install Maven 3.8 or newer and put it on PATH"; exit 1; }
	@$(MAVEN) -Dmaven.test.skip=true package
	@{ find runtime/java/src/main -name '*.java'; ls runtime/java/pom.xml $(CONTRACTS); } | LC_ALL=C sort | xargs cat | \
		sha256sum >$(dir $@)sources.sha256
	@touch $@

$(VENV)/bin/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 10))' || { echo "$(PYTHON) is older than 3.10"; exit 1; }
	@$(PYTHON) -m venv $(VENV) || { echo "install the venv module: apt-get install python3-venv"; exit 1; }

# First, and alone: `make build` needs no more than its jars.
$(VENV)/.pyspark: runtime/pyproject.toml | $(VENV)/bin/python
	@echo "installing PySpark into $(VENV): the first time that downloads 450 MB, which takes some minutes"
	$(BIN)/python -m pip install --quiet --no-deps "$$(sed -n 's/.*"\(pyspark[^"]*\)".*/\1/p' runtime/pyproject.toml)"
	@touch $@

$(STAMP): api/python/pyproject.toml api/connectors/pyproject.toml runtime/pyproject.toml tests/requirements.txt | $(VENV)/.pyspark
	@command -v go >/dev/null || { echo "go was not found; install Go 1.24 or newer and put it on PATH"; exit 1; }
	@echo "installing what the packages and their tests need into $(VENV): the first time that downloads 250 MB"
	$(BIN)/python -m pip install --quiet -e './api/python[worker]' -e './api/connectors[aws,kafka,postgres,rabbitmq,redis]' \
		-e './runtime[spark]' -r tests/requirements.txt
	@touch $@

$(GO_TOOLS)/.installed: $(GO_MODULES:%=%/go.mod) | $(VENV)/bin/python
	for module in $(GO_MODULES); do (cd $$module && go mod download) || exit 1; done
	GOBIN=$(GO_TOOLS) go install google.golang.org/protobuf/cmd/protoc-gen-go@v1.36.11
	GOBIN=$(GO_TOOLS) go install honnef.co/go/tools/cmd/staticcheck@v0.6.1
	@touch $@

build: $(OPERATORS) ## wheels of the three distributions into build/dist; the runtime's has the Go SDK in it
	$(BIN)/python -m pip wheel --quiet --no-deps --wheel-dir build/dist ./api/python ./api/connectors ./runtime

go-module: ## the Go SDK alone as build/wallarooapi.tar.gz, for machines without `wallaroo`; needs no setup
	@mkdir -p build
	tar -czf build/wallarooapi.tar.gz --exclude='*_test.go' --exclude=testdata -C api/go .

$(VENV)/.docs: runtime/pyproject.toml $(STAMP)
	$(BIN)/python -m pip install --quiet -e './runtime[docs]'
	@touch $@

docs: $(VENV)/.docs ## the documentation site into build/site, readable without a server
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --quiet

run: setup ## set up, then count the words of a text in Python and in Go, over TCP
	$(BIN)/python tests/main_job.py

bench: ready ## words/s from the journal to the outbox; both modes and Spark's own operators; Goka's processor and ours
	$(BIN)/python tests/bench/word_count.py
	$(BIN)/python tests/bench/realtime.py --seconds 10 --messages 200000 --spark
	$(BIN)/python tests/bench/goka.py --short

bench-realtime: ready ## latency over minutes, throughput and idle cost in both modes, with a picture
	$(BIN)/python tests/bench/realtime.py --spark --picture docs/latency.svg

bench-goka: ready ## a counting group on Goka's own processor and on ours, on the same broker
	$(BIN)/python tests/bench/goka.py

bench-peers: ready ## ours, Kafka Streams, Quix Streams, Bytewax, Goka and PySpark on one broker, hours: make bench-peers ARGUMENTS='--short --only goka'
	PYTHONPATH=tests $(BIN)/python -m bench.peers $(ARGUMENTS)

bench-keys: ready ## a million keys with state, against PySpark's row-wise transformWithState, and in both modes
	$(BIN)/python tests/bench/million_keys.py
	$(BIN)/python tests/bench/mode_keys.py

bench-expiry: ready ## memory while states of ten million keys end after a minute each: make bench-expiry ARGUMENTS='--sides go'
	$(BIN)/python tests/bench/expiry.py $(ARGUMENTS)

bench-dataframe: ready ## an application's steps between DataFrames, against PySpark's transformWithStateInPandas: make bench-dataframe ARGUMENTS='--rows 100000000 --only go-batch'
	$(BIN)/python tests/bench/dataframe.py $(ARGUMENTS)

lint: ready ## style, types and suspicious code, Python and Go; Java's warnings are errors of `setup`
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	@cd api/go && unformatted="$$(gofmt -l . ../../examples)" && if [ -n "$$unformatted" ]; then echo "gofmt: $$unformatted"; exit 1; fi
	@for module in $(GO_MODULES); do echo "vet, staticcheck: $$module"; \
		(cd $$module && go vet ./... && $(GO_TOOLS)/staticcheck ./...) || exit 1; done

test-java: ready ## the runtime's Java, as far as they need no Spark
	$(MAVEN) test

test-unit: ready ## what needs no JVM and no process: about two minutes
	@$(MAKE) --no-print-directory --keep-going -j2 unit-python unit-go

unit-python: ready
	$(BIN)/pytest -q -n 2 --dist worksteal -m "not ($(PROCESS_MARKS))"

unit-go: ready
	for module in $(GO_MODULES); do (cd $$module && go test -vet=off ./...) || exit 1; done

test-go: ready ## the tests of the Go SDK, with the race detector where goroutines meet
	cd api/go && go test -shuffle=on -vet=off $$(go list ./... | grep -vxE '.*/($(RACING))')
	cd api/go && go test -vet=off -run '^($(ONE_GOROUTINE))$$' ./internal/stage
	cd api/go && go test -race -shuffle=on -vet=off -skip '^($(ONE_GOROUTINE))$$' \
		$$(go list ./... | grep -xE '.*/($(RACING))')
	for module in $(NESTED); do (cd $$module && go test -race -shuffle=on -vet=off ./...) || exit 1; done

test: setup browser ## everything but the long runs; CI runs this first
	@$(MAKE) --no-print-directory --keep-going -j4 test-python test-rest

test-rest: ready
	@$(MAKE) --no-print-directory --keep-going --output-sync=target lint check-generated test-go test-java

test-python: ready
	-PYTHONPATH=tests $(BIN)/python tests/class_archive.py
	$(call tests,"not long and not cluster and not kafka and not connector and not javascript",$(SIDE_BY_SIDE))

soak: ready ## kill parts of a running word count at random: make soak SECONDS=120 SEED=7
	$(BIN)/python tests/soak.py $(MODE_OPTION) $(if $(SECONDS),--seconds $(SECONDS)) $(if $(SEED),--seed $(SEED))

fault: ready ## the long run: 1,000,000 messages, 50 workers killed with a call in flight, all else at named points
	$(BIN)/python tests/soak.py $(MODE_OPTION) --messages 1000000 --rate 2000 $(if $(SEED),--seed $(SEED))

fault-go: ready ## make fault in Go alone; in small: make fault-go MESSAGES=20000 RATE=200 KILLS=5 VICTIMS=workers
	$(BIN)/python tests/soak.py $(MODE_OPTION) --languages go --messages $(or $(MESSAGES),1000000) --rate $(or $(RATE),2000) \
		--worker-kills $(or $(KILLS),50) --victims $(or $(VICTIMS),all) $(if $(SEED),--seed $(SEED))

poison: ready ## the long run: 100 messages among 1,000,000 that spoil, end or hang their worker: make poison MODE=realtime MESSAGES=30000
	$(BIN)/python tests/poison.py $(MODE_OPTION) $(if $(MESSAGES),--messages $(MESSAGES)) $(if $(SEED),--seed $(SEED))

soak-model: ready ## 5,000 applications drawn at random, against the reference: make soak-model APPLICATIONS=500 SEED=7
	PYTHONPATH=tests $(BIN)/python -m model $(if $(APPLICATIONS),--applications $(APPLICATIONS)) $(if $(SEED),--seed $(SEED))

test-cluster: ready ## a standalone cluster of separate hosts, HDFS and YARN: kills, growth, restarts elsewhere
	$(call tests,"cluster and not long",$(SIDE_BY_SIDE) $(call marked,cluster))

fault-goka: ready ## a group on Goka's own processor, on ours and in Python, killed ten times: make fault-goka SEED=7
	$(BIN)/python tests/goka_faults.py $(if $(SEED),--seed $(SEED))

windows: ready ## five kinds of windows over a million messages each, in Python and Go, with deaths in the middle
	$(BIN)/python tests/window.py $(MODE_OPTION) $(if $(MESSAGES),--messages $(MESSAGES))

bench-windows: ready ## windows: messages per second through all, and memory of a worker with a million keys
	$(BIN)/python tests/window.py $(MODE_OPTION) --calm
	$(BIN)/python tests/bench/window.py

test-connectors: ready ## the connector programs, with Redis, PostgreSQL, an AMQP broker, S3, Kinesis and Kafka
	$(call tests,connector,$(call marked,connector))

test-javascript: ready ## the worker in JavaScript; needs Node, and npm fetches what it requires
	$(call tests,javascript,$(call marked,javascript))

test-kafka: ready ## Kafka sources and sinks against a real broker, which Maven fetches
	$(call tests,"kafka and not long",$(SIDE_BY_SIDE) $(call marked,kafka))

test-long: ready ## the long runs, hours: faults, guilty messages, bounds; some units of them, drawn: make test-long DRAWN=4
	$(call tests,long,$(SIDE_BY_SIDE))
	$(if $(DRAWN),,$(call tests,"hypothesis and not ($(PROCESS_MARKS))",-n $(PROCESSES) --hypothesis-profile long))

features: ready ## the table of docs/wallaroo.md, and each feature switched off: make features WORDS='merge Kafka'
	$(BIN)/python tests/feature.py --write --off $(WORDS)

conformance: ready ## run the conformance driver: make conformance WORKER='command' WITHOUT='cache'
	@test -n "$(WORKER)" || { echo "usage: make conformance WORKER='command that starts the worker'"; exit 2; }
	PYTHONPATH=tests $(BIN)/python -m conformance --worker '$(WORKER)' $(if $(WITHOUT),--without $(WITHOUT))

golden: ready ## write the golden files of tests/cases, the programs in docs/, and the plans of the Go test kit
	$(BIN)/pytest -q tests/test_cases.py tests/test_worked_call.py tests/test_samples.py::test_printed_files_are_as_they_are \
		-m "not jvm" --golden
	PYTHONPATH=tests $(BIN)/python -m model.plans

generate: ready ## write the generated code
	PATH="$(GO_TOOLS):$$PATH" $(BIN)/python topology-schema/generate.py

check-generated: ready ## prove that the generated code is fresh
	PATH="$(GO_TOOLS):$$PATH" $(BIN)/python topology-schema/generate.py --check

clean: ## remove what the targets made
	rm -rf $(VENV) build runtime/build api/python/build api/connectors/build
