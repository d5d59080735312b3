"""Makes the site of the documents with mdbook, and checks each link of it: to a page, to a place in a page, to a file. The arguments: a folder to
work in, and where to write the site. Every Markdown file of the repository is a page. Ends with 1 when a link leads nowhere, or when a heading of a
Chinese page is not found by the site's search."""

import json
import pathlib
import posixpath
import re
import subprocess
import sys
import urllib.parse

ROOT = pathlib.Path(__file__).resolve().parents[2]
work, site = pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2]).absolute()

# The order in which one reads; what is not named here comes under "More".
PARTS = {
    "Start": ["README.md", "docs/getting-started.md", "docs/jobs-toml.md", "docs/commands.md", "docs/faq.md"],
    "中文": ["README.zh-CN.md", "docs/zh/getting-started.md"],
    "Move": ["docs/migrate/crontab.md", "docs/migrate/setnx.md", "docs/migrate/shedlock.md", "docs/migrate/kubernetes-cronjob.md"],
    "Run": ["docs/operations.md", "docs/stores.md", "docs/dashboard.md", "docs/metrics.md", "docs/notifications.md", "docs/http.md", "docs/api.md", "docs/telemetry.md", "docs/journal.md", "deploy/packages/README.md",
            "deploy/systemd/README.md", "deploy/docker/README.md", "deploy/compose/README.md", "deploy/kubernetes/README.md",
            "deploy/helm/cronward/README.md", "deploy/proxy/README.md"],
    "Build on": ["docs/library.md", "docs/locks.md", "docs/json.md"],
    "Trust": ["docs/reliability-in-short.md", "docs/reliability.md", "docs/PROTOCOL.md", "docs/redlock.md", "ARCHITECTURE.md", "docs/adr/README.md",
              "SECURITY.md", "CHANGELOG.md", "docs/glossary.md", "CONTRIBUTING.md"],
}

PICTURES = (".png", ".svg")
# Those that a page names.
pictures = set()


def pages():
    tracked = subprocess.run(["git", "ls-files", "-co", "--exclude-standard", "*.md"], cwd=ROOT, capture_output=True, text=True, check=True)
    return sorted(tracked.stdout.split())


def placed(path):
    """README.md is the page of its folder."""
    return re.sub(r"(^|/)README\.md$", r"\1index.md", path)


def rewritten(text, page, known):
    """Links to pages lead to where they are placed, and pictures stay; of any other file only the words do."""
    folder = pathlib.PurePosixPath(page).parent

    def link(found):
        words, target = found.group(1), found.group(2)
        if "://" in target or target.startswith(("#", "mailto:")):
            return found.group(0)
        path, _, place = target.partition("#")
        full = posixpath.normpath(posixpath.join(folder, path))
        if full + "/README.md" in known:
            full += "/README.md"
        up = "../" * (len(folder.parts))
        if full.endswith(PICTURES) and (ROOT / full).exists():
            pictures.add(full)
            return f"[{words}]({up}{full})"
        if full not in known:
            return words if (ROOT / full).exists() else sys.exit(f"site: {page}: {target} leads nowhere")
        return f"[{words}]({up}{placed(full)}{'#' + place if place else ''})"

    # Whatever comes first: a block of code, a link, code within a line.
    parts_of_text = r"^```.*?^```$|\[((?:`[^`\n]*`|[^\[\]`])*)\]\(([^()\s]+)\)|`[^`\n]*`"
    return re.sub(parts_of_text, lambda found: link(found) if found.group(2) else found.group(0), text, flags=re.S | re.M)


def title(text, page):
    found = re.search(r"^# (.+)$", text, re.M)
    return found.group(1).replace("[", "").replace("]", "") if found else page


def build():
    known = pages()
    source = work / "source"
    summary, told = ["# Summary"], set()
    texts = {page: (ROOT / page).read_text() for page in known}
    parts = {**PARTS, "Decisions": [page for page in known if page.startswith("docs/adr/0")]}
    named = {page for part in parts.values() for page in part}
    parts["More"] = [page for page in known if page not in named and not page.startswith("tests/")]
    for part, members in parts.items():
        summary += ["", f"# {part}", ""]
        summary += [f"- [{title(texts[page], page)}]({placed(page)})" for page in members]
        told |= set(members)
    for page in told:
        file = source / placed(page)
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(rewritten(texts[page], page, told))
    for picture in pictures:
        (source / picture).parent.mkdir(parents=True, exist_ok=True)
        (source / picture).write_bytes((ROOT / picture).read_bytes())
    (source / "SUMMARY.md").write_text("\n".join(summary) + "\n")
    (work / "chinese.js").write_bytes((ROOT / "scripts/docs/chinese.js").read_bytes())
    (work / "book.toml").write_text(
        f'[book]\ntitle = "cronward"\nlanguage = "en"\nsrc = "source"\n[build]\nbuild-dir = "{site}"\ncreate-missing = false\n'
        "[output.html]\nno-section-label = true\nadditional-js = [\"chinese.js\"]\n[output.html.search]\nlimit-results = 20\n"
    )
    made = subprocess.run(["mdbook", "build", work], capture_output=True, text=True)
    if made.returncode or "WARN" in made.stderr or "ERROR" in made.stderr:
        sys.exit(f"site: {made.stdout}{made.stderr}")
    # mdBook knows one language for all of a book.
    chinese = [(site / placed(page)).with_suffix(".html") for page in PARTS["中文"]]
    for page in chinese:
        text = page.read_text()
        if text.count('<html lang="en"') != 1:
            sys.exit(f"site: {page} does not say its language as expected")
        page.write_text(text.replace('<html lang="en"', '<html lang="zh-Hans"'))
    return len(told)


def check():
    """Each link, each picture and each place that a page names is there."""
    places = {}
    for file in site.rglob("*.html"):
        text = file.read_text()
        places[file] = (set(re.findall(r'\bid="([^"]+)"', text)), re.findall(r'<(?:a [^>]*?href|img [^>]*?src)="([^"]+)"', text))
    dead, seen = [], 0
    for file, (_, links) in places.items():
        if file.name in ("print.html", "toc.html", "404.html"):
            continue
        for link in links:
            if re.match(r"[a-z]+:", link):
                continue
            path, _, place = urllib.parse.unquote(link.replace("&amp;", "&")).partition("#")
            target = (file.parent / path).resolve() if path else file
            target = target / "index.html" if target.is_dir() else target
            seen += 1
            if not target.exists() or (place and target in places and place not in places[target][0]):
                dead.append(f"{file.relative_to(site)}: {link}")
    if dead:
        sys.exit("site: links that lead nowhere:\n" + "\n".join(sorted(set(dead))))
    if not pictures or not all((site / picture).exists() for picture in pictures):
        sys.exit("site: pictures are missing")
    return seen


def found(queries):
    """The pages that the site's search finds, the best first, for each of these."""
    asked = subprocess.run(["node", ROOT / "scripts/docs/search.cjs", site, *queries], capture_output=True, text=True)
    if asked.returncode:
        sys.exit(f"site: the search does not work: {asked.stderr}")
    return [[url.partition("#")[0] for url in urls] for urls in json.loads(asked.stdout)]


def check_search():
    """The words of each heading of a Chinese page lead to that page, and English ones go on to be found."""
    wanted = [("lease", "docs/glossary.html"), ("max_attempts", "docs/jobs-toml.html")]
    for page in PARTS["中文"] + ["docs/glossary.md"]:
        headings = re.findall(r"^#+ (.+)$", (ROOT / page).read_text(), re.M)
        words = [word for heading in headings for word in re.findall(r"[\u4e00-\u9fff]{2,}", heading)]
        wanted += [(word, re.sub(r"\.md$", ".html", placed(page))) for word in words]
    for (word, page), pages in zip(wanted, found([word for word, _ in wanted])):
        if page not in pages:
            sys.exit(f"site: a search for {word} does not find {page}, but {sorted(set(pages))}")
    return len(wanted)


count = build()
print(f"site: {count} pages, {check()} links, {check_search()} searches")
