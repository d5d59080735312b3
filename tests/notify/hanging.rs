//! A command that hangs, in time that stands still until it is moved on: only what the command itself does takes time of its own.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use cronward::clock::{Clock, Now, SystemClock};
use cronward::config::{Environment, parse};
use cronward::event::Event;
use cronward::exec::{Launcher, Output};
use cronward::job::{Namespace, NodeName};
use cronward::metrics::Notifications;
use cronward::notify::{Figures, LEASE, Notifier, Setup};
use cronward::observe::Observer;
use cronward::schedule::Timetable;
use cronward::slot::Token;
use cronward::store::StoreOptions;
use cronward::testing::MemoryStore;
use tempfile::TempDir;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use crate::until;

/// The clock of the runtime, which stands still.
#[derive(Debug)]
struct Paused {
    begin: Now,
    begun: tokio::time::Instant,
}

impl Clock for Paused {
    fn now(&self) -> Now {
        self.begin.plus(tokio::time::Instant::now().duration_since(self.begun))
    }
}

/// A notifier that runs this command for a failure.
struct Told {
    folder: TempDir,
    figures: Arc<Figures>,
    clock: Arc<Paused>,
    notifying: JoinHandle<()>,
}

impl Told {
    fn with(command: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let clock = Arc::new(Paused { begin: SystemClock.now(), begun: tokio::time::Instant::now() });
        let sink = "[notify.script]\ntype = \"exec\"\nspread = \"0s\"\n";
        let job = "[jobs.a]\nschedule = \"0 * * * *\"\ncommand = [\"false\"]\nnotify = [\"script\"]\n";
        let file = format!("{sink}command = \"cd {}; {command}\"\n{job}", folder.path().display());
        let (config, _) = parse("jobs.toml", file, &Environment::new(clock.now().wall)).unwrap();
        let notifier = Notifier::new(Setup {
            store: Arc::new(MemoryStore::new(StoreOptions::default(), Arc::clone(&clock) as Arc<dyn Clock>)),
            clock: Arc::clone(&clock) as Arc<dyn Clock>,
            token: Token::from_bits(1),
            launcher: Launcher::new(PathBuf::from(env!("CARGO_BIN_EXE_cronward")), Output::Capture),
            namespace: Namespace::default(),
            node: NodeName::new("n1").unwrap(),
            lease: LEASE,
        });
        notifier.receivers().set(&config.notify, None).unwrap();
        let (ear, figures) = (notifier.ear(), notifier.figures());
        let jobs: Vec<_> = config.jobs.into_values().map(Arc::new).collect();
        ear.plan(&jobs, "hash");
        let slot = Timetable::of(&jobs[0]).unwrap().slot_at(clock.now().wall).unwrap();
        ear.event(Some(&slot), &Event::AttemptsUsedUp { used: 3 });
        Self { folder, figures, clock, notifying: tokio::spawn(notifier.run(CancellationToken::new())) }
    }

    /// Waits for what the command writes there. Meanwhile the runtime works, and its clock stands still.
    async fn written(&self, name: &str) -> String {
        let path = self.folder.path().join(name);
        let look = move || std::fs::read_to_string(&path).ok().filter(|text| text.ends_with('\n'));
        let what = format!("the command writes {name}");
        tokio::task::spawn_blocking(move || until(&what, look)).await.unwrap()
    }

    /// Waits until so many messages came to this.
    async fn counted(&self, result: &'static str, count: u64) {
        let (figures, now) = (Arc::clone(&self.figures), self.clock.now().mono);
        let of = move || figures.each(now).into_iter().flat_map(|sink| sink.results).find(|(name, _)| *name == result);
        let look = move || of().filter(|(_, counted)| *counted == count).map(|_| ());
        tokio::task::spawn_blocking(move || until("the message came to something", look)).await.unwrap();
    }
}

fn lives(pid: &str) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{}/stat", pid.trim())).unwrap_or_default();
    stat.rsplit_once(") ").is_some_and(|(_, fields)| !fields.starts_with('Z'))
}

#[tokio::test(start_paused = true)]
async fn a_command_that_ends_within_thirty_seconds_is_left_alone() {
    let told = Told::with("echo $$ > pid; until test -e go; do sleep 0.01; done");
    told.written("pid").await;
    tokio::time::advance(Duration::from_millis(29_990)).await;
    std::fs::write(told.folder.path().join("go"), "").unwrap();
    told.counted("sent", 1).await;
    told.notifying.abort();
}

#[tokio::test(start_paused = true)]
async fn a_command_that_hangs_is_asked_to_end_after_thirty_seconds_killed_five_seconds_later_and_tried_again() {
    let told = Told::with("trap 'echo TERM >> told' TERM; echo $$ > pid; while :; do sleep 600 & wait; done");
    let pid = told.written("pid").await;
    tokio::time::advance(Duration::from_millis(30_010)).await;
    assert_eq!(told.written("told").await, "TERM\n");
    tokio::time::advance(Duration::from_millis(4_980)).await;
    assert!(lives(&pid), "it has five seconds");
    tokio::time::advance(Duration::from_millis(20)).await;
    let gone = pid.clone();
    tokio::task::spawn_blocking(move || until("its end", || (!lives(&gone)).then_some(()))).await.unwrap();
    told.counted("retry", 1).await;
    std::fs::remove_file(told.folder.path().join("pid")).unwrap();
    tokio::time::advance(Duration::from_secs(11)).await;
    assert_ne!(told.written("pid").await, pid, "ten seconds later it is run once more");
    told.notifying.abort();
}
