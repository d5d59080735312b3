//! Reads a command's output to its end and keeps the tail. Never waits for ever for an end, and never for those who the
//! output is passed on to: that is a task of its own ([`crate::exec::passing`]), behind a queue with a bound. While that
//! queue is full the pipe is not read, and a command that writes on waits for its reader. Once nothing of the command is left,
//! the rest of the pipe is taken in at once, whether or not anybody reads.
//!
//! A pipe whose output cannot be written any more, such as to a full disk, is closed at once: at its next write the command then
//! meets SIGPIPE or EPIPE, whatever the error was.
//!
//! Memory for each pipe: the tail, one chunk, the queue ([`crate::exec::passing::QUEUE`] chunks), and at the end [`PIPE_MAX`].

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
use crate::exec::tail::Tail;
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
