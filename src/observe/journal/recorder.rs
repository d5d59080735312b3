//! The observer that writes the journal, and the thread that it hands lines to: one `write` for each line, so that nobody reads
//! half of one while the disk is well.
//!
//! The observer never waits, and the thread never gives up: a line that cannot be written is counted, and the next one is tried
//! again.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{self, Receiver, SyncSender};
use std::time::Duration;

use rustix::fs::OFlags;

use crate::clock::Clock;
use crate::event::Event;
use crate::file;
use crate::job::NodeName;
use crate::observe::Observer;
use crate::observe::journal::line::Line;
use crate::slot::Slot;

/// Lines that wait to be written: some seconds of a busy node. More than that, and the disk does not keep up.
const QUEUE: usize = 4_096;

/// Appends every event of one node to a file. See [`super`].
#[derive(Debug)]
pub struct Journal {
    queue: SyncSender<Message>,
    shared: Arc<RecorderState>,
    stamp: Stamp,
}

impl Journal {
    /// Opens the file, for its owner alone when it is new, and starts the thread that writes it. An error names what is
    /// wrong with the file.
    pub fn open(path: &Path, clock: Arc<dyn Clock>, node: NodeName, instance: String) -> io::Result<Self> {
        let path = path.to_owned();
        let first = append_to(&path)?;
        let shown = path.display().to_string();
        let open: OpenFile = Box::new(move || append_to(&path));
        Self::start(first, open, shown, Stamp { clock, node, instance })
    }

    fn start(first: Opened, open: OpenFile, shown: String, stamp: Stamp) -> io::Result<Self> {
        let (queue, lines) = mpsc::sync_channel(QUEUE);
        let shared = Arc::new(RecorderState::default());
        let writer = Writer::new(first, open, shown, stamp.clone(), Arc::clone(&shared));
        std::thread::Builder::new().name("journal".to_owned()).spawn(move || writer.run(&lines))?;
        Ok(Self { queue, shared, stamp })
    }

    /// Closes the file and opens it again by its name, after what is queued by now: another program has moved it away.
    pub fn reopen(&self) {
        self.shared.ask_to_reopen();
        // A full queue does not matter: the writer looks before each line.
        let _ = self.queue.try_send(Message::Look);
    }

    /// Waits until what was told so far is written, but not longer than this; false when it was not.
    pub fn flush(&self, within: Duration) -> bool {
        let (done, written) = mpsc::sync_channel(1);
        self.queue.try_send(Message::Flush(done)).is_ok() && written.recv_timeout(within).is_ok()
    }

    /// Lines that were never written, since the start. Also those that a line of the journal tells of.
    pub fn lines_lost(&self) -> u64 {
        self.shared.lost.load(Ordering::Relaxed)
    }

    fn put(&self, line: String) {
        if self.queue.try_send(Message::Line(line)).is_err() {
            self.shared.count_lost(1);
        }
    }
}

impl Observer for Journal {
    fn event(&self, slot: Option<&Slot>, event: &Event) {
        self.put(self.stamp.line(slot, event));
    }
}

fn append_to(path: &Path) -> io::Result<Opened> {
    // A pipe that nobody reads is an error and not a wait (open(2)); for a file that flag means nothing.
    let file = file::writing(path, OFlags::NONBLOCK)?.append(true).create(true).open(path)?;
    let torn = file.metadata()?.is_file() && ends_within_a_line(path).unwrap_or(true);
    Ok(Opened { file: Box::new(file), torn })
}

fn ends_within_a_line(path: &Path) -> io::Result<bool> {
    let mut file = File::open(path)?;
    if file.metadata()?.len() == 0 {
        return Ok(false);
    }
    file.seek(SeekFrom::End(-1))?;
    let mut last = [0];
    file.read_exact(&mut last)?;
    Ok(last != *b"\n")
}

/// What every line begins with.
#[derive(Clone, Debug)]
pub(super) struct Stamp {
    pub(super) clock: Arc<dyn Clock>,
    pub(super) node: NodeName,
    pub(super) instance: String,
}

impl Stamp {
    pub(super) fn line(&self, slot: Option<&Slot>, event: &Event) -> String {
        Line::of(self.clock.now().wall, (&self.node, &self.instance), slot, event).text()
    }
}

/// What the writer is told.
#[derive(Debug)]
enum Message {
    /// A line without its end.
    Line(String),
    /// Whether to reopen is looked at.
    Look,
    /// Everything before this is written, or counted as dropped.
    Flush(SyncSender<()>),
}

/// Opens the file anew.
pub(super) type OpenFile = Box<dyn FnMut() -> io::Result<Opened> + Send>;

/// An open journal.
pub(super) struct Opened {
    pub(super) file: Box<dyn Write + Send>,
    /// It ends within a line: the power failed, or the disk was full. A line end comes before the next one.
    pub(super) torn: bool,
}

/// What both sides of the queue know.
#[derive(Debug, Default)]
struct RecorderState {
    /// Lines that no line of the journal tells of yet.
    dropped: AtomicU64,
    /// All of them.
    lost: AtomicU64,
    reopen: AtomicBool,
}

impl RecorderState {
    /// They will not be written.
    fn count_lost(&self, lines: u64) {
        self.lost.fetch_add(lines, Ordering::Relaxed);
        self.count_dropped(lines);
    }

    fn count_dropped(&self, lines: u64) {
        self.dropped.fetch_add(lines, Ordering::Relaxed);
    }

    #[cfg(test)]
    pub(super) fn dropped(&self) -> u64 {
        self.dropped.load(Ordering::Relaxed)
    }

    fn ask_to_reopen(&self) {
        self.reopen.store(true, Ordering::Relaxed);
    }
}

struct Writer {
    journal: Opened,
    open: OpenFile,
    /// The file's name, for the log.
    shown: String,
    stamp: Stamp,
    shared: Arc<RecorderState>,
    /// That lines are lost has been logged.
    told: bool,
}

impl Writer {
    pub(super) fn new(
        journal: Opened,
        open: OpenFile,
        shown: String,
        stamp: Stamp,
        shared: Arc<RecorderState>,
    ) -> Self {
        Self { journal, open, shown, stamp, shared, told: false }
    }

    /// Until the journal is dropped.
    fn run(mut self, queue: &Receiver<Message>) {
        while let Ok(message) = queue.recv() {
            self.reopen_if_asked();
            match message {
                Message::Line(line) => self.put(&line),
                Message::Look => {}
                Message::Flush(done) => {
                    self.tell_dropped();
                    // Whoever waited may have given up.
                    let _ = done.try_send(());
                }
            }
        }
    }

    fn reopen_if_asked(&mut self) {
        if !self.shared.reopen.swap(false, Ordering::Relaxed) {
            return;
        }
        match (self.open)() {
            Ok(journal) => self.journal = journal,
            Err(error) => {
                let path = &*self.shown;
                tracing::error!(path, error = %error, "the journal cannot be opened again: writing on in the old file");
            }
        }
    }

    fn put(&mut self, line: &str) {
        if !self.tell_dropped() {
            self.shared.count_lost(1);
        } else if let Err(error) = self.write(line) {
            self.shared.count_lost(1);
            self.complain(&error);
        }
    }

    /// Writes how many lines were dropped, if any; false when that fails, and then the next line would fail too.
    fn tell_dropped(&mut self) -> bool {
        let lines = self.shared.dropped.swap(0, Ordering::Relaxed);
        if lines == 0 {
            return true;
        }
        let line = self.stamp.line(None, &Event::Dropped { lines });
        if let Err(error) = self.write(&line) {
            self.shared.count_dropped(lines);
            self.complain(&error);
            return false;
        }
        let path = &*self.shown;
        tracing::warn!(path, lines, "the journal is written again; lines are missing");
        self.told = false;
        true
    }

    fn complain(&mut self, error: &io::Error) {
        if !std::mem::replace(&mut self.told, true) {
            let path = &*self.shown;
            tracing::error!(path, error = %error, "the journal cannot be written: lines are dropped, the node goes on");
        }
    }

    fn write(&mut self, line: &str) -> io::Result<()> {
        let start = if self.journal.torn { "\n" } else { "" };
        let text = format!("{start}{line}\n");
        self.journal.torn = true;
        self.journal.file.write_all(text.as_bytes())?;
        self.journal.torn = false;
        Ok(())
    }
}

#[cfg(test)]
#[path = "recorder_tests.rs"]
mod recorder_tests;
