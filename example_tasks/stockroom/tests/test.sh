#!/bin/bash
# Runs the suite of the round named in /tests/ROUND.
set -u
mkdir -p /logs/verifier
echo 0.0 > /logs/verifier/reward.txt
exec python3 -I /tests/run_suite.py
