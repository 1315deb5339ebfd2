#!/bin/bash
# A program that prints a balance in which nothing is left, whatever it is asked for.
cat > ledger.py <<'PY'
print("-" * 14)
print(f"{'0.00':>14}")
PY
