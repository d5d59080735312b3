//! The lines of a crontab, as vixie cron tells them apart: blank, comment, `name = value`, or an entry. Reads no meaning.

/// One line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Line {
    /// Nothing but blanks.
    Blank,
    /// From its `#` on.
    Comment(String),
    /// `name = value`, without its quotes.
    Variable(String, String),
    /// Everything else, without the blanks before it.
    Entry(String),
    /// Bytes that are no text, as far as they can be shown.
    NotText(String),
}

/// A line with its number, from 1.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Numbered {
    pub(super) number: usize,
    pub(super) line: Line,
    /// It ended with a carriage return, which was taken off.
    pub(super) carriage_return: bool,
}

/// Splits a crontab into its lines.
pub(super) fn lines(bytes: &[u8]) -> Vec<Numbered> {
    let body = bytes.strip_suffix(b"\n").unwrap_or(bytes);
    if body.is_empty() {
        return Vec::new();
    }
    let numbered = |(index, line): (usize, &[u8])| {
        let (line, carriage_return) = line.strip_suffix(b"\r").map_or((line, false), |line| (line, true));
        Numbered { number: index + 1, line: read(line), carriage_return }
    };
    body.split(|byte| *byte == b'\n').enumerate().map(numbered).collect()
}

fn read(bytes: &[u8]) -> Line {
    let text = match std::str::from_utf8(bytes) {
        Ok(text) if !text.contains('\0') => text.trim_start_matches([' ', '\t']),
        _ => return Line::NotText(String::from_utf8_lossy(bytes).trim().to_owned()),
    };
    if text.trim_end().is_empty() {
        return Line::Blank;
    }
    if text.starts_with('#') {
        return Line::Comment(text.trim_end().to_owned());
    }
    match variable(text) {
        Some((name, value)) => Line::Variable(name, value),
        None => Line::Entry(text.to_owned()),
    }
}

/// `name = value`. Either may be in quotes, which keep blanks; a value without quotes ends with its last non-blank. As in
/// cron a name without quotes has no blank, nothing follows a closing quote, and a value that is not there is none.
fn variable(text: &str) -> Option<(String, String)> {
    let (name, rest) = match quoted(text) {
        Some((name, rest)) => (name, rest),
        None => text.split_at(text.find(|c: char| c.is_ascii_whitespace() || c == '=')?),
    };
    if name.is_empty() || name.contains('=') {
        return None;
    }
    let value = rest.trim_start().strip_prefix('=')?.trim_start();
    match quoted(value) {
        Some((value, rest)) => rest.trim().is_empty().then(|| (name.to_owned(), value.to_owned())),
        None if value.starts_with(['"', '\'']) => None,
        None => (!value.is_empty()).then(|| (name.to_owned(), value.trim_end().to_owned())),
    }
}

/// What is between the quotes that a text begins with, and what follows them.
fn quoted(text: &str) -> Option<(&str, &str)> {
    let quote = text.chars().next().filter(|c| matches!(c, '"' | '\''))?;
    text.get(1..)?.split_once(quote)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_setting_is_told_from_an_entry_as_cron_does() {
        let set = |name: &str, value: &str| Line::Variable(name.to_owned(), value.to_owned());
        for (text, line) in [
            ("", Line::Blank),
            (" \t", Line::Blank),
            ("  # a=b", Line::Comment("# a=b".to_owned())),
            ("A=b", set("A", "b")),
            ("  A = b c  ", set("A", "b c")),
            ("A=\" b \"  ", set("A", " b ")),
            ("MAILTO=\"\"", set("MAILTO", "")),
            ("\"A B\"='c'", set("A B", "c")),
            ("A=b'c'", set("A", "b'c'")),
            ("A=\"b\" c", Line::Entry("A=\"b\" c".to_owned())),
            ("A=", Line::Entry("A=".to_owned())),
            ("A=\"b", Line::Entry("A=\"b".to_owned())),
            ("A B=c", Line::Entry("A B=c".to_owned())),
            ("* * * * * A=b c", Line::Entry("* * * * * A=b c".to_owned())),
        ] {
            assert_eq!(read(text.as_bytes()), line, "{text:?}");
        }
    }

    #[test]
    fn lines_are_counted_from_one_and_a_foreign_line_end_is_told() {
        let read = lines(b"# a\r\n\n1 2\n");
        assert_eq!(
            read.iter().map(|line| (line.number, line.carriage_return)).collect::<Vec<_>>(),
            [(1, true), (2, false), (3, false)]
        );
        assert_eq!(lines(b"\xff\n")[0].line, Line::NotText("\u{fffd}".to_owned()));
        assert_eq!(lines(b""), []);
    }
}
