#!/usr/bin/env bash
# A small Debian 12 as a tar, made from Debian's own packages: the base of `slim` where no registry of images can be reached, and the
# machine that the packages are installed on. Made once, and kept in the folder that is given. Prints its path.
set -euo pipefail

tar=$1/debian-12.tar
if [ ! -e "$tar" ]; then
    mmdebstrap --quiet --mode=root --variant=minbase --include=ca-certificates,tzdata bookworm "$tar.part" >&2
    mv "$tar.part" "$tar"
fi
echo "$tar"
