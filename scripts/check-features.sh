#!/usr/bin/env bash
# The library compiles with nothing, with each store alone, and as the daemon without a server, with and without its port: no feature leans on what another
# one happens to bring. The program compiles as `cargo install` builds it, and as the images and packages do. A warning is a failure, so that
# nothing is left over where a feature is off. Some minutes: each has other dependencies.
set -euo pipefail

cd "$(dirname "$0")/.."

check() {
    local said
    echo "check-features: $*"
    said=$(cargo check --locked --quiet "$@" 2>&1) || { echo "$said" >&2; exit 1; }
    # Quiet, so whatever it says is a warning.
    [ -z "$said" ] || { echo "$said" >&2; exit 1; }
}

for features in "" redis redis-sentinel redis-cluster redis-redlock sqlite postgres mysql etcd zookeeper \
    conformance daemon "daemon sqlite" "http sqlite" "notify sqlite"; do
    check --lib --no-default-features --features "$features"
done

check --bin cronward
# The list of the images, which scripts/dist.sh reads as well.
images=$(sed -n 's/^ARG FEATURES=//p' deploy/docker/Dockerfile)
# All that is there, but for what is not meant for users.
every=$(sed -n '/^\[features\]/,/^\[dependencies\]/s/^\([a-z-]*\) = .*/\1/p' Cargo.toml | grep -vxE 'default|conformance|fuzzing')
if ! diff <(tr ',' '\n' <<<"$images" | sort) <(sort <<<"$every"); then
    echo "check-features: ARG FEATURES of deploy/docker/Dockerfile is not every feature of Cargo.toml" >&2
    exit 1
fi
check --bin cronward --no-default-features --features "$images"
