# The only thing that CI and the README call. `make help` lists the targets.
SHELL := bash
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
GO_TOOLS := $(CURDIR)/$(VENV)/gobin
# Two processes, each with a Spark session of its own (2 GiB); the tests of a file stay together and in order.
SIDE_BY_SIDE := -n 2 --dist loadfile --no-loadscope-reorder

.DEFAULT_GOAL := help
.PHONY: help setup run build bench bench-keys bench-windows lint test test-unit test-connectors test-kafka test-long features test-cluster soak fault windows poison conformance golden generate check-generated clean

help: ## list the targets
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 18

setup: $(STAMP) ## make .venv with both packages, and fetch the Go modules

$(STAMP): api/python/pyproject.toml runtime/pyproject.toml tests/requirements.txt api/go/go.mod
	@command -v go >/dev/null || { echo "go was not found; install Go 1.24 or newer and put it on PATH"; exit 1; }
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 10))' || { echo "$(PYTHON) is older than 3.10"; exit 1; }
	@$(PYTHON) -m venv $(VENV) || { echo "install the venv module: apt-get install python3-venv"; exit 1; }
	$(BIN)/python -m pip install --quiet -e './api/python[worker,aws,kafka,postgres,rabbitmq,redis]' -e ./runtime -r tests/requirements.txt
	cd api/go && go mod download
	@touch $@

build: setup ## wheels of both packages into build/dist, and the Go SDK
	$(BIN)/python -m pip wheel --quiet --no-deps --wheel-dir build/dist ./api/python ./runtime
	cd api/go && go build ./...

run: setup ## set up, then count the words of a text in Python and in Go, over TCP
	$(BIN)/python tests/main_job.py

bench: setup ## words per second from the journal to the outbox, and latency
	$(BIN)/python tests/bench/word_count.py
	$(BIN)/python tests/bench/latency.py

bench-keys: setup ## a million keys with state, against PySpark's row-wise transformWithState
	$(BIN)/python tests/bench/million_keys.py

lint: $(GO_TOOLS)/.installed ## style, types and suspicious code, Python and Go
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	@cd api/go && unformatted="$$(gofmt -l .)" && if [ -n "$$unformatted" ]; then echo "gofmt: $$unformatted"; exit 1; fi
	cd api/go && go vet ./... && $(GO_TOOLS)/staticcheck ./...

test-unit: setup ## what needs no JVM and no process: under a minute
	$(BIN)/pytest -q -m "not jvm and not slow and not kafka and not connector"
	cd api/go && go test ./...

test: setup lint check-generated ## everything but the long runs; CI runs this last
	@status=0; $(BIN)/pytest $(SIDE_BY_SIDE) -m "not long and not cluster and not kafka and not connector" || status=1; \
	(cd api/go && go test -race -shuffle=on ./...) || status=1; exit $$status

soak: setup ## kill parts of a running word count at random: make soak SECONDS=120 SEED=7
	$(BIN)/python tests/soak.py $(if $(SECONDS),--seconds $(SECONDS)) $(if $(SEED),--seed $(SEED))

fault: setup ## the long run: 1,000,000 messages, 50 workers killed with a call in flight, all else at named points
	$(BIN)/python tests/soak.py --messages 1000000 --rate 2000 $(if $(SEED),--seed $(SEED))

poison: setup ## the long run: 100 messages among 1,000,000 that spoil, end or hang their worker
	$(BIN)/python tests/poison.py $(if $(SEED),--seed $(SEED))

test-cluster: setup ## a standalone cluster of separate hosts, HDFS and YARN: kills, growth, restarts elsewhere
	$(BIN)/pytest -m cluster

windows: setup ## four kinds of windows over a million messages each, in Python and Go, with deaths in the middle
	$(BIN)/python tests/window.py $(if $(MESSAGES),--messages $(MESSAGES))

bench-windows: setup ## windows: messages per second through all, and memory of a worker with a million keys
	$(BIN)/python tests/window.py --calm
	$(BIN)/python tests/bench/window.py

test-connectors: setup ## the connector programs, with Redis, PostgreSQL, an AMQP broker, S3, Kinesis and Kafka
	$(BIN)/pytest -m connector

test-kafka: setup ## Kafka sources and sinks against a real broker, which Maven fetches
	$(BIN)/pytest -m kafka

test-long: setup ## the long runs: faults, guilty messages, bounds, changed applications
	$(BIN)/pytest $(SIDE_BY_SIDE) -m long

features: setup ## docs/features.md, and each of its features switched off: make features WORDS='merge Kafka'
	$(BIN)/python tests/feature.py --write --off $(WORDS)

conformance: setup ## run the conformance driver: make conformance WORKER='command'
	@test -n "$(WORKER)" || { echo "usage: make conformance WORKER='command that starts the worker'"; exit 2; }
	PYTHONPATH=tests $(BIN)/python -m conformance --worker '$(WORKER)'

golden: setup ## write the golden files of tests/cases anew
	$(BIN)/pytest -q tests/test_cases.py -m "not jvm" --golden

$(GO_TOOLS)/.installed: $(STAMP)
	GOBIN=$(GO_TOOLS) go install google.golang.org/protobuf/cmd/protoc-gen-go@v1.36.11
	GOBIN=$(GO_TOOLS) go install google.golang.org/grpc/cmd/protoc-gen-go-grpc@v1.6.1
	GOBIN=$(GO_TOOLS) go install honnef.co/go/tools/cmd/staticcheck@v0.6.1
	@touch $@

generate: $(GO_TOOLS)/.installed ## write the generated code
	PATH="$(GO_TOOLS):$$PATH" $(BIN)/python topology-schema/generate.py

check-generated: $(GO_TOOLS)/.installed ## prove that the generated code is fresh
	PATH="$(GO_TOOLS):$$PATH" $(BIN)/python topology-schema/generate.py --check

clean: ## remove what the targets made
	rm -rf $(VENV) build runtime/build api/python/build
