#!/bin/bash
# Puts the delivered files where the customer says they are, and leaves no trace of the delivery.
set -euo pipefail
mkdir -p warehouse
mv warehouse-stock.csv warehouse/stock.csv
mv warehouse-moves.csv warehouse/moves.csv
rm -- setup.sh
