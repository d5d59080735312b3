//! The end of a command's output, within a bound. Never grows with the output, never blocks the writer.

use std::collections::VecDeque;

use crate::slot::OutputTail;

/// The last bytes of a stream.
#[derive(Debug)]
pub(super) struct Tail {
    kept: VecDeque<u8>,
    limit: usize,
    dropped: u64,
}

impl Tail {
    /// Keeps at most `limit` bytes. Memory is taken as output comes: most commands are silent.
    pub(super) const fn new(limit: usize) -> Self {
        Self { kept: VecDeque::new(), limit, dropped: 0 }
    }

    /// Adds bytes at the end and lets as many go at the front as the limit asks for.
    pub(super) fn push(&mut self, bytes: &[u8]) {
        let (skipped, bytes) = bytes.split_at(bytes.len().saturating_sub(self.limit));
        let excess = (self.kept.len() + bytes.len()).saturating_sub(self.limit);
        self.kept.drain(..excess);
        self.kept.extend(bytes);
        self.dropped += (skipped.len() + excess) as u64;
    }

    /// The tail as text that any store can hold: UTF-8, no NUL, at most `limit` bytes, beginning with a whole character.
    pub(super) fn text(&mut self) -> OutputTail {
        let mut bytes: &[u8] = self.kept.make_contiguous();
        let mut dropped = self.dropped;
        if dropped > 0 {
            let cut = bytes.iter().take(3).take_while(|byte| is_continuation(**byte)).count();
            bytes = bytes.get(cut..).unwrap_or_default();
            dropped += cut as u64;
        }
        // A byte that is replaced takes three bytes of text, so that the text may be longer than what was kept.
        let mut excess = characters(bytes).map(|(_, c)| c.len_utf8()).sum::<usize>().saturating_sub(self.limit);
        let mut text = String::new();
        for (width, character) in characters(bytes) {
            if excess > 0 {
                excess = excess.saturating_sub(character.len_utf8());
                dropped += width as u64;
            } else {
                text.push(character);
            }
        }
        OutputTail { text, dropped_bytes: dropped }
    }
}

/// A byte within a UTF-8 character, not its first.
const fn is_continuation(byte: u8) -> bool {
    byte & 0b1100_0000 == 0b1000_0000
}

/// The characters that the bytes stand for, each with the number of bytes that it was. NUL is replaced too: PostgreSQL
/// holds none in a text.
fn characters(bytes: &[u8]) -> impl Iterator<Item = (usize, char)> {
    bytes.utf8_chunks().flat_map(|chunk| {
        let valid =
            chunk.valid().chars().map(|c| (c.len_utf8(), if c == '\0' { char::REPLACEMENT_CHARACTER } else { c }));
        let invalid = Some((chunk.invalid().len(), char::REPLACEMENT_CHARACTER)).filter(|(width, _)| *width > 0);
        valid.chain(invalid)
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn tail(limit: usize, chunks: &[&[u8]]) -> OutputTail {
        let mut tail = Tail::new(limit);
        for chunk in chunks {
            tail.push(chunk);
        }
        tail.text()
    }

    fn output(text: &str, dropped_bytes: u64) -> OutputTail {
        OutputTail { text: text.to_owned(), dropped_bytes }
    }

    #[test]
    fn output_within_the_limit_is_kept_whole() {
        assert_eq!(tail(8, &[]), output("", 0));
        assert_eq!(tail(8, &[b"abc", b"defgh"]), output("abcdefgh", 0));
    }

    #[test]
    fn the_last_bytes_are_kept_and_the_others_counted() {
        assert_eq!(tail(4, &[b"abc", b"def"]), output("cdef", 2));
        assert_eq!(tail(4, &[b"a", b"0123456789"]), output("6789", 7));
        assert_eq!(tail(0, &[b"abc"]), output("", 3));
    }

    #[test]
    fn a_character_that_the_limit_cuts_is_dropped_whole() {
        assert_eq!(tail(3, &["aäb€".as_bytes()]), output("€", 4));
        assert_eq!(tail(4, &["ä€".as_bytes()]), output("€", 2));
    }

    #[test]
    fn what_is_not_utf_8_and_nul_are_replaced() {
        assert_eq!(tail(64, &[b"a\xff\0b"]), output("a\u{fffd}\u{fffd}b", 0));
    }

    #[test]
    fn replaced_bytes_do_not_make_the_text_longer_than_the_limit() {
        assert_eq!(tail(6, &[b"\0\0\0\0\0\0"]), output("\u{fffd}\u{fffd}", 4));
    }

    proptest! {
        #[test]
        fn the_text_is_bounded_and_every_byte_is_kept_or_counted(
            chunks in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..40), 0..10),
            limit in 0_usize..50,
        ) {
            let chunks: Vec<&[u8]> = chunks.iter().map(Vec::as_slice).collect();
            let all = chunks.concat();
            let OutputTail { text, dropped_bytes } = tail(limit, &chunks);
            prop_assert!(text.len() <= limit && !text.contains('\0'));
            let kept = all.get(usize::try_from(dropped_bytes).unwrap()..).unwrap();
            prop_assert_eq!(String::from_utf8_lossy(kept).replace('\0', "\u{fffd}"), text);
        }
    }
}
