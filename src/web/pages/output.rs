//! What a command wrote, made fit to be shown: as text, with every control as an escape, and cut where a page shows only its end.

use std::borrow::Cow;

use crate::admin::words::harmless_lines;

/// Bytes of output below an attempt on the page of its slot.
pub(super) const EXCERPT: usize = 8 * 1_024;
/// Lines of it.
const LINES: usize = 60;

/// The end of an output, and whether there was more.
pub(super) fn excerpt(text: &str) -> (String, bool) {
    let mut from = text.len().saturating_sub(EXCERPT);
    while !text.is_char_boundary(from) {
        from += 1;
    }
    let tail = text.get(from..).unwrap_or_default();
    let lines = tail.lines().count();
    let skipped = lines.saturating_sub(LINES);
    let shown: Vec<Cow<'_, str>> = harmless_lines(tail).skip(skipped).collect();
    (shown.join("\n"), from > 0 || skipped > 0)
}

/// All of it.
pub(super) fn whole(text: &str) -> String {
    let lines: Vec<Cow<'_, str>> = harmless_lines(text).collect();
    lines.join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_excerpt_is_the_end_cut_between_characters() {
        assert_eq!(excerpt("a\nb\n"), ("a\nb".to_owned(), false));
        let long = "漢".repeat(10_000);
        let (shown, cut) = excerpt(&long);
        assert!(cut && shown.len() <= EXCERPT && shown.chars().all(|c| c == '漢'));
        let lines = "x\n".repeat(100);
        assert_eq!(excerpt(&lines).0.lines().count(), LINES);
    }

    #[test]
    fn nothing_in_it_can_move_a_cursor() {
        assert_eq!(whole("\x1b[2J<b>\r\n\u{202e}x"), "\\x1b[2J<b>\n\\u{202e}x");
    }
}
