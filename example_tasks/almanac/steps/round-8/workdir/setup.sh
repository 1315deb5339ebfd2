#!/bin/bash
# Between two conversations the user works with what there is: one of two is preferred, and a table is replaced.
rm -- setup.sh
cd live || exit 0
timeout 60 ../almanac prefer 0117 2006-03-02 2006.crd > last-prefer.txt 2>&1
printf 'id\tut\tobject\tobserver\tmag\texp\n0602\t2018-01-01T20:10\tχ Cyg\tÅSÖ\t5.6\t30\n' > 2018.tsv
timeout 60 ../almanac import --replace 2018.tsv > last-import.txt 2>&1
rm 2018.tsv
exit 0
