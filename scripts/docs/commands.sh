#!/usr/bin/env bash
# Writes docs/commands.md: its beginning, scripts/docs/commands.head, and the help of each command as the program prints it. CRONWARD is the program.
set -euo pipefail

cd "$(dirname "$0")/../.."
cronward=${CRONWARD:-target/debug/cronward}
export LC_ALL=C
pages=$(mktemp -d)
trap 'rm -rf "$pages"' EXIT
# The help says the name by which the program was called.
ln -s "$(realpath "$cronward")" "$pages/cronward"
cronward=$pages/cronward
"$cronward" man --out "$pages" 2>/dev/null

{
    cat scripts/docs/commands.head
    for page in "$pages"/cronward-*.1; do
        name=$(basename "$page" .1)
        name=${name#cronward-}
        # A command with a hyphen in its name, or one of a command's own commands.
        read -ra words <<<"$name"
        COLUMNS=100 "$cronward" "${words[@]}" --help >"$pages/help" 2>/dev/null || {
            read -ra words <<<"${name/-/ }"
            COLUMNS=100 "$cronward" "${words[@]}" --help >"$pages/help"
        }
        printf '\n### cronward %s\n\n```text\n' "${words[*]}"
        sed 's/[[:space:]]*$//' "$pages/help"
        printf '```\n'
    done
} >"${1:-docs/commands.md}"
