"""Writes a page of docs/ as a manual page: headings, tables of keys, paragraphs and lists. The arguments: the page, the name, the section, one
line of what it is. What Markdown it does not know is an error, so that no page is cut in silence."""

import pathlib
import re
import sys


def plain(text):
    """Without links and marks, and safe for roff."""
    text = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", text)
    text = text.replace("\\", "\\e").replace("-", "\\-")
    text = re.sub(r"`([^`]*)`", r"\\fB\1\\fR", text)
    text = re.sub(r"\*\*([^*]*)\*\*", r"\\fB\1\\fR", text)
    return re.sub(r"^([.'])", r"\\&\1", text)


def page(text, name, section, what):
    out = [f'.TH "{name.upper()}" "{section}" "" "cronward" "cronward"', ".SH NAME", f"{plain(name)} \\- {plain(what)}", ".SH DESCRIPTION"]
    for line in text.splitlines()[1:]:
        if line.startswith("## "):
            out.append(f'.SH "{plain(line[3:])}"')
        elif line.startswith("| key |") or line.startswith("|---"):
            continue
        elif line.startswith("| "):
            key, default, meaning = [cell.strip() for cell in line.strip("|").split(" | ")]
            out += [".TP", f"{plain(key)} (default: {plain(default)})", plain(meaning)]
        elif not line.strip():
            out.append(".PP")
        elif line.startswith(("#", ">", "```", "- ", "1. ")):
            sys.exit(f"man5: cannot write: {line}")
        else:
            out.append(plain(line))
    return "\n".join(out) + "\n"


file, name, section, what = sys.argv[1:]
sys.stdout.write(page(pathlib.Path(file).read_text(), name, section, what))
