#!/usr/bin/env bash
# Builds and runs the tests by the command that is given (`cargo test …`), passes on what is said, and ends as it ended. The suite
# that waits most runs beside those that only compute, which yield to it. Last of all comes one table: a row for each suite. A trial
# is inconclusive when its machine was too slow for it: it has neither passed nor failed. What failed is named below with the first
# lines of what it said, and so is what had taken more than a minute and was not heard of again: a test that hangs would use up all of
# the time and be named nowhere in what is left of the output. With TEST_LIMIT (3600, in seconds) all ends by then; to the file
# TEST_FAULTS goes once more what failed or hung.
set -uo pipefail

# Waits for slots to fall due, and for leases to lapse.
waits=cluster
# Wait and compute: servers, processes.
works="cli conformance metrics stores"

told=$(mktemp)
aside=$(mktemp)
beside=
leave() {
    [ -z "$beside" ] || kill -- -"$beside" 2>/dev/null
    rm -f "$told" "$aside"
}
trap leave EXIT
[ ! -t 1 ] || export CARGO_TERM_COLOR=${CARGO_TERM_COLOR:-always}

# What is left of the time, as a command before another one.
limit() {
    limit=()
    [ -z "${TEST_LIMIT:-}" ] || limit=(timeout "$((TEST_LIMIT > SECONDS ? TEST_LIMIT - SECONDS : 1))")
}

"$@" --no-run 2>&1 | tee "$told"
status=${PIPESTATUS[0]}
[ "$status" = 0 ] || exit "$status"
#   Executable tests/cli/main.rs (target/debug/deps/cli-0123456789abcdef)
suites=$(sed 's/\x1b\[[0-9;]*m//g' "$told" | sed -nE 's#^ *Executable tests/([a-z_]+)(/main)?\.rs .*#\1#p' | sort -u)
computes=() later=()
for suite in $suites; do
    case " $waits $works " in
    *" $suite "*) [ "$suite" = "$waits" ] || later+=(--test "$suite") ;;
    *) computes+=(--test "$suite") ;;
    esac
done

# The end of the pipe is waited for within bounds: a process that a test has left behind may keep it open.
exec 3> >(exec tee "$told")
tee=$!
note() {
    [ "$1" = 0 ] || status=$1
}
# A group of its own, which ignores no signal.
set -m
limit
"${limit[@]}" nice -n 10 "$@" --lib --bins "${computes[@]}" >"$aside" 2>&1 3>&- &
beside=$!
set +m
limit
"${limit[@]}" "$@" --test "$waits" >&3 2>&1 3>&-
note $?
wait "$beside"
note $?
beside=
cat "$aside" >&3
limit
"${limit[@]}" "$@" "${later[@]}" >&3 2>&1 3>&-
note $?
limit
"${limit[@]}" "$@" --doc >&3 2>&1 3>&-
note $?
# A browser before the daemons that were just built.
limit
"${limit[@]}" scripts/run-browser-tests.sh >&3 2>&1 3>&-
note $?
exec 3>&-
for _ in {1..100}; do
    kill -0 "$tee" 2>/dev/null || break
    sleep 0.1
done
kill "$tee" 2>/dev/null

awk -v faults_file="${TEST_FAULTS:-}" '
    function begin(name) {
        suite = name
        suites[++count] = name
        passed[name] = failed[name] = inconclusive[name] = 0
        seconds[name] = "-"
    }
    { gsub(/\033\[[0-9;]*m/, "") }
    # Running tests/cli/main.rs (target/debug/deps/cli-0123456789abcdef)
    /^ +Running (unittests )?[^ ]+ \(/ {
        name = $2 == "unittests" ? $3 : $2
        if (name ~ /^tests\//) {
            sub(/^tests\//, "", name)
            sub(/(\/main)?\.rs$/, "", name)
        }
        # Each package has a src/lib.rs: the second is told by the name of its program.
        program = $NF
        sub(/.*\//, "", program)
        sub(/-[0-9a-f]+\)$/, "", program)
        begin(name in passed ? program ": " name : name)
        next
    }
    /^ +Doc-tests / { begin("doc-tests" in passed ? "doc-tests: " $2 : "doc-tests"); next }
    !count { next }
    # "---- trial ----", or "---- trial stdout ----", and what it said.
    /^---- .* ----$/ { saying = suite "\t" $2; next }
    /^failures:$/ { saying = "" }
    saying != "" && said[saying] < 12 && NF { words[saying, ++said[saying]] = substr($0, 1, 400) }
    / has been running for over 60 seconds/ && $1 == "test" { slow[suite "\t" $2]; next }
    # "cluster::trial: inconclusive: why"; it may be made once more, and pass.
    $2 == "inconclusive:" { too_slow[suite "\t" substr($1, 1, length($1) - 1)] }
    $1 == "test" && / \.\.\. / {
        delete slow[suite "\t" $2]
        if (/ \.\.\. FAILED/) wrong[++faults] = suite "\t" $2
        if (/ \.\.\. ignored/ && (suite "\t" $2) in too_slow) inconclusive[suite]++
        if (/ \.\.\. ok/) passed[suite]++
        if (/ \.\.\. FAILED/) failed[suite]++
        next
    }
    # The last word on a suite: what tests print can spoil the line of one.
    /^test result: / {
        for (field = 3; field < NF; field++) {
            if ($(field + 1) == "passed;") passed[suite] = $field + 0
            if ($(field + 1) == "failed;") failed[suite] = $field + 0
        }
        seconds[suite] = "0"
        if (match($0, /finished in [0-9.]+s/)) seconds[suite] = substr($0, RSTART + 12, RLENGTH - 13)
    }
    END {
        if (!count) exit
        width = length("suite")
        for (i = 1; i <= count; i++) if (length(suites[i]) > width) width = length(suites[i])
        row = "%-" width "s  %7s  %7s  %12s  %8s\n"
        print ""
        printf row, "suite", "passed", "failed", "inconclusive", "seconds"
        for (i = 1; i <= count; i++) {
            name = suites[i]
            printf row, name, passed[name], failed[name], inconclusive[name], seconds[name]
            all_passed += passed[name]; all_failed += failed[name]; all_inconclusive += inconclusive[name]
            all_seconds += seconds[name]
        }
        printf row, "all", all_passed + 0, all_failed + 0, all_inconclusive + 0, sprintf("%.2f", all_seconds)
        for (i = 1; i <= faults; i++) tell("failed", wrong[i])
        for (name in slow) tell("did not end", name)
        for (i = 1; i <= count; i++) if (seconds[suites[i]] == "-") fault("did not end: the suite " suites[i])
    }
    function tell(what, test,    line, shown) {
        shown = what ": " test
        sub("\t", ": ", shown)
        fault(shown)
        for (line = 1; line <= said[test]; line++) fault("    " words[test, line])
    }
    function fault(line) {
        print line
        if (faults_file != "") print line >faults_file
    }' "$told"
exit "$status"
