# Everything a contributor runs. `make test` installs whatever is missing, then runs everything.
.PHONY: run test web-test lint bench fuzz setup

run:
	cargo run --release

setup:
	./scripts/setup

lint: setup
	cargo fmt --all --check
	cargo clippy --workspace --all-targets --quiet -- -D warnings
	RUSTDOCFLAGS="-D warnings" cargo doc --workspace --no-deps --quiet
	cargo deny --log-level error check licenses bans sources

test: lint web-test
	cargo test --workspace --no-fail-fast

# The TypeScript packages.
web-test: setup
	npm install --no-audit --no-fund --silent
	npm run --silent check
	npm test --silent

bench:
	cargo build --release --quiet -p bowline -p bowline-bench
	target/release/bowline-bench

# Longer than the bounded versions in `make test`: SECONDS per target.
SECONDS ?= 60
fuzz:
	./scripts/fuzz $(SECONDS)
