#!/usr/bin/env bash
# Generates policysweep/v1 from proto/. With --check, fails when what is checked in differs.
set -euo pipefail
cd "$(dirname "$0")/.."
python=${PYTHON:-.venv/bin/python}
PATH="$(cd "$(dirname "$python")" && pwd):$PATH"
out=.
if [ "${1:-}" = --check ]; then
  out=$(mktemp -d)
  trap 'rm -rf "$out"' EXIT
fi
"$python" -m grpc_tools.protoc -Iproto --python_out="$out" --grpc_python_out="$out" \
  --mypy_out="quiet:$out" --mypy_grpc_out="quiet:$out" proto/policysweep/v1/*.proto
# A file without a service needs no gRPC module.
for stub in "$out"/policysweep/v1/*_pb2_grpc.py; do
  base=$(basename "$stub" _pb2_grpc.py)
  grep -q '^service ' "proto/policysweep/v1/$base.proto" || rm -f "$stub" "${stub}i"
done
if [ "$out" != . ]; then
  diff -r -x __init__.py -x __pycache__ "$out/policysweep/v1" policysweep/v1 ||
    { echo "policysweep/v1 is not what proto/ generates: run 'make proto' and commit the result" >&2; exit 1; }
fi
