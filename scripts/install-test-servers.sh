#!/usr/bin/env bash
# Installs the servers and tools that the tests start: redis-server, PostgreSQL, MariaDB, etcd, ZooKeeper, faketime,
# Debian's cron, the shells that completion is tried in: zsh, fish, Prometheus with its promtool, by which metrics and alerts are judged, and a
# mail server that takes what is sent and keeps nothing, and PgBouncer.
# Installs only what is missing, never starts a system service, changes nothing when all is there.
set -euo pipefail

declare -A package_of=(
    [redis-server]=redis-server [faketime]=faketime [initdb]=postgresql [mariadbd]=mariadb-server
    [etcd]=etcd-server [java]=zookeeper [cron]=cron [zsh]=zsh [fish]=fish
    [pgbouncer]=pgbouncer [promtool]=prometheus [prometheus]=prometheus [aiosmtpd]=python3-aiosmtpd
)
# ZooKeeper's program is a script of its own; its package brings the Java that runs it.
package_of[/usr/share/zookeeper/bin/zkServer.sh]=zookeeper

# Debian keeps PostgreSQL's programs out of PATH, and MariaDB's server where only root looks.
PATH=$PATH:/usr/sbin:$(printf '%s:' /usr/lib/postgresql/*/bin)

missing=()
for program in "${!package_of[@]}"; do
    command -v "$program" >/dev/null || missing+=("${package_of[$program]}")
done
if [ ${#missing[@]} -eq 0 ]; then
    exit 0
fi

fail() {
    echo "install-test-servers: $1; the tests need on PATH: ${!package_of[*]}" >&2
    exit 1
}

command -v apt-get >/dev/null || fail "no apt-get here, so install by hand: ${missing[*]}"
as_root=()
if [ "$(id -u)" -ne 0 ]; then
    command -v sudo >/dev/null || fail "neither root nor sudo, so ask an administrator for: ${missing[*]}"
    as_root=(sudo)
fi

# The servers' packages start system services at installation. `policy-rc.d` with exit code 101 forbids that; one that is
# already there belongs to the machine and is left alone.
policy=/usr/sbin/policy-rc.d
if [ ! -e "$policy" ]; then
    printf '#!/bin/sh\nexit 101\n' | "${as_root[@]}" tee "$policy" >/dev/null
    "${as_root[@]}" chmod 755 "$policy"
    trap '"${as_root[@]}" rm -f "$policy"' EXIT
fi

install() {
    "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive \
        apt-get install -y -q --no-install-recommends -o DPkg::Lock::Timeout=120 "${missing[@]}"
}

echo "install-test-servers: installing ${missing[*]}" >&2
# The package lists may be missing, stale, or their mirror busy for a moment.
for wait_s in 2 5 10; do
    if install; then
        break
    fi
    sleep "$wait_s"
    "${as_root[@]}" apt-get update -q || true
done

PATH=$PATH:$(printf '%s:' /usr/lib/postgresql/*/bin)
for program in "${!package_of[@]}"; do
    command -v "$program" >/dev/null || fail "could not install ${package_of[$program]}"
done
# Where the policy was not asked (a package that calls systemctl itself), nothing may go on listening.
if [ -d /run/systemd/system ]; then
    for service in redis-server postgresql mariadb etcd cron prometheus; do
        if [[ " ${missing[*]} " == *" ${service%-server}"* ]]; then
            "${as_root[@]}" systemctl disable --now "$service.service" >/dev/null 2>&1 || true
        fi
    done
fi
