#!/usr/bin/env bash
# Measures everything there is to measure and writes it to one file, bench/results/DATE-MACHINE.txt:
# the machine, the commit, each command and what it printed. On a quiet machine, with a build made
# with -DZAYA_BENCH=ON. Arguments: --quick (a try: few repeats, figures of no worth), and the file
# to write instead. ZAYA_BUILD: where zaya was built.
set -euo pipefail
cd "$(dirname "$0")/.."

build=${ZAYA_BUILD:-build}
repeats=5
min_time=0.5
if [ "${1-}" = --quick ]; then
  repeats=1
  min_time=0.01
  shift
fi

cpu=$(lscpu | sed -n 's/^Model name: *//p' | head -n 1 | sed 's/(R)\|(TM)//g')
cores=$(nproc)
slug=$(printf '%s-%s-cores' "$cpu" "$cores" | tr '[:upper:] ' '[:lower:]-' | tr -cd 'a-z0-9-')
out=${1:-bench/results/$(date -u +%Y-%m-%d)-$slug.txt}

for program in zaya bench/bench_linear; do
  [ -x "$build/$program" ] || {
    echo "$build/$program is missing; build it:" >&2
    echo "cmake -S . -B $build -G Ninja -DZAYA_BENCH=ON && ninja -C $build" >&2
    exit 1
  }
done

# A line of what lscpu says.
cpu_line() { lscpu | grep -E "^ *$1:" | sed 's/  */ /g'; }

describe() {
  echo "date: $(date -u '+%Y-%m-%d %H:%M UTC')"
  local changes
  changes=$(git status --porcelain --untracked-files=no 2>/dev/null || true)
  echo "commit: $(git rev-parse HEAD 2>/dev/null || echo unknown)${changes:+, with changes}"
  echo "CPU: $cpu, $cores cores"
  for key in 'Thread\(s\) per core' 'CPU family' Model 'Hypervisor vendor' 'L[123]d? cache'; do
    cpu_line "$key" || true
  done
  echo "flags: $(lscpu | sed -n 's/^Flags: *//p' | tr ' ' '\n' |
    grep -xE 'fma|f16c|avx|avx2|avx512(f|bw|dq|vl|_bf16|_fp16|_vnni)|amx_(bf16|int8|tile)' | xargs)"
  echo "memory: $(awk '/^MemTotal/ { printf "%.1f GiB", $2 / 1048576 }' /proc/meminfo)"
  echo "system: $(uname -sr), $(sed -n 's/^PRETTY_NAME="\(.*\)"/\1/p' /etc/os-release)"
  echo "build: $("$build/zaya" --version)," \
    "$(sed -n 's/^CMAKE_BUILD_TYPE:[A-Z]*=//p' "$build/CMakeCache.txt"), $(c++ --version | head -n 1)"
  echo "oneDNN: $(dpkg-query -W -f '${Version}' libdnnl-dev 2>/dev/null || echo unknown)"
  echo "load before: $(cut -d' ' -f1-3 /proc/loadavg)"
}

# Prints the command, then runs it.
run() {
  printf '\n$ %s\n' "$*"
  "$@" 2>&1
}

measure() {
  local threads
  for threads in $(printf '1\n%s\n' "$cores" | sort -nu); do
    run "$build/zaya" bench gemm --dtype f32 --threads "$threads"
    run "$build/zaya" bench gemm --dtype bf16 --threads "$threads"
    for dtype in f32 bf16; do
      for seq_len in 512 4096; do
        run "$build/zaya" bench step --dtype $dtype --threads "$threads" --seq-len $seq_len \
          --repeats $repeats
      done
    done
  done
  for program in "$build"/bench/bench_*; do
    if [ -x "$program" ] && [ -f "$program" ]; then
      run "$program" --benchmark_min_time=$min_time
    fi
  done
  printf '\nload after: %s\n' "$(cut -d' ' -f1-3 /proc/loadavg)"
}

mkdir -p "$(dirname "$out")"
{
  describe
  measure
} | tee "$out"
echo "written to $out" >&2
