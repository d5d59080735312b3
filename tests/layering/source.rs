//! Just enough of Rust's grammar to read a file's imports: blanks what is not code, expands `use` trees.

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
        if !after.trim_start().starts_with("mod ") {
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

fn is_word(c: char) -> bool {
    c == '_' || c.is_alphanumeric()
}
