#!/bin/bash
# Install pytest-evocode from SOURCE with EXTRAS, let sandboxes make user namespaces, and write the output `made-of`: what
# kept images depend on beside their tasks.
set -euo pipefail
pip install "$SOURCE${EXTRAS:+[$EXTRAS]}"
# Ubuntu's AppArmor keeps programs that it has no profile for from making user namespaces.
if [ -e /proc/sys/kernel/apparmor_restrict_unprivileged_userns ]; then
    sudo sysctl -w kernel.apparmor_restrict_unprivileged_userns=0
fi
version=$(python -c 'from importlib.metadata import version; print(version("pytest-evocode"))')
echo "made-of=$version-${ImageOS:-$(uname -s)}-$(uname -m)" >>"${GITHUB_OUTPUT:-/dev/null}"
