#!/usr/bin/env bash
# Optimising for real on the embedded model: demonstrations for each role by bootstrapping, then a search over the number
# of agents and rounds, one held-out evaluation next to the untuned program and the baselines, and the export of the
# result as one Python file. Run by `make demo-tune`. The sets are tiny so that it ends within twenty minutes on two idle
# cores: the last table is what came out, better or not. Run again, it goes on where it stopped.
set -euo pipefail
cd "$(dirname "$0")/.."
TOWNHALL=${TOWNHALL:-.venv/bin/townhall}
LM=${LM:-local}
SUMS=(--task arithmetic -T count=60 -T low=2 -T high=9 --lm "$LM" --reply-tokens 200)

run() {
  printf '\n\033[1m$ townhall' >&2
  printf ' %q' "$@" >&2
  printf '\033[0m\n' >&2
  "$TOWNHALL" "$@"
}

if [[ $LM == local* ]]; then
  run models pull "${LM#local/}"
fi

run compile "${SUMS[@]}" --strategy society --agents 2 --rounds 2 --teleprompter bootstrap \
  -S train=6 -S demos=1 --no-test --out demo-out/compiled --overwrite
run tune "${SUMS[@]}" --artifact demo-out/compiled --agents 2:3 --rounds 1:2 --trials 2 --limit 4 --test-limit 5 \
  --studies demo-out/studies --out demo-out/tuned --overwrite
run export demo-out/tuned --format python --out demo-out/debate.py --overwrite
printf '\nThe tuned debate as one file that needs only the openai package: demo-out/debate.py --help\n' >&2
