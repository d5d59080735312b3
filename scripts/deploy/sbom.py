"""Prints what the program is made of as CycloneDX 1.5: each crate of the resolved tree for these features on Linux, with version, licence, and the
checksum of the lock file. Only crates that are linked in or that build it; tests' are left out. The argument: the features."""

import json
import pathlib
import re
import subprocess
import sys
import tomllib

ROOT = pathlib.Path(__file__).resolve().parents[2]


def cargo(*words):
    return subprocess.run(["cargo", *words], cwd=ROOT, capture_output=True, text=True, check=True).stdout


machine = re.search(r"^host: (.*)$", subprocess.run(["rustc", "-vV"], capture_output=True, text=True, check=True).stdout, re.M).group(1)
tree = cargo("tree", "--locked", "--offline", "-e", "normal,build", "--prefix", "none", "--format", "{p}", "--no-default-features",
             "--features", sys.argv[1], "--target", machine)
# "name v1.2.3", and behind it a path or a note.
used = {tuple(line.split()[:2]) for line in tree.splitlines() if line.strip()}
metadata = json.loads(cargo("metadata", "--locked", "--offline", "--format-version", "1", "--all-features", "--filter-platform", machine))
lock = {(entry["name"], entry["version"]): entry for entry in tomllib.loads((ROOT / "Cargo.lock").read_text())["package"]}
packages = {(package["name"], package["version"]): package for package in metadata["packages"]}


def component(name, version):
    package, locked = packages[name, version], lock[name, version]
    purl = f"pkg:cargo/{name}@{version}"
    found = {"type": "library", "bom-ref": purl, "name": name, "version": version, "purl": purl}
    if package.get("license"):
        found["licenses"] = [{"expression": package["license"].replace("/", " OR ")}]
    if locked.get("checksum"):
        found["hashes"] = [{"alg": "SHA-256", "content": locked["checksum"]}]
    return found


wanted = sorted((name, version.removeprefix("v")) for name, version in used)
own = [pair for pair in wanted if pair[0] == "cronward"]
others = [pair for pair in wanted if pair[0] != "cronward"]
if len(own) != 1 or len(others) < 50:
    sys.exit(f"sbom: {len(own)} of our own and {len(others)} others: cargo tree is not understood")
refs = {pair: f"pkg:cargo/{pair[0]}@{pair[1]}" for pair in wanted}
main = component(*own[0]) | {"type": "application"}
json.dump(
    {
        "bomFormat": "CycloneDX",
        "specVersion": "1.5",
        "version": 1,
        "metadata": {"component": main, "properties": [{"name": "cargo:features", "value": sys.argv[1]}]},
        "components": [component(*pair) for pair in others],
        "dependencies": [{"ref": refs[own[0]], "dependsOn": [refs[pair] for pair in others]}],
    },
    sys.stdout,
    indent=1,
)
print()
