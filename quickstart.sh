#!/usr/bin/env bash
# From a clone to text: builds zaya, trains a small mixture-of-experts model on the Jargon File, and
# lets it write. Stop it at any time; run again, it goes on where it stopped. Arguments go to
# `zaya train` (./quickstart.sh --set max_steps=50); ZAYA_BUILD and ZAYA_RUN choose the folders.
set -euo pipefail
cd "$(dirname "$0")"

corpus=data/quickstart
build=${ZAYA_BUILD:-build}
run=${ZAYA_RUN:-runs/quickstart}
data=runs/quickstart/data
zaya=$build/zaya
# On a machine that does other things too, threads that spin while they wait take the cores that the
# thread they wait for needs: 3 to 5 times slower was seen. Sleeping costs little where it is quiet.
export OMP_WAIT_POLICY=${OMP_WAIT_POLICY:-passive}

say() { printf '\n== %s\n' "$*"; }

scripts/build.sh

say "Tokenizer and token stores"
mkdir -p $data
[ -f $data/tokenizer.model ] ||
  $zaya tokenizer train --input $corpus/train.txt --separator % --vocab 2048 --out $data/tokenizer.model
for split in train heldout; do
  [ -f $data/$split.idx ] ||
    $zaya pack --tokenizer $data/tokenizer.model --input $corpus/$split.txt --separator % \
      --out $data/$split
done

say "Train ($run)"
$zaya train recipes/quickstart.toml --out "$run" "$@"

say "Held-out text, bits per byte"
model_bits=$(grep -o '"val_bits_per_byte":[0-9.]*' "$run"/metrics.jsonl | tail -n 1 | cut -d: -f2)
both=$(cat $corpus/train.txt $corpus/heldout.txt | xz -9e -c | wc -c)
alone=$(xz -9e -c $corpus/train.txt | wc -c)
bytes=$(wc -c <$corpus/heldout.txt)
awk -v m="$model_bits" -v x="$(((both - alone) * 8))" -v n="$bytes" 'BEGIN {
  printf "  this model                      %.3f\n", m
  printf "  xz -9e after the training text  %.3f\n", x / n }'

say "Three samples"
for prompt in "Unix" "kernel wizard" "foobar"; do
  printf -- '--- %s\n' "$prompt"
  $zaya generate --model "$run" --prompt "$prompt" --max-tokens 100 --temperature 0.8 --top-p 0.95 \
    --seed 3
done
echo
echo "More:  $zaya generate --model $run --prompt \"TEXT\"      zaya's commands:  $zaya --help"
