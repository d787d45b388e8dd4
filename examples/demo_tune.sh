#!/usr/bin/env bash
# Optimising for real on the embedded model: demonstrations for each role by bootstrapping, then the number of agents and
# rounds by search, then one held-out evaluation next to the untuned program and the baselines, and the export of the
# tuned prompts. Run by `make demo-tune`; takes about half an hour on two cores.
set -euo pipefail
cd "$(dirname "$0")/.."
TOWNHALL=${TOWNHALL:-.venv/bin/townhall}
LM=${LM:-local/qwen2.5-coder-0.5b}
TASK=(--task arithmetic -T count=200 --lm "$LM")

run() {
  printf '\n\033[1m$ townhall' >&2
  printf ' %q' "$@" >&2
  printf '\033[0m\n' >&2
  "$TOWNHALL" "$@"
}

if [[ $LM == local* ]]; then
  run models pull "${LM#local/}"
fi
