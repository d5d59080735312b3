#!/usr/bin/env bash
# Makes the Debian and the RPM package of a program that has been built. The arguments: the program, and where to put the packages.
set -euo pipefail

cd "$(dirname "$0")/../.."
program=$1 out=$2
STAGE=$(mktemp -d)
trap 'rm -rf "$STAGE"' EXIT
mkdir -p "$out"

field() {
    cargo metadata --offline --locked --no-deps --format-version 1 |
        python3 -c 'import json, sys; p = next(p for p in json.load(sys.stdin)["packages"] if p["name"] == "cronward"); print(p[sys.argv[1]] or "")' "$1"
}

# The newest symbol of glibc that the program asks for.
glibc() {
    objdump -T "$1" | grep -oE 'GLIBC_[0-9.]+' | sed 's/GLIBC_//' | sort -Vu | tail -n 1
}

VERSION=$(field version)
LICENSE=$(field license)
HOMEPAGE=$(field homepage)
SUMMARY=$(field description)
SUMMARY=${SUMMARY%%:*}
# Debian has it without an article.
SYNOPSIS=${SUMMARY#A }
GLIBC=$(glibc "$program")
MAINTAINER=${CRONWARD_MAINTAINER:-The cronward contributors <cronward@cronward.invalid>}
case $(uname -m) in
    x86_64) ARCH=amd64 ;;
    aarch64) ARCH=arm64 ;;
    *) ARCH=$(uname -m) ;;
esac
# The same commit makes the same packages.
SOURCE_DATE_EPOCH=$(git log -1 --format=%ct 2>/dev/null || echo 0)
MTIME=$(date -u -d "@$SOURCE_DATE_EPOCH" +%Y-%m-%dT%H:%M:%SZ)
COMPRESSION=${COMPRESSION:-xz}
export STAGE COMPRESSION VERSION LICENSE HOMEPAGE SUMMARY SYNOPSIS GLIBC MAINTAINER ARCH SOURCE_DATE_EPOCH MTIME

strip -o "$STAGE/cronward" "$program"
sed 's#/usr/local/bin/cronward#/usr/bin/cronward#' deploy/systemd/cronward.service >"$STAGE/cronward.service"
"$program" man --out "$STAGE/man"
mkdir "$STAGE/man5"
python3 scripts/docs/man5.py docs/jobs-toml.md jobs.toml 5 "the jobs of cronward" >"$STAGE/man5/jobs.toml.5"
gzip -9n "$STAGE/man5/jobs.toml.5"
find "$STAGE/man" -name '*.1' -exec gzip -9n {} +
for shell in bash fish zsh; do
    "$program" completions "$shell" >"$STAGE/cronward.$shell"
done
printf '%s\n' "cronward ($VERSION-1) unstable; urgency=medium" '' "  * See changelog.gz." '' \
    " -- $MAINTAINER  $(date -u -R -d "@$SOURCE_DATE_EPOCH")" | gzip -9n >"$STAGE/changelog.Debian.gz"
gzip -9nc CHANGELOG.md >"$STAGE/changelog.gz"
{
    echo "Format: https://www.debian.org/doc/packaging-manuals/copyright-format/1.0/"
    echo "Upstream-Name: cronward"
    echo
    echo "Files: *"
    echo "Copyright: $(sed -n 's/^Copyright (c) //p' LICENSE-MIT)"
    echo "License: Apache-2.0 or Expat"
    echo
    echo "License: Apache-2.0"
    echo " On Debian systems the text is in /usr/share/common-licenses/Apache-2.0."
    echo
    echo "License: Expat"
    sed '1,/^Copyright/d; /./,$!d; s/^$/./; s/^/ /' LICENSE-MIT
} >"$STAGE/copyright"
# nfpm fills in variables in some places only.
python3 -c 'import os, string, sys; print(string.Template(sys.stdin.read()).substitute(os.environ))' \
    <deploy/packages/nfpm.yaml >"$STAGE/nfpm.yaml"
for packager in deb rpm; do
    nfpm package --config "$STAGE/nfpm.yaml" --packager "$packager" --target "$out"
done
