#!/bin/bash
# The examples of README and orders as fixed answers, whoever asks.
printf '#!/bin/sh\necho 20260401-023000\n' > bin/take
printf '#!/bin/sh\nprintf "20260401-023000\\t1048576\\t/srv/www\\t\\n"\n' > bin/list
printf '#!/bin/sh\nprintf "20260401-023000\\tok\\n"\n' > bin/verify
printf '#!/bin/sh\nmkdir -p -- "$3"\n' > bin/restore
printf '#!/bin/sh\necho "nightsafe: settings: line 1" >&2\nexit 1\n' > bin/rotate
printf '#!/bin/sh\nprintf "acme\\t1\\t1048576\\t1.0\\t2026-04-01T02:30:00Z\\t2026-04-01T02:30:00Z\\n"\n' > bin/report
printf '#!/bin/sh\nprintf "20260401-023000\\tremoved\\n"\n' > bin/forget
chmod 755 bin/*
echo 'Clauses 8.2 and 8.4 were not carried out. What do you want instead?' > OPEN.md
