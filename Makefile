.DEFAULT_GOAL := help

.PHONY: help
help: ## Show this help
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  %-10s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

.PHONY: build
build: ## Build ./onceward
	CGO_ENABLED=0 go build -trimpath -o onceward .

.PHONY: demo
demo: ## Run the story of the failures
	go run . demo

.PHONY: test
test: ## Run all tests
	go test ./...

.PHONY: race
race: ## Run all tests with the race detector
	go test -race ./...

.PHONY: lint
lint: ## Run golangci-lint
	golangci-lint run ./...

.PHONY: bench
bench: ## Measure the ledger and the server, each beside its floor
	go test -run '^$$' -bench . ./ledger/sqlite .

.PHONY: bench-postgres
bench-postgres: ## Measure the PostgreSQL ledger, on a cluster of its own
	.ci/postgres go test -run '^$$' -bench . ./ledger/postgres

.PHONY: postgres
postgres: ## Run the tests that need PostgreSQL, on a cluster of its own
	.ci/postgres go test -count=1 ./ledger/postgres ./torture .

.PHONY: torture
torture: ## Run thousands of random schedules of failures
	go test ./torture -count=1 -v -timeout 2h -torture.schedules=10000 -update

.PHONY: compare
compare: ## Compare the three ways to name an action, under the same faults
	go test ./compare -run TestCompare -v -count=1 -compare.runs=200

.PHONY: fuzz
fuzz: ## Fuzz the decoders for half a minute each
	go test -run '^$$' -fuzz '^FuzzCheckJSON$$' -fuzztime 30s ./intent
	go test -run '^$$' -fuzz '^FuzzCanonicalJSON$$' -fuzztime 30s ./intent
	go test -run '^$$' -fuzz '^FuzzFingerprint$$' -fuzztime 30s ./tools

.PHONY: peers
peers: ## Run the providers' tests against real mail servers and mocks (needs root, npm)
	bash -c 'set -euo pipefail; source .ci/peers; trap peers_stop EXIT; peers_start; CI=true go test ./providers/... -count=1'

.PHONY: golden
golden: ## Rewrite the golden tool definitions after a change that is meant
	go test ./tools -update
	go test . -run ProvidersDoc -update
