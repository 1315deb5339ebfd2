#!/bin/bash
# Programs that call every archive damaged.
cat > crate.c <<'C'
#include <stdio.h>
int main(void)
{
    fputs("crate: damaged: it is broken\n", stderr);
    return 3;
}
C
cat > crate.py <<'PY'
import sys

sys.exit(print("crate: damaged: it is broken", file=sys.stderr) or 3)
PY
