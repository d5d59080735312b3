"""Compares the keys of docs/jobs-toml.md with those that the program reads: the lists in src/config. Ends with 1 when they differ."""

import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]


def listed(file, name):
    text = (ROOT / "src/config" / file).read_text()
    found = re.search(rf"const {name}: (?:&\[&str\]|\[&str; \d+\]) =\s*&?\[(.*?)\];", text, re.S)
    if not found:
        sys.exit(f"docs: src/config/{file} has no list {name}")
    return set(re.findall(r'"(\w+)"', found.group(1)))


# Each section of the page, and where its keys are read.
READ = {
    "[node]": listed("sections.rs", "NODE"),
    "[store]": listed("sections.rs", "STORE"),
    "[http]": listed("sections.rs", "HTTP"),
    "[http.tls]": listed("http_section.rs", "TLS"),
    "[http.auth]": listed("http_section.rs", "AUTH"),
    "[http.auth.proxy]": listed("http_section.rs", "PROXY"),
    "[notify.NAME]": set().union(*(listed("sink_section.rs", name) for name in ("COMMON", "WEB", "SIGNED", "MAIL", "EXEC"))),
    "[defaults] and [jobs.NAME]": listed("settings.rs", "KEYS") | listed("jobs.rs", "OWN_KEYS"),
}
page = (ROOT / "docs/jobs-toml.md").read_text()
told = {}
for section in page.split("\n## ")[1:]:
    heading, text = section.split("\n", 1)
    told[heading] = set(re.findall(r"^\| `(\w+)` \|", text, re.M))
wrong = [f"{name}: not on the page {sorted(keys - told.get(name, set()))}, not read {sorted(told.get(name, set()) - keys)}"
         for name, keys in READ.items() if told.get(name) != keys]
# Sections that only the page has.
wrong += [f"{name}: not read at all" for name in told.keys() - READ.keys()]
if wrong:
    sys.exit("docs: docs/jobs-toml.md is not what src/config reads:\n" + "\n".join(wrong))
print(f"jobs-toml.md: {sum(map(len, READ.values()))} keys")
