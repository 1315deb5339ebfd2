#!/bin/bash
# Between two conversations the user works with what there is: a value of 2010 is corrected.
rm -- setup.sh
cd live || exit 0
timeout 60 ../almanac export out > last-export.txt 2>&1
LC_ALL=C sed 's/;8,4;60;/;8,6;60;/' out/2010.log > 2010.log 2> /dev/null
timeout 60 ../almanac import 2010.log > last-import.txt 2>&1
rm -rf out 2010.log
exit 0
