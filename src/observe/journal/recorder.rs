//! The observer that writes the journal. It hands lines over and never waits.

use std::fs::{File, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::sync::Arc;
use std::sync::mpsc::{self, SyncSender};
use std::time::Duration;

use rustix::fs::OFlags;

use crate::clock::Clock;
use crate::guard::Event;
use crate::job::NodeName;
use crate::observe::journal::line::Fact;
use crate::observe::journal::writer::{Message, Open, Opened, Shared, Stamp, Writer};
use crate::observe::{NodeEvent, Observer};
use crate::slot::{Slot, Verdict};

/// Lines that wait to be written: some seconds of a busy node. More than that, and the disk does not keep up.
const QUEUE: usize = 4_096;

/// Appends every event of one node to a file. See [`super`].
#[derive(Debug)]
pub struct Journal {
    queue: SyncSender<Message>,
    shared: Arc<Shared>,
    stamp: Stamp,
}

impl Journal {
    /// Opens the file, for its owner alone when it is new, and starts the thread that writes it. An error names what is
    /// wrong with the file.
    pub fn open(path: &Path, clock: Arc<dyn Clock>, node: NodeName, instance: String) -> io::Result<Self> {
        let path = path.to_owned();
        let first = append_to(&path)?;
        let shown = path.display().to_string();
        let open: Open = Box::new(move || append_to(&path));
        Self::start(first, open, shown, Stamp { clock, node, instance })
    }

    fn start(first: Opened, open: Open, shown: String, stamp: Stamp) -> io::Result<Self> {
        let (queue, lines) = mpsc::sync_channel(QUEUE);
        let shared = Arc::new(Shared::default());
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

    fn put(&self, line: String) {
        if self.queue.try_send(Message::Line(line)).is_err() {
            self.shared.count_dropped(1);
        }
    }
}

impl Observer for Journal {
    fn slot(&self, slot: &Slot, event: &Event) {
        self.put(self.stamp.line(Some(slot), None, event.into()));
    }

    fn closed(&self, slot: &Slot, verdict: Verdict) {
        self.put(self.stamp.line(Some(slot), None, Fact::Closed { verdict }));
    }

    fn node(&self, event: &NodeEvent) {
        let job = match event {
            NodeEvent::Planned { job, .. } => Some(&job.name),
            NodeEvent::SlotsMissed { job, .. } => Some(job),
            _ => None,
        };
        self.put(self.stamp.line(None, job, event.into()));
    }
}

/// A pipe that nobody reads is an error and not a wait (`O_NONBLOCK`, open(2)); for a file that flag means nothing.
fn append_to(path: &Path) -> io::Result<Opened> {
    let flags = i32::try_from(OFlags::NONBLOCK.bits()).unwrap_or(0);
    let file = OpenOptions::new().append(true).create(true).mode(0o600).custom_flags(flags).open(path)?;
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

#[cfg(test)]
#[path = "recorder_tests.rs"]
mod recorder_tests;
