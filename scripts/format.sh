#!/usr/bin/env bash
# Checks the formatting of every C++ file (.clang-format); --fix rewrites the files instead.
set -euo pipefail
cd "$(dirname "$0")/.."

case "${1-}" in
  "") mode=(--dry-run -Werror) ;;
  --fix) mode=(-i) ;;
  *)
    echo "usage: scripts/format.sh [--fix]" >&2
    exit 2
    ;;
esac

find src tests bench \( -name '*.h' -o -name '*.cpp' \) -print0 |
  xargs -0 --no-run-if-empty clang-format "${mode[@]}"
