"""The commands of the register: none yet."""

import sys

print("shelf: nothing is built yet", file=sys.stderr)
sys.exit(1)
