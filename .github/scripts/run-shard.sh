#!/bin/bash
# Run one job of a benchmark; its inputs are variables, so that no text of a caller is ever code.
set -euo pipefail
options=(--evocode-agent="$AGENT" --evocode-shard="$SHARD/$SHARDS" --evocode-attempts="$ATTEMPTS")
options+=(--evocode-mode="$MODE" --evocode-env="$ENVIRONMENT" --evocode-results="$RESULTS" --evocode-fail-under=0)
[ -z "${BUDGET:-}" ] || options+=(--evocode-budget="$BUDGET")
if [ -n "${BASELINE:-}" ] && [ -d "$BASELINE" ]; then
    options+=(--evocode-shard-times="$BASELINE")
fi
exec pytest "${options[@]}" "$TASKS"
