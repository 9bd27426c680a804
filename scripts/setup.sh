#!/usr/bin/env bash
# Installs the Debian packages that building (and, with "test", testing) needs and that are missing.
set -euo pipefail

build_packages=(
  g++ cmake ninja-build pkg-config xz-utils
  libdnnl-dev libhwy-dev libsentencepiece-dev libsimdjson-dev libutf8proc-dev libpcre2-dev
  nlohmann-json3-dev libtomlplusplus-dev libcli11-dev libfmt-dev libedit-dev
  libxxhash-dev libzstd-dev zlib1g-dev
)
test_packages=(
  libgtest-dev libgmock-dev libbenchmark-dev clang-format git python3 zstd
  clang libclang-rt-dev  # libFuzzer
)

packages=("${build_packages[@]}")
[ "${1:-build}" = test ] && packages+=("${test_packages[@]}")

missing=()
for package in "${packages[@]}"; do
  dpkg-query -W -f='${db:Status-Abbrev}' "$package" 2>/dev/null | grep -q '^.i' || missing+=("$package")
done
[ ${#missing[@]} -eq 0 ] && exit 0

sudo=()
if [ "$(id -u)" -ne 0 ]; then
  if ! command -v sudo >/dev/null; then
    echo "zaya needs Debian packages that are missing, and this user cannot install them." >&2
    echo "As root, run:  apt-get install ${missing[*]}" >&2
    exit 1
  fi
  sudo=(sudo)
fi
if ! command -v apt-get >/dev/null; then
  echo "zaya is built with Debian's packages and found no apt-get here. It needs: ${missing[*]}" >&2
  exit 1
fi

echo "Installing ${#missing[@]} packages: ${missing[*]}"
export DEBIAN_FRONTEND=noninteractive
log=$(mktemp)
trap 'rm -f "$log"' EXIT
install() { "${sudo[@]}" apt-get install -y --no-install-recommends "${missing[@]}" >"$log" 2>&1; }
if ! install && ! { "${sudo[@]}" apt-get update >"$log" 2>&1 && install; }; then
  tail -n 5 "$log" >&2
  echo "Could not install: ${missing[*]}" >&2
  echo "Install them by hand (apt-get install ...) and run this again." >&2
  exit 1
fi
