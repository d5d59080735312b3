//! Reads a command's output to its end and keeps the tail. Never waits for ever for an end, and never for those who the
//! output is passed on to: that is a task of its own ([`crate::exec::passing`]), behind a queue with a bound. While that
//! queue is full the pipe is not read, and a command that writes on waits for its reader. Once nothing of the command is left,
//! the rest of the pipe is taken in at once, whether or not anybody reads.
//!
//! A pipe whose output cannot be written any more, such as to a full disk, is closed at once: at its next write the command then
//! meets SIGPIPE or EPIPE, whatever the error was.
//!
//! Memory for each pipe: the tail, one chunk, the queue ([`crate::exec::passing::QUEUE`] chunks), and at the end [`PIPE_MAX`].

use std::collections::VecDeque;
use std::io;
use std::os::fd::OwnedFd;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::io::AsyncReadExt;
use tokio::net::unix::pipe::Receiver;
use tokio::sync::OwnedSemaphorePermit;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use crate::exec::passing::{Outlet, Passing};
use crate::slot::OutputTail;

/// How long an end of file is waited for after nothing of the command is left. It normally comes at once; it does not
/// when a stranger holds the pipe, such as a server that was handed it over a socket.
const GRACE: Duration = Duration::from_secs(1);

/// Bytes read at once: a quarter of a pipe, so that a flood needs few calls and a thousand runs little memory.
const CHUNK: usize = 16 * 1024;

/// What a pipe can hold at most (`/proc/sys/fs/pipe-max-size`): no more is read once nothing of the command is left.
const PIPE_MAX: usize = 1024 * 1024;

/// The readers of one run's pipes. Dropping it ends them.
#[derive(Debug)]
pub(super) struct Capture {
    tail: Arc<Mutex<Tail>>,
    readers: JoinSet<()>,
    outlets: Vec<Outlet>,
    ended: CancellationToken,
}

impl Capture {
    /// Begins to read the pipes, one task each, into one tail of at most `limit` bytes.
    pub(super) fn begin(pipes: Vec<(OwnedFd, Option<Passing>)>, limit: usize) -> io::Result<Self> {
        let tail = Arc::new(Mutex::new(Tail::new(limit)));
        let ended = CancellationToken::new();
        let mut readers = JoinSet::new();
        let outlets = pipes.iter().filter_map(|(_, passing)| Some(passing.as_ref()?.outlet().clone())).collect();
        for (pipe, passing) in pipes {
            let reader = Reader { pipe: Receiver::from_owned_fd(pipe)?, passing, tail: Arc::clone(&tail) };
            readers.spawn(reader.read(ended.clone()));
        }
        Ok(Self { tail, readers, outlets, ended })
    }

    /// The tail, and a line for each stream that could not be written, when nothing of the command is left to write.
    pub(super) async fn finish(mut self) -> (OutputTail, Vec<String>) {
        self.ended.cancel();
        while self.readers.join_next().await.is_some() {}
        let mut unwritten = Vec::new();
        for outlet in &self.outlets {
            unwritten.extend(outlet.settled().await);
        }
        (self.tail.lock().unwrap_or_else(PoisonError::into_inner).text(), unwritten)
    }
}

struct Reader {
    pipe: Receiver,
    /// None where nothing is passed on, and once nobody listens any more.
    passing: Option<Passing>,
    tail: Arc<Mutex<Tail>>,
}

impl Reader {
    async fn read(mut self, ended: CancellationToken) {
        let mut buffer = vec![0; CHUNK];
        let failed = self.passing.as_ref().map(Passing::failed).unwrap_or_default();
        loop {
            let step = async {
                let room = self.room().await;
                (room, self.pipe.read(&mut buffer).await)
            };
            let (room, read) = tokio::select! {
                biased;
                () = ended.cancelled() => break,
                // Closes the pipe.
                () = failed.cancelled() => return,
                step = step => step,
            };
            match read.ok().and_then(|count| buffer.get(..count)) {
                None | Some([]) => return,
                Some(bytes) => self.take(bytes, room),
            }
        }
        self.take_rest(&mut buffer).await;
    }

    /// Room for one more chunk in the queue, where there is one.
    async fn room(&self) -> Option<OwnedSemaphorePermit> {
        match &self.passing {
            Some(passing) => passing.room().await,
            None => None,
        }
    }

    /// What the command had written before it ended, and we had not read because nobody read from us.
    async fn take_rest(&mut self, buffer: &mut [u8]) {
        let grace = wait(GRACE);
        tokio::pin!(grace);
        let mut rest = PIPE_MAX;
        while rest > 0 {
            let read = tokio::select! {
                biased;
                read = self.pipe.read(buffer) => read,
                () = &mut grace => return,
            };
            let Some(bytes) = read.ok().and_then(|count| buffer.get(..count)) else { return };
            if bytes.is_empty() {
                return;
            }
            rest = rest.saturating_sub(bytes.len());
            self.take(bytes, None);
        }
    }

    fn take(&mut self, bytes: &[u8], room: Option<OwnedSemaphorePermit>) {
        self.tail.lock().unwrap_or_else(PoisonError::into_inner).push(bytes);
        // Where nobody listens any more the command is not to feel it: the rest is read and kept all the same.
        if self.passing.as_ref().is_some_and(|passing| !passing.pass(bytes, room)) {
            self.passing = None;
        }
    }
}

#[allow(clippy::disallowed_methods, reason = "the one wait of this file, for strangers that hold a pipe")]
async fn wait(span: Duration) {
    tokio::time::sleep(span).await;
}

/// The last bytes of a stream.
#[derive(Debug)]
struct Tail {
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
        OutputTail { text, dropped_bytes: dropped, loss: None }
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
    use super::*;

    use proptest::prelude::*;

    fn tail(limit: usize, chunks: &[&[u8]]) -> OutputTail {
        let mut tail = Tail::new(limit);
        for chunk in chunks {
            tail.push(chunk);
        }
        tail.text()
    }

    fn output(text: &str, dropped_bytes: u64) -> OutputTail {
        OutputTail { text: text.to_owned(), dropped_bytes, loss: None }
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
            let OutputTail { text, dropped_bytes, .. } = tail(limit, &chunks);
            prop_assert!(text.len() <= limit && !text.contains('\0'));
            let kept = all.get(usize::try_from(dropped_bytes).unwrap()..).unwrap();
            prop_assert_eq!(String::from_utf8_lossy(kept).replace('\0', "\u{fffd}"), text);
        }
    }
}
