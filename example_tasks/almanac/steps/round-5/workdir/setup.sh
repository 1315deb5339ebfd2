#!/bin/bash
# Between two conversations the user works with what there is: a table of 2018 comes.
rm -- setup.sh
cd live || exit 0
printf 'id\tut\tobject\tobserver\tmag\texp\tnote\n' > 2018.tsv
printf '0601\t2018-01-01T00:10\tR Leo\tHA\t7.5\t60\tNeujahr\n0602\t2018-01-01T20:10\tχ Cyg\tÅSÖ\t5.5\t30\t\n' >> 2018.tsv
timeout 60 ../almanac import 2018.tsv > last-import.txt 2>&1
rm 2018.tsv
exit 0
