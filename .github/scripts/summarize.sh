#!/bin/bash
# Merge the jobs' results into MERGED, and write scores and what changed since BASELINE, which AGAINST names, to
# comment.md and to the job's summary. The output `status` is 1 where an agent regressed beyond noise, or a shard is
# missing. That nothing can be compared, such as after a change of all tasks, is said and is no regression.
set -euo pipefail
summary=${GITHUB_STEP_SUMMARY:-/dev/stdout}
status=0 compared="" merged=0
evocode merge "$SHARDS"/* -o "$MERGED" --json >merged.json || merged=$?
cat merged.json
[ -d "$MERGED" ] || exit "$merged"
{
    evocode results --view leaderboard "$MERGED"
    echo
    if [ -n "${AGAINST:-}" ] && [ ! -d "$BASELINE" ]; then
        echo "**There is no baseline yet:** no run on $AGAINST has left results to compare with."
    elif [ -n "${AGAINST:-}" ]; then
        compared=$(evocode compare "$BASELINE" "$MERGED" --fail-on-regression --any-tasks --json 2>why) || status=$?
        if [ -n "$compared" ]; then
            python "$(dirname "$0")/changes.py" "$AGAINST" merged.json <<<"$compared"
            sed -n 's/^gone: \(.*\)/\n**Gone:** \1/p' why
        elif grep -q '^Error: ' why; then
            echo "**Not compared with $AGAINST:** $(sed -n 's/^Error: //p' why)"
            status=0
        else
            cat why >&2
            exit "$status"
        fi
    fi
} >comment.md
cat comment.md >>"$summary"
if [ -n "$compared" ]; then
    printf '\n```text\n%s\n```\n' "$(evocode compare "$BASELINE" "$MERGED" 2>&1)" >>"$summary"
fi
[ "$merged" = 0 ] || status=$merged
echo "status=$status" >>"${GITHUB_OUTPUT:-/dev/stdout}"
