#!/usr/bin/env bash
# Asks a node everything that /api/v1/openapi.json describes, with what fits it and what does not, the same each time. No answer may be an
# error of the server, or have a status, a type or a form that is not described. The argument is a folder to work in.
set -euo pipefail

cd "$(dirname "$0")/../.."
work=$1
free() { python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])'; }
port=$(free)
# A store that waits for no disk: on a busy one a file answers too late, and then 503 is the right answer.
redis=$(free)
redis-server --port "$redis" --bind 127.0.0.1 --save '' --dir "$work" >"$work/redis.log" &
store=$!
node=
# By number: they were started here.
trap 'kill $node $store 2>/dev/null || true' EXIT
"$CRONWARD" token new --role operator --name probe >"$work/token" 2>/dev/null
tail -n 1 "$work/token" >"$work/tokens"
chmod 600 "$work/tokens"
cat >"$work/jobs.toml" <<END
[node]
journal = "$work/journal"

[store]
url = "redis://127.0.0.1:$redis"
op_timeout = "10s"

[http]
listen = "127.0.0.1:$port"
read_only = false

[http.auth]
tokens_file = "$work/tokens"

[defaults]
slot = "minute"

[jobs.works]
schedule = "* * * * *"
command = "echo hello"
locks = ["db"]

[jobs.fails]
schedule = "* * * * *"
command = "false"
END
"$CRONWARD" run --config "$work/jobs.toml" 2>"$work/node.log" &
node=$!
for _ in {1..100}; do
    ! "$CRONWARD" healthcheck --ready --config "$work/jobs.toml" 2>/dev/null || break
    sleep 0.1
done
"$CRONWARD" healthcheck --ready --config "$work/jobs.toml" || { cat "$work/node.log" >&2; exit 1; }
# It keeps what it has tried in the folder where it is.
cd "$work"
# Whoever names nobody is answered 401 in the form that is described, whatever is asked.
described="http://127.0.0.1:$port/api/v1/openapi.json"
curl -sf -H "Authorization: Bearer $(head -n 1 "$work/token")" "$described" | python3 -c '
import json, sys
description = json.load(sys.stdin)
for operation in (operation for path in description["paths"].values() for operation in path.values() if "responses" in operation):
    told = operation["responses"]
    operation["responses"] = {"401": told["401"]}
json.dump(description, sys.stdout)' >"$work/refused.json"
st run "$work/refused.json" --url "http://127.0.0.1:$port" --no-color --header "X-Cronward: 1" \
    --checks not_a_server_error,status_code_conformance,content_type_conformance,response_schema_conformance \
    --exclude-path /api/v1/events --phases coverage --generation-deterministic --max-time 30
# A request that is described and yet refused is the daemon's own judgement of a text: no check is made of it. A stream has no end.
st run "$described" --no-color \
    --header "Authorization: Bearer $(head -n 1 "$work/token")" --header "X-Cronward: 1" \
    --checks not_a_server_error,status_code_conformance,content_type_conformance,response_schema_conformance,unsupported_method \
    --exclude-path /api/v1/events --phases coverage,fuzzing --max-examples 5 --generation-deterministic --max-time 60
