#!/usr/bin/env bash
# Builds everything and runs every check: formatting, includes, unit, gradient, parity, resume and README
# tests, the unit tests again under the sanitizers, and a short run of every fuzz program.
set -euo pipefail
cd "$(dirname "$0")"

say() { printf '\n== %s\n' "$*"; }
jobs=$(nproc)
# Tests run side by side: threads that wait must not spin on the cores that others compute on.
export OMP_WAIT_POLICY=passive

say "Packages"
scripts/setup.sh test

say "Formatting and includes"
scripts/format.sh
python3 scripts/check_includes.py --self-test
python3 scripts/check_includes.py

launcher=()
command -v ccache >/dev/null && launcher=(-DCMAKE_CXX_COMPILER_LAUNCHER=ccache)

say "Build"
cmake -S . -B build -G Ninja -DCMAKE_BUILD_TYPE=Release -DBUILD_TESTING=ON -DZAYA_BENCH=ON "${launcher[@]}"
ninja -C build

say "Build with sanitizers"
cmake -S . -B build-sanitize -G Ninja -DCMAKE_BUILD_TYPE=None -DCMAKE_CXX_FLAGS="-O1 -g1" \
  -DZAYA_SANITIZE=ON -DBUILD_TESTING=ON "${launcher[@]}"
ninja -C build-sanitize all_unit_tests

say "Tests under the sanitizers"
(cd build-sanitize && ctest --output-on-failure -j "$jobs" -L 'unit|grad' --timeout 600)

say "Fuzzing"
scripts/fuzz.sh all 20

say "Tests"
(cd build && ctest --output-on-failure -j "$jobs" --timeout 900)
