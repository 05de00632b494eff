# `make sweep` and `make test` need nothing but Python 3.11; both build .venv on first use.
PYTHON ?= python3
STORE ?= runs
bin := .venv/bin
stamp := .venv/.installed
code := policysweep services examples tests bench scripts

.PHONY: setup tau2 sweep stream test test-vllm sweep-smollm check lint types proto proto-check proto-baseline k8s-check image-check dashboards prometheus-check lock bench clean

setup: $(stamp)

$(stamp): requirements.lock pyproject.toml
	$(PYTHON) scripts/check_python.py
	test -x $(bin)/python || $(PYTHON) -m venv .venv
	$(bin)/python -m pip install --quiet --require-hashes --requirement requirements.lock
	$(bin)/python -m pip install --quiet --no-deps --no-build-isolation --editable .
	touch $@

# tau2-bench is optional and installs without what it says it needs, see docs/tau2.md.
tau2: setup
	$(bin)/python -m pip install --quiet --no-deps --require-hashes --requirement requirements-tau2.txt

# The main job: the built-in 400 scenarios against four rehearsal agents, ending with the report.
sweep: setup
	$(bin)/policysweep run examples/quickstart.yaml --store $(STORE)

# Memories that learn: tau2-bench tasks, five seeds, four trials, four methods; ends with the report.
stream: tau2
	$(bin)/policysweep stream examples/streams.yaml --store $(STORE)

test: setup
	$(bin)/python -m pytest

# The services against real vLLM servers on the CPU: docs/real-models.md. The first time builds vLLM's environment
# and the models in a cache outside the clone.
test-vllm: setup
	$(bin)/python -m scripts.vllm.build
	$(bin)/python -m pytest tests/vllm

# Four scenarios on a real open model without a GPU, with their report: 7 minutes on two cores, see docs/real-models.md.
# An answer of the judge that is cut is not asked for again. Where no answer could be used at all, verdicts are missing
# and the exit code says so, as it does of any sweep.
sweep-smollm: setup
	POLICYSWEEP_JUDGE_PARSE_ATTEMPTS=1 $(bin)/python -m scripts.vllm.serve smollm --port 8723 -- \
		$(bin)/policysweep run examples/smollm.yaml --store $(STORE)

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

# Every overlay built, validated against the schemas, and held to our own rules.
k8s-check: setup
	$(bin)/python -m pytest tests/unit/deploy

# Each service's image as a plain folder, built by the Dockerfile's own script.
.PHONY: image-trees
image-trees: setup
	echo cli policybank judge simulator agent | PYTHON=$(bin)/python xargs -n 1 -P 2 \
		sh -c 'scripts/build_image_tree.sh "$$0" "build/image/$$0"'

# And run from there. `make image-trees`, then `POLICYSWEEP_IMAGE_TREES=build/image make test`, does both in one.
image-check: image-trees
	POLICYSWEEP_IMAGE_TREES=build/image $(bin)/python -m pytest tests/e2e/test_image_trees.py tests/e2e/test_manifests.py

# A cluster on this machine, disturbed while it works: four minutes, or a short form that is part of `make test`.
.PHONY: cluster-test cluster-test-short
cluster-test: tau2
	$(bin)/python -m tests.cluster

cluster-test-short: tau2
	$(bin)/python -m tests.cluster --short

# What is generated from the code: the Grafana dashboards, and the table of docs/metrics.md.
dashboards: setup
	$(bin)/python -m scripts.generate_dashboards
	$(bin)/python -m scripts.generate_metrics_table

# Rules, alerts and dashboards; needs promtool, which comes with Debian's package prometheus.
prometheus-check: setup
	$(bin)/python -m pytest tests/unit/telemetry

# The dependencies: locked, hashed, licensed, and nothing installed beside them. Needs no network.
.PHONY: audit advisories
audit: setup
	$(bin)/python -m pytest tests/unit/deploy/test_dependencies.py

# Known vulnerabilities, from the advisories that PyPI publishes. Fails for a package that nobody answers for.
advisories: setup
	$(bin)/uv tool run pip-audit@2.10.1 --strict --disable-pip --require-hashes --requirement requirements-runtime.lock

# Resolves the dependencies of pyproject.toml anew.
lock: setup
	scripts/lock.sh --upgrade

bench: setup
	$(bin)/python -m bench

clean:
	rm -rf .venv build *.egg-info .mypy_cache .ruff_cache .pytest_cache
