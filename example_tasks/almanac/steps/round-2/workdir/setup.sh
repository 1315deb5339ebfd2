#!/bin/bash
# Between two conversations the user works with what there is.
rm -- setup.sh
cd live || exit 0
timeout 60 ../almanac import ../files/*.crd ../files/*.log ../files/*.tsv > last-import.txt 2>&1
mkdir -p backups && cp almanac.db backups/1.db 2> /dev/null
rm -r ../files
exit 0
