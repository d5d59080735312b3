#!/usr/bin/env bash
# Walks through README.md beside this file: starts three nodes and Prometheus, lets a job fail once, kills the node that runs the long one, and
# asks why the other node ran it. Ends with 1 when a step does not show what the page says, or when the page has a command that is not here.
#
#   walk.sh            with containers, by `docker compose`; leaves them running
#   walk.sh --local    the same as processes, each on a free port of the loopback; needs redis-server, prometheus, curl, and cronward in
#                      CRONWARD or in PATH
set -euo pipefail

cd "$(dirname "$0")"
folder=$(mktemp -d)
pids=()
# By number, and each of them was started here.
trap 'kill "${pids[@]}" 2>/dev/null || true; wait; rm -rf "$folder"' EXIT

fail() {
    echo "walk: $1" >&2
    tail -n 3 "$folder"/*.log >&2 2>/dev/null || true
    exit 1
}

# What a log says of the address that was taken, once that is said.
address() {
    local found n
    for ((n = 0; n < 300; n++)); do
        found=$(sed -n "s/.*$2\([0-9.]*:[0-9]*\).*/\1/p" "$1" | tail -n 1)
        [ -z "$found" ] || break
        sleep 0.2
    done
    echo "${found:?"$1 names no address"}"
}

if [ "${1:-}" = --local ]; then
    cronward=${CRONWARD:-cronward}
    # A socket instead of a port: nobody else can have it.
    export STORE="redis+unix://$folder/redis.sock" TOKENS=$PWD/tokens
    # The options of the container, from the one file that has them.
    read -ra options <<<"$(sed -n 's/^ *command: \[redis-server, \(.*\)\]$/\1/p' compose.yaml | tr -d ',"')"
    [ ${#options[@]} -gt 0 ] || fail "compose.yaml does not say how Redis is started"
    start_node() {
        HOSTNAME=$1 "$cronward" run --config jobs.toml --listen "${2:-127.0.0.1:0}" 2>"$folder/$1.log" &
        pids+=($!)
        eval "pid_$1=$!"
    }
    container_up() {
        redis-server --port 0 --unixsocket "$folder/redis.sock" --dir "$folder" "${options[@]}" >"$folder/redis.log" &
        pids+=($!)
        until redis-cli -s "$folder/redis.sock" ping >/dev/null 2>&1; do sleep 0.2; done
        local node nodes=()
        for node in a b c; do
            start_node $node
            nodes+=("$(address "$folder/$node.log" '"listens for HTTP","address":"')")
            eval "port_$node=${nodes[-1]}"
        done
        # Here no name server knows the nodes; all else is the file's.
        sed '/dns_sd_configs:/,$d' prometheus.yaml >"$folder/prometheus.yaml"
        printf '    static_configs:\n      - targets: [%s]\n' "$(IFS=,; echo "${nodes[*]}")" >>"$folder/prometheus.yaml"
        cp ../prometheus/alerts.yaml "$folder"
        prometheus --config.file="$folder/prometheus.yaml" --storage.tsdb.path="$folder/series" --web.listen-address=127.0.0.1:0 \
            2>"$folder/prometheus.log" &
        pids+=($!)
        prometheus=http://$(address "$folder/prometheus.log" 'msg="Listening on" address=')
    }
    line() { command=(env HOSTNAME=operator "$cronward" "$@" --config jobs.toml); }
    container_kill() { eval "kill -KILL \$pid_$1"; }
    container_start() { eval "start_node $1 \$port_$1"; }
    # A process in place of each container: what follows the command is for containers only, but for the name of the node.
    containers() { "container_$1" "${@: -1}"; }
else
    prometheus=http://127.0.0.1:9090
    # Of a container that is up.
    line() { command=(docker compose exec -T "$asked" cronward "$@"); }
    containers() { docker compose "$@"; }
fi
asked=a

step() { printf '\n\033[1m%s\033[0m\n' "$*"; }

ask() {
    line "$@"
    "${command[@]}"
}

# What the page has in these words: it asks `a`, and kills `b`.
walked() { echo "docker compose $1" >>"$folder/walked"; }

compose() {
    walked "${*/%"${node:-b}"/b}"
    containers "$@"
}

shown() {
    walked "exec a cronward $1"
    echo "\$ cronward $1"
    echo "$said"
}

# Until a line of what a command says fits, for a minute and a half.
until_fits() {
    local pattern=$1 deadline=$((SECONDS + 90))
    shift
    until said=$("$@" 2>&1) && grep -qE "$pattern" <<<"$said"; do
        ((SECONDS < deadline)) || fail "$*: nothing fits '$pattern' in: $said"
        sleep 1
    done
}

wait_for() {
    local pattern=$1
    shift
    until_fits "$pattern" ask "$@"
    shown "$*"
}

# The same of a command that goes on.
watch_for() {
    local pattern=$1 watching
    shift
    line "$@"
    "${command[@]}" >"$folder/watched" 2>&1 &
    watching=$!
    pids+=("$watching")
    until_fits "$pattern" cat "$folder/watched"
    kill "$watching"
    shown "$*"
}

# Until Prometheus has this value of an expression.
measured() {
    until_fits "\"value\":\[[0-9.]+,\"$2\"\]" curl --silent --get --data-urlencode "query=$1" "$prometheus/api/v1/query"
    echo "$1 = $2"
}

# The job of the day would change at midnight UTC.
if [ "$(date -u +%H%M)" -ge 2355 ]; then
    sleep 300
fi

step "1. Three nodes, one Redis"
compose up --build --detach
wait_for 'a .*alive' nodes
wait_for 'c .*alive' nodes
# It ends with 1 for a warning as well.
wait_for 'replicas +0' doctor

step "2. A job that fails once is tried again, and done"
wait_for 'done +2/3' jobs

step "3. The report runs on one node: kill that one"
# On a second walk of the same day it is done already.
ask reset report --yes --reason walk >/dev/null 2>&1 || true
wait_for 'report.*running' jobs
node=$(grep -oE '"node": ?"[abc]"' <<<"$(ask show report --json)" | head -n 1 | grep -oE '[abc]"' | tr -d '"')
[ -n "$node" ] || fail "no node runs report"
[ "$node" != a ] || asked=b
compose kill "$node"

step "4. Another node takes over when the lease of 10 s has ended, and the work is done"
watch_for 'report.*running +2/3' jobs --watch
wait_for 'report.*done +2/3' jobs

step "5. Why"
wait_for "attempt 2" why report
# The node that was killed, and another one.
grep -q "$node" <<<"$said" || fail "why does not name $node"
wait_for "$node .*(lost|silent|stopped)" nodes

step "6. Prometheus has asked the other two, and has the alerts"
measured 'sum(up{job="cronward"})' 2
# Of the node that took over; of a first walk of the day there may be one more.
measured 'sum(cronward_runs_total{job_name="report",result="success"}) >= bool 1' 1
until_fits '"name":"CronwardJobFailing"' curl --silent "$prometheus/api/v1/rules"

step "7. The node comes back"
compose start "$node"
wait_for "$node .*alive" nodes
measured 'sum(up{job="cronward"})' 3

# What the page says is what was walked; what it marks so is left to the reader.
grep -oE 'docker compose [a-z][^`]+' README.md | grep -v '# not part of the walk$' | sort -u >"$folder/told"
[ -s "$folder/told" ] || fail "README.md has no command"
if comm -23 "$folder/told" <(sort -u "$folder/walked") | grep .; then
    fail "these commands of README.md are not walked through"
fi
