//! The thread that writes a journal: one `write` for each line, so that nobody reads half of one while the disk is well.
//!
//! It never gives up: a line that cannot be written is counted, and the next one is tried again.

use std::io::{self, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, SyncSender};

use crate::clock::Clock;
use crate::job::{JobName, NodeName};
use crate::observe::journal::line::{Fact, Line};
use crate::slot::Slot;

/// What every line begins with.
#[derive(Clone, Debug)]
pub(super) struct Stamp {
    pub(super) clock: Arc<dyn Clock>,
    pub(super) node: NodeName,
    pub(super) instance: String,
}

impl Stamp {
    pub(super) fn line(&self, slot: Option<&Slot>, job: Option<&JobName>, fact: Fact) -> String {
        Line::of(self.clock.now().wall, (&self.node, &self.instance), (slot, job), fact).text()
    }
}

/// What the writer is told.
#[derive(Debug)]
pub(super) enum Message {
    /// A line without its end.
    Line(String),
    /// Whether to reopen is looked at.
    Look,
    /// Everything before this is written, or counted as dropped.
    Flush(SyncSender<()>),
}

/// Opens the file anew.
pub(super) type Open = Box<dyn FnMut() -> io::Result<Opened> + Send>;

/// An open journal.
pub(super) struct Opened {
    pub(super) file: Box<dyn Write + Send>,
    /// It ends within a line: the power failed, or the disk was full. A line end comes before the next one.
    pub(super) torn: bool,
}

/// What both sides of the queue know.
#[derive(Debug, Default)]
pub(super) struct Shared {
    dropped: AtomicU64,
    reopen: AtomicBool,
}

impl Shared {
    pub(super) fn count_dropped(&self, lines: u64) {
        self.dropped.fetch_add(lines, Ordering::Relaxed);
    }

    #[cfg(test)]
    pub(super) fn dropped(&self) -> u64 {
        self.dropped.load(Ordering::Relaxed)
    }

    pub(super) fn ask_to_reopen(&self) {
        self.reopen.store(true, Ordering::Relaxed);
    }
}

pub(super) struct Writer {
    journal: Opened,
    open: Open,
    /// The file's name, for the log.
    shown: String,
    stamp: Stamp,
    shared: Arc<Shared>,
    /// That lines are lost has been logged.
    told: bool,
}

impl Writer {
    pub(super) fn new(journal: Opened, open: Open, shown: String, stamp: Stamp, shared: Arc<Shared>) -> Self {
        Self { journal, open, shown, stamp, shared, told: false }
    }

    /// Until the journal is dropped.
    pub(super) fn run(mut self, queue: &Receiver<Message>) {
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
            self.shared.count_dropped(1);
        } else if let Err(error) = self.write(line) {
            self.lost(1, &error);
        }
    }

    /// Writes how many lines were dropped, if any; false when that fails, and then the next line would fail too.
    fn tell_dropped(&mut self) -> bool {
        let lines = self.shared.dropped.swap(0, Ordering::Relaxed);
        if lines == 0 {
            return true;
        }
        let line = self.stamp.line(None, None, Fact::Dropped { lines });
        if let Err(error) = self.write(&line) {
            self.lost(lines, &error);
            return false;
        }
        let path = &*self.shown;
        tracing::warn!(path, lines, "the journal is written again; lines are missing");
        self.told = false;
        true
    }

    fn lost(&mut self, lines: u64, error: &io::Error) {
        self.shared.count_dropped(lines);
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
