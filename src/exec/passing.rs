//! Passes output on to this process's own stdout and stderr, at the pace of whoever reads them.
//!
//! The exit of a command waits for nobody: what has been read and not been passed on yet lies in a queue, and whoever ends
//! this process waits for [`Streams::passed_on`] first. Runs of one process follow each other on a stream: the output of a
//! later attempt comes after all of the earlier one's.
//!
//! A reader that goes away ends nothing: a pipe or a connection whose other end was closed, a terminal that is gone. Any other
//! error of a write, such as a full disk, is the command's to feel: its pipe is closed at once, and a run whose output was lost
//! has not succeeded.

use std::fmt;
use std::fs::File;
use std::io::{self, Write};
use std::os::fd::BorrowedFd;
use std::os::unix::fs::FileTypeExt;
use std::sync::{Arc, Mutex as StdMutex, PoisonError};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;
use rustix::termios::tcgetattr;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::sync::{Mutex, OwnedSemaphorePermit, Semaphore};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

/// Chunks that wait for their reader while the command runs; then its pipe is left to fill up.
pub(super) const QUEUE: usize = 4;

/// How long the end of a run waits for a disk or a device to take the rest of its output.
const DISK: Duration = Duration::from_secs(10);

type Writer = Box<dyn Write + Send>;

/// This process's stdout and stderr.
#[derive(Clone)]
pub(super) struct Streams {
    stdout: Sink,
    stderr: Sink,
    tasks: TaskTracker,
    /// Of every run so far.
    outlets: Arc<StdMutex<Vec<Outlet>>>,
}

/// One of them.
#[derive(Clone)]
struct Sink {
    writer: Arc<Mutex<Writer>>,
    /// A file or a device, which nobody reads at a pace of their own: writes end soon, and can fail.
    is_prompt: bool,
}

impl Sink {
    fn new(writer: impl Write + Send + 'static, is_prompt: bool) -> Self {
        Self { writer: Arc::new(Mutex::new(Box::new(writer))), is_prompt }
    }

    fn of(stream: BorrowedFd<'static>) -> Self {
        Self::new(Blocking(stream), is_prompt(stream))
    }
}

/// A stream whose writes wait for room, also where whoever made it wants them not to (`O_NONBLOCK`).
struct Blocking(BorrowedFd<'static>);

impl Write for Blocking {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        loop {
            match rustix::io::write(self.0, bytes) {
                // A signal ends this wait early, and an error of the stream: the write tells that.
                Err(Errno::AGAIN) => {
                    let _ = poll(&mut [PollFd::new(&self.0, PollFlags::OUT)], None);
                }
                written => return Ok(written?),
            }
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Which of the two.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stream {
    Stdout,
    Stderr,
}

impl fmt::Display for Stream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Stdout => "stdout",
            Self::Stderr => "stderr",
        })
    }
}

impl Default for Streams {
    fn default() -> Self {
        Self::of(Sink::of(rustix::stdio::stdout()), Sink::of(rustix::stdio::stderr()))
    }
}

/// Neither a pipe or a socket, nor a terminal, which can be stopped. Neither is a stream that is closed.
fn is_prompt(stream: BorrowedFd<'_>) -> bool {
    let file = stream.try_clone_to_owned().map(File::from);
    let kind = file.and_then(|file| file.metadata()).map(|found| found.file_type());
    // Of a terminal that is gone nothing can be asked but whether it was one.
    let is_terminal = matches!(tcgetattr(stream), Ok(_) | Err(Errno::IO));
    kind.is_ok_and(|kind| !kind.is_fifo() && !kind.is_socket()) && !is_terminal
}

/// Whether a write has failed because nobody reads any more. A terminal that is gone says EIO, as a disk does that is broken.
fn is_unread(error: &io::Error, is_prompt: bool) -> bool {
    match Errno::from_io_error(error) {
        Some(Errno::PIPE) => true,
        Some(Errno::IO | Errno::CONNRESET | Errno::NOTCONN) => !is_prompt,
        _ => false,
    }
}

impl fmt::Debug for Streams {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Streams").finish_non_exhaustive()
    }
}

impl Streams {
    fn of(stdout: Sink, stderr: Sink) -> Self {
        Self { stdout, stderr, tasks: TaskTracker::new(), outlets: Arc::default() }
    }

    /// Begins to pass on to one of them. Needs a runtime.
    pub(super) fn begin(&self, stream: Stream) -> Passing {
        let sink = match stream {
            Stream::Stdout => &self.stdout,
            Stream::Stderr => &self.stderr,
        };
        let (chunks, waiting) = unbounded_channel();
        let outlet = Outlet::new(stream, sink.is_prompt);
        self.outlets.lock().unwrap_or_else(PoisonError::into_inner).push(outlet.clone());
        self.tasks.spawn(pass_on(Arc::clone(&sink.writer), waiting, outlet.clone()));
        Passing { outlet, chunks, room: Arc::new(Semaphore::new(QUEUE)) }
    }

    /// Waits until all output of commands that have ended has been passed on, or nobody listens any more. What could not be
    /// written, a line each, unless the end of its run has told it.
    pub(super) async fn passed_on(&self) -> Vec<String> {
        self.tasks.close();
        self.tasks.wait().await;
        let outlets = std::mem::take(&mut *self.outlets.lock().unwrap_or_else(PoisonError::into_inner));
        outlets.iter().filter_map(Outlet::failure).collect()
    }
}

/// What becomes of one run's output on a stream.
#[derive(Clone, Debug)]
pub(super) struct Outlet {
    stream: Stream,
    is_prompt: bool,
    /// A write has failed.
    failed: CancellationToken,
    /// Everything was passed on, or nothing more will be.
    over: CancellationToken,
    failure: Arc<StdMutex<Option<String>>>,
}

impl Outlet {
    fn new(stream: Stream, is_prompt: bool) -> Self {
        let (failed, over) = (CancellationToken::new(), CancellationToken::new());
        Self { stream, is_prompt, failed, over, failure: Arc::default() }
    }

    /// Waits for the rest of the output, where that goes to a file or a device, after its [`Passing`] was dropped. What could
    /// not be written, in one line; told once.
    pub(super) async fn settled(&self) -> Option<String> {
        if self.is_prompt {
            // A disk that hangs holds up the end of a run no longer; `Streams::passed_on` tells what comes of it.
            let _ = tokio::time::timeout(DISK, self.over.cancelled()).await;
        }
        self.failure()
    }

    fn failure(&self) -> Option<String> {
        self.failure.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    fn fail(&self, error: &io::Error) {
        let line = format!("the command's {} could not be written: {error}", self.stream);
        *self.failure.lock().unwrap_or_else(PoisonError::into_inner) = Some(line);
        self.failed.cancel();
    }
}

/// One run's way to a stream. Dropping it ends the task behind it, once that has passed everything on.
#[derive(Debug)]
pub(super) struct Passing {
    outlet: Outlet,
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
    /// What becomes of the output.
    pub(super) const fn outlet(&self) -> &Outlet {
        &self.outlet
    }

    /// Cancelled as soon as a write fails for another reason than that nobody listens any more.
    pub(super) fn failed(&self) -> CancellationToken {
        self.outlet.failed.clone()
    }

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

async fn pass_on(writer: Arc<Mutex<Writer>>, mut waiting: UnboundedReceiver<Chunk>, outlet: Outlet) {
    let _over = outlet.over.clone().drop_guard();
    // Fair: whoever asked first has the stream first.
    let mut writer = writer.lock_owned().await;
    while let Some(chunk) = waiting.recv().await {
        let writing = tokio::task::spawn_blocking(move || {
            let passed = writer.write_all(&chunk.bytes).and_then(|()| writer.flush());
            (writer, passed)
        });
        // Only the end of the runtime leaves it without an answer.
        let Ok((held, passed)) = writing.await else { return };
        writer = held;
        match passed {
            Ok(()) => {}
            Err(error) if is_unread(&error, outlet.is_prompt) => return,
            Err(error) => return outlet.fail(&error),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Refuses every write.
    struct Refusing(Errno);

    impl Write for Refusing {
        fn write(&mut self, _: &[u8]) -> io::Result<usize> {
            Err(self.0.into())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    fn streams(stdout: Errno, is_prompt: bool) -> Streams {
        Streams::of(Sink::new(Refusing(stdout), is_prompt), Sink::new(io::sink(), is_prompt))
    }

    /// Passes a word on to each stream, and answers what becomes of it on stdout.
    fn pass(streams: &Streams) -> Outlet {
        let [stdout, stderr] = [Stream::Stdout, Stream::Stderr].map(|stream| streams.begin(stream));
        assert!(stdout.pass(b"out", None) && stderr.pass(b"err", None));
        stdout.outlet().clone()
    }

    const FULL: &str = "the command's stdout could not be written: No space left on device (os error 28)";

    #[tokio::test]
    async fn a_stream_that_cannot_be_written_fails_the_run_that_wrote_to_it_and_is_told_once() {
        let streams = streams(Errno::NOSPC, true);
        let outlet = pass(&streams);
        outlet.failed.cancelled().await;
        assert_eq!(outlet.settled().await.as_deref(), Some(FULL));
        assert_eq!(streams.passed_on().await, [""; 0]);
    }

    #[tokio::test]
    async fn what_fails_after_the_end_of_its_run_is_told_when_all_is_passed_on() {
        let streams = streams(Errno::NOSPC, false);
        let outlet = pass(&streams);
        assert_eq!(outlet.settled().await, None, "a reader's pace holds up no end");
        assert_eq!(streams.passed_on().await, [FULL]);
        assert_eq!(streams.passed_on().await, [""; 0]);
    }

    #[tokio::test]
    async fn a_reader_that_went_away_is_no_failure() {
        for (error, is_prompt) in [
            (Errno::PIPE, true),
            (Errno::PIPE, false),
            (Errno::IO, false),
            (Errno::CONNRESET, false),
            (Errno::NOTCONN, false),
        ] {
            let streams = streams(error, is_prompt);
            let outlet = pass(&streams);
            assert_eq!(outlet.settled().await, None, "{error}");
            assert_eq!(streams.passed_on().await, [""; 0], "{error}");
            assert!(!outlet.failed.is_cancelled(), "{error}");
        }
    }

    #[tokio::test]
    async fn a_disk_that_is_broken_is_no_reader_that_went_away() {
        let told = pass(&streams(Errno::IO, true)).settled().await.unwrap();
        assert_eq!(told, "the command's stdout could not be written: Input/output error (os error 5)");
    }
}
