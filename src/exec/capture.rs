//! Reads a command's output to its end: keeps the tail and, if asked, passes it on. Never lets the command wait for us,
//! except where our own stdout makes us wait, and never waits for ever for an end.

use std::io;
use std::os::fd::OwnedFd;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::unix::pipe::Receiver;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use crate::exec::tail::Tail;
use crate::slot::OutputTail;

/// How long an end of file is waited for after nothing of the command is left. It normally comes at once; it does not
/// when a stranger holds the pipe, such as a server that was handed it over a socket.
const GRACE: Duration = Duration::from_secs(1);

/// Bytes read at once: a quarter of a pipe, so that a flood needs few calls and a thousand runs little memory.
const CHUNK: usize = 16 * 1024;

/// What a pipe can hold at most (`/proc/sys/fs/pipe-max-size`): no more is read after the grace.
const PIPE_MAX: usize = 1024 * 1024;

/// Where output is passed on to.
pub(super) type Sink = Box<dyn AsyncWrite + Send + Unpin>;

/// The readers of one run's pipes. Dropping it ends them.
#[derive(Debug)]
pub(super) struct Capture {
    tail: Arc<Mutex<Tail>>,
    readers: JoinSet<()>,
    ended: CancellationToken,
}

impl Capture {
    /// Begins to read the pipes, one task each, into one tail of at most `limit` bytes.
    pub(super) fn begin(pipes: Vec<(OwnedFd, Option<Sink>)>, limit: usize) -> io::Result<Self> {
        let tail = Arc::new(Mutex::new(Tail::new(limit)));
        let ended = CancellationToken::new();
        let mut readers = JoinSet::new();
        for (pipe, sink) in pipes {
            let reader = Reader { pipe: Receiver::from_owned_fd(pipe)?, sink, tail: Arc::clone(&tail) };
            readers.spawn(reader.read(ended.clone()));
        }
        Ok(Self { tail, readers, ended })
    }

    /// The tail, when nothing of the command is left to write.
    pub(super) async fn finish(mut self) -> OutputTail {
        self.ended.cancel();
        while self.readers.join_next().await.is_some() {}
        self.tail.lock().unwrap_or_else(PoisonError::into_inner).text()
    }
}

struct Reader {
    pipe: Receiver,
    sink: Option<Sink>,
    tail: Arc<Mutex<Tail>>,
}

impl Reader {
    async fn read(mut self, ended: CancellationToken) {
        let mut buffer = vec![0; CHUNK];
        let grace = async {
            ended.cancelled().await;
            wait(GRACE).await;
        };
        tokio::pin!(grace);
        loop {
            let read = tokio::select! {
                biased;
                () = &mut grace => break,
                read = self.pipe.read(&mut buffer) => read,
            };
            match read.ok().and_then(|count| buffer.get(..count)) {
                None | Some([]) => return,
                Some(bytes) => self.take(bytes).await,
            }
        }
        self.take_rest(&mut buffer).await;
    }

    /// What the command had written before it ended, and we had no time to read because our own stdout was slow.
    async fn take_rest(&mut self, buffer: &mut [u8]) {
        let mut rest = PIPE_MAX;
        while rest > 0 {
            let Some(bytes) = self.pipe.try_read(buffer).ok().and_then(|count| buffer.get(..count)) else { return };
            if bytes.is_empty() {
                return;
            }
            rest = rest.saturating_sub(bytes.len());
            self.take(bytes).await;
        }
    }

    async fn take(&mut self, bytes: &[u8]) {
        self.tail.lock().unwrap_or_else(PoisonError::into_inner).push(bytes);
        let Some(sink) = &mut self.sink else { return };
        let passed = async {
            sink.write_all(bytes).await?;
            sink.flush().await
        };
        if passed.await.is_err() {
            // Nobody listens any more. The command is not to feel it: the rest is read and kept all the same.
            self.sink = None;
        }
    }
}

#[allow(clippy::disallowed_methods, reason = "the one wait of this file, for strangers that hold a pipe")]
async fn wait(span: Duration) {
    tokio::time::sleep(span).await;
}
