#!/usr/bin/env bash
# Measures what the README promises to who builds from a clone: from a fresh clone to the end of the first guarded run, with no crate
# downloaded and nothing built before. Prints the seconds, and where cargo's table of the crates is (target/first-run). With LIMIT, a number
# of seconds, it ends with 1 when it took longer: that is for a quiet machine with two processors. Without, time decides nothing.
set -euo pipefail

cd "$(dirname "$0")/.."
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
kept=$PWD/target/first-run

git clone --quiet . "$folder/clone"
# An empty home of cargo, with the settings of this one: which registry is asked is the machine's matter.
mkdir -p "$folder/cargo" "$kept"
for settings in "${CARGO_HOME:-$HOME/.cargo}"/{config.toml,config}; do
    [ ! -e "$settings" ] || cp "$settings" "$folder/cargo"
done
export CARGO_HOME=$folder/cargo CARGO_TARGET_DIR=$folder/target
cd "$folder/clone"

begun=$SECONDS
# The command by which the README lets one try it, but for where the program goes.
cargo install --path . --locked --debug --root "$folder" --timings
installed=$SECONDS
said=$("$folder/bin/cronward" exec --store "sqlite:$folder/try.db" --job hello -- echo guarded)
ended=$SECONDS
[ "$said" = guarded ] || { echo "first-run: the guarded run printed: $said" >&2; exit 1; }
cp "$CARGO_TARGET_DIR"/cargo-timings/cargo-timing.html "$kept"

took=$((ended - begun))
echo "first-run: $took s from a clone to the first guarded run, of which $((installed - begun)) s are cargo install, with $(nproc) processors"
echo "first-run: the time of each crate: $kept/cargo-timing.html"
if [ "$took" -gt "${LIMIT:-$took}" ]; then
    echo "first-run: that is more than $LIMIT s" >&2
    exit 1
fi
