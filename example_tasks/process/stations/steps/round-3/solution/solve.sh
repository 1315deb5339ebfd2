#!/bin/bash
# Moves the modules in an order in which all imports work all the time: the new place first, the old one last.
set -euo pipefail
mkdir -p stations/reports
echo '"""What is made of readings."""' > stations/reports/__init__.py
cp stations/{summary,alerts,export}.py stations/reports/
sed -i -E 's/stations\.(summary|alerts|export)/stations.reports.\1/' stations/__main__.py tests/test_*.py

leave_behind() { # MODULE NAMES: what other people's scripts find in the old place
    cat > "stations/$1.py" <<PY
"""Moved to stations.reports.$1; gone from here in summer."""

import warnings

from stations.reports.$1 import $2

__all__ = "$2".split(", ")

warnings.warn("stations.$1 is now stations.reports.$1", DeprecationWarning, stacklevel=2)
PY
}
leave_behind summary "extent, mean, summarize"
leave_behind alerts "FROST, STORM, find_alerts"
leave_behind export "csv_line, csv_lines"
cp -R "$(dirname "$0")/tests/." tests
