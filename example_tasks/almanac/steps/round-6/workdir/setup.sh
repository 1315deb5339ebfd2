#!/bin/bash
# Between two conversations the user works with what there is: two observations are written down.
rm -- setup.sh
cd live || exit 0
timeout 60 ../almanac add 2019-03-02T00:15 'χ Cyg' HJK 5.4 30 'klare Nacht' > last-add.txt 2>&1
timeout 60 ../almanac add 2019-03-02T21:00 'T CrB' HA 10.0 240 >> last-add.txt 2>&1
exit 0
