#!/usr/bin/env bash
# The main job for real on the embedded model: one town hall debate on a logic grid, live, then chain of thought and the
# town hall side by side on a small held-out set. Run by `make demo`; TOWNHALL names another townhall command, and LM
# another model (LM=openai/gpt-4o make demo).
set -euo pipefail
cd "$(dirname "$0")/.."
TOWNHALL=${TOWNHALL:-.venv/bin/townhall}
LM=${LM:-local/qwen2.5-coder-0.5b}
PUZZLES=(--task zebra-grid -T sizes=2x2 -T count=40 --lm "$LM")
# No worked demonstrations and short replies: a processor reads and writes a model's tokens slowly.
HALL=(--strategy town-hall --personas 3 --rounds 2 --shots 0 --vote-when-unanimous --reply-tokens 400)

run() {
  printf '\n\033[1m$ townhall' >&2
  printf ' %q' "$@" >&2
  printf '\033[0m\n' >&2
  "$TOWNHALL" "$@"
}

if [[ $LM == local* ]]; then
  run models pull "${LM#local/}"
fi

run debate "${PUZZLES[@]}" "${HALL[@]}" --example zebra-2x2-s0-35

# The first of the held-out puzzles is the one just debated: its replies come from the cache. Three puzzles and a small
# model show how it works, not whether it helps; the last table says so with its intervals.
run evaluate "${PUZZLES[@]}" --strategy chain-of-thought --reply-tokens 400 --split test --limit 3 --out demo-out/chain-of-thought
run evaluate "${PUZZLES[@]}" "${HALL[@]}" --split test --limit 3 --out demo-out/town-hall
run compare demo-out/chain-of-thought demo-out/town-hall
