#!/usr/bin/env bash
# Does what the pages of docs/migrate say, with the very text of their blocks, on a Redis of its own. CRONWARD is the program, the argument a
# folder to work in.
set -euo pipefail

cd "$(dirname "$0")/../.."
root=$PWD work=$1
mkdir -p "$work/bin"
ln -sf "$CRONWARD" "$work/bin/cronward"
export PATH=$work/bin:$PATH
pids=()
# By number, and each of them was started here.
trap 'kill "${pids[@]}" 2>/dev/null || true' EXIT

fail() {
    echo "migrate: $1" >&2
    exit 1
}

# The block of a page below `<!-- file: NAME -->`, or `<!-- run -->`.
block() {
    awk -v mark="<!-- $2 -->" '$0 == mark { wanted = 1; next } wanted && /^```/ { if (inside) exit; inside = 1; next } inside' "docs/migrate/$1.md"
}

port=$(python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])')
redis-server --port "$port" --bind 127.0.0.1 --dir "$work" --save '' >"$work/redis.log" &
pids+=($!)
until redis-cli -p "$port" ping >/dev/null 2>&1; do sleep 0.1; done
# Scripts of the pages call it without a port, as on their machines.
printf '#!/bin/sh\nexec %s -p %s "$@"\n' "$(command -v redis-cli)" "$port" >"$work/bin/redis-cli"
# shellcheck disable=SC2016
# The work: one line, with the minute it is done for, and who did it.
printf '#!/bin/sh\nm=$(date -u +%%H:%%M)\nsleep 1\necho "$m $WHO" >>%s/done\n' "$work" >"$work/bin/bill"
chmod +x "$work/bin/redis-cli" "$work/bin/bill"
hash -r
export REDIS_URL=redis://127.0.0.1:$port SLOT=minute LOCK_SECONDS=50

crontab() {
    mkdir "$work/crontab"
    block crontab "file: crontab" >"$work/crontab/crontab"
    # @reboot is the one line that has no counterpart; that is told, and no error.
    (cd "$work/crontab" && block_of_run | bash -euo pipefail) || fail "the commands of crontab.md fail"
    [ "$(cd "$work/crontab" && cronward next --config jobs.toml --json | grep -c '"job"')" -ge 1 ] || fail "nothing is planned"
    [ "$(grep -c '^\[jobs\.' "$work/crontab/jobs.toml")" = 3 ] || fail "not three jobs were imported"
}

block_of_run() {
    (cd "$root" && block crontab run)
}

# Early in a minute, so that all starts are in it.
next_minute() {
    while [ "$(date +%-S)" -ge 10 ] || [ "$(date -u +%H:%M)" = "${minute:-}" ]; do sleep 0.2; done
    minute=$(date -u +%H:%M)
}

# Old scripts and new lines side by side, twice the same minute's work on four machines.
setnx() {
    block setnx "file: old.sh" >"$work/old.sh"
    block setnx "file: old.py" >"$work/old.py"
    block setnx "file: new.sh" >"$work/new.sh"
    : >"$work/done"
    local round who started
    for round in 1 2 3; do
        next_minute
        started=()
        # Another one is first each time.
        case $round in
            1) order=(old.sh new.sh old.py new.sh) ;;
            2) order=(new.sh old.py old.sh new.sh) ;;
            3) order=(old.py new.sh new.sh old.sh) ;;
        esac
        for who in "${order[@]}"; do
            case $who in
                *.py) WHO=$who python3 "$work/$who" & ;;
                *) WHO=$who sh "$work/$who" & ;;
            esac
            started+=($!)
            # The first one has the key before the others come.
            until [ "$(redis-cli EXISTS billing-lock)" = 1 ]; do sleep 0.05; done
        done
        for who in "${started[@]}"; do wait "$who" || fail "one of the four failed in $minute"; done
        [ "$(grep -c "^$minute " "$work/done")" = 1 ] || fail "$minute was not done once: $(cat "$work/done")"
    done
    echo "side by side, three slots, each once: $(tr '\n' ',' <"$work/done")"
}

# What ShedLock's RedisLockProvider sends: lock, and unlock that keeps the key for the rest of lockAtLeastFor.
shedlock() {
    local new key=job-lock:default:billing
    block shedlock "file: shedlock.sh" >"$work/shedlock.sh"
    redis-cli FLUSHALL >/dev/null
    : >"$work/done"
    next_minute
    [ "$(redis-cli SET $key "ADDED:now@host" NX PX 60000)" = OK ]
    WHO=cronward sh "$work/shedlock.sh" || fail "exec fails beside ShedLock"
    [ ! -s "$work/done" ] || fail "exec ran while ShedLock had the lock"
    [ "$(redis-cli SET $key "ADDED:now@host" XX PX 5000)" = OK ]
    WHO=cronward sh "$work/shedlock.sh"
    [ ! -s "$work/done" ] || fail "exec ran within lockAtLeastFor"
    redis-cli DEL $key >/dev/null
    WHO=cronward sh "$work/shedlock.sh" &
    new=$!
    until [ "$(redis-cli EXISTS $key)" = 1 ]; do sleep 0.05; done
    [ "$(redis-cli SET $key "ADDED:now@host" NX PX 60000)" != OK ] || fail "ShedLock got the lock of a run"
    wait $new
    [ "$(wc -l <"$work/done")" = 1 ] || fail "the slot was not done once"
    echo "ShedLock and exec keep each other out in Redis"
}

# The arguments of the example's pod, started twice, as two clusters do.
cronjob() {
    mkdir "$work/cronjob"
    python3 - "$work/cronjob" "$REDIS_URL" <<'END'
import pathlib, shlex, sys, yaml
folder, url = pathlib.Path(sys.argv[1]), sys.argv[2]
job, config = yaml.safe_load_all(pathlib.Path("deploy/kubernetes/cronjob/cronjob.yaml").read_text())
(folder / "url").write_text(url)
(folder / "jobs.toml").write_text(config["data"]["jobs.toml"].replace("/run/secrets/cronward", str(folder)))
args = job["spec"]["jobTemplate"]["spec"]["template"]["spec"]["containers"][0]["args"]
words = [str(folder / "jobs.toml") if word == "/etc/cronward/jobs.toml" else word for word in args]
(folder / "pod.sh").write_text("exec cronward " + shlex.join(words) + "\n")
END
    local one two
    HOSTNAME=cluster-1 sh "$work/cronjob/pod.sh" >"$work/cronjob/1" &
    one=$!
    HOSTNAME=cluster-2 sh "$work/cronjob/pod.sh" >"$work/cronjob/2" &
    two=$!
    wait $one || fail "the pod of cluster 1 failed"
    wait $two || fail "the pod of cluster 2 failed"
    [ "$(cat "$work/cronjob/1" "$work/cronjob/2" | grep -c 'the work of')" = 1 ] || fail "two clusters did not run it once"
    echo "two clusters, one run: $(cat "$work/cronjob/1" "$work/cronjob/2")"
}

crontab
setnx
shedlock
cronjob
