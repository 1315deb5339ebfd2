#!/bin/bash
# Install pytest-evocode from SOURCE with EXTRAS, and let sandboxes make user namespaces.
set -euo pipefail
pip install "$SOURCE${EXTRAS:+[$EXTRAS]}"
# Ubuntu's AppArmor keeps programs that it has no profile for from making user namespaces.
if [ -e /proc/sys/kernel/apparmor_restrict_unprivileged_userns ]; then
    sudo sysctl -w kernel.apparmor_restrict_unprivileged_userns=0
fi
