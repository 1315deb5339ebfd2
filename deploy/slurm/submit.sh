#!/bin/bash
# Submit all shards, or those that are named ("3,7"), and a merge that begins when they have ended, however they ended.
#
#   EVOCODE_SHARDS=8 EVOCODE_OUTPUT=/shared/run EVOCODE_AGENTS=oracle deploy/slurm/submit.sh [SHARDS]
set -euo pipefail
: "${EVOCODE_SHARDS:?how many shards there are in all}" "${EVOCODE_OUTPUT:?directory that all machines share}"

# What unfinished.sh prints where all shards have ended well.
if [ $# -gt 0 ] && [ -z "$1" ]; then
    echo "no shard is named: none is unfinished, and nothing was submitted"
    exit 0
fi

here=$(cd "$(dirname "$0")" && pwd)
export EVOCODE_DEPLOY=${here%/slurm}
mkdir -p "$EVOCODE_OUTPUT"
# The variables go along: what is not exported is not seen by the tasks of the array.
export EVOCODE_SHARDS EVOCODE_OUTPUT
array=$(sbatch --parsable --export=ALL --array="${1:-1-$EVOCODE_SHARDS}" "$here/array.sbatch")
merge=$(sbatch --parsable --export=ALL --dependency="afterany:${array%%;*}" "$here/merge.sbatch")
echo "array ${array%%;*}, merge ${merge%%;*}"
