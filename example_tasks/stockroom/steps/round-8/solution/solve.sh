#!/bin/bash
# The haulier's pick list. Nothing is put back into the warehouse: nothing is left of the bookings that were lost.
set -euo pipefail
cp /solution/README.md README.md
cp /solution/stockroom/*.py stockroom/
