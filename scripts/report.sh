#!/usr/bin/env bash
# Tries the guard at length and writes docs/reliability.md: the simulation's rate, simulation, real servers, model, then the
# page. Everything that an earlier run left is deleted first, so that each figure is this run's. The tree has to be clean; the
# page itself may differ.
#
# The rate is measured first, with nothing beside it. The long simulation computes on one processor for most of an hour, so it
# runs beside all others and yields to them: what it finds hangs on no clock, and real nodes are held to bounds in seconds.
set -euo pipefail

cd "$(dirname "$0")/.."
MAKE=${MAKE:-make}
CARGO=${CARGO:-cargo}
folder=target/reliability

changed=$(git status --porcelain -- . ':!docs/reliability.md')
if [[ -n $changed ]]; then
    echo "error: the tree has changes that are not committed: commit them first" >&2
    echo "$changed" >&2
    exit 1
fi

processor=$(sed -n 's/^model name[^:]*: *//p' /proc/cpuinfo | sed -n 1p)
memory=$(($(sed -n 's/^MemTotal: *\([0-9]*\) kB/\1/p' /proc/meminfo) / 1048576))
machine="$(nproc) × ${processor:-$(uname -m)}, $memory GiB, $(uname -s) $(uname -r | cut -d- -f1), $(rustc --version)"
rm -rf "$folder"
mkdir -p "$folder"
# Quotes and backslashes, should a processor have them in its name, would end the text.
printf '{"commit":"%s","date":"%s","machine":"%s"}\n' \
    "$(git rev-parse HEAD)" "$(date -u +%Y-%m-%d)" "${machine//[\"\\]/}" >"$folder/run.json"

# A part that fails does not keep the others from being tried: the page tells what went wrong, and this fails in the end.
failed=0
part() {
    "$@" || {
        echo "error: $* failed" >&2
        failed=1
    }
}

part "$MAKE" sim-speed

nice -n 19 "$MAKE" sim-long >"$folder/simulation.log" 2>&1 &
simulation=$!
trap 'kill "$simulation" 2>/dev/null || true' EXIT

# The controls are among the model's quick tests. They come before the real nodes: by then the simulation is compiled.
export CRONWARD_MODEL_JSON="$PWD/$folder/model.jsonl"
part "$CARGO" test --all-features --test protocol model::
part "$MAKE" chaos
part "$MAKE" chaos-stores
part "$MAKE" model-long

part wait "$simulation"
trap - EXIT
cat "$folder/simulation.log"
part "$CARGO" run --quiet --example report
exit "$failed"
