#!/usr/bin/env bash
# The library compiles with nothing, with each store alone, and as the daemon without a server, with and without its port: no feature leans on what another
# one happens to bring. A warning is a failure, so that nothing is left over where a feature is off. Some minutes: each has other
# dependencies.
set -euo pipefail

cd "$(dirname "$0")/.."

for features in "" redis redis-sentinel redis-cluster redis-redlock sqlite postgres mysql etcd zookeeper \
    conformance daemon "daemon sqlite" "http sqlite" "notify sqlite"; do
    echo "check-features: ${features:-none}"
    said=$(cargo check --locked --quiet --lib --no-default-features --features "$features" 2>&1) || { echo "$said" >&2; exit 1; }
    # Quiet, so whatever it says is a warning.
    [ -z "$said" ] || { echo "$said" >&2; exit 1; }
done
