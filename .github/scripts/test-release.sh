#!/bin/bash
# Test what is released and not what lies in a clone: install the wheel in dist/, and run tests of the unpacked archive
# against it.
set -euo pipefail
sha256sum --check --quiet <(sed 's,  ,  dist/,' SHA256SUMS)
wheel=$(realpath dist/*.whl)
mkdir unpacked
tar -xzf dist/*.tar.gz -C unpacked --strip-components=1
cd unpacked
pip install "$wheel[sandbox,parquet,process]" --group test
# Ubuntu's AppArmor keeps programs that it has no profile for from making user namespaces.
sudo sysctl -w kernel.apparmor_restrict_unprivileged_userns=0
evocode doctor
pytest -n 4 -m "not docker" tests/tasks tests/results tests/metrics tests/cli tests/workflows \
    tests/acceptance/test_new_tasks.py tests/acceptance/test_round_outcomes.py
