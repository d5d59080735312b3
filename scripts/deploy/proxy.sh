#!/usr/bin/env bash
# Starts deploy/proxy/nginx.conf in front of a node, on the loopback, and asks through it. The argument is a folder to work in.
set -euo pipefail

cd "$(dirname "$0")/../.."
work=$1
pids=()
# By number, and each of them was started here.
trap 'kill "${pids[@]}" 2>/dev/null || true' EXIT

fail() {
    echo "proxy: $1" >&2
    cat "$work"/*.log >&2
    exit 1
}

free_port() {
    python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])'
}

openssl req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN=cron.example -keyout "$work/key.pem" -out "$work/cert.pem" 2>"$work/openssl.log"
"$CRONWARD" token new --role viewer --name probe >"$work/token" 2>/dev/null
head -n 1 "$work/token" >"$work/secret"
tail -n 1 "$work/token" >"$work/tokens"
chmod 644 "$work/tokens"
node=$(free_port) tls=$(free_port)
cat >"$work/jobs.toml" <<END
[store]
url = "sqlite:$work/store.db"

[http]
listen = "127.0.0.1:$node"
base_path = "/ops/cron"
public_url = "https://cron.example/ops/cron/"
behind_tls_proxy = true

[http.auth]
tokens_file = "$work/tokens"
END
"$CRONWARD" run --config "$work/jobs.toml" 2>"$work/node.log" &
pids+=($!)
{
    echo "daemon off; pid $work/nginx.pid; error_log $work/nginx.log; events {}"
    echo "http { access_log off; include $work/site.conf;"
    for kind in client_body proxy fastcgi uwsgi scgi; do
        echo "${kind}_temp_path $work/$kind;"
    done
    echo "}"
} >"$work/nginx.conf"
sed "s#/etc/ssl/cron.example.pem#$work/cert.pem#; s#/etc/ssl/cron.example.key#$work/key.pem#; s#listen 443#listen 127.0.0.1:$tls#; s#127.0.0.1:9747#127.0.0.1:$node#" \
    deploy/proxy/nginx.conf >"$work/site.conf"
nginx -t -q -c "$work/nginx.conf"
nginx -c "$work/nginx.conf" 2>>"$work/nginx.log" &
pids+=($!)

# Status of an answer through the proxy.
through() {
    local path=$1
    shift
    curl --silent --output "$work/answer" --write-out '%{http_code}' --cacert "$work/cert.pem" \
        --resolve "cron.example:$tls:127.0.0.1" "$@" "https://cron.example:$tls/ops/cron/$path" || true
}

for ((i = 0; i < 150; i++)); do
    [ "$(through readyz)" = 200 ] && break
    sleep 0.2
done
[ "$(through readyz)" = 200 ] || fail "readyz is not 200"
[ "$(through api/v1/nodes)" = 401 ] || fail "whoever has no token may look"
[ "$(through api/v1/nodes --header 'X-Forwarded-User: ana')" = 401 ] || fail "a header lets somebody in"
[ "$(through api/v1/nodes --oauth2-bearer "$(cat "$work/secret")")" = 200 ] || fail "the token is refused"
[ "$(through api/v1/nodes --header 'Host: evil.example')" != 200 ] || fail "another host is answered"
echo "nginx: readyz 200; without a token 401, with one 200"

python3 - <<'END'
import pathlib, tomllib
# Of oauth2-proxy 7.9, as its documentation lists them.
KNOWN = set("""provider oidc_issuer_url client_id client_secret_file cookie_secret_file email_domains scope redirect_url http_address
reverse_proxy proxy_prefix upstreams pass_host_header pass_user_headers pass_basic_auth cookie_secure cookie_samesite
skip_auth_routes""".split())
told = tomllib.loads(pathlib.Path("deploy/proxy/oauth2-proxy.cfg").read_text())
unknown = set(told) - KNOWN
assert not unknown, f"oauth2-proxy.cfg: {unknown}"
print(f"oauth2-proxy.cfg: {len(told)} options")
END
