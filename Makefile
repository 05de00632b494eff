# `make sweep` and `make test` need nothing but Python 3.11; both build .venv on first use.
PYTHON ?= python3
STORE ?= runs
bin := .venv/bin
stamp := .venv/.installed
code := policysweep services examples tests bench scripts

.PHONY: setup sweep test check lint types proto proto-check proto-baseline lock bench clean

setup: $(stamp)

$(stamp): requirements.lock pyproject.toml
	$(PYTHON) scripts/check_python.py
	test -x $(bin)/python || $(PYTHON) -m venv .venv
	$(bin)/python -m pip install --quiet --require-hashes --requirement requirements.lock
	$(bin)/python -m pip install --quiet --no-deps --no-build-isolation --editable .
	touch $@

# The main job: the built-in 400 scenarios against four rehearsal agents, ending with the report.
sweep: setup
	$(bin)/policysweep run examples/quickstart.yaml --store $(STORE)

test: setup
	$(bin)/python -m pytest

check: lint types proto-check

lint: setup
	$(bin)/ruff check $(code)
	$(bin)/ruff format --check $(code)

types: setup
	$(bin)/mypy

# Regenerates the stubs from proto/.
proto: setup
	PYTHON=$(bin)/python scripts/generate_stubs.sh

# Lint, compatibility with the released contract, and drift of the checked-in stubs.
proto-check: setup
	$(bin)/buf lint
	$(bin)/buf format --diff --exit-code
	$(bin)/buf breaking --against proto/released.binpb
	PYTHON=$(bin)/python scripts/generate_stubs.sh --check

# Declares the contract in proto/ released: later changes must stay compatible with it.
proto-baseline: setup
	$(bin)/buf build --output proto/released.binpb

# Resolves the dependencies of pyproject.toml anew.
lock: setup
	scripts/lock.sh --upgrade

bench: setup
	$(bin)/python -m bench

clean:
	rm -rf .venv build *.egg-info .mypy_cache .ruff_cache .pytest_cache
