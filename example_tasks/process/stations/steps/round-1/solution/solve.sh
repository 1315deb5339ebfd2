#!/bin/bash
# The files that this round adds or changes, whole.
set -euo pipefail
cp -R "$(dirname "$0")/project/." .
