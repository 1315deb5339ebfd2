#!/bin/bash
# Put the address of the report at the end of the job's summary.
set -euo pipefail
printf '\n[Report](%s)\n' "$REPORT" >>"${GITHUB_STEP_SUMMARY:-/dev/stdout}"
