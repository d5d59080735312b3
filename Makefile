# Everything that is checked, by the name that CI and people use. `make` alone lists the targets.

CARGO ?= cargo
CARGO_DENY_VERSION = 0.20.2

.DEFAULT_GOAL := help
.PHONY: help test browser test-servers model-long lint fmt clippy doc deny tree features units deploy-check fuzz-check sequences-long sim sim-fresh sim-long sim-speed bench overload report chaos chaos-stores ci site first-run dist

help: ## List the targets
	@sed -n 's/^\([a-z-]*\):.*## /\1\t/p' $(MAKEFILE_LIST) | expand -t 16

test-servers: ## Install the servers that the tests start, where they are missing
	@scripts/install-test-servers.sh

model-long: ## Visit every state of larger worlds than `make test` does; minutes
	$(CARGO) test --all-features --test protocol model:: -- --ignored --nocapture --test-threads 1

# A sequence is about twelve operations; `make test` has 20,000 of them. Hours.
sequences-long: test-servers ## Ask Redis two million random operations, and compare each answer with the rules
	PROPTEST_CASES=180000 $(CARGO) test --all-features --test conformance -- redis::sequences --nocapture

test: test-servers ## Run every test, with real servers and the documents' examples; ends with a table
	@scripts/run-tests.sh $(CARGO) test --workspace --all-features --no-fail-fast

browser: ## Look at the dashboard in a real browser, before real daemons; part of `make test`
	$(CARGO) test --workspace --all-features --no-run --quiet
	@scripts/run-browser-tests.sh

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
		CARGO_PROFILE_RELEASE_OPT_LEVEL=1 \
		$(CARGO) install cargo-deny --version $(CARGO_DENY_VERSION) --locked --no-default-features
	$(CARGO) deny --workspace check --hide-inclusion-graph licenses bans sources

tree: ## Check that the bare library pulls in no store client, no parser of files or commands
	@scripts/check-tree.sh

features: ## Check that the library compiles bare, with each store alone, and as the daemon without a server
	@scripts/check-features.sh

units: ## Let systemd read the unit files
	@scripts/check-units.sh

deploy-check: ## Check everything in deploy/ by the programs that will read it
	$(CARGO) test --workspace --all-features --no-run --quiet
	@scripts/deploy/check.sh

site: ## Make the site of the documents in target/site, and check its links
	SITE=$(CURDIR)/target/site scripts/deploy/check.sh site

# Machines differ, so the time fails nothing, unless LIMIT says from how many seconds on it does: LIMIT=240 make first-run
first-run: ## Measure the time from a fresh clone to the first guarded run, crates downloaded; minutes on a quiet machine
	@scripts/first-run.sh

dist: ## Build everything of a release into target/dist/release: programs, packages, what is in them, checksums; a quarter of an hour
	@scripts/dist.sh

# With the compiler that builds all else, and without libFuzzer, which is C++.
fuzz-check: ## Check that the fuzz targets fit the library
	$(CARGO) check --manifest-path fuzz/Cargo.toml --target-dir target --no-default-features

# Only what the simulator needs of the library, built in a minute.
SIMULATE = $(CARGO) run --release --quiet --package simulate --

# Of the seeds from ten million on, every third world has slots that are shorter than its outages; from two million millions on, every
# second one has jobs that name locks.
sim: ## Simulate clusters under every fault: 400,000 slots, the same each time; then put each bug in on purpose
	$(SIMULATE) --seeds 10_000_000..11_000_000 --slots 100_000
	$(SIMULATE) --seeds 2_000_000_000_000..2_000_001_000_000 --slots 100_000
	$(SIMULATE) --slots 200_000 --controls

# Most worlds are drawn anew, and told. What a fresh seed finds is kept in tools/simulate/tests/simulation.rs.
sim-fresh: ## The same on fresh seeds
	$(SIMULATE) --slots 200_000 --fresh --keep-going

sim-long: ## The same for ten million slots and each bug put in on purpose; the figures go to target/reliability/simulation.json
	$(SIMULATE) --slots 10_000_000 --fresh --keep-going --controls --json target/reliability/simulation.json

# What it finds, sim-long finds as well: here only the rate counts, which is told of a machine that does nothing else. The code is
# the release's, and the worlds are those whose journals are not judged as well: that is the checker's work.
sim-speed: ## Measure how many slots one core simulates in a second; the figures go to target/reliability/speed.json
	$(SIMULATE) --seeds 1000..100000 --slots 200_000 --keep-going --no-shrink --json target/reliability/speed.json

bench: test-servers ## Measure the figures, and print them as a table
	$(CARGO) bench --all-features --bench figures

overload: test-servers ## Give a node more jobs than the machine can start, and print how far it gets; forty minutes
	$(CARGO) bench --bench overload

report: test-servers ## Try the guard at length, and write docs/reliability.md from what came of it
	@MAKE="$(MAKE)" CARGO="$(CARGO)" scripts/report.sh

# Prints the seed of its faults; CRONWARD_CHAOS_SEED replays one. The outcome is written as JSON.
chaos: export CRONWARD_CHAOS_JSON ?= $(CURDIR)/target/reliability/chaos-redis.json
chaos: test-servers ## Strike a cluster with hundreds of faults for a quarter of an hour, and judge each slot
	$(CARGO) test --all-features --test cluster -- --ignored --exact \
		chaos::thousands_of_slots_on_redis_are_each_once_or_explained

# Each prints its seed as well. The outcomes are written as target/reliability/chaos-STORE.json.
chaos-stores: test-servers ## The same for two minutes on each other store, one after the other
	$(CARGO) test --all-features --test cluster -- --ignored --test-threads 1 chaos::at_length_

ci: ## What CI runs, in its order
	.ci/run
