#!/bin/bash
# Good rows of a supplier file are booked, the others put aside; low looks at what is free.
set -euo pipefail
cp /solution/README.md README.md
cp /solution/stockroom/*.py stockroom/
