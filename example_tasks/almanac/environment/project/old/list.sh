#!/bin/sh
# list.sh FILE... prints all observations, night by night.
LC_ALL=C
export LC_ALL
awk -f "$(dirname "$0")/read.awk" "$@" | sort -s -t "$(printf '\t')" -k 1,3 |
  awk -F '\t' '{ printf "%s %s %-12.12s %-3.3s %5s %6ds %s\n", $1, $3, $4, $5, $6, $7, $8 }'
