# The commands of a contributor. `make test` installs missing tools, then runs every check and test.
.PHONY: run test test-agents agents web-test browser-test web package-web screenshots lint bench fuzz setup

run:
	cargo run --release

setup:
	./scripts/setup

# Debug builds embed the built web app, so that tests serve the real one.
lint test browser-test screenshots: export BOWLINE_WEB_DIST = $(CURDIR)/packages/web/dist

lint: setup web
	cargo fmt --all --check
	cargo clippy --workspace --all-targets --quiet -- -D warnings
	RUSTDOCFLAGS="-D warnings" cargo doc --workspace --no-deps --quiet
	cargo deny --log-level error check licenses bans sources
	npm run --silent lint
	scripts/check-requirements
	scripts/check-security

test: lint web-test browser-test
	cargo test --workspace --no-fail-fast

# Installs the real agent programs that `make test` runs, from npm into a cache of their own.
agents: setup
	./scripts/agents $$(./scripts/agents --defaults | tr , ' ')

# Tests Bowline with every real agent program, offline, against a stub of the model APIs.
test-agents: setup
	./scripts/agents
	BOWLINE_TEST_AGENTS=$$(./scripts/agents --names) cargo test -p bowline --test agents --no-fail-fast

# Builds the web app.
web: setup
	npm install --no-audit --no-fund --silent
	npm run --silent build -w @bowline/web -- --logLevel warn

# Copies the built web app into the gateway's crate, so that the crate's package contains it.
package-web: web
	rm -rf crates/gateway/web-dist
	cp -r packages/web/dist crates/gateway/web-dist
	touch crates/gateway/build.rs

# Takes docs/screenshots from a real gateway.
screenshots: web
	cargo build --quiet
	scripts/screenshots

# Checks and tests the TypeScript packages.
web-test: setup
	npm install --no-audit --no-fund --silent
	npm run --silent check
	npm test --silent

# Tests the web app in a real browser, against a real gateway and real shells.
browser-test: web agents
	cargo build --quiet -p bowline
	npm run --silent test:browser -w @bowline/web

bench:
	cargo build --release --quiet -p bowline -p bowline-bench
	target/release/bowline-bench

# Runs each fuzz target for SECONDS, longer than the bounded versions in `make test`.
SECONDS ?= 60
fuzz:
	./scripts/fuzz $(SECONDS)
