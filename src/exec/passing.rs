//! Passes output on to this process's own stdout and stderr, at the pace of whoever reads them.
//!
//! The exit of a command waits for nobody: what has been read and not been passed on yet lies in a queue, and whoever ends
//! this process waits for [`Streams::passed_on`] first. Runs of one process follow each other on a stream: the output of a
//! later attempt comes after all of the earlier one's.

use std::fmt;
use std::sync::Arc;

use tokio::io::{AsyncWrite, AsyncWriteExt};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::sync::{Mutex, OwnedSemaphorePermit, Semaphore};
use tokio_util::task::TaskTracker;

/// Chunks that wait for their reader while the command runs; then its pipe is left to fill up.
pub(super) const QUEUE: usize = 4;

type Sink = Arc<Mutex<Box<dyn AsyncWrite + Send + Unpin>>>;

/// This process's stdout and stderr.
#[derive(Clone)]
pub(super) struct Streams {
    stdout: Sink,
    stderr: Sink,
    tasks: TaskTracker,
}

/// Which of the two.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stream {
    Stdout,
    Stderr,
}

impl Default for Streams {
    fn default() -> Self {
        Self {
            stdout: Arc::new(Mutex::new(Box::new(tokio::io::stdout()))),
            stderr: Arc::new(Mutex::new(Box::new(tokio::io::stderr()))),
            tasks: TaskTracker::new(),
        }
    }
}

impl fmt::Debug for Streams {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Streams").finish_non_exhaustive()
    }
}

impl Streams {
    /// Begins to pass on to one of them. Needs a runtime.
    pub(super) fn begin(&self, stream: Stream) -> Passing {
        let sink = match stream {
            Stream::Stdout => &self.stdout,
            Stream::Stderr => &self.stderr,
        };
        let (chunks, waiting) = unbounded_channel();
        self.tasks.spawn(pass_on(Arc::clone(sink), waiting));
        Passing { chunks, room: Arc::new(Semaphore::new(QUEUE)) }
    }

    /// Waits until all output of commands that have ended has been passed on, or nobody listens any more.
    pub(super) async fn passed_on(&self) {
        self.tasks.close();
        self.tasks.wait().await;
    }
}

/// One run's way to a stream. Dropping it ends the task behind it, once that has passed everything on.
#[derive(Debug)]
pub(super) struct Passing {
    /// Bounded by `room` while the command runs, and by its reader afterwards.
    chunks: UnboundedSender<Chunk>,
    room: Arc<Semaphore>,
}

/// Some output, and its place in the queue.
#[derive(Debug)]
struct Chunk {
    bytes: Vec<u8>,
    _room: Option<OwnedSemaphorePermit>,
}

impl Passing {
    /// Waits until there is room for a chunk; none where nobody listens any more.
    pub(super) async fn room(&self) -> Option<OwnedSemaphorePermit> {
        tokio::select! {
            () = self.chunks.closed() => None,
            room = Arc::clone(&self.room).acquire_owned() => room.ok(),
        }
    }

    /// Puts output into the queue; false where nobody listens any more.
    pub(super) fn pass(&self, bytes: &[u8], room: Option<OwnedSemaphorePermit>) -> bool {
        self.chunks.send(Chunk { bytes: bytes.to_vec(), _room: room }).is_ok()
    }
}

async fn pass_on(sink: Sink, mut waiting: UnboundedReceiver<Chunk>) {
    // Fair: whoever asked first has the stream first.
    let mut sink = sink.lock().await;
    while let Some(chunk) = waiting.recv().await {
        let passed = async {
            sink.write_all(&chunk.bytes).await?;
            sink.flush().await
        };
        if passed.await.is_err() {
            return;
        }
    }
}
