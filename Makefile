# Everything that is checked, by the name that CI and people use. `make` alone lists the targets.

CARGO ?= cargo
CARGO_DENY_VERSION = 0.20.2

.DEFAULT_GOAL := help
.PHONY: help test test-servers lint fmt clippy doc deny tree units bench ci

help: ## List the targets
	@sed -n 's/^\([a-z-]*\):.*## /\1\t/p' $(MAKEFILE_LIST) | expand -t 16

test-servers: ## Install the servers that the tests start, where they are missing
	@scripts/install-test-servers.sh

test: test-servers ## Run every test, with real servers and the documents' examples
	$(CARGO) test --workspace --all-features

lint: fmt clippy ## Formatting and lints

fmt: ## Check the formatting
	$(CARGO) fmt --all -- --check

clippy: ## Lint with all features, and the bare library
	$(CARGO) clippy --workspace --all-targets --all-features -- -D warnings
	$(CARGO) clippy --lib --no-default-features -- -D warnings

doc: ## Build the documentation; a broken link is an error
	RUSTDOCFLAGS="-D warnings" $(CARGO) doc --workspace --no-deps --all-features

# Built with little optimisation: about two minutes instead of many, and it runs for a second all the same.
deny: ## Check licences, banned crates and sources of the dependencies
	@$(CARGO) deny --version >/dev/null 2>&1 || \
		CARGO_PROFILE_RELEASE_LTO=off CARGO_PROFILE_RELEASE_OPT_LEVEL=1 CARGO_PROFILE_RELEASE_CODEGEN_UNITS=16 \
		$(CARGO) install cargo-deny --version $(CARGO_DENY_VERSION) --locked --no-default-features
	$(CARGO) deny check --hide-inclusion-graph licenses bans sources

tree: ## Check that the bare library pulls in no store client, no parser of files or commands
	@scripts/check-tree.sh

units: ## Let systemd read the unit files
	@scripts/check-units.sh

bench: test-servers ## Measure the figures, and print them as a table
	$(CARGO) bench --bench figures

ci: ## What CI runs, in its order
	.ci/run
