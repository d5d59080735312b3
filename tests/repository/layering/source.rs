//! Just enough of Rust's grammar to read a file's imports: blanks what is not code, expands `use` trees.

use std::collections::BTreeSet;

/// The text with comments and the insides of string literals replaced by spaces; line breaks stay where they are.
pub(crate) fn blank(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        let length = not_code(rest, out.chars().next_back());
        let (taken, blanked) = if length > 0 { (length, true) } else { (first.len_utf8(), false) };
        let (head, tail) = rest.split_at(taken);
        if blanked {
            out.extend(head.chars().map(|c| if c == '\n' { '\n' } else { ' ' }));
        } else {
            out.push_str(head);
        }
        rest = tail;
    }
    out
}

/// The string literals of the text outside its comments and tests, without quotes; not those that name a cargo feature.
pub(crate) fn literals(text: &str) -> Vec<String> {
    let mut masked = String::with_capacity(text.len());
    let mut found = Vec::new();
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        let length = not_code(rest, masked.chars().next_back());
        let (head, tail) = rest.split_at(length.max(first.len_utf8()));
        let is_text = length > 0 && (first == '"' || first == 'r');
        if is_text && !masked.trim_end().ends_with("feature =") {
            found.push((
                masked.chars().count(),
                head.trim_start_matches(['r', '#']).trim_matches(['"', '#']).to_owned(),
            ));
        }
        // A quote stands for each character of a literal: it is no blank, and no brace.
        let mask = |c: char| {
            if c == '\n' || length == 0 {
                c
            } else if is_text {
                '"'
            } else {
                ' '
            }
        };
        masked.extend(head.chars().map(mask));
        rest = tail;
    }
    let code: Vec<char> = without_tests(&masked).chars().collect();
    found.into_iter().filter(|(at, _)| code[*at] == '"').map(|(_, literal)| literal).collect()
}

/// How many bytes at the start of `rest` are a comment, a string or a character; 0 when it begins with code.
fn not_code(rest: &str, before: Option<char>) -> usize {
    if rest.starts_with("//") {
        return rest.find('\n').unwrap_or(rest.len());
    }
    if rest.starts_with("/*") {
        return block_comment(rest);
    }
    if rest.starts_with('"') {
        return quoted(rest, '"');
    }
    if rest.starts_with('\'') {
        // A lifetime has no closing quote after one (escaped) character.
        let mut chars = rest.chars().skip(1);
        let escaped = chars.next() == Some('\\');
        return if escaped || chars.next() == Some('\'') { quoted(rest, '\'') } else { 0 };
    }
    if rest.starts_with('r') && !before.is_some_and(is_word) { raw_string(rest) } else { 0 }
}

fn block_comment(rest: &str) -> usize {
    let mut depth = 0_usize;
    let mut at = 0;
    while at < rest.len() {
        let here = &rest[at..];
        if here.starts_with("/*") {
            (depth, at) = (depth + 1, at + 2);
        } else if here.starts_with("*/") {
            (depth, at) = (depth - 1, at + 2);
            if depth == 0 {
                return at;
            }
        } else {
            at += here.chars().next().map_or(1, char::len_utf8);
        }
    }
    rest.len()
}

fn quoted(rest: &str, quote: char) -> usize {
    let mut escaped = false;
    for (at, c) in rest.char_indices().skip(1) {
        match c {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            _ if c == quote => return at + 1,
            _ => {}
        }
    }
    rest.len()
}

fn raw_string(rest: &str) -> usize {
    let hashes = rest[1..].bytes().take_while(|byte| *byte == b'#').count();
    let Some(body) = rest[1 + hashes..].strip_prefix('"') else { return 0 };
    let end = format!("\"{}", "#".repeat(hashes));
    body.find(&end).map_or(rest.len(), |at| 1 + hashes + 1 + at + end.len())
}

/// The blanked text without its `#[cfg(test)] mod … { … }` blocks; line breaks stay.
pub(crate) fn without_tests(blanked: &str) -> String {
    let mut out = blanked.to_owned();
    let mut from = 0;
    while let Some(at) = out[from..].find("#[cfg(test)]").map(|at| from + at) {
        let after = &out[at + "#[cfg(test)]".len()..];
        from = at + 1;
        if !leading_item(after).split_whitespace().any(|word| word == "mod") {
            continue;
        }
        let end = after.find(['{', ';']).map_or(out.len(), |open| {
            let open = out.len() - after.len() + open;
            if out[open..].starts_with('{') { open + balanced(&out[open..]) } else { open + 1 }
        });
        let empty: String = out[at..end].chars().map(|c| if c == '\n' { '\n' } else { ' ' }).collect();
        out.replace_range(at..end, &empty);
    }
    out
}

/// Bytes up to and including the brace that closes the one at the start.
fn balanced(text: &str) -> usize {
    let mut depth = 0_usize;
    for (at, c) in text.char_indices() {
        match c {
            '{' => depth += 1,
            '}' if depth == 1 => return at + 1,
            '}' => depth -= 1,
            _ => {}
        }
    }
    text.len()
}

/// Every path that begins with `root::` (`crate`, `super`, a crate's name), expanded, without the root.
pub(crate) fn paths(code: &str, root: &str) -> Vec<Vec<String>> {
    let needle = format!("{root}::");
    let mut found = Vec::new();
    for (at, _) in code.match_indices(&needle) {
        let before = code[..at].chars().next_back();
        // `x::super::` is the tail of a longer path, which is read from its own root.
        if before.is_some_and(|c| is_word(c) || c == ':') {
            continue;
        }
        tree(&code[at + needle.len()..], &[], &mut found);
    }
    found
}

/// Reads `a::b`, `a::{b, c::d}`, `*` into whole paths; answers how many bytes it read.
fn tree(text: &str, prefix: &[String], found: &mut Vec<Vec<String>>) -> usize {
    let start = text.len() - text.trim_start().len();
    let rest = &text[start..];
    if let Some(group) = rest.strip_prefix('{') {
        return start + 1 + branches(group, prefix, found);
    }
    let length = rest.find(|c| !is_word(c)).unwrap_or(rest.len()).max(usize::from(rest.starts_with('*')));
    let mut path = prefix.to_vec();
    if length > 0 {
        path.push(rest[..length].to_owned());
    }
    match rest[length..].strip_prefix("::") {
        Some(tail) if length > 0 => start + length + 2 + tree(tail, &path, found),
        _ => {
            found.push(path);
            start + length
        }
    }
}

/// The inside of a group, up to and including its closing brace.
fn branches(group: &str, prefix: &[String], found: &mut Vec<Vec<String>>) -> usize {
    let mut at = 0;
    loop {
        let rest = &group[at..];
        let Some(next) = rest.find(|c: char| !c.is_whitespace() && c != ',') else { return group.len() };
        if rest[next..].starts_with('}') {
            return at + next + 1;
        }
        at += next + tree(&rest[next..], prefix, found);
        // ` as name` and whatever else follows a branch.
        at += group[at..].find([',', '}']).unwrap_or(group.len() - at);
    }
}

/// True when the code has this text as whole words.
pub(crate) fn mentions(code: &str, words: &str) -> bool {
    code.match_indices(words).any(|(at, _)| {
        let before = code[..at].chars().next_back();
        let after = code[at + words.len()..].chars().next();
        !before.is_some_and(is_word) && !after.is_some_and(is_word)
    })
}

/// True when the code calls a function of this name, not one at the end of a path or of a value.
pub(crate) fn calls(code: &str, name: &str) -> bool {
    code.match_indices(&format!("{name}(")).any(|(at, _)| {
        let before = code[..at].chars().next_back();
        !before.is_some_and(|c| is_word(c) || matches!(c, ':' | '.'))
    })
}

fn is_word(c: char) -> bool {
    c == '_' || c.is_alphanumeric()
}

/// One name that a file imports.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Use {
    /// What it is called here; `*` for all that a module has.
    pub(crate) name: String,
    /// Where it is from, as written.
    pub(crate) path: Vec<String>,
    /// Whether others may ask for it here: `pub use`.
    pub(crate) passed_on: bool,
}

/// What the `use` statements of the code import, and the code without them and without `mod name;`.
pub(crate) fn uses(code: &str) -> (Vec<Use>, String) {
    let mut found = Vec::new();
    let mut rest = String::with_capacity(code.len());
    let mut at = 0;
    while let Some(start) = code[at..].find("use ").map(|start| at + start) {
        let before = code[..start].trim_end();
        let opens = before.is_empty() || before.ends_with(['}', '{', ';', ']', ')']) || before.ends_with("pub");
        let end = code[start..].find(';').map(|length| start + length);
        let (Some(end), true) = (end, opens) else {
            rest.push_str(&code[at..start + 4]);
            at = start + 4;
            continue;
        };
        rest.push_str(&code[at..start]);
        let passed_on = before.ends_with("pub") || before.ends_with(')');
        imported(&code[start + 4..end], &[], passed_on, &mut found);
        at = end + 1;
    }
    rest.push_str(&code[at..]);
    let said = rest.lines().filter(|line| !(line.contains("mod ") && line.trim_end().ends_with(';')));
    let rest = said.collect::<Vec<_>>().join("\n");
    (found, rest)
}

/// Reads one `use` tree to its end.
fn imported(tree: &str, prefix: &[String], passed_on: bool, found: &mut Vec<Use>) {
    let tree = tree.trim();
    if let Some(open) = tree.find('{') {
        let head = words(&tree[..open]);
        let inside = &tree[open + 1..tree.rfind('}').unwrap_or(tree.len())];
        let prefix = [prefix, &head].concat();
        branches_of(inside).into_iter().for_each(|branch| imported(branch, &prefix, passed_on, found));
        return;
    }
    let (path, alias) = tree.split_once(" as ").map_or((tree, None), |(path, alias)| (path, Some(alias.trim())));
    let mut path = [prefix, &words(path)].concat();
    if path.last().is_some_and(|last| last == "self") && path.len() > 1 {
        path.pop();
    }
    let Some(last) = path.last().cloned() else { return };
    let name = alias.unwrap_or(&last).to_owned();
    if last == "*" {
        path.pop();
    }
    found.push(Use { name, path, passed_on });
}

fn words(path: &str) -> Vec<String> {
    path.split("::").map(str::trim).filter(|part| !part.is_empty()).map(str::to_owned).collect()
}

/// The parts between the commas of a group, each with the groups inside it.
fn branches_of(group: &str) -> Vec<&str> {
    let (mut depth, mut from, mut parts) = (0_usize, 0, Vec::new());
    for (at, c) in group.char_indices() {
        match c {
            '{' => depth += 1,
            '}' => depth = depth.saturating_sub(1),
            ',' if depth == 0 => {
                parts.push(&group[from..at]);
                from = at + 1;
            }
            _ => {}
        }
    }
    parts.push(&group[from..]);
    parts.retain(|part| !part.trim().is_empty());
    parts
}

/// The names that the code defines outside every brace, and in the modules that it has inside.
pub(crate) fn defines(code: &str) -> BTreeSet<String> {
    let words = ["struct", "enum", "trait", "union", "type", "fn", "const", "static", "macro_rules!"];
    words.iter().flat_map(|word| defined(code, word)).collect()
}

/// The types that the code defines outside every brace.
pub(crate) fn types(code: &str) -> BTreeSet<String> {
    ["struct", "enum", "trait", "union", "type"].iter().flat_map(|word| defined(code, word)).collect()
}

/// The modules that the code has inside: `mod name { … }`.
pub(crate) fn modules_inside(code: &str) -> BTreeSet<String> {
    let bodies = defined(code, "mod");
    bodies.into_iter().filter(|name| code.contains(&format!("mod {name} {{"))).collect()
}

/// The modules that the code declares for its tests only. The code still has them where `without_tests` left them.
pub(crate) fn test_modules(blanked: &str) -> BTreeSet<String> {
    let after = blanked.split("#[cfg(test)]").skip(1);
    let declared = |text: &str| text.trim_start().split_once("mod ").map(|(_, rest)| leading_word(rest).to_owned());
    after.filter(|text| leading_item(text).contains("mod ")).filter_map(declared).collect()
}

fn leading_item(text: &str) -> &str {
    &text[..text.find(['{', ';', '=']).unwrap_or(text.len())]
}

fn leading_word(text: &str) -> &str {
    &text[..text.find(|c| !is_word(c)).unwrap_or(text.len())]
}

/// The names after a word, outside every brace.
fn defined(code: &str, word: &str) -> BTreeSet<String> {
    let top = top_level(code);
    let starts = top.match_indices(word).filter(|(at, _)| !top[..*at].chars().next_back().is_some_and(is_word));
    let names = starts.filter_map(|(at, _)| {
        let rest = &top[at + word.len()..];
        rest.starts_with(char::is_whitespace).then(|| leading_word(rest.trim_start()).to_owned())
    });
    names.filter(|name| !name.is_empty()).collect()
}

/// The code outside every brace, and that directly in modules.
fn top_level(code: &str) -> String {
    let mut out = String::new();
    // For each open brace whether it is a module's.
    let mut open: Vec<bool> = Vec::new();
    let mut item = 0;
    for c in code.chars() {
        match c {
            '{' => {
                let head = out.get(item..).unwrap_or("");
                open.push(open.iter().all(|module| *module) && head.split_whitespace().any(|word| word == "mod"));
                out.push(' ');
                item = out.len();
            }
            '}' => {
                open.pop();
                item = out.len();
            }
            _ if open.iter().all(|module| *module) => {
                out.push(c);
                if c == ';' {
                    item = out.len();
                }
            }
            _ => {}
        }
    }
    out
}
