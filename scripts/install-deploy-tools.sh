#!/usr/bin/env bash
# Installs what scripts/deploy/check.sh calls: Debian's packages by apt-get, everything else into a folder of its own, by pip and with
# pinned versions. Installs only what is missing, and starts no service. Prints the folder, whose bin/ comes first in PATH.
set -euo pipefail

cd "$(dirname "$0")/.."

declare -A package_of=(
    [yamllint]=yamllint [shellcheck]=shellcheck [buildah]=buildah [mmdebstrap]=mmdebstrap [lintian]=lintian
    [rpm]=rpm [logrotate]=logrotate [nginx]=nginx-light [promtool]=prometheus [systemd-analyze]=systemd [dpkg-deb]=dpkg
    [python3]=python3 [openssl]=openssl [curl]=curl [redis-server]=redis-server [redis-cli]=redis-tools [node]=nodejs
)
PATH=$PATH:/usr/sbin

fail() {
    echo "install-deploy-tools: $1" >&2
    exit 1
}

missing=()
for program in "${!package_of[@]}"; do
    command -v "$program" >/dev/null || missing+=("${package_of[$program]}")
done
python3 -c 'import ensurepip' 2>/dev/null || missing+=(python3-venv)
if [ ${#missing[@]} -gt 0 ]; then
    command -v apt-get >/dev/null || fail "no apt-get here, so install by hand: ${missing[*]}"
    as_root=()
    if [ "$(id -u)" -ne 0 ]; then
        command -v sudo >/dev/null || fail "neither root nor sudo, so ask an administrator for: ${missing[*]}"
        as_root=(sudo)
    fi
    # Packages of servers start them, unless a policy forbids that.
    policy=/usr/sbin/policy-rc.d
    if [ ! -e "$policy" ]; then
        printf '#!/bin/sh\nexit 101\n' | "${as_root[@]}" tee "$policy" >/dev/null
        "${as_root[@]}" chmod 755 "$policy"
        trap '"${as_root[@]}" rm -f "$policy"' EXIT
    fi
    echo "install-deploy-tools: installing ${missing[*]}" >&2
    # The package lists may be missing, stale, or their mirror busy for a moment.
    for wait_s in 2 5 10; do
        "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install -y -q --no-install-recommends \
            -o DPkg::Lock::Timeout=300 "${missing[@]}" >&2 && break
        sleep "$wait_s"
        "${as_root[@]}" apt-get update -q >&2 || true
    done
fi
for program in "${!package_of[@]}"; do
    command -v "$program" >/dev/null || fail "could not install ${package_of[$program]}"
done

# Another list is another folder, so that nothing of an old one is left in it.
lists=(scripts/deploy/requirements.txt scripts/deploy/binaries.txt)
folder=${XDG_CACHE_HOME:-$HOME/.cache}/cronward/deploy-$(cat "${lists[@]}" | sha256sum | cut -c1-12)
# Of two that are called at once, one waits.
mkdir -p "${folder%/*}"
exec 9>"$folder.lock"
flock 9
if [ ! -e "$folder/complete" ]; then
    rm -rf "$folder"
    python3 -m venv "$folder" >&2
    pip=("$folder/bin/pip" install --quiet --disable-pip-version-check --no-deps --only-binary :all:)
    for attempt in 1 2 3; do
        if "${pip[@]}" --require-hashes -r scripts/deploy/binaries.txt >&2 && "${pip[@]}" -r scripts/deploy/requirements.txt >&2; then
            touch "$folder/complete"
            break
        fi
        echo "install-deploy-tools: try $attempt failed" >&2
        sleep "$attempt"
    done
fi
[ -e "$folder/complete" ] || fail "could not install the programs of ${lists[*]} by pip"
echo "$folder"
