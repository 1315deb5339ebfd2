#!/bin/bash
# Print the shards that have not ended well, with commas between, as sbatch --array takes them; nothing if all have.
set -euo pipefail
: "${EVOCODE_SHARDS:?how many shards there are in all}" "${EVOCODE_OUTPUT:?directory that all machines share}"

unfinished=()
for ((shard = 1; shard <= EVOCODE_SHARDS; shard++)); do
    newest=
    for record in "$EVOCODE_OUTPUT/shard-$shard"/runs/*.json; do
        newest=$record
    done
    grep -Eqs '"exit_status": *0\b' "$newest" || unfinished+=("$shard")
done
(
    IFS=,
    echo "${unfinished[*]-}"
)
