//! Text of unknown origin made fit to be shown: on one line, unable to move a cursor, and no longer than a line is read.

use std::borrow::Cow;
use std::fmt::Write;

/// One line of text of unknown origin (output, messages, reasons): nothing in it can move a cursor, clear a screen,
/// retitle a window or turn the reading direction. Everything that could is written as an escape. Tabs stay.
pub(crate) fn harmless(line: &str) -> Cow<'_, str> {
    if !line.chars().any(is_harmful) {
        return Cow::Borrowed(line);
    }
    let mut shown = String::with_capacity(line.len() + 16);
    for c in line.chars() {
        match c {
            '\n' => shown.push_str("\\n"),
            '\r' => shown.push_str("\\r"),
            c if is_harmful(c) && u32::from(c) < 0x100 => {
                let _ = write!(shown, "\\x{:02x}", u32::from(c));
            }
            c if is_harmful(c) => {
                let _ = write!(shown, "\\u{{{:x}}}", u32::from(c));
            }
            c => shown.push(c),
        }
    }
    Cow::Owned(shown)
}

/// A message in which somebody else's text may be: harmless, and at most `most` characters of it.
pub(crate) fn message(text: &str, most: usize) -> String {
    let cut = text.char_indices().nth(most).map(|(at, _)| at);
    let shown = harmless(text.get(..cut.unwrap_or(text.len())).unwrap_or_default());
    if cut.is_some() { format!("{shown}…") } else { shown.into_owned() }
}

/// Controls (C0 but tab, DEL, C1), line and paragraph separators, and what overrides or isolates reading direction.
pub(crate) fn is_harmful(c: char) -> bool {
    match c {
        '\t' => false,
        '\u{200e}' | '\u{200f}' | '\u{061c}' => true,
        '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}' => true,
        c => c.is_control(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_escape_sequence_passes() {
        assert_eq!(harmless("\x1b[2J\x1b]0;owned\x07 ok"), "\\x1b[2J\\x1b]0;owned\\x07 ok");
        assert_eq!(harmless("\u{9b}31m \u{7f}"), "\\x9b31m \\x7f");
        assert_eq!(harmless("a\rb\nc"), "a\\rb\\nc");
        assert_eq!(harmless("safe\u{202e}exe.txt\u{2028}"), "safe\\u{202e}exe.txt\\u{2028}");
    }

    #[test]
    fn what_is_harmless_stays_as_it_is() {
        for text in ["", "plain", "tab\tstop", "ä 漢 🦀", "\\x1b"] {
            assert_eq!(harmless(text), text);
        }
    }

    #[test]
    fn a_message_is_cut_between_characters() {
        assert_eq!(message("äöü", 3), "äöü");
        assert_eq!(message("äöü\n", 3), "äöü…");
        assert_eq!(message("a\nb", 9), "a\\nb");
    }
}
