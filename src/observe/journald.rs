//! The log's way to the systemd journal: each event is one datagram of its native protocol
//! (systemd.io/JOURNAL_NATIVE_PROTOCOL), written by the thread of the [`LogQueue`]. A journal that takes nothing holds up that
//! thread and nobody else.

use std::fmt::{Debug, Write as _};
use std::io::{self, Write};
use std::os::unix::net::UnixDatagram;
use std::path::{Path, PathBuf};

use tracing::field::{Field, Visit};
use tracing::{Event, Level, Subscriber};
use tracing_subscriber::Layer;
use tracing_subscriber::layer::Context;

use crate::observe::log_queue::LogQueue;

/// Where the journal listens.
const JOURNAL: &str = "/run/systemd/journal/socket";

/// Bytes of a value that are kept, as many as the journal keeps of a line (`LineMax=`): all of an event fits into a datagram.
const LONGEST: usize = 48 * 1024;

/// The journal's socket. Each write is an entry of its own.
#[derive(Debug)]
pub(super) struct Datagrams {
    socket: UnixDatagram,
    path: PathBuf,
}

impl Datagrams {
    /// An error says that there is no journal.
    pub(super) fn to_journal() -> io::Result<Self> {
        Self::to(Path::new(JOURNAL))
    }

    fn to(path: &Path) -> io::Result<Self> {
        let datagrams = Self { socket: UnixDatagram::unbound()?, path: path.to_owned() };
        // The journal skips what is empty; where nobody listens this fails.
        datagrams.socket.set_nonblocking(true)?;
        match datagrams.socket.send_to(&[], path) {
            // One that stands still is there as well, and the node does not wait for it.
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            sent => drop(sent?),
        }
        datagrams.socket.set_nonblocking(false)?;
        Ok(datagrams)
    }
}

impl Write for Datagrams {
    fn write(&mut self, entry: &[u8]) -> io::Result<usize> {
        // By its path each time: a journal that was restarted has another socket there.
        self.socket.send_to(entry, &self.path)?;
        Ok(entry.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Makes entries of events.
#[derive(Debug)]
pub(super) struct Entries(pub(super) LogQueue);

impl<S: Subscriber> Layer<S> for Entries {
    fn on_event(&self, event: &Event<'_>, _: Context<'_, S>) {
        let about = event.metadata();
        let mut entry = Fields(Vec::with_capacity(256));
        entry.put("PRIORITY", priority(about.level()));
        entry.put("TARGET", about.target());
        if let (Some(file), Some(line)) = (about.file(), about.line()) {
            entry.put("CODE_FILE", file);
            entry.put("CODE_LINE", &line.to_string());
        }
        entry.put("SYSLOG_IDENTIFIER", "cronward");
        event.record(&mut entry);
        // Never waits, and never fails.
        let _ = self.0.clone().write(&entry.0);
    }
}

const fn priority(level: &Level) -> &'static str {
    match *level {
        Level::ERROR => "3",
        Level::WARN => "4",
        Level::INFO => "5",
        Level::DEBUG => "6",
        Level::TRACE => "7",
    }
}

/// An entry as it is sent: a name, the length of the value, the value.
struct Fields(Vec<u8>);

impl Fields {
    fn put(&mut self, name: &str, value: &str) {
        let value = value.get(..value.floor_char_boundary(LONGEST)).unwrap_or(value);
        self.0.extend_from_slice(name.as_bytes());
        self.0.push(b'\n');
        self.0.extend_from_slice(&u64::try_from(value.len()).unwrap_or(0).to_le_bytes());
        self.0.extend_from_slice(value.as_bytes());
        self.0.push(b'\n');
    }
}

impl Visit for Fields {
    fn record_str(&mut self, field: &Field, value: &str) {
        // The journal takes capitals, digits and '_'.
        let fit = |c: char| if c.is_ascii_alphanumeric() { c.to_ascii_uppercase() } else { '_' };
        let name: String = field.name().chars().map(fit).collect();
        if name == "MESSAGE" { self.put(&name, value) } else { self.put(&format!("CRONWARD_{name}"), value) }
    }

    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        let mut text = String::new();
        // Writing to a text does not fail.
        let _ = write!(text, "{value:?}");
        self.record_str(field, &text);
    }
}

#[cfg(test)]
mod tests {
    use tracing_subscriber::layer::SubscriberExt;

    use super::*;

    /// Logs to a journal that does not read yet, in a folder of its own.
    fn logging<T>(log: impl FnOnce(&UnixDatagram) -> T) -> T {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("socket");
        let journal = UnixDatagram::bind(&path).unwrap();
        let queue = LogQueue::to_writer(Datagrams::to(&path).unwrap()).unwrap();
        let subscriber = tracing_subscriber::registry().with(Entries(queue));
        tracing::subscriber::with_default(subscriber, || log(&journal))
    }

    fn next(journal: &UnixDatagram) -> Vec<u8> {
        let mut entry = vec![0; 512 * 1024];
        let length = journal.recv(&mut entry).unwrap();
        entry.truncate(length);
        entry
    }

    fn field(name: &str, value: &str) -> Vec<u8> {
        let mut fields = Fields(Vec::new());
        fields.put(name, value);
        fields.0
    }

    fn has(entry: &[u8], field: &[u8]) -> bool {
        entry.windows(field.len()).any(|window| window == field)
    }

    #[test]
    fn a_journal_that_takes_nothing_more_is_there_and_is_not_waited_for() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("socket");
        let _journal = UnixDatagram::bind(&path).unwrap();
        let other = UnixDatagram::unbound().unwrap();
        other.set_nonblocking(true).unwrap();
        while other.send_to(b"x", &path).is_ok() {}
        Datagrams::to(&path).unwrap();
        assert!(Datagrams::to(&folder.path().join("none")).is_err());
    }

    #[test]
    fn an_event_is_an_entry_with_its_fields() {
        logging(|journal| {
            tracing::warn!(job = "push", attempt = 2, error = "two\nlines", long = "é".repeat(LONGEST), "store failed");
            assert_eq!(next(journal), b"", "whether it is there");
            let entry = next(journal);
            assert!(entry.starts_with(b"PRIORITY\n\x01\0\0\0\0\0\0\x004\nTARGET\n"));
            for (name, value) in [
                ("MESSAGE", "store failed"),
                ("SYSLOG_IDENTIFIER", "cronward"),
                ("CODE_FILE", file!()),
                ("CRONWARD_JOB", "push"),
                ("CRONWARD_ATTEMPT", "2"),
                ("CRONWARD_ERROR", "two\nlines"),
                ("CRONWARD_LONG", &"é".repeat(LONGEST / 2)),
            ] {
                assert!(has(&entry, &field(name, value)), "{name}");
            }
        });
    }

    #[test]
    fn a_journal_that_stands_still_is_not_waited_for() {
        // More than a socket takes unread (net.unix.max_dgram_qlen), and less than the queue.
        let most = std::fs::read_to_string("/proc/sys/net/unix/max_dgram_qlen").unwrap();
        let events = most.trim().parse::<usize>().unwrap() + 100;
        logging(|journal| {
            for index in 0..events {
                tracing::info!(index, "an event");
            }
            assert_eq!(next(journal), b"", "whether it is there");
            for index in 0..events {
                assert!(has(&next(journal), &field("CRONWARD_INDEX", &index.to_string())));
            }
        });
    }
}
