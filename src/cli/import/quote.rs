//! Text as TOML strings and keys, and as the file format reads them again. Nothing but that.

use crate::text::is_harmful;

/// A string value, in the form that is read most easily.
pub(super) fn string(text: &str) -> String {
    let plain = |c: char| !is_harmful(c);
    if text.contains('\n')
        && !text.contains("'''")
        && text.ends_with('\n')
        && text.chars().all(|c| c == '\n' || plain(c))
    {
        return format!("'''\n{text}'''");
    }
    if text.contains(['"', '\\']) && !text.contains('\'') && text.chars().all(plain) {
        return format!("'{text}'");
    }
    let mut quoted = String::with_capacity(text.len() + 2);
    quoted.push('"');
    for c in text.chars() {
        match c {
            '"' | '\\' => quoted.extend(['\\', c]),
            '\n' => quoted.push_str("\\n"),
            '\t' => quoted.push_str("\\t"),
            c if is_harmful(c) => quoted.push_str(&format!("\\u{:04X}", u32::from(c))),
            c => quoted.push(c),
        }
    }
    quoted.push('"');
    quoted
}

/// A list of strings on one line.
pub(super) fn list(words: &[String]) -> String {
    let words: Vec<String> = words.iter().map(|word| string(word)).collect();
    format!("[{}]", words.join(", "))
}

/// A key: bare where it may be.
pub(super) fn key(name: &str) -> String {
    let bare = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-');
    if !name.is_empty() && name.chars().all(bare) { name.to_owned() } else { string(name) }
}

/// A text in which `jobs.toml` would look for variables.
pub(super) fn literal(text: &str) -> String {
    text.replace('$', "$$")
}

/// A comment's text: one line, with nothing in it that TOML forbids there or that moves a cursor.
pub(super) fn comment(text: &str) -> String {
    text.chars().map(|c| if is_harmful(c) { '\u{fffd}' } else { c }).collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_string_is_written_as_it_is_read_most_easily() {
        for (text, written) in [
            ("plain", "\"plain\""),
            ("say \"it\"", "'say \"it\"'"),
            ("it's \"it\"", r#""it's \"it\"""#),
            ("a\nb\n", "'''\na\nb\n'''"),
            ("\r", "\"\\u000D\""),
        ] {
            assert_eq!(string(text), written);
        }
    }

    proptest! {
        #[test]
        fn any_text_comes_back_from_its_string(text in "[a'\"\\\\\n\t$\u{0}-\u{9f}é\u{61c}\u{200e}\u{2028}\u{202e}\u{2066}]{0,12}") {
            let document = format!("x = {}\n# {}\n", string(&text), comment(&text));
            let read: toml::Table = toml::from_str(&document).unwrap();
            prop_assert_eq!(read["x"].as_str(), Some(&*text));
        }
    }
}
