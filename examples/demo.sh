#!/usr/bin/env bash
# The main job for real on the embedded model: one town hall debate on a logic grid, live, then chain of thought and the
# town hall side by side on a small held-out set. Run by `make demo`; TOWNHALL names another townhall command, and LM
# another model (LM=openai/gpt-4o make demo).
set -euo pipefail
cd "$(dirname "$0")/.."
TOWNHALL=${TOWNHALL:-.venv/bin/townhall}
LM=${LM:-local}
PUZZLES=(--task zebra-grid -T sizes=2x2 -T count=40 --lm "$LM")
HALL=(--strategy town-hall --personas 3 --rounds 2)

run() {
  printf '\n\033[1m$ townhall' >&2
  printf ' %q' "$@" >&2
  printf '\033[0m\n' >&2
  "$TOWNHALL" "$@"
}

if [[ $LM == local* ]]; then
  run models pull "${LM#local/}"
fi

run debate "${PUZZLES[@]}" "${HALL[@]}" --vote-when-unanimous --example '#1'

# Small sets and a small model: the intervals in the last table are wide, and they are printed.
run evaluate "${PUZZLES[@]}" --strategy chain-of-thought --split test --limit 4 --out demo-out/chain-of-thought
run evaluate "${PUZZLES[@]}" "${HALL[@]}" --split test --limit 4 --out demo-out/town-hall
run compare demo-out/chain-of-thought demo-out/town-hall
