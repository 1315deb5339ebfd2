#!/bin/bash
# Check the tasks that differ from the commit BASE, and no others.
set -euo pipefail
changed=$(python "$(dirname "$0")/changed_tasks.py" "$BASE")
if [ -z "$changed" ]; then
    echo "no task has changed"
    exit 0
fi
mapfile -t tasks <<<"$changed"
exec pytest --evocode-check --evocode-env="${ENVIRONMENT:-auto}" -- "${tasks[@]}"
