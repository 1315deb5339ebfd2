#!/bin/bash
# The files that this round changes, whole.
set -euo pipefail
cp -r "$(dirname "$0")"/files/. .
