#!/bin/bash
# The programs as this round leaves them, whole, and what has to be asked.
set -euo pipefail
cp "$(dirname "$0")"/crate.* "$(dirname "$0")"/QUESTIONS.md .
