#!/usr/bin/env bash
# Walks through README.md beside this file: starts three nodes, lets a job fail once, kills the node that runs the long one, and asks
# why the other node ran it. Ends with 1 when a step does not show what the page says.
#
#   walk.sh            with containers, by `docker compose`; leaves them running
#   walk.sh --local    the same three nodes as processes, on a Redis of their own; needs redis-server, and cronward in CRONWARD or in PATH
set -euo pipefail

cd "$(dirname "$0")"

if [ "${1:-}" = --local ]; then
    cronward=${CRONWARD:-cronward}
    folder=$(mktemp -d)
    pids=()
    # By number, and each of them was started here.
    trap 'kill "${pids[@]}" 2>/dev/null || true; wait; rm -rf "$folder"' EXIT
    # A socket instead of a port: nobody else can have it.
    export STORE="redis+unix://$folder/redis.sock" TOKENS=$PWD/tokens
    up() {
        redis-server --port 0 --unixsocket "$folder/redis.sock" --dir "$folder" --appendonly yes --maxmemory-policy noeviction \
            >"$folder/redis.log" &
        pids+=($!)
        until redis-cli -s "$folder/redis.sock" ping >/dev/null 2>&1; do sleep 0.2; done
        for node in a b c; do
            HOSTNAME=$node "$cronward" run --config jobs.toml --no-http 2>"$folder/$node.log" &
            pids+=($!)
            eval "pid_$node=$!"
        done
    }
    ask() { HOSTNAME=operator "$cronward" "$@" --config jobs.toml; }
    kill_node() { eval "kill -KILL \$pid_$1"; }
    start_node() {
        HOSTNAME=$1 "$cronward" run --config jobs.toml --no-http 2>"$folder/$1.log" &
        pids+=($!)
    }
else
    up() { docker compose up --build --detach; }
    # Of a container that is up.
    ask() { docker compose exec -T "$asked" cronward "$@"; }
    kill_node() { docker compose kill "$1"; }
    start_node() { docker compose start "$1"; }
fi
asked=a

step() { printf '\n\033[1m%s\033[0m\n' "$*"; }

fail() {
    echo "walk: $1" >&2
    exit 1
}

# Asks until a line of the answer fits, for a minute and a half.
wait_for() {
    local pattern=$1 deadline=$((SECONDS + 90))
    shift
    until said=$(ask "$@" 2>&1) && grep -qE "$pattern" <<<"$said"; do
        ((SECONDS < deadline)) || fail "cronward $*: nothing fits '$pattern' in: $said"
        sleep 1
    done
    echo "\$ cronward $*"
    echo "$said"
}

# The job of the day would change at midnight UTC.
if [ "$(date -u +%H%M)" -ge 2356 ]; then
    sleep 240
fi

step "1. Three nodes, one Redis"
up
wait_for 'a .*alive' nodes
wait_for 'c .*alive' nodes

step "2. A job that fails once is tried again, and done"
wait_for 'done +2/3' jobs

step "3. The report runs on one node: kill that one"
# On a second walk of the same day it is done already.
ask reset report --yes --reason walk >/dev/null 2>&1 || true
wait_for 'report.*running' jobs
node=$(grep -oE '"node": ?"[abc]"' <<<"$(ask show report --json)" | head -n 1 | grep -oE '[abc]"' | tr -d '"')
[ -n "$node" ] || fail "no node runs report"
[ "$node" != a ] || asked=b
echo "\$ kill -9 $node"
kill_node "$node"

step "4. Another node takes over when the lease of 10 s has ended, and the work is done"
wait_for 'report.*(running|done) +2/3' jobs
wait_for 'report.*done +2/3' jobs

step "5. Why"
wait_for "attempt 2" why report
# The node that was killed, and another one.
grep -q "$node" <<<"$said" || fail "why does not name $node"
wait_for "$node .*(lost|silent|stopped)" nodes

step "6. The node comes back"
start_node "$node"
wait_for "$node .*alive" nodes
