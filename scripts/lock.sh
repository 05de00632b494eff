#!/usr/bin/env bash
# Resolves pyproject.toml into the lock files: every package with its version and hashes.
set -euo pipefail
cd "$(dirname "$0")/.."
.venv/bin/uv pip compile pyproject.toml --extra dev --extra policybank --generate-hashes --quiet \
  --no-emit-index-url --no-emit-find-links --python-version 3.11 --output-file requirements.lock "$@"
# What the images install: the same versions, without the tools of development.
.venv/bin/uv pip compile pyproject.toml --extra policybank --constraint requirements.lock --generate-hashes --quiet \
  --no-emit-index-url --no-emit-find-links --python-version 3.11 --output-file requirements-runtime.lock "$@"
