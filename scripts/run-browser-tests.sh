#!/usr/bin/env bash
# Runs the browser tests against target/debug/cronward, and tells what came of each as cargo does, so that one table has all.
set -euo pipefail

cd "$(dirname "$0")/.."
scripts/install-browser.sh
cd tests/browser
exec node --test --test-concurrency=1 --test-reporter=./reporter.mjs --test-timeout=600000 ./*.test.mjs
