#!/usr/bin/env bash
# Makes what recipes/bench-small.toml trains on, under runs/bench-small/data: a tokenizer of 8192
# pieces and a token store of the quickstart corpus. ZAYA_BUILD: where zaya was built.
set -euo pipefail
cd "$(dirname "$0")/.."

zaya=${ZAYA_BUILD:-build}/zaya
corpus=data/quickstart/train.txt
data=runs/bench-small/data

mkdir -p $data
[ -f $data/tokenizer.model ] ||
  "$zaya" tokenizer train --input $corpus --separator % --vocab 8192 --out $data/tokenizer.model
[ -f $data/train.idx ] ||
  "$zaya" pack --tokenizer $data/tokenizer.model --input $corpus --separator % --out $data/train
echo "zaya train recipes/bench-small.toml"
