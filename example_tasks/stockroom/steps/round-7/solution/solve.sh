#!/bin/bash
# Reservations, and version 3 of the database, to which bookings of old count back.
set -euo pipefail
cp /solution/README.md README.md
cp /solution/stockroom/*.py stockroom/
