#!/usr/bin/env bash
# Builds both images of deploy/docker/Dockerfile without a daemon, and runs cronward in them. No registry is asked: Debian's packages
# make the base of `slim`, and instead of the stage `build` the program comes that CRONWARD names; for `static` the one that CRONWARD_STATIC
# names, if any, or the former linked once more as one static file. The arguments: that Debian, as a tar, and a folder to work in.
set -euo pipefail

cd "$(dirname "$0")/../.."
debian=$1 work=$2
# Layers of an overlay are many times as fast as whole copies, which work everywhere.
driver=vfs
mkdir -p "$work"/probe/{lower,upper,work,merged}
if mount -t overlay overlay -o "lowerdir=$work/probe/lower,upperdir=$work/probe/upper,workdir=$work/probe/work" "$work/probe/merged" 2>/dev/null; then
    umount "$work/probe/merged"
    driver=overlay
fi
b=(buildah --root "$work/store" --runroot "$work/run" --storage-driver "$driver")

fail() {
    echo "images: $1" >&2
    exit 1
}

# What is mounted below the folder cannot be removed with it.
leave() {
    findmnt -rn -o TARGET | grep -F "$work/" | tac | xargs -r umount
}
trap leave EXIT

# An image with only a folder, or a tar, in it.
plain() {
    local container
    container=$("${b[@]}" from scratch)
    "${b[@]}" add --quiet "$container" "$2" / >/dev/null
    "${b[@]}" commit --quiet "$container" "$1" >/dev/null
    "${b[@]}" rm "$container" >/dev/null
}

# The program compiles from what .dockerignore lets through, and from nothing else. With the crates that are compiled already.
context() {
    local folder=$work/context target
    target=$(realpath "${CARGO_TARGET_DIR:-target}")
    mkdir "$folder"
    grep '^!' .dockerignore | sed 's/^!//' | xargs tar -cf - --exclude=node_modules | tar -xf - -C "$folder"
    (cd "$folder" && CARGO_TARGET_DIR=$target cargo check --quiet --locked --all-features --lib --bins) ||
        fail ".dockerignore leaves out what the program is built of"
}

# The stage `build` needs a registry and ten minutes.
without_build() {
    awk '/^FROM \$\{RUST_IMAGE\}/ { print "FROM localhost/built AS build"; skip = 1 } /^FROM scratch/ { skip = 0 } !skip' \
        deploy/docker/Dockerfile
}

# Inside the image, as its user, with the folder /jobs. Before it starts the program, buildah seals a copy of itself in memory, and that fails now
# and then on a busy machine ("sealing memfd copy: Device or resource busy"): three times.
inside() {
    local try
    for try in 1 2 3; do
        ! "${b[@]}" run --isolation chroot --volume "$work/jobs:/jobs" "$container" -- "$@" || return 0
        echo "inside $container: try $try of $*" >&2
    done
    return 1
}

hadolint deploy/docker/Dockerfile
context
built=$work/built
mkdir -p "$built"/out/{static,state} "$built/etc/ssl/certs" "$work/jobs"
strip -o "$built/out/cronward" "$CRONWARD"
if [ -n "${CRONWARD_STATIC:-}" ]; then
    install -m 755 "$CRONWARD_STATIC" "$built/out/static/cronward"
else
    scripts/deploy/static.sh "$built/out/static/cronward"
fi
touch "$built/etc/ssl/certs/ca-certificates.crt"
mkdir -p "$built/usr/share"
cp -R /usr/share/zoneinfo "$built/usr/share/zoneinfo"
chmod 700 "$built/out/state"
plain localhost/debian:12-slim "$debian"
plain localhost/built "$built"
without_build >"$work/Dockerfile"
cat >"$work/jobs/jobs.toml" <<'END'
[store]
url = "sqlite"

[jobs.who]
schedule = "@hourly"
timezone = "America/Edmonton"
command = ["/usr/local/bin/cronward", "--version"]
END
chmod -R a+rX "$work/jobs"
chmod a+x "$work"
for image in static slim; do
    "${b[@]}" bud --quiet --format docker --isolation chroot --target "$image" --tag "cronward:$image" \
        --build-arg SLIM_IMAGE=localhost/debian:12-slim --file "$work/Dockerfile" "$work/context" >/dev/null
    container=$("${b[@]}" from "localhost/cronward:$image")
    said=''
    # Once on a busy machine what it printed was not passed on, without an error.
    for _ in 1 2 3; do
        [ -n "$said" ] || said=$(inside /usr/local/bin/cronward --version) || fail "$image: the program does not start"
    done
    [ "$said" = "$("$CRONWARD" --version)" ] || fail "$image has another version: $said"
    # The keeper, the embedded store and the folder for it, as a user that is not root.
    said=$(inside /usr/local/bin/cronward trigger who --yes --config /jobs/jobs.toml 2>&1) || fail "$image: trigger: $said"
    said=$(inside /usr/local/bin/cronward check --config /jobs/jobs.toml 2>&1) || fail "$image: check: $said"
    grep -q '^time zones: /usr/share/zoneinfo (20' <<<"$said" || fail "$image has no time zones of its own: $said"
    config=$("${b[@]}" inspect --type image --format '{{.Docker.Config.User}} {{.Docker.Config.Healthcheck}} {{.Docker.Config.Cmd}}' \
        "localhost/cronward:$image")
    [[ $config == "65532:65532 "*"/usr/local/bin/cronward healthcheck"*"[run]" ]] || fail "$image: $config"
    echo "image $image: $config"
done
# shellcheck disable=SC2016
inside /bin/sh -c 'test "$(id -u)" = 65532 && test -w "$STATE_DIRECTORY" && test ! -w /usr/local/bin'
