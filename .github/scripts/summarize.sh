#!/bin/bash
# Merge the jobs' results into MERGED and write the leaderboard, and what regressed, to the job's summary and comment.md.
# The exit status is that of the comparison with BASELINE: 1 where an agent regressed beyond noise.
set -euo pipefail
evocode merge "$SHARDS"/* -o "$MERGED"
{
    evocode leaderboard "$MERGED" --format md
    status=0
    if [ -n "${BASELINE:-}" ] && [ -d "$BASELINE" ]; then
        echo
        echo '```text'
        evocode compare "$BASELINE" "$MERGED" --fail-on-regression 2>&1 || status=$?
        echo '```'
    fi
} >comment.md
cat comment.md >>"${GITHUB_STEP_SUMMARY:-/dev/stdout}"
echo "status=$status" >>"${GITHUB_OUTPUT:-/dev/stdout}"
