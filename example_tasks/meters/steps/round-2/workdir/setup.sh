#!/bin/bash
# Between two conversations the user works with what there is.
rm -- setup.sh
cd live || exit 0
timeout 60 ../meters import ../samples/aqua-2024-01.csv ../samples/aqua-2024-02.csv > last-import.txt 2>&1
mkdir -p backups && cp meters.db backups/1.db 2> /dev/null
exit 0
