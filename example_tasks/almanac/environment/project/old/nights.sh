#!/bin/sh
# nights.sh FILE... prints each night with the number of its observations and what was exposed in all.
LC_ALL=C
export LC_ALL
awk -f "$(dirname "$0")/read.awk" "$@" | sort -s -t "$(printf '\t')" -k 1,3 |
  awk -F '\t' '
    function show() { if (night != "") printf "%s %4d %7ds\n", night, count, exposed }
    $1 != night { show(); night = $1; count = exposed = 0 }
    { count++; exposed += $7 }
    END { show() }'
