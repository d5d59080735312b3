#!/usr/bin/env bash
# Lets systemd read the units of deploy/systemd, with each drop-in on its own. Any warning is an error.
set -euo pipefail

cd "$(dirname "$0")/.."
command -v systemd-analyze >/dev/null || scripts/install-deploy-tools.sh >/dev/null

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT

verify() {
    # The program need not be installed where the unit is checked; its options are checked by the program's own tests.
    sed 's#^ExecStart=/usr/local/bin/cronward .*#ExecStart=/bin/true#' deploy/systemd/cronward.service >"$folder/cronward.service"
    local said
    said=$(SYSTEMD_UNIT_PATH="$folder:" systemd-analyze verify --man=no "$folder/cronward.service" 2>&1) || true
    if grep -F cronward <<<"$said"; then
        echo "check-units: $1 is not right" >&2
        exit 1
    fi
}

verify cronward.service
for drop_in in deploy/systemd/cronward.service.d/*.conf; do
    mkdir -p "$folder/cronward.service.d"
    cp "$drop_in" "$folder/cronward.service.d/"
    verify "$drop_in"
    rm -r "$folder/cronward.service.d"
done
mkdir -p "$folder/etc"
systemd-sysusers --root="$folder" "$PWD/deploy/systemd/cronward.sysusers.conf"
grep -q '^cronward:' "$folder/etc/passwd"
