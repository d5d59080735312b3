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
# By number, and each of them was started here; of a group all that it has started.
leave() {
    local pid
    for pid in "${pids[@]}"; do kill -- "-$pid" 2>/dev/null || kill "$pid" 2>/dev/null || true; done
    wait
}
trap leave EXIT
trap 'exit 143' TERM

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
printf '#!/bin/sh\nm=$(date -u +%%H:%%M)\nsleep 1\necho "$m $WHO" >>"${DONE:-%s/done}"\n' "$work" >"$work/bin/bill"
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

# The arguments of the example's pod, started twice, as two clusters do. In a namespace that no other page has, a job that moves included: a slot's
# name is its start, so the minute of another page that began with the hour is the very slot of this hour. Once more where the hour ended between the two.
cronjob() {
    local one two hour='' round=0
    while [ "$(date -u +%H)" != "$hour" ]; do
        hour=$(date -u +%H)
        round=$((round + 1))
        local folder=$work/clusters-$round
        mkdir "$folder"
        python3 - "$folder" "$REDIS_URL" <<'END'
import pathlib, shlex, sys, yaml
folder, url = pathlib.Path(sys.argv[1]), sys.argv[2]
job, config = yaml.safe_load_all(pathlib.Path("deploy/kubernetes/cronjob/cronjob.yaml").read_text())
(folder / "url").write_text(url)
jobs = config["data"]["jobs.toml"].replace("/run/secrets/cronward", str(folder))
assert 'namespace = "default"' in jobs
(folder / "jobs.toml").write_text(jobs.replace('"default"', f'"{folder.name}"'))
args = job["spec"]["jobTemplate"]["spec"]["template"]["spec"]["containers"][0]["args"]
words = [str(folder / "jobs.toml") if word == "/etc/cronward/jobs.toml" else word for word in args]
(folder / "pod.sh").write_text("exec cronward " + shlex.join(words) + "\n")
END
        HOSTNAME=cluster-1 sh "$folder/pod.sh" >"$folder/1" &
        one=$!
        HOSTNAME=cluster-2 sh "$folder/pod.sh" >"$folder/2" &
        two=$!
        wait $one || fail "the pod of cluster 1 failed"
        wait $two || fail "the pod of cluster 2 failed"
    done
    [ "$(cat "$folder/1" "$folder/2" | grep -c 'the work of')" = 1 ] || fail "two clusters did not run it once: $(cat "$folder/1" "$folder/2")"
    echo "two clusters, one run: $(cat "$folder/1" "$folder/2")"
}

# For five minutes, until a command succeeds.
until_it() {
    local deadline=$((SECONDS + 300))
    until "$@" >/dev/null 2>&1; do
        ((SECONDS < deadline)) || fail "never: $*"
        sleep 0.2
    done
}

# The steps by which a job moves from an old scheduler, which fires each minute, to two nodes: while it moves and after that each minute's work is
# done once. The arguments: crontab or cronjob, and which trial this is. For a shell of its own, beside the others: this mostly waits.
# Ends with 75 where the steps took until another minute: then they were not done as the pages say, within one slot.
move() {
    kind=$1 folder=$work/move-$1-$2
    mkdir "$folder"
    cd "$folder"
    trap 'kill "${nodes[@]}" ${old:-} 2>/dev/null || true; wait' EXIT
    export DONE=$folder/done
    : >"$DONE"
    # A busy machine may take longer for an answer than a store may by default.
    printf '[store]\nurl = "%s"\nnamespace = "%s"\nop_timeout = "1500ms"\n' "$REDIS_URL" "$kind-$2" >store.toml
    cp store.toml jobs.toml
    start
    "begin_$kind"
    old_scheduler "$kind" &
    old=$!
    # 1. The job, which is not enabled.
    { cat store.toml job.toml; echo 'enabled = false'; } >jobs.toml
    "apply_$kind"
    until_it fired_in_this_minute
    minute=$(date -u +%H:%M)
    # 2. The old scheduler stops.
    "stop_$kind"
    # 3. The work of this slot is done.
    bash -c "$(grep -o 'cronward mark-done [^`]*' "$root/$page")"
    # 4. The job is enabled.
    { cat store.toml job.toml; } >jobs.toml
    "apply_$kind"
    [ "$(date -u +%H:%M)" = "$minute" ] || exit 75
    until_it twice_by_a_node
    python3 - "$DONE" <<'END'
import sys
lines = [line.split() for line in open(sys.argv[1])]
minutes = [int(at[:2]) * 60 + int(at[3:]) for at, _ in lines]
names = [who for _, who in lines]
assert all((later - earlier) % 1440 == 1 for earlier, later in zip(minutes, minutes[1:])), f"not each minute once: {lines}"
assert names == sorted(names, reverse=True) and {"old", "new"} == set(names), f"not the one after the other: {lines}"
END
    echo "moved from a $kind, each minute once: $(tr '\n' ',' <"$DONE")"
}

# And so much of the minute is left that the steps fit into it.
fired_in_this_minute() { [ "$(tail -n 1 "$DONE")" = "$(date -u +%H:%M) old" ] && [ "$(date +%-S)" -lt 20 ]; }
twice_by_a_node() { [ "$(grep -c new "$DONE")" -ge 2 ]; }
both_alive() { [ "$(cronward nodes | grep -c ' alive ')" = 2 ]; }
reloaded() { [ "$(cat ./*.log | grep -c '"message":"reloaded')" = "$1" ]; }

# Both nodes, and that they have begun.
start() {
    nodes=()
    local node
    for node in a b; do
        WHO=new cronward run --node $node --log-format json 2>>$node.log &
        nodes+=($!)
    done
    until_it both_alive
}

old_scheduler() {
    local now last=''
    while :; do
        now=$(date -u +%H:%M)
        # None in the minute in which it begins: that may be nearly over.
        [ "$now" = "${last:-$now}" ] || ! "fires_$1" || WHO=old bill &
        last=$now
        sleep 0.2
    done
}

begin_crontab() {
    page=docs/migrate/crontab.md
    printf 'PATH=%s\n* * * * * bill\n' "$PATH" >tab
    cronward import crontab --personal tab >job.toml
}
fires_crontab() { grep -q bill tab; }
stop_crontab() { sed -i '/bill/d' tab; }
# systemctl reload.
apply_crontab() {
    local before node
    before=$(cat ./*.log | grep -c '"message":"reloaded' || true)
    for node in "${nodes[@]}"; do kill -HUP "$node"; done
    until_it reloaded $((before + 2))
}

# By the table of the page.
begin_cronjob() {
    page=docs/migrate/kubernetes-cronjob.md
    cat >cronjob.yaml <<'END'
apiVersion: batch/v1
kind: CronJob
metadata:
  name: billing
spec:
  schedule: "* * * * *"
  timeZone: Etc/UTC
  concurrencyPolicy: Forbid
  startingDeadlineSeconds: 50
  jobTemplate:
    spec:
      backoffLimit: 2
      activeDeadlineSeconds: 40
      template:
        spec:
          restartPolicy: Never
          containers:
            - name: billing
              image: bill
              args: [bill]
END
    python3 - "$root/$page" <<'END' >job.toml
import json, sys, yaml
job = yaml.safe_load(open("cronjob.yaml"))
spec, pod = job["spec"], job["spec"]["jobTemplate"]["spec"]
rows = [line.split(" | ") for line in open(sys.argv[1]) if line.startswith("| ")]
def told(theirs, ours):
    assert any(f"`{theirs}" in row[0] and f"`{ours}" in row[1] for row in rows), f"the page has no row of {theirs} and {ours}"
    return ours
keys = {told("schedule", "schedule"): spec["schedule"], told("timeZone", "timezone"): spec["timeZone"], told("concurrencyPolicy", "concurrency"): spec["concurrencyPolicy"].lower(),
        told("startingDeadlineSeconds", "start_deadline"): f'{spec["startingDeadlineSeconds"]}s',
        told("backoffLimit", "max_attempts"): pod["backoffLimit"] + 1, told("activeDeadlineSeconds", "timeout"): f'{pod["activeDeadlineSeconds"]}s',
        "command": pod["template"]["spec"]["containers"][0]["args"]}
assert any("more often than once an hour" in row[0] and '`slot = "tick"`' in row[1] for row in rows)
keys["slot"] = "tick"
print(f'[jobs.{job["metadata"]["name"]}]')
for key, value in keys.items():
    print(f"{key} = {json.dumps(value)}")
END
    cat store.toml job.toml >whole.toml
    cronward check --config whole.toml
}
fires_cronjob() { ! grep -q 'suspend: true' cronjob.yaml; }
stop_cronjob() {
    local said
    said=$(grep -o 'kubectl patch cronjob billing [^`]*' "$root/$page")
    bash -c "${said/cronjob billing/--local -f cronjob.yaml -o yaml}" >patched.yaml
    mv patched.yaml cronjob.yaml
}
# A rollout.
apply_cronjob() {
    kill "${nodes[@]}"
    wait "${nodes[@]}" || true
    start
}

# On a machine that is too busy for the steps within a minute, once more.
moved() {
    set +m
    local try status
    for try in 1 2 3 4 5; do
        status=0
        (move "$1" "$try") || status=$?
        [ "$status" = 75 ] || return "$status"
        echo "the steps from a $1 took longer than a minute: once more"
    done
    return 75
}

moving=()
for from in crontab cronjob; do
    # A group of its own, which is stopped as a whole.
    set -m
    moved $from &
    set +m
    moving+=($!)
    pids+=($!)
done
crontab
setnx
shedlock
cronjob
for one in "${moving[@]}"; do wait "$one" || fail "a job did not move as the pages say"; done
