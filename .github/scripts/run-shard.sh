#!/bin/bash
# Run one job of a benchmark; its inputs are variables, so that no text of a caller is ever code.
set -euo pipefail
# A secret that was not given is an empty variable, which some SDKs and programs take for a key.
for name in $(compgen -e); do
    [ -n "${!name}" ] || unset "$name"
done
# Google's libraries want a file.
if [ -n "${GOOGLE_CREDENTIALS:-}" ]; then
    GOOGLE_APPLICATION_CREDENTIALS=$(mktemp -p "${RUNNER_TEMP:-/tmp}")
    echo "$GOOGLE_CREDENTIALS" >"$GOOGLE_APPLICATION_CREDENTIALS"
    export GOOGLE_APPLICATION_CREDENTIALS
    unset GOOGLE_CREDENTIALS
fi
options=(--evocode-agent="$AGENT" --evocode-shard="$SHARD/$SHARDS" --evocode-attempts="$ATTEMPTS")
options+=(--evocode-mode="$MODE" --evocode-env="$ENVIRONMENT" --evocode-results="$RESULTS" --evocode-fail-under=0)
[ -z "${BUDGET:-}" ] || options+=(--evocode-budget="$BUDGET")
while read -r option; do
    [ -z "$option" ] || options+=(--evocode-agent-option="$option")
done <<<"${OPTIONS:-}"
if [ -n "${BASELINE:-}" ] && [ -d "$BASELINE" ]; then
    options+=(--evocode-shard-times="$BASELINE")
fi
exec pytest "${options[@]}" "$TASKS"
