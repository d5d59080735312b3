"""Runs every command of a page in its order, as a reader would: the blocks marked `sh`, in one shell, in an empty folder, with a Redis of
their own. Where the page lets the reader look or wait, this waits for what the page says. Ends with 1 when a command fails, or when
what the page promises does not happen.

Called by scripts/deploy/check.sh with the program `cronward`, and the pages. Pages in two languages must have the same commands.
"""

import itertools
import os
import pathlib
import re
import socket
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]

# Which other check makes what is in a block or a table after `<!-- install -->`.
INSTALLS = {
    "sudo apt install ./cronward_0.1.0-1_amd64.deb": "scripts/deploy/installed.sh installs the package by dpkg",
    "sudo dnf install ./cronward-0.1.0-1.x86_64.rpm": "scripts/deploy/installed.sh installs the package by rpm",
    "docker build -t cronward -f deploy/docker/Dockerfile .": "scripts/deploy/images.sh builds it with buildah",
    "cargo run --release -- run": "scripts/deploy/check.sh runs the same jobs with the program of a clone (from_a_clone)",
    "make test": ".ci/run runs it",
    "cargo install --path . --locked --debug": "scripts/deploy/check.sh runs it (from_a_clone)",
    "cargo install --path . --locked": "as the line before, optimised: `make first-run` and the benchmarks build so",
}

# What a reader sees or waits for. `slot` is the slot in which the node is killed.
PRELUDE = r"""
set -m
# The nodes of the page do not outlive it.
fail() { echo "docs: $1" >&2; jobs -p | xargs -r kill 2>/dev/null; exit 1; }
# For 90 s: until a command says so.
until_it() { local n=0; until eval "$1"; do n=$((n + 1)); [ $n -lt 450 ] || fail "not within 90 s: $1"; sleep 0.2; done; }
field() { cronward jobs --json | python3 -c '
import json, sys
job = json.load(sys.stdin)[0]["current"]
print(job["state"] if job else "none", job["attempts"] if job else 0, job["slot"] if job else "-", (job["lease"] or {}).get("node", "-") if job else "-")'; }
three_nodes() { [ "$(cronward nodes --json | python3 -c 'import json, sys; print(sum(n["state"] == "alive" for n in json.load(sys.stdin)))')" = 3 ]; }
# Early in the slot's own minute, so that the other node has its time within the slot.
first_attempt_runs() {
    read -r state attempts slot holder < <(field)
    read -r minute second < <(date -u '+%Y-%m-%dT%H:%MZ %-S')
    [ "$state" = running ] && [ "$attempts" = 1 ] && [ "$slot" = "$minute" ] && [ "$second" -lt 30 ]
}
done_by_another() { cronward show "billing@$slot" --json | grep -q '"state":"done"' || cronward show "billing@$slot" | grep -q '  done$'; }
the_slot_is_over() { read -r _ _ now _ < <(field); [ "$now" != "$slot" ] && [ "$now" != - ]; }
kill_holder() {
    case $holder in a) dead=%1 ;; b) dead=%2 ;; c) dead=%3 ;; *) fail "no node runs billing" ;; esac
    echo "(the node that runs it is $holder)"
    kill -9 $dead
}
kill_others() { for job in %1 %2 %3; do [ "$job" = "${dead:-}" ] || kill $job; done; wait 2>/dev/null || true; }
after_the_walk() {
    cronward why "billing@$slot" > why.txt
    grep -q "claimed attempt 1.*; crashed" why.txt || fail "why does not say that attempt 1 crashed: $(cat why.txt)"
    grep -q "with attempt 2" why.txt || fail "why does not say who completed the slot: $(cat why.txt)"
}
"""

# What to wait for before a command, what to run in its place, and which ends of it are right.
BEFORE = [
    (r"cronward nodes|cronward jobs", "until_it three_nodes"),
    (r"kill -9 %2", "until_it first_attempt_runs"),
    (r"cronward why billing", "until_it done_by_another; after_the_walk"),
    (r"cronward logs billing@-1", "until_it the_slot_is_over"),
]
# One connection may be too slow on a busy machine, which says nothing about the page.
DOCTOR = "for _ in {1..30}; do cronward doctor; code=$?; [ $code = 2 ] || break; sleep 1; done; (exit $code)"
INSTEAD = {"kill -9 %2": "kill_holder", "kill %1 %3": "kill_others", "cronward doctor": DOCTOR}
ENDS = {"cronward doctor": "1", "kill %1 %3": "0"}

# A busy machine may take longer for a connection than a store may by default.
PATIENT = '[store]\nop_timeout = "1500ms"\n'


def commands(page):
    """Each command of the page with whether it is about installing."""
    found, inside, installs, heredoc = [], False, False, None
    mark = False
    for line in page.read_text().splitlines():
        if heredoc is not None:
            found[-1] = (found[-1][0] + "\n" + line, installs)
            heredoc = None if line == heredoc else heredoc
        elif line.startswith("```"):
            inside, installs = line == "```sh", mark
            mark = False
        elif line.strip() == "<!-- install -->":
            mark = True
        elif mark and (row := re.match(r"\|[^|]*\| `([^|`]+)` \|", line)):
            found.append((row.group(1), True))
        elif mark and not line.startswith("|"):
            mark = False
        elif inside and line.strip() and not line.startswith("#"):
            found.append((line, installs))
            ends = re.search(r"<<'(\w+)'$", line)
            heredoc = ends and ends.group(1)
    return found


def bare(line):
    """Without a comment at its end."""
    return line if "\n" in line else re.sub(r"\s+#.*$", "", line).strip()


def script(page, port):
    out = [PRELUDE]
    for line, installs in commands(page):
        command = bare(line)
        if installs:
            if command not in INSTALLS:
                sys.exit(f"docs: {page}: nothing checks: {command}")
            print(f"    {command}: {INSTALLS[command]}")
            continue
        shown = command.splitlines()[0].replace("'", "'\\''")
        out += [wait for pattern, wait in BEFORE if re.fullmatch(pattern, command)]
        out.append(f"echo '$ {shown}'")
        out.append(INSTEAD.get(command, command).replace(":6379", f":{port}").replace("[store]\n", PATIENT))
        if not command.endswith("&"):
            right = ENDS.get(command, "0")
            out.append(f"case $? in [{right}]) ;; *) fail 'it ends with '$?': {shown}' ;; esac")
    # Also on pages that leave nodes running.
    out.append("kill_others 2>/dev/null; exit 0")
    return "\n".join(out)


def run(cronward, page):
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        (folder / "bin").mkdir()
        (folder / "bin/cronward").symlink_to(cronward)
        (folder / "home").mkdir()
        redis = subprocess.Popen(
            ["redis-server", "--port", str(port), "--bind", "127.0.0.1", "--dir", folder, "--save", ""], stdout=subprocess.DEVNULL
        )
        try:
            environment = {"PATH": f"{folder}/bin:{os.environ['PATH']}", "HOME": f"{folder}/home", "LANG": "C.UTF-8", "HOSTNAME": "here"}
            print(page.relative_to(ROOT), flush=True)
            ended = subprocess.run(["bash", "-c", script(page, port)], cwd=folder / "home", env=environment, stdin=subprocess.DEVNULL, timeout=420)
            if ended.returncode:
                sys.exit(f"docs: {page.relative_to(ROOT)} does not do what it says")
        finally:
            redis.terminate()
            redis.wait()


def shown(page):
    """The blocks that are no commands, such as outputs and the line of a crontab, which tests/cluster runs from README.md."""
    return re.findall(r"^```(?!sh$)\w+\n.*?^```$", page.read_text(), re.M | re.S)


def same(one, other):
    """But for texts of a person."""
    strip = lambda page: [re.sub(r'(--reason|description =) ".*?"', r'\1 ""', bare(line)) for line, _ in commands(page)] + shown(page)
    for first, second in itertools.zip_longest(strip(one), strip(other)):
        if first != second:
            sys.exit(f"docs: {one.relative_to(ROOT)} and {other.relative_to(ROOT)} differ:\n{first}\n{second}")


def main():
    cronward, pages = pathlib.Path(sys.argv[1]).resolve(), [ROOT / page for page in sys.argv[2:]]
    for english, chinese in (("README.md", "README.zh-CN.md"), ("docs/getting-started.md", "docs/zh/getting-started.md")):
        same(ROOT / english, ROOT / chinese)
    for page in pages:
        run(cronward, page)


main()
