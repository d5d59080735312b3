#!/usr/bin/env bash
# A small Debian 12 as a tar, made from Debian's own packages: the base of `slim` where no registry of images can be reached, and the
# machine that the packages are installed on. Made once, and kept in the folder that is given. Prints its path.
set -euo pipefail

tar=$1/debian-12.tar
# Of two who ask at once one makes it.
exec 9>"$tar.lock"
flock 9
if [ ! -e "$tar" ]; then
    # A mirror may be busy for a moment.
    for wait_s in 5 20 0; do
        mmdebstrap --quiet --mode=root --variant=minbase --include=ca-certificates,tzdata bookworm "${tar%.tar}.part.tar" >&2 && break
        sleep "$wait_s"
    done
    mv "${tar%.tar}.part.tar" "$tar"
fi
echo "$tar"
