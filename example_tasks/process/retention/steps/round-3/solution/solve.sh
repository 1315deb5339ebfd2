#!/bin/bash
# The files that this round adds or changes, whole. The question is answered, so nobody is asked any more.
set -euo pipefail
cp -R "$(dirname "$0")/project/." .
rm -f QUESTIONS.md
