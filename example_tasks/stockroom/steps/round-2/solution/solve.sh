#!/bin/bash
# One Stock object over two kinds of storage takes the place of the global lists; migrate carries data across.
set -euo pipefail
cp /solution/stockroom/*.py stockroom/
rm stockroom/storage.py stockroom/csvfile.py

sed -i '18s/.*/W-017,"Washer, M8, zinc",89,19.26,Yard/' warehouse/stock.csv
python3 -m stockroom --data warehouse migrate
