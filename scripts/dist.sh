#!/usr/bin/env bash
# Everything of a release, in target/dist/release: the program for glibc and, where the target is installed, for musl, both packages, the list of
# what is in them (CycloneDX), and SHA256SUMS. Takes a quarter of an hour on two processors. With the path of a program as argument that
# one is packed, and nothing is built; with that of a folder behind it, into that one.
set -euo pipefail

cd "$(dirname "$0")/.."
tools=$(scripts/install-deploy-tools.sh)
export PATH=$tools/bin:$PATH
out=${2:-target/dist/release}
# Every store, as in the images.
features=$(sed -n 's/^ARG FEATURES=//p' deploy/docker/Dockerfile)
machine=$(uname -m)
rm -rf "$out"
mkdir -p "$out"

if [ $# -gt 0 ]; then
    program=$1
else
    cargo build --locked --profile dist --no-default-features --features "$features"
    program=target/dist/cronward
    if rustup target list --installed 2>/dev/null | grep -qx "$machine-unknown-linux-musl"; then
        cargo build --locked --profile dist --no-default-features --features "$features" --target "$machine-unknown-linux-musl"
        install -m 755 "target/$machine-unknown-linux-musl/dist/cronward" "$out/cronward-$machine-linux-musl"
    else
        echo "dist: no static program: rustup target add $machine-unknown-linux-musl, and musl-gcc (musl-tools)" >&2
    fi
fi
strip -o "$out/cronward-$machine-linux-gnu" "$program"
scripts/deploy/packages.sh "$program" "$out"
python3 scripts/deploy/sbom.py "$features" >"$out/cronward.cdx.json"
(cd "$out" && sha256sum -- * >SHA256SUMS && sha256sum --check --quiet SHA256SUMS)
ls -l "$out"
