#!/usr/bin/env bash
# Resolves requirements.in and weights.in into their lock files. The wheel of torch is one of CPython 3.11 on
# Linux x86-64, so the environment is too; UV_FIND_LINKS or UV_EXTRA_INDEX_URL says where torch's CPU wheels are.
set -euo pipefail
cd "$(dirname "$0")/../.."
compile() { # NAME OPTION...
  .venv/bin/uv pip compile "scripts/vllm/$1.in" --generate-hashes --quiet --no-emit-index-url --no-emit-find-links \
    --python-version 3.11 --output-file "scripts/vllm/$1.txt" "${@:2}"
}
# vLLM asks for the torch family of the GPU, whose wheels do not go with torch for CPUs: its import dies of them.
compile requirements --no-emit-package torchvision --no-emit-package torchaudio --no-emit-package torchcodec
compile weights --no-deps
