#!/bin/sh
# object.sh NAME FILE... prints the observations of one object, with the notes.
LC_ALL=C
export LC_ALL
name=$1
shift
awk -f "$(dirname "$0")/read.awk" "$@" | sort -s -t "$(printf '\t')" -k 1,3 |
  NAME=$name awk -F '\t' '$4 == ENVIRON["NAME"] "" {
    printf "%s %s %-3.3s %5s %6ds %s\n", $1, $3, $5, $6, $7, $8
    if ($9 != "") printf "    %s\n", $9
  }'
