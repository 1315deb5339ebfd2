#!/bin/bash
# Keep the tasks' Docker images from run to run: `images.sh load FILE` at the start of a job, `images.sh save FILE` at
# its end. Those that are too large together, MOST_BYTES before compression, are not kept.
set -euo pipefail
file=$2
most=${MOST_BYTES:-2147483648}
if ! docker version >/dev/null 2>&1; then
    echo "no Docker here"
elif [ "$1" = load ]; then
    if [ -f "$file" ]; then
        docker load --quiet --input "$file" || echo "::notice::the kept images cannot be loaded, and are built again"
    fi
else
    mapfile -t images < <(docker image ls --filter label=evocode.image=task --format '{{.Repository}}:{{.Tag}}' evocode-task)
    [ ${#images[@]} -gt 0 ] || exit 0
    mkdir -p "$(dirname "$file")"
    # One byte more than allowed shows that there is more, without filling the disk.
    if docker save "${images[@]}" | head -c $((most + 1)) >"$file" && [ "$(stat -c %s "$file")" -le "$most" ]; then
        echo "kept ${#images[@]} images"
    else
        rm "$file"
        echo "::notice::images of tasks are not kept: together they have over $most bytes, or cannot be read"
    fi
fi
