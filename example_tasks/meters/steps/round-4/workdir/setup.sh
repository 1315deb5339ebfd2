#!/bin/bash
# Between two conversations the user works with what there is.
rm -- setup.sh
cd live || exit 0
timeout 60 ../meters import ../samples/volt-2024-01.csv ../samples/norda-2024-01.csv > last-import.txt 2>&1
exit 0
