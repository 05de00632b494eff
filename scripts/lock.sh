#!/usr/bin/env bash
# Resolves pyproject.toml into requirements.lock: every package with its version and hashes.
set -euo pipefail
cd "$(dirname "$0")/.."
.venv/bin/uv pip compile pyproject.toml --extra dev --extra policybank --generate-hashes --quiet \
  --no-emit-index-url --no-emit-find-links --python-version 3.11 --output-file requirements.lock "$@"
