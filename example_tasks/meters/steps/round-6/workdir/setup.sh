#!/bin/bash
# Between two conversations the user works with what there is.
rm -- setup.sh
cd live || exit 0
timeout 60 ../meters import ../samples/workshop-2024.csv ../samples/volt-2024-02.csv ../samples/aqua-2024-03.csv > last-import.txt 2>&1
mkdir -p backups && cp meters.db backups/5.db 2> /dev/null
exit 0
