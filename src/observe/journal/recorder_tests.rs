//! A journal on real files and on disks that fail.

use std::io::Write;
use std::sync::Mutex;
use std::sync::mpsc::Receiver;

use super::*;
use crate::clock::ManualClock;
use crate::observe::journal::Line;
use crate::slot::Verdict;

const LONG: Duration = Duration::from_secs(20);

fn stamp() -> Stamp {
    let clock: Arc<dyn Clock> = Arc::new(ManualClock::at("2026-11-21T14:00:00.005Z".parse().unwrap()));
    Stamp { clock, node: NodeName::new("a").unwrap(), instance: "i1".to_owned() }
}

fn open(path: &Path) -> Journal {
    let Stamp { clock, node, instance } = stamp();
    Journal::open(path, clock, node, instance).unwrap()
}

fn events(path: &Path) -> Vec<Event> {
    let text = std::fs::read_to_string(path).unwrap();
    text.lines()
        .map(|line| serde_json::from_str::<Line>(line).unwrap_or_else(|e| panic!("{line}: {e}")).event)
        .collect()
}

#[test]
fn every_event_is_one_line_and_the_file_is_its_owners_alone() {
    use std::os::unix::fs::PermissionsExt;
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("j");
    let journal = open(&path);
    journal.event(None, &Event::Started { jobs: 1 });
    let slot = Slot::parse("push", "2026-11-21T14Z", "2026-11-21T15Z").unwrap();
    journal.event(Some(&slot), &Event::AttemptsUsedUp { used: 3 });
    journal.event(Some(&slot), &Event::Closed { verdict: Verdict::Failed });
    assert!(journal.flush(LONG));
    assert_eq!(
        std::fs::read_to_string(&path).unwrap().lines().last().unwrap(),
        r#"{"at":"2026-11-21T14:00:00.005Z","node":"a","instance":"i1","job":"push","slot":"2026-11-21T14Z","slot_end":"2026-11-21T15:00:00Z","event":"closed","verdict":"failed"}"#
    );
    assert_eq!(events(&path).len(), 3);
    assert_eq!(path.metadata().unwrap().permissions().mode() & 0o777, 0o600);
}

#[test]
fn after_a_reopen_lines_go_to_a_new_file_of_the_same_name() {
    let folder = tempfile::tempdir().unwrap();
    let (path, moved) = (folder.path().join("j"), folder.path().join("j.1"));
    let journal = open(&path);
    journal.event(None, &Event::Started { jobs: 1 });
    assert!(journal.flush(LONG));
    std::fs::rename(&path, &moved).unwrap();
    journal.reopen();
    journal.event(None, &Event::Stopped);
    assert!(journal.flush(LONG));
    assert_eq!((events(&moved), events(&path)), (vec![Event::Started { jobs: 1 }], vec![Event::Stopped]));
}

#[test]
fn a_half_line_that_a_power_cut_left_does_not_swallow_the_next_one() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("j");
    std::fs::write(&path, "{\"at\":\"2026-").unwrap();
    let journal = open(&path);
    journal.event(None, &Event::Stopped);
    assert!(journal.flush(LONG));
    let text = std::fs::read_to_string(&path).unwrap();
    assert_eq!(text.lines().count(), 2, "{text}");
    assert_eq!(serde_json::from_str::<Line>(text.lines().last().unwrap()).unwrap().event, Event::Stopped);
}

#[test]
fn a_full_disk_stops_nothing() {
    let journal = open(Path::new("/dev/full"));
    for _ in 0..10 {
        journal.event(None, &Event::Stopped);
    }
    assert!(journal.flush(LONG), "it still listens");
    assert_eq!((journal.shared.dropped(), journal.lines_lost()), (10, 10));
}

/// A disk that fails while it is told to, and one that waits for a word before each write.
struct Disk {
    text: Text,
    full: Arc<Mutex<bool>>,
    turn: Option<Receiver<()>>,
}

impl Write for Disk {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if let Some(turn) = &self.turn {
            let _ = turn.recv();
        }
        if *self.full.lock().unwrap() {
            return Err(io::ErrorKind::StorageFull.into());
        }
        self.text.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }
    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

type Text = Arc<Mutex<Vec<u8>>>;

fn on_disk(turn: Option<Receiver<()>>) -> (Journal, Text, Arc<Mutex<bool>>) {
    let (text, full) = (Arc::default(), Arc::default());
    let disk = Disk { text: Arc::clone(&text), full: Arc::clone(&full), turn };
    let never: OpenFile = Box::new(|| Err(io::ErrorKind::NotFound.into()));
    let first = Opened { file: Box::new(disk), torn: false };
    (Journal::start(first, never, "j".to_owned(), stamp()).unwrap(), text, full)
}

fn written(text: &Mutex<Vec<u8>>) -> Vec<Event> {
    let text = String::from_utf8(text.lock().unwrap().clone()).unwrap();
    let lines = text.lines().filter(|line| !line.is_empty());
    lines.map(|line| serde_json::from_str::<Line>(line).unwrap().event).collect()
}

#[test]
fn a_disk_that_was_full_is_told_how_many_lines_are_missing() {
    let (journal, text, full) = on_disk(None);
    journal.event(None, &Event::Started { jobs: 1 });
    assert!(journal.flush(LONG));
    *full.lock().unwrap() = true;
    journal.event(None, &Event::Gap { slots: 1 });
    journal.event(None, &Event::Gap { slots: 2 });
    assert!(journal.flush(LONG));
    *full.lock().unwrap() = false;
    journal.event(None, &Event::Stopped);
    assert!(journal.flush(LONG));
    assert_eq!(written(&text), [Event::Started { jobs: 1 }, Event::Dropped { lines: 2 }, Event::Stopped]);
    assert_eq!(journal.lines_lost(), 2, "also once the journal has told of them");
}

#[test]
fn a_disk_that_hangs_costs_lines_and_never_blocks_the_node() {
    let (go, turn) = mpsc::channel();
    let (journal, text, _) = on_disk(Some(turn));
    for _ in 0..QUEUE + 100 {
        journal.event(None, &Event::Stopped);
    }
    drop(go);
    // The queue may be full still; the flush itself has to find room.
    while !journal.flush(LONG) {
        std::thread::yield_now();
    }
    let events = written(&text);
    let kept = events.iter().filter(|event| **event == Event::Stopped).count();
    let told: u64 = events.iter().map(|event| if let Event::Dropped { lines } = event { *lines } else { 0 }).sum();
    assert_eq!(journal.lines_lost(), told);
    assert!(kept <= QUEUE + 1 && told >= 99, "{kept} kept, {told} told");
    assert_eq!(u64::try_from(kept).unwrap() + told, u64::try_from(QUEUE + 100).unwrap());
}
