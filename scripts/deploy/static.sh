#!/usr/bin/env bash
# Links the program that the tests were built of once more, as one static file, in seconds: what the image `static` is tried with. The
# image itself has one that is built for musl. The argument is where to write it.
set -euo pipefail

cd "$(dirname "$0")/../.."
# shellcheck disable=SC2012
library=$(ls -t target/debug/deps/libcronward-*.rlib | head -n 1)
rustc --crate-name cronward --edition 2024 --crate-type bin src/main.rs -o "$1" \
    --extern "cronward=$library" -L dependency=target/debug/deps -C target-feature=+crt-static -C strip=symbols
