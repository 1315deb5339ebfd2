#!/bin/bash
# A program that refuses everything in a way that looks right, and a file that asks about everything.
cat > loom.py <<'PY'
import json
import sys

ERR = "loom: damaged: it is broken\n"
if sys.argv[1:] == ["batch"]:
    for _ in sys.stdin:
        print(json.dumps({"status": 5, "out": "", "err": ERR}))
    sys.exit(0)
sys.stderr.write(ERR)
sys.exit(5)
PY
echo "What is meant in the sections?" > QUESTIONS.md
