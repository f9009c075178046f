# Everything a person does here has a target; `make` lists them.
SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
MAKEFLAGS += --no-builtin-rules

VERSION := $(shell git describe --tags --always --dirty 2>/dev/null || echo unknown)
RUN := go run -ldflags '-X main.version=$(VERSION)' ./cmd/roadstead
FUZZTIME ?= 20s
DEMO_ARGS ?=
SIM_ARGS ?=
BENCH_ARGS ?=
LOAD_ARGS ?=
SCENARIO_ARGS ?=
CHAOS_ARGS ?=

.PHONY: help build run demo test check race bench bench-polls bench-runs load load-ci scenarios scenarios-ci sim faults chaos-runs fuzz clean

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-12s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

build: ## build the server and the command line tool into ./bin
	@go build -ldflags '-X main.version=$(VERSION)' -o bin/ ./cmd/...

run: ## serve on http://127.0.0.1:8080, data in ./data
	@$(RUN) serve --data ./data

demo: ## a fleet downloads a real file over a limited link (DEMO_ARGS=...)
	@echo 'Building Roadstead: some minutes the first time, seconds from then on.' >&2
	@scripts/build -ldflags '-X main.version=$(VERSION)' -o bin/ ./cmd/roadstead
	@exec bin/roadstead demo $(DEMO_ARGS)

test: ## the whole gate: installs what it needs, checks, tests, race detector, small load run
	@scripts/test

check: bin/staticcheck bin/lint ## quick: gofmt, go vet, staticcheck, dropped errors, the rules of the tree
	@unformatted=$$(git ls-files -co --exclude-standard '*.go' | xargs -r ls 2>/dev/null | xargs -r gofmt -l); \
	  [ -z "$$unformatted" ] || { printf 'not formatted, run gofmt -w:\n%s\n' "$$unformatted"; exit 1; }
	@go vet ./...
	@bin/staticcheck ./...
	@go vet -vettool=$(CURDIR)/bin/lint -errcheck.exclude=$(CURDIR)/tools/lint/droppable.txt ./...
	@go test .

race: ## the race detector on the packages that share memory between goroutines
	@scripts/deps race
	@packages=$$(scripts/concurrent); CGO_ENABLED=1 go test -race $$packages

bench: ## the ratios that are promised, a line each (BENCH_ARGS=...)
	@scripts/deps nginx
	@failed=0; for b in ./test/bench/queue ./test/bench/datapath; do go run $$b $(BENCH_ARGS) || failed=1; done; exit $$failed

bench-polls: ## what a poll costs with a million waiting, over real HTTP (minutes; past its limit today, see docs/STATUS.md)
	@go run ./test/bench/polls $(BENCH_ARGS)

bench-runs: ## what Runs cost: decisions, tenants, pages, loading a pool, starting a process (minutes; see docs/STATUS.md)
	@go run ./test/bench/runs $(BENCH_ARGS)

load: ## the load gate: 500 clients x 40 MB over a link of 40 MB/s (LOAD_ARGS=...)
	@scripts/deps netns
	@scripts/apart go run ./test/load $(LOAD_ARGS)

load-ci: ## the load gate, scaled down
	@scripts/apart go run ./test/load -scale ci

scenarios: ## what Runs have to stand, on real servers and runners, thresholds checked (SCENARIO_ARGS=...)
	@scripts/deps sandbox
	@scripts/apart go run ./test/scenarios $(SCENARIO_ARGS)

scenarios-ci: ## the scenarios, scaled down and at the same time
	@scripts/apart go run ./test/scenarios -scale ci

sim: ## the fleet of the document on a virtual clock, its promises checked; then fleets in trouble (SIM_ARGS=...)
	@$(RUN) simulate --gate $(SIM_ARGS)
	@$(RUN) simulate --faults --seeds 1-48 --hours 12

faults: ## plants the faults of test/faults one by one; each must fail the test of the rule it breaks
	@go run ./test/faults

chaos-runs: ## kills server, runners, supervisors and jobs 300 times, and counts what that may not change (CHAOS_ARGS=...)
	@scripts/deps sandbox
	@scripts/apart go run ./test/runs $(CHAOS_ARGS)

fuzz: ## each fuzz target for FUZZTIME (20s)
	@scripts/fuzz $(FUZZTIME)

clean: ## remove what was built
	@rm -rf bin out

bin/staticcheck: tools/go.mod tools/go.sum
	@go -C tools build -o ../bin/ honnef.co/go/tools/cmd/staticcheck && touch $@

bin/lint bin/tally: bin/%: $(wildcard tools/lint/*.go tools/tally/*.go) tools/go.mod tools/go.sum
	@go -C tools build -o ../bin/ ./$* && touch $@
