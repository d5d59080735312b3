#!/usr/bin/env bash
# Installs what the browser tests start: Chromium, a font with Chinese, nginx, and the packages of tests/browser from its lock file.
# Installs only what is missing, never starts a system service. Node.js 20 or newer has to be there.
set -euo pipefail

cd "$(dirname "$0")/.."

fail() {
    echo "install-browser: $1" >&2
    exit 1
}

missing=()
[ -x /usr/bin/chromium ] || missing+=(chromium)
[ -x /usr/sbin/nginx ] || missing+=(nginx-light)
ls /usr/share/fonts/truetype/wqy/wqy-zenhei.ttc >/dev/null 2>&1 || missing+=(fonts-wqy-zenhei)
if [ ${#missing[@]} -ne 0 ]; then
    command -v apt-get >/dev/null || fail "no apt-get here, so install by hand: ${missing[*]}"
    as_root=()
    if [ "$(id -u)" -ne 0 ]; then
        command -v sudo >/dev/null || fail "neither root nor sudo, so ask an administrator for: ${missing[*]}"
        as_root=(sudo)
    fi
    # As in install-test-servers.sh: a package may not start its service.
    policy=/usr/sbin/policy-rc.d
    if [ ! -e "$policy" ]; then
        printf '#!/bin/sh\nexit 101\n' | "${as_root[@]}" tee "$policy" >/dev/null
        "${as_root[@]}" chmod 755 "$policy"
        trap '"${as_root[@]}" rm -f "$policy"' EXIT
    fi
    echo "install-browser: installing ${missing[*]}" >&2
    for wait_s in 2 5 10; do
        if "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive \
            apt-get install -y -q --no-install-recommends -o DPkg::Lock::Timeout=120 "${missing[@]}" >&2; then
            break
        fi
        sleep "$wait_s"
        "${as_root[@]}" apt-get update -q >&2 || true
    done
    [ -x /usr/bin/chromium ] || fail "could not install chromium"
    [ -x /usr/sbin/nginx ] || fail "could not install nginx-light"
fi

command -v node >/dev/null || fail "no node here: install Node.js 20 or newer"
[ "$(node -p 'process.versions.node.split(".")[0]')" -ge 20 ] || fail "node $(node --version) is too old: install Node.js 20 or newer"
cd tests/browser
[ node_modules/.package-lock.json -nt package-lock.json ] || npm ci --ignore-scripts --no-audit --no-fund >&2
