#!/bin/bash
# Write the report of RESULTS as pages into the directory report, and as one file that a browser shows as it is.
set -euo pipefail
evocode report "$RESULTS" -o report
evocode report "$RESULTS" --single-file --most-megabytes 50 -o evocode-report.html ||
    echo "::notice::the report is too large for one file; its pages are in evocode-results"
