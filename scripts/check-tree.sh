#!/usr/bin/env bash
# A service that embeds the guard pays for nothing it does not use: `--no-default-features` has no store client, no parser
# of files or command lines; each store's feature brings its own client only.
set -euo pipefail

cd "$(dirname "$0")/.."

crates() {
    cargo tree --locked -e normal --prefix none --format '{p}' --no-default-features "$@" | cut -d' ' -f1 | sort -u
}

absent() {
    local features=$1 tree
    shift
    tree=$(crates --features "$features")
    grep -qx cronward <<<"$tree"
    for crate in "$@"; do
        if grep -qx "$crate" <<<"$tree"; then
            echo "check-tree: features '$features' pull in $crate" >&2
            exit 1
        fi
    done
}

absent "" redis sqlx clap toml rustls nix tokio-cron-scheduler tracing-subscriber
absent "redis" sqlx clap toml tokio-cron-scheduler
absent "sqlite" redis rustls clap toml tokio-cron-scheduler
