#!/usr/bin/env bash
# Everything of a release, in target/dist/release: the program for glibc and for musl, both packages, the list of what is in them (CycloneDX), and
# SHA256SUMS. Takes a quarter of an hour on two processors. A tool that is missing is a failure, before anything is built; STATIC=no asks for no
# program for musl. With the path of a program as argument that one is packed, and nothing is built; with that of a folder behind it, into that one.
set -euo pipefail

cd "$(dirname "$0")/.."
machine=$(uname -m)
musl=$machine-unknown-linux-musl
static=${STATIC:-yes}
[ $# = 0 ] || static=no
if [ "$static" = yes ] && ! { rustup target list --installed 2>/dev/null | grep -x "$musl" && command -v musl-gcc; } >/dev/null; then
    echo "dist: cannot build for $musl: install it (rustup target add $musl) and musl-gcc (apt install musl-tools), or leave it out: STATIC=no" >&2
    exit 1
fi
tools=$(scripts/install-deploy-tools.sh)
export PATH=$tools/bin:$PATH
out=${2:-target/dist/release}
# Every store, as in the images.
features=$(sed -n 's/^ARG FEATURES=//p' deploy/docker/Dockerfile)
rm -rf "$out"
mkdir -p "$out"

if [ $# -gt 0 ]; then
    program=$1
else
    cargo build --locked --profile dist --no-default-features --features "$features"
    program=target/dist/cronward
    if [ "$static" = yes ]; then
        cargo build --locked --profile dist --no-default-features --features "$features" --target "$musl"
        install -m 755 "target/$musl/dist/cronward" "$out/cronward-$machine-linux-musl"
    fi
fi
strip -o "$out/cronward-$machine-linux-gnu" "$program"
scripts/deploy/packages.sh "$program" "$out"
python3 scripts/deploy/sbom.py "$features" >"$out/cronward.cdx.json"
(cd "$out" && sha256sum -- * >SHA256SUMS && sha256sum --check --quiet SHA256SUMS)
ls -l "$out"
