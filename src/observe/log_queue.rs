//! The log's way to stderr or to the journal: a thread of its own writes, and a bounded queue leads to it. A reader that does not
//! read holds up that thread and nobody else: what does not fit is counted, and told where it is missing. Whoever ends the process
//! waits for the last lines, and not for long ([`Log`]).
//!
//! To the systemd journal each event is one datagram of its native protocol (systemd.io/JOURNAL_NATIVE_PROTOCOL).

use std::cell::RefCell;
use std::fmt::{Debug, Write as _};
use std::fs::File;
use std::io::{self, Write};
use std::os::fd::AsFd;
use std::os::unix::net::UnixDatagram;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{self, Receiver, SyncSender};
use std::time::Duration;

use tracing::field::{Field, Visit};
use tracing::{Event, Level, Subscriber};
use tracing_subscriber::Layer;
use tracing_subscriber::layer::Context;

/// Lines that wait to be written: minutes of a node's log, and a megabyte or two.
const QUEUE: usize = 4_096;

/// Time for the last lines: a reader that hangs may not hold the end of the process up.
const LAST_LINES: Duration = Duration::from_secs(1);

/// The log of this process. Dropping it lets the last lines be written, for a second at most.
#[derive(Debug)]
pub struct Log(LogQueue);

impl Log {
    pub(super) const fn of(queue: LogQueue) -> Self {
        Self(queue)
    }
}

impl Drop for Log {
    fn drop(&mut self) {
        self.0.let_last_lines_out();
    }
}

/// Takes whole lines, one in each `write`, and never waits.
#[derive(Clone, Debug)]
pub(super) struct LogQueue {
    queue: SyncSender<Queued>,
    /// Lines that did not fit and that nobody has been told of.
    dropped: Arc<AtomicU64>,
}

#[derive(Debug)]
enum Queued {
    Line(Vec<u8>),
    /// So many are missing here.
    Dropped(u64),
    /// Everything before this is written.
    Flush(SyncSender<()>),
}

thread_local! {
    /// Of the writing thread alone: what it logs itself, until it is written.
    static OWN: RefCell<Option<Vec<u8>>> = const { RefCell::new(None) };
}

impl LogQueue {
    /// Starts the thread that writes to this process's stderr. An error says that there is no such thread.
    pub(super) fn to_stderr() -> io::Result<Self> {
        // A descriptor of its own: whoever tells of a panic or a failure does not wait for the lock of `io::stderr`.
        let stderr = File::from(io::stderr().as_fd().try_clone_to_owned()?);
        Self::to_writer(stderr)
    }

    /// The same with another writer, which gets each line in a write of its own.
    pub(super) fn to_writer(writer: impl Write + Send + 'static) -> io::Result<Self> {
        let missing = |lines| tracing::warn!(lines, "log lines were dropped: nobody read them in time");
        Self::to(writer, QUEUE, missing)
    }

    /// `missing` logs that so many lines were dropped.
    fn to(
        writer: impl Write + Send + 'static,
        most: usize,
        missing: impl Fn(u64) + Send + 'static,
    ) -> io::Result<Self> {
        let (queue, messages) = mpsc::sync_channel(most);
        let log = move || write_each(writer, &messages, &missing);
        std::thread::Builder::new().name("log".to_owned()).spawn(log)?;
        Ok(Self { queue, dropped: Arc::default() })
    }

    /// Waits until what was logged so far is written, but not longer than this; false when it was not. The writing thread does
    /// not wait for itself.
    fn flush(&self, within: Duration) -> bool {
        let (done, written) = mpsc::sync_channel(1);
        let asked = !put_own(&[]) && self.tell_dropped() && self.queue.try_send(Queued::Flush(done)).is_ok();
        asked && written.recv_timeout(within).is_ok()
    }

    /// For whoever ends the process, on whichever thread.
    pub(super) fn let_last_lines_out(&self) {
        self.flush(LAST_LINES);
    }

    fn put(&self, line: &[u8]) {
        if !self.tell_dropped() || self.queue.try_send(Queued::Line(line.to_owned())).is_err() {
            self.dropped.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Queues how many lines are missing, if any; false when there is no room for that either.
    fn tell_dropped(&self) -> bool {
        let lines = self.dropped.swap(0, Ordering::Relaxed);
        let told = lines == 0 || self.queue.try_send(Queued::Dropped(lines)).is_ok();
        if !told {
            self.dropped.fetch_add(lines, Ordering::Relaxed);
        }
        told
    }
}

impl Write for LogQueue {
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        if !put_own(line) {
            self.put(line);
        }
        Ok(line.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Until nobody logs any more.
fn write_each(mut writer: impl Write, messages: &Receiver<Queued>, missing: &dyn Fn(u64)) {
    OWN.set(Some(Vec::new()));
    while let Ok(message) = messages.recv() {
        let written = match message {
            Queued::Line(line) => writer.write_all(&line),
            Queued::Dropped(lines) => {
                missing(lines);
                writer.write_all(&OWN.replace(Some(Vec::new())).unwrap_or_default())
            }
            // Whoever waited may have given up.
            Queued::Flush(done) => {
                let _ = done.try_send(());
                Ok(())
            }
        };
        // A log that cannot be written has nobody to tell.
        let _ = written;
    }
}

/// On the writing thread: keeps the line for it, and answers true.
fn put_own(line: &[u8]) -> bool {
    OWN.with_borrow_mut(|own| own.as_mut().map(|own| own.extend_from_slice(line)).is_some())
}

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
    use super::*;

    use tracing_subscriber::layer::SubscriberExt;

    /// Each write is passed on, and then waits until it is let go.
    struct Slow {
        begun: mpsc::Sender<String>,
        let_go: Receiver<()>,
    }

    impl Write for Slow {
        fn write(&mut self, text: &[u8]) -> io::Result<usize> {
            let _ = self.begun.send(String::from_utf8(text.to_vec()).unwrap());
            let _ = self.let_go.recv();
            Ok(text.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    /// A queue with room for two, whose writer hangs in the first line.
    fn hung() -> (LogQueue, mpsc::Sender<()>, Receiver<String>) {
        let ((go, let_go), (begun, read)) = (mpsc::channel(), mpsc::channel());
        let missing = |lines: u64| assert!(put_own(format!("{lines} missing").as_bytes()));
        let mut queue = LogQueue::to(Slow { begun, let_go }, 2, missing).unwrap();
        queue.write_all(b"first").unwrap();
        assert_eq!(read.recv().unwrap(), "first");
        (queue, go, read)
    }

    #[test]
    fn lines_that_do_not_fit_are_counted_and_told_where_they_are_missing() {
        let (mut queue, go, read) = hung();
        for line in ["a", "b", "c", "d", "e"] {
            queue.write_all(line.as_bytes()).unwrap();
        }
        for line in ["a", "b"] {
            go.send(()).unwrap();
            assert_eq!(read.recv().unwrap(), line);
        }
        queue.write_all(b"f").unwrap();
        for line in ["3 missing", "f"] {
            go.send(()).unwrap();
            assert_eq!(read.recv().unwrap(), line);
        }
        go.send(()).unwrap();
        assert!(LogQueue::flush(&queue, Duration::from_secs(60)));
    }

    #[test]
    fn what_was_logged_is_written_once_the_log_is_dropped() {
        let (mut reader, writer) = io::pipe().unwrap();
        let mut queue = LogQueue::to(writer, QUEUE, |_| {}).unwrap();
        let log = Log::of(queue.clone());
        for _ in 0..1_000 {
            queue.write_all(b"line\n").unwrap();
        }
        drop(log);
        assert_eq!(rustix::io::ioctl_fionread(&reader).unwrap(), 5_000);
        drop(queue);
        assert_eq!(io::Read::read_to_end(&mut reader, &mut Vec::new()).unwrap(), 5_000);
    }

    #[test]
    fn the_writing_thread_does_not_wait_for_itself() {
        let (told, heard) = mpsc::channel();
        let own: Arc<std::sync::OnceLock<LogQueue>> = Arc::default();
        let of_thread = Arc::clone(&own);
        let missing = move |_| {
            told.send(of_thread.wait().flush(Duration::MAX)).unwrap();
        };
        let queue = LogQueue::to(io::sink(), 2, missing).unwrap();
        own.set(queue.clone()).unwrap();
        queue.dropped.fetch_add(1, Ordering::Relaxed);
        assert!(queue.flush(Duration::MAX));
        assert!(!heard.recv().unwrap(), "it was not written, and not waited for");
    }

    #[test]
    fn a_writer_that_hangs_is_not_waited_for() {
        let (mut queue, _go, _read) = hung();
        assert!(!LogQueue::flush(&queue, Duration::from_millis(1)));
        for _ in 0..9 {
            queue.write_all(b"a").unwrap();
        }
        assert!(!LogQueue::flush(&queue, Duration::from_secs(60)), "without room nothing is asked");
    }

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
