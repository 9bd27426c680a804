#!/usr/bin/env bash
# Installs the packages that are missing and builds zaya in build/ (or $ZAYA_BUILD).
set -euo pipefail
cd "$(dirname "$0")/.."

build=${ZAYA_BUILD:-build}

say() { printf '\n== %s\n' "$*"; }

say "Packages"
scripts/setup.sh build

say "Build"
mkdir -p "$build"
if [ ! -f "$build/build.ninja" ]; then
  cmake -S . -B "$build" -G Ninja -DBUILD_TESTING=OFF >"$build/configure.log" 2>&1 ||
    { tail -n 20 "$build/configure.log" >&2; exit 1; }
fi
ninja -C "$build" zaya
