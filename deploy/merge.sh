#!/bin/bash
# Merge the shards into EVOCODE_OUTPUT/merged and print the table; fail where a shard is missing or has not ended well.
set -euo pipefail
: "${EVOCODE_SHARDS:?how many shards there are in all}" "${EVOCODE_OUTPUT:?directory that all machines share}"

# Made anew after every resubmission: what is merged is a copy.
rm -rf "$EVOCODE_OUTPUT/merged"
status=0
evocode merge "$EVOCODE_OUTPUT"/shard-* -o "$EVOCODE_OUTPUT/merged" || status=$?
evocode results "$EVOCODE_OUTPUT/merged"
unfinished=$("$(dirname "$0")/unfinished.sh")
if [ -n "$unfinished" ]; then
    echo "merge.sh: submit these shards again, which go on where they were: $unfinished" >&2
    exit 1
fi
exit "$status"
