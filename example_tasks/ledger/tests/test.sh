#!/bin/bash
# Runs every case that is active in the round named by through.txt. -I keeps the workspace's Python settings out.
mkdir -p /logs/verifier
exec python3 -I -B /tests/run_cases.py
