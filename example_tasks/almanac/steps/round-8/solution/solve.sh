#!/bin/bash
# The files that this round changes, whole.
set -euo pipefail
cp -R "$(dirname "$0")"/app/. .
