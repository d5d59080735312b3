#!/usr/bin/env bash
# Runs the browser tests against target/debug/cronward, and tells what came of each as cargo does, so that one table has all, and how long they took.
set -euo pipefail

cd "$(dirname "$0")/.."
scripts/install-browser.sh
cd tests/browser
code=0
SECONDS=0
node --test --test-concurrency=1 --test-reporter=./reporter.mjs --test-timeout=600000 ./*.test.mjs || code=$?
echo "browser: $SECONDS s"
exit "$code"
