#!/bin/bash
# The modules that this round changes, whole; the question has its answer.
set -euo pipefail
cp "$(dirname "$0")"/courier/*.py courier/
rm -f QUESTIONS.md
