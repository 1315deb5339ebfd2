#!/bin/bash
# Make one shard of a benchmark, or go on with it where an earlier try was killed.
#
# Which shard, from 1: the first argument, else Slurm's array index (from 1), else Kubernetes' completion index (from 0).
#   EVOCODE_SHARDS   how many shards there are in all; the same for every job, also when only some are submitted again
#   EVOCODE_OUTPUT   directory that all machines share; shard I writes EVOCODE_OUTPUT/shard-I
#   EVOCODE_TASKS    the tasks (default: tasks)
#   EVOCODE_AGENTS   agents, with spaces between (default: oracle)
#   EVOCODE_ENV      docker, sandbox or auto (default: sandbox)
#   EVOCODE_WORKERS  attempts at once on this machine (default: 1)
#   EVOCODE_TIMES    results of an earlier run, by whose times shards are made equally long (default: none)
#   EVOCODE_OPTIONS  further options of pytest, with spaces between
set -euo pipefail

if [ $# -gt 0 ]; then
    shard=$1
elif [ -n "${SLURM_ARRAY_TASK_ID:-}" ]; then
    shard=$SLURM_ARRAY_TASK_ID
elif [ -n "${JOB_COMPLETION_INDEX:-}" ]; then
    shard=$((JOB_COMPLETION_INDEX + 1))
else
    echo "shard.sh: name the shard, from 1, or run it as a task of an array or an Indexed Job" >&2
    exit 4
fi
: "${EVOCODE_SHARDS:?how many shards there are in all}" "${EVOCODE_OUTPUT:?directory that all machines share}"

results=$EVOCODE_OUTPUT/shard-$shard
options=(--evocode-shard="$shard/$EVOCODE_SHARDS" --evocode-results="$results")
options+=(--evocode-env="${EVOCODE_ENV:-sandbox}" -n "${EVOCODE_WORKERS:-1}")
# Whatever rounds fail, the shard was made; the status is 1 only where something broke that was not the agent.
options+=(--evocode-fail-under=0)
for agent in ${EVOCODE_AGENTS:-oracle}; do
    options+=(--evocode-agent="$agent")
done
[ -z "${EVOCODE_TIMES:-}" ] || options+=(--evocode-shard-times="$EVOCODE_TIMES")
read -ra further <<<"${EVOCODE_OPTIONS:-}"
options+=(${further[@]+"${further[@]}"})

# Names of runs begin with the time, so the last one is the newest.
run=
for record in "$results"/runs/*.json; do
    [ ! -e "$record" ] || run=$(basename "$record" .json)
done
[ -z "$run" ] || options+=(--evocode-resume="$run")

# In this process's place, so that it has the signals that a scheduler sends.
exec pytest "${options[@]}" "${EVOCODE_TASKS:-tasks}"
