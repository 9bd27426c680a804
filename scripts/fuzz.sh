#!/usr/bin/env bash
# Builds the fuzz programs and runs one, or all.
#   scripts/fuzz.sh TARGET SECONDS [libFuzzer options]
#       starts from the committed corpus and from what earlier runs kept in build-fuzz/corpus/TARGET.
#   scripts/fuzz.sh all SECONDS
#       every target from the committed corpus alone, with a fixed seed: what ./test.sh does.
# Inputs that crash, hang or take too much memory land in build-fuzz/failures/.
set -euo pipefail
cd "$(dirname "$0")/.."

targets=()
for source in tests/fuzz/*_fuzz.cpp; do
  name=$(basename "$source")
  targets+=("${name%_fuzz.cpp}")
done

if [ $# -lt 2 ] || [[ " all ${targets[*]} " != *" $1 "* ]] || ! [[ $2 =~ ^[0-9]+$ ]]; then
  echo "usage: scripts/fuzz.sh TARGET SECONDS [libFuzzer options]" >&2
  echo "TARGET is one of: ${targets[*]} all" >&2
  exit 2
fi
what=$1 seconds=$2
shift 2

scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
mkdir -p build-fuzz/failures

launcher=()
command -v ccache >/dev/null && launcher=(-DCMAKE_CXX_COMPILER_LAUNCHER=ccache)
cmake -S . -B build-fuzz -G Ninja -DCMAKE_BUILD_TYPE=None -DCMAKE_CXX_COMPILER=clang++ \
  -DZAYA_FUZZ=ON "${launcher[@]}" >"$scratch/build" || { cat "$scratch/build" && exit 1; }
ninja -C build-fuzz >"$scratch/build" || { cat "$scratch/build" && exit 1; }

# run TARGET FOUND OPTIONS: new inputs are kept in the folder FOUND.
run() {
  local target=$1 found=$2
  shift 2
  mkdir -p "$found"
  # The programs write their input to TMPDIR thousands of times a second.
  TMPDIR=$scratch build-fuzz/tests/fuzz/"fuzz_$target" -max_total_time="$seconds" \
    -timeout=120 -rss_limit_mb=2048 -malloc_limit_mb=256 \
    -dict=tests/fuzz/dict/"$target.dict" -artifact_prefix=build-fuzz/failures/"$target-" \
    "$@" "$found" tests/fuzz/corpus/"$target"
}

# What a failed run left, in a form that can be copied out of a log.
show_failures() {
  local file
  for file in build-fuzz/failures/"$1"-*; do
    [ "$file" -nt "$scratch/build" ] || continue
    echo "$file ($(stat -c %s "$file") bytes), in base64:"
    base64 "$file" | head -n 400
  done
}

if [ "$what" != all ]; then
  run "$what" "build-fuzz/corpus/$what" "$@" && exit 0
  show_failures "$what"
  exit 1
fi

declare -A running=()
for target in "${targets[@]}"; do
  # As many at a time as there are cores.
  while [ "$(jobs -pr | wc -l)" -ge "$(nproc)" ]; do sleep 0.2; done
  run "$target" "$scratch/$target" -seed=1 "$@" >"$scratch/$target.log" 2>&1 &
  running[$target]=$!
done
failed=0
for target in "${targets[@]}"; do
  if wait "${running[$target]}"; then
    echo "$target: $(grep '^Done ' "$scratch/$target.log")"
  else
    failed=1
    echo "$target: FAILED"
    grep -v '^#\|^"\|^INFO' "$scratch/$target.log" | tail -n 60 | cut -c 1-300
    show_failures "$target"
  fi
done
exit $failed
