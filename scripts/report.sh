#!/usr/bin/env bash
# Tries the guard at length and writes docs/reliability.md: model, simulation, real servers, then the page. Everything that an
# earlier run left is deleted first, so that each figure is this run's. The tree has to be clean; the page itself may differ.
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

processor=$(sed -n 's/^model name[^:]*: *//p' /proc/cpuinfo | head -n 1)
memory=$(($(sed -n 's/^MemTotal: *\([0-9]*\) kB/\1/p' /proc/meminfo) / 1048576))
machine="$(nproc) × ${processor:-$(uname -m)}, $memory GiB, $(uname -sr), $(rustc --version)"
rm -rf "$folder"
mkdir -p "$folder"
# Quotes and backslashes, should a processor have them in its name, would end the text.
printf '{"commit":"%s","date":"%s","machine":"%s"}\n' \
    "$(git rev-parse HEAD)" "$(date -u +%Y-%m-%d)" "${machine//[\"\\]/}" >"$folder/run.json"

# The controls are among the model's quick tests.
export CRONWARD_MODEL_JSON="$PWD/$folder/model.jsonl"
"$CARGO" test --all-features --test model
"$MAKE" model-long
"$MAKE" sim-long
"$MAKE" chaos
"$CARGO" run --quiet --example report
