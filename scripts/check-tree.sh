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

# Parts of tokio that only the daemon and its commands use; a store's client may bring sockets and buffers of its own.
lean() {
    local features=$1 part parts
    shift
    parts=$(cargo tree --locked -e normal --prefix none --format '{p} {f}' --no-default-features --features "$features" |
        grep '^tokio v' | tr ', ' '\n' | sort -u)
    grep -qx sync <<<"$parts"
    for part in "$@"; do
        if grep -qx "$part" <<<"$parts"; then
            echo "check-tree: features '$features' pull in $part of tokio" >&2
            exit 1
        fi
    done
}

absent "" axum hyper reqwest lettre redis sqlx tonic zookeeper-client clap toml rustls nix tokio-cron-scheduler tracing-subscriber
absent "redis" sqlx tonic zookeeper-client clap toml tokio-cron-scheduler
absent "redis-redlock" sqlx tonic zookeeper-client clap toml tokio-cron-scheduler
absent "sqlite" redis rustls sqlx-postgres sqlx-mysql tonic zookeeper-client clap toml tokio-cron-scheduler
absent "postgres" redis libsqlite3-sys sqlx-mysql tonic zookeeper-client clap toml tokio-cron-scheduler
absent "mysql" redis libsqlite3-sys sqlx-postgres rsa tonic zookeeper-client clap toml tokio-cron-scheduler
absent "etcd" redis sqlx zookeeper-client clap toml tokio-cron-scheduler
absent "zookeeper" redis sqlx tonic clap toml tokio-cron-scheduler
absent "daemon sqlite" axum hyper reqwest lettre hmac
absent "http sqlite" reqwest lettre
absent "notify sqlite" axum native-tls openssl-sys aws-lc-sys aws-lc-rs
absent "daemon redis sqlite" sqlx-postgres sqlx-mysql tonic zookeeper-client

lean "" fs io-std io-util net process rt-multi-thread signal
for store in redis sqlite postgres mysql etcd zookeeper; do
    lean "$store" io-std process rt-multi-thread signal
done
