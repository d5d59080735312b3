#!/usr/bin/env bash
# Checks everything in deploy/: each file by the program that will read it. Needs the program `cronward`, as it was built for the tests
# or in CRONWARD. A tool that is missing is installed, or is a failure. With names of checks only those are made.
set -euo pipefail

cd "$(dirname "$0")/../.."
CRONWARD=$(realpath "${CRONWARD:-target/debug/cronward}")
[ -x "$CRONWARD" ] || { echo "deploy-check: $CRONWARD is not there: cargo test --workspace --all-features --no-run builds it" >&2; exit 1; }
export CRONWARD
tools=$(scripts/install-deploy-tools.sh)
export PATH=$tools/bin:$PATH:/usr/sbin
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

fail() {
    echo "deploy-check: $1" >&2
    exit 1
}

yaml() {
    # Templates of the chart are no YAML before they are rendered.
    find deploy -name '*.yaml' -not -path '*/templates/*' -print0 | sort -z | xargs -0 yamllint --strict -c scripts/deploy/yamllint.yaml
}

scripts() {
    # SC2317: functions that a trap calls.
    find scripts .ci deploy tests -type f \( -name '*.sh' -o -path '.ci/run' \) -print0 | sort -z | xargs -0 shellcheck -x -e SC2317
}

prometheus() {
    promtool check rules deploy/prometheus/alerts.yaml
    (cd deploy/prometheus && promtool test rules alerts_test.yaml)
}

kubernetes() {
    python3 scripts/deploy/kubernetes.py "$CRONWARD"
}

images() {
    mkdir "$work/images"
    scripts/deploy/images.sh "$(scripts/deploy/rootfs.sh "$tools")" "$work/images"
}

packages() {
    mkdir "$work/packages"
    unshare --mount scripts/deploy/installed.sh "$(scripts/deploy/rootfs.sh "$tools")" "$work/packages"
}

rotation() {
    # As whoever runs this: the account of the daemon need not be here. -d changes nothing.
    sed "s/su cronward cronward/su $(id -un) $(id -gn)/" deploy/logrotate/cronward >"$work/rotation"
    chmod 644 "$work/rotation"
    logrotate -d "$work/rotation" 2>&1 | tee "$work/rotated"
    if grep -i error "$work/rotated"; then
        fail "logrotate refuses deploy/logrotate/cronward"
    fi
    grep -q 'after 1 days\|weekly' "$work/rotated"
}

# What the page says is what comes of it, with processes in place of containers.
compose() {
    check-jsonschema --builtin-schema vendor.compose-spec deploy/compose/compose.yaml
    mkdir "$work/compose"
    cp deploy/compose/prometheus.yaml deploy/prometheus/alerts.yaml "$work/compose"
    promtool check config "$work/compose/prometheus.yaml"
    deploy/compose/walk.sh --local
}

# What systemd says of the unit with its drop-ins, as deploy/systemd/README.md tells it.
exposure() {
    local folder=$work/exposure drop_ins
    mkdir -p "$folder/etc/systemd/system/cronward.service.d"
    cp deploy/systemd/cronward.service "$folder/etc/systemd/system"
    drop_ins=$folder/etc/systemd/system/cronward.service.d
    # Ten times the number that it shows.
    for bound in hardened:67 port-only:19; do
        cp "deploy/systemd/cronward.service.d/${bound%:*}.conf" "$drop_ins"
        systemd-analyze security --offline=yes --root="$folder" --threshold="${bound#*:}" cronward.service >"$work/exposed" 2>&1 ||
            { cat "$work/exposed"; fail "${bound%:*}.conf leaves more open than it should"; }
        echo "${bound%:*}.conf: $(tail -n 1 "$work/exposed")"
        rm "$drop_ins"/*
    done
}

proxy() {
    mkdir -m 755 "$work/proxy"
    chmod 755 "$work"
    scripts/deploy/proxy.sh "$work/proxy"
}

checks=(yaml scripts prometheus kubernetes images packages rotation exposure compose proxy)
for check in "${@:-${checks[@]}}"; do
    [[ " ${checks[*]} " == *" $check "* ]] || fail "there is no check $check, only ${checks[*]}"
    echo "deploy-check: $check ($(date -u +%H:%M:%S))"
    "$check" >"$work/said" 2>&1 || { cat "$work/said" >&2; fail "$check failed"; }
    sed 's/^/    /' "$work/said"
done
echo "deploy-check: all well ($(date -u +%H:%M:%S))"
