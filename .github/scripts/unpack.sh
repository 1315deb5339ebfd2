#!/bin/bash
# Unpack the results of an earlier benchmark in the directory that its artifact was downloaded to.
set -euo pipefail
if [ -f "$1/evocode-results.tar.gz" ]; then
    tar -xzf "$1/evocode-results.tar.gz" -C "$1" merged
    rm "$1/evocode-results.tar.gz"
fi
