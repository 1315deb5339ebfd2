#!/bin/bash
# The modules that this round changes, whole, and what has to be asked.
set -euo pipefail
cp "$(dirname "$0")"/courier/*.py courier/
cp "$(dirname "$0")"/QUESTIONS.md .
