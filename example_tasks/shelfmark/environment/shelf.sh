#!/bin/sh
PYTHONPATH=/app exec python3 -m shelf "$@"
