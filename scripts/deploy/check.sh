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
declare -A running
# By number: what was started here and has not ended.
leave() {
    kill "${running[@]}" 2>/dev/null || true
    wait
    rm -rf "$work"
}
trap leave EXIT
trap 'exit 143' TERM

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
    find scripts .ci deploy tests -type f \( -name '*.sh' -o -path '.ci/run' -o -path 'deploy/packages/p*' -not -name '*.*' \) -print0 | sort -z | xargs -0 shellcheck -x -e SC2317
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

# A whole release is not begun where a part of it cannot be made: a rustup without targets, and a cargo that must not be called.
release_needs_all() {
    mkdir "$work/bare"
    printf '#!/bin/sh\nexit 0\n' >"$work/bare/rustup"
    printf '#!/bin/sh\ntouch "%s"\nexit 1\n' "$work/bare/called" >"$work/bare/cargo"
    chmod +x "$work"/bare/*
    if PATH=$work/bare:$PATH scripts/dist.sh >"$work/bare/said" 2>&1 || [ -e "$work/bare/called" ]; then
        fail "a release without a program for musl is begun"
    fi
    grep -q 'rustup target add .*-linux-musl.*STATIC=no' "$work/bare/said" || { cat "$work/bare/said"; fail "dist.sh does not say what is missing"; }
}

# A release, of the program that is there: how its packages are installed is another check's, so this is what else is in it.
release() {
    release_needs_all
    # A debug build is large, and xz slow.
    strip -o "$work/program" "$CRONWARD"
    COMPRESSION=gzip scripts/dist.sh "$work/program" "$work/release"
    (cd "$work/release" && sha256sum --check SHA256SUMS)
    [ "$(grep -cE '\.deb$|\.rpm$|-linux-gnu$' "$work/release/SHA256SUMS")" = 3 ]
    # What people are told to install is what was built, and needs no newer system than they are told.
    local page name needs bound
    for page in README.md README.zh-CN.md docs/getting-started.md docs/zh/getting-started.md deploy/packages/README.md; do
        grep -qE 'cronward[-_][0-9]' "$page" || fail "$page names no package"
        while read -r name; do
            [ -e "$work/release/$name" ] || fail "$page names $name, and there is $(cd "$work/release" && echo *)"
        done < <(grep -oE 'cronward[-_][0-9][^ )`]*\.(deb|rpm)' "$page")
    done
    dpkg-deb -f "$work"/release/*.deb Depends | grep -qw tzdata || fail "the package for Debian does not depend on tzdata"
    rpm -qp --requires "$work"/release/*.rpm | grep -qx tzdata || fail "the package for Fedora does not depend on tzdata"
    needs=$(dpkg-deb -f "$work"/release/*.deb Depends | sed -n 's/.*libc6 (>= \([0-9.]*\)).*/\1/p')
    bound=$(sed -n 's/.*glibc \([0-9.]*\) or newer.*/\1/p' deploy/packages/README.md)
    [ "$(printf '%s\n' "$needs" "${bound:?no bound in deploy/packages/README.md}" | sort -V | tail -n 1)" = "$bound" ] ||
        fail "the package needs glibc $needs, and deploy/packages/README.md promises $bound"
    echo "packages: glibc $needs, as promised from $bound on"
    python3 - "$work/release/cronward.cdx.json" <<'END'
import json, sys
told = json.load(open(sys.argv[1]))
names = {part["name"] for part in told["components"]}
assert {"tokio", "redis", "sqlx", "tonic"} <= names, "crates are missing"
assert not {"proptest", "insta", "stateright"} & names, "crates of the tests are in it"
assert all(part.get("licenses") and part.get("hashes") for part in told["components"]), "a crate without licence or checksum"
print(f"CycloneDX: {len(names)} crates")
END
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
    python3 - <<'END'
import pathlib, re, tomllib
page = pathlib.Path("docs/jobs-toml.md").read_text()
default = lambda key: re.search(rf'^\| `{key}` \| `"(\d+)s"` \|', page, re.M).group(1) + "s"
seconds = lambda text: int(re.fullmatch(r"(\d+)s", text).group(1))
told = tomllib.loads(pathlib.Path("deploy/compose/jobs.toml").read_text())
kill_after = max(seconds(job.get("kill_after", default("kill_after"))) for job in told["jobs"].values())
wanted = f'stop_grace_period: {seconds(told["node"]["drain"]) + kill_after + 6}s'
for file in ("deploy/compose/compose.yaml", "deploy/compose/README.md"):
    assert wanted in pathlib.Path(file).read_text(), f"{file}: the nodes need {wanted}"
END
    mkdir "$work/compose"
    cp deploy/compose/prometheus.yaml deploy/prometheus/alerts.yaml "$work/compose"
    promtool check config "$work/compose/prometheus.yaml"
    deploy/compose/walk.sh --local
}

# What systemd says of the unit, alone and with each drop-in, is at most what deploy/systemd/README.md says.
exposure() {
    local folder=$work/exposure drop_ins part words bound
    mkdir -p "$folder/etc/systemd/system/cronward.service.d"
    cp deploy/systemd/cronward.service "$folder/etc/systemd/system"
    drop_ins=$folder/etc/systemd/system/cronward.service.d
    for part in alone hardened.conf port-only.conf; do
        words="with \`$part\`"
        if [ "$part" = alone ]; then
            words="without a drop-in"
        else
            cp "deploy/systemd/cronward.service.d/$part" "$drop_ins"
        fi
        bound=$(grep -oE "[0-9]\.[0-9] $words" deploy/systemd/README.md | cut -c 1,3)
        # Ten times the number that it shows.
        systemd-analyze security --offline=yes --root="$folder" --threshold="${bound:?no rating $words in the page}" cronward.service >"$work/exposed" 2>&1 ||
            { cat "$work/exposed"; fail "the unit $words leaves more open than deploy/systemd/README.md says"; }
        echo "$part: $(tail -n 1 "$work/exposed")"
        rm -f "$drop_ins"/*
    done
}

proxy() {
    mkdir -m 755 "$work/proxy"
    chmod 755 "$work"
    scripts/deploy/proxy.sh "$work/proxy"
}

# Each command of these pages is run, and what they promise happens. They mostly wait, and each has a Redis of its own.
page_readme() { python3 scripts/docs/run.py "$CRONWARD" README.md; }
page_start() { python3 scripts/docs/run.py "$CRONWARD" docs/getting-started.md; }
page_readme_zh() { python3 scripts/docs/run.py "$CRONWARD" README.zh-CN.md; }
page_start_zh() { python3 scripts/docs/run.py "$CRONWARD" docs/zh/getting-started.md; }

# Runs the sample jobs until one is done, then stops them as a person would.
sample_jobs() {
    local daemon tries=0
    cd "$2"
    "$1" run --store sqlite:sample.db >log 2>&1 &
    daemon=$!
    until "$1" attempts --all --job heartbeat --store sqlite:sample.db 2>/dev/null | grep -q ' done '; do
        tries=$((tries + 1))
        [ $tries -lt 300 ] || { kill -9 $daemon; fail "no sample job ran within a minute: $(tail -n 3 log)"; }
        sleep 0.2
    done
    kill -TERM $daemon
    wait $daemon || fail "the node of the sample jobs ended with $?: $(tail -n 3 log)"
    cd - >/dev/null
}

# The README's command from a clone, to the first guarded run. In a folder of its own: the program of the tests has other features.
from_a_clone() {
    local said
    grep -qx 'cargo install --path . --locked --debug  *# .*' README.md || fail "the README has another command to try a clone"
    CARGO_TARGET_DIR=$work/target cargo install --quiet --path . --locked --debug --root "$work/installed"
    said=$("$work/installed/bin/cronward" exec --store "sqlite:$work/try.db" --job hello -- echo guarded)
    [ "$said" = guarded ] || fail "the program of cargo install printed: $said"
    # The README's first command, but for the minutes that optimising takes.
    grep -qx 'cargo run --release -- run  *# .*' README.md || fail "the README has another command to run the sample jobs"
    mkdir "$work/sample"
    cp jobs.toml "$work/sample"
    sample_jobs "$work/installed/bin/cronward" "$work/sample"
    rm -rf "$work/target"
}

# Requests that the description allows, and those that it forbids: no answer is an error of the server, or is not described.
api() {
    mkdir -m 700 "$work/api"
    scripts/deploy/api.sh "$work/api"
}

migrate() {
    mkdir "$work/migrate"
    scripts/docs/migrate.sh "$work/migrate"
}

reference() {
    python3 scripts/docs/keys.py
    scripts/docs/commands.sh "$work/commands.md"
    diff docs/commands.md "$work/commands.md" || fail "docs/commands.md is not what the program prints: run scripts/docs/commands.sh"
    python3 scripts/docs/man5.py docs/jobs-toml.md jobs.toml 5 "the jobs of cronward" >"$work/jobs.toml.5"
    # The page's defaults are compared with the parser's by tests/repository: here, that the manual has each of them.
    [ "$(grep -c '(default: .' "$work/jobs.toml.5")" = "$(grep -c '^| `' docs/jobs-toml.md)" ] || fail "jobs.toml(5) lacks a key or a default"
    echo "commands.md: $(grep -c '^### ' docs/commands.md) commands"
}

site() {
    mkdir "$work/site"
    python3 scripts/docs/site.py "$work/site" "${SITE:-$work/site/html}"
}

# These mostly wait, so they run beside the others, which compute.
waiting=(page_readme page_start page_readme_zh page_start_zh migrate compose)
computing=(yaml scripts prometheus kubernetes from_a_clone images packages release rotation exposure proxy api reference site)
all=("${waiting[@]}" "${computing[@]}")
wanted=("$@")
[ $# -gt 0 ] || wanted=("${all[@]}")

begin() {
    # In a shell of its own, and not in a condition: there every error counts.
    "$1" >"$work/$1.said" 2>&1 &
    running[$1]=$!
}

end() {
    local status=0
    wait "${running[$1]}" || status=$?
    unset "running[$1]"
    echo "deploy-check: $1 ended with $status ($(date -u +%H:%M:%S))"
    if [ $status = 0 ]; then
        tail -n 3 "$work/$1.said" | sed 's/^/    /'
    else
        sed 's/^/    /' "$work/$1.said"
        failed+=("$1")
    fi
}

failed=()
# A minute of downloads, before somebody needs it.
if [[ " ${wanted[*]} " == *" images "* ]]; then
    scripts/deploy/rootfs.sh "$tools" >"$work/rootfs.said" 2>&1 &
    running[rootfs]=$!
fi
for check in "${wanted[@]}"; do
    [[ " ${all[*]} " == *" $check "* ]] || fail "there is no check $check, only ${all[*]}"
    [[ " ${waiting[*]} " != *" $check "* ]] || begin "$check"
done
for check in "${wanted[@]}"; do
    [[ " ${computing[*]} " != *" $check "* ]] || { begin "$check"; end "$check"; }
done
for check in "${wanted[@]}"; do
    [[ " ${waiting[*]} " != *" $check "* ]] || end "$check"
done
[ ${#failed[@]} = 0 ] || fail "failed: ${failed[*]}"
echo "deploy-check: all well ($(date -u +%H:%M:%S))"
