# The only thing that CI and the README call. `make help` lists the targets.
SHELL := bash
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
GO_TOOLS := $(CURDIR)/$(VENV)/gobin

.DEFAULT_GOAL := help
.PHONY: help setup run build bench generate check-generated clean

help: ## list the targets
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 18

setup: $(STAMP) ## make .venv with both packages, and fetch the Go modules

$(STAMP): api/python/pyproject.toml runtime/pyproject.toml requirements-dev.txt api/go/go.mod
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet -e 'api/python[worker]' -e runtime -r requirements-dev.txt
	cd api/go && go mod download
	@touch $@

run: setup ## set up, then count the words of a text in Python and in Go, over TCP
	$(BIN)/python tests/main_job.py

bench: setup ## words per second from the journal to the outbox, Python and Go
	$(BIN)/python tests/bench/word_count.py

$(GO_TOOLS)/.installed: $(STAMP)
	GOBIN=$(GO_TOOLS) go install google.golang.org/protobuf/cmd/protoc-gen-go@v1.36.11
	GOBIN=$(GO_TOOLS) go install google.golang.org/grpc/cmd/protoc-gen-go-grpc@v1.6.1
	GOBIN=$(GO_TOOLS) go install honnef.co/go/tools/cmd/staticcheck@v0.8.2
	@touch $@

generate: $(GO_TOOLS)/.installed ## write the generated code
	PATH="$(GO_TOOLS):$$PATH" $(BIN)/python topology-schema/generate.py

check-generated: $(GO_TOOLS)/.installed ## prove that the generated code is fresh
	PATH="$(GO_TOOLS):$$PATH" $(BIN)/python topology-schema/generate.py --check

clean: ## remove what the targets made
	rm -rf $(VENV) build bench-results
