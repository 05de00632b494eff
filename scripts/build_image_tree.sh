#!/usr/bin/env bash
# Builds what the image of a service holds: a virtual environment with its locked dependencies, and the package from
# a wheel. deploy/Dockerfile runs the two steps one by one, so that a change of the code leaves the first in the cache.
#
#   scripts/build_image_tree.sh SERVICE PREFIX [dependencies|package]
#
# SERVICE: simulator, agent, judge, policybank, or cli (driver, report, rehearsal model). PREFIX: the folder to make.
# PYTHON names the interpreter, which needs pip or has uv beside it; what is built runs with it. UV_DEFAULT_INDEX names
# another package index than PyPI.
set -euo pipefail
cd "$(dirname "$0")/.."
python=${PYTHON:-python3}

usage() { sed -n 's/^# \{0,1\}//; 5,8p' "$0" >&2; exit 2; }
[ $# -ge 2 ] || usage
service=$1 step=${3:-all}
case $service in simulator | agent | judge | policybank | cli) ;; *) usage ;; esac
case $step in dependencies | package | all) ;; *) usage ;; esac
mkdir -p "$2"
prefix=$(cd "$2" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# The blocks of a lock file, of which awk keeps those for which `keep` is true.
locked() { awk "/^[a-zA-Z0-9]/ { split(\$1, pin, \"==\"); name = pin[1] } $1" "${@:2}"; }

# The installer is locked by hash like all that it installs. Its cache makes of the second tree a matter of links.
uv=$(dirname "$(command -v "$python")")/uv
if [ ! -x "$uv" ]; then
  "$python" -m venv "$work/tools"
  locked 'name == "uv"' requirements.lock >"$work/uv.txt"
  "$work/tools/bin/python" -m pip --disable-pip-version-check install --quiet --require-hashes --requirement "$work/uv.txt"
  uv=$work/tools/bin/uv
fi

install_into() { # PREFIX UV_ARGUMENT...
  # The machine's own certificates, as pip takes them: a package index may stand behind a proxy.
  "$uv" pip install --quiet --system-certs --python "$1/bin/python" --no-deps "${@:2}"
}

dependencies() {
  "$python" -m venv --without-pip --clear "$prefix"
  # packages.txt says which packages only some images need.
  sed 's/#.*//' deploy/image/packages.txt | awk -v image="$service" 'NF {
    found = 0; for (i = 2; i <= NF; i++) found += $i == image
    if (!found) print $1 }' >"$work/left-out"
  locked 'FILENAME ~ /left-out$/ { out[$1]; next } !(name in out)' "$work/left-out" requirements-runtime.lock \
    >"$work/requirements.txt"
  install_into "$prefix" --require-hashes --only-binary :all: --requirement "$work/requirements.txt"
  case $service in
    # These play, grade and show tau2-bench, whose own requirements are a gigabyte of other things.
    simulator | judge | cli)
      install_into "$prefix" --require-hashes --requirement requirements-tau2.txt ;;
  esac
  # A quarter of the report's image would be the test suites of the statistics packages.
  find "$prefix"/lib/python*/site-packages/ -path '*/tests' -type d \
    -regex '.*/site-packages/\(scipy\|statsmodels\|pandas\)/.*' -prune -exec rm -rf {} +
}

package() {
  # The build writes beside the sources, so it gets a copy of them.
  mkdir "$work/src"
  cp -R pyproject.toml README.md policysweep services "$work/src"
  "$python" -m venv --without-pip "$work/build"
  locked 'name == "setuptools"' requirements.lock >"$work/setuptools.txt"
  install_into "$work/build" --require-hashes --requirement "$work/setuptools.txt"
  (cd "$work/src" && "$work/build/bin/python" -c \
    'import sys; from setuptools import build_meta; build_meta.build_wheel(sys.argv[1])' "$work" >"$work/log" 2>&1) ||
    { cat "$work/log" >&2; exit 1; }
  install_into "$prefix" --no-index --reinstall "$work"/*.whl
  # Nobody writes there later.
  "$prefix/bin/python" -m compileall -q --invalidation-mode unchecked-hash "$prefix/lib"
  local command="python -m services.$service"
  [ "$service" != cli ] || command=policysweep
  printf '#!/bin/sh\nexec %s/bin/%s "$@"\n' "$prefix" "$command" >"$prefix/bin/entrypoint"
  chmod 755 "$prefix/bin/entrypoint"
}

case $step in
  all) dependencies; package ;;
  *) "$step" ;;
esac
