//! Drives one slot for one caller, and leaves in the store what people will look for later: what was decided, for
//! `cronward why`, and the job itself where no file makes it known. Best effort, beside the work and after its end: nothing
//! waits for it while the slot is driven, and what is lost costs nobody anything.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use crate::drive::{Account, Once};
use crate::event::Event;
use crate::observe::{FanOut, Notebook, Observer};
use crate::slot::{Decision, Slot};
use crate::store::{JobEntry, JobOrigin, Store};

/// How long a caller whose work is over waits for the registry, and then for its notes, at most.
const LAST_WORD: Duration = Duration::from_secs(1);

/// What is left in the store besides the slot's record.
#[derive(Clone, Debug)]
pub struct Traces {
    /// Random: it keeps the notes of this caller apart from those of others with the same node's name.
    pub instance: String,
    /// The hash of the job as it is run here, by [`crate::job::hash`].
    pub job_hash: String,
    /// The job, where no daemon plans it.
    pub introduction: Option<Introduction>,
}

impl Once {
    /// [`Once::until_ended`], with its traces.
    pub async fn until_noted(self, traces: Traces, cancel: CancellationToken) -> Account {
        let Traces { instance, job_hash, introduction } = traces;
        let (store, assignment) = (Arc::clone(&self.store), &self.assignment);
        let notes = Arc::new(Notebook::new(Arc::clone(&self.clock), assignment.node.clone(), &instance));
        notes.plan(BTreeMap::from([(assignment.slot.job().clone(), job_hash)]));
        notes.add(&assignment.slot, Decision::Asked);
        let begun = Arc::new(Begun::default());
        let all: Vec<Arc<dyn Observer>> =
            vec![Arc::<Notebook>::clone(&notes), Arc::<Begun>::clone(&begun), Arc::clone(&self.observer)];
        let driven = Self { observer: Arc::new(FanOut(all)), ..self }.until_ended(cancel);
        // Before it waits for its locks, too: that may take hours, and whoever asks why has to find the job and the wait.
        let introduced = async {
            let waits = begun.first().await == First::Wait;
            let known = match &introduction {
                Some(introduction) => introduction.tell(&*store).await,
                None => true,
            };
            if waits {
                notes.flush(&*store).await;
            }
            known
        };
        tokio::pin!(driven);
        let mut introduced = Box::pin(introduced);
        let mut known = None;
        let account = loop {
            tokio::select! {
                biased;
                account = &mut driven => break account,
                told = &mut introduced, if known.is_none() => known = Some(told),
            }
        };
        // A store that does not answer has kept the caller waiting already.
        if account.store_error.is_some() {
            return account;
        }
        let introduce = async {
            match known {
                // What was over at once, or granted and given back, has its records too. One that is under way is waited for: another
                // beside it could wait for the store behind one that nobody goes on with.
                None if begun.was_granted() => {
                    begun.end();
                    (&mut introduced).await;
                }
                Some(false) => {
                    if let Some(introduction) = &introduction {
                        introduction.tell(&*store).await;
                    }
                }
                None | Some(true) => {}
            }
        };
        let _ = tokio::time::timeout(LAST_WORD, introduce).await;
        // Given up in the middle of a call, it would keep the turn of whoever calls after it.
        drop(introduced);
        let _ = tokio::time::timeout(LAST_WORD, notes.flush(&*store)).await;
        account
    }
}

/// A job that no daemon plans, as its caller knows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Introduction {
    /// The registry's entry.
    pub entry: JobEntry,
    /// False where it is in part a guess: then it takes the place of none that is there.
    pub certain: bool,
}

impl Introduction {
    /// Tells the store, unless it knows. Answers whether it knows now. Between the look and the word a daemon may register
    /// the same name for the first time: the store then keeps what the daemon said.
    pub(super) async fn tell(&self, store: &dyn Store) -> bool {
        let Ok(known) = store.jobs().await else { return false };
        let known = known.iter().find(|job| job.name == self.entry.name);
        let entry = known.map_or_else(|| self.entry.clone(), |known| self.entry.clone().keeping_conflict(known));
        if known.is_some_and(|known| !self.replaces(&entry, known)) {
            return true;
        }
        store.register(&[entry]).await.is_ok()
    }

    fn replaces(&self, entry: &JobEntry, known: &JobEntry) -> bool {
        let same = JobEntry { first_seen: known.first_seen, ..entry.clone() } == *known;
        self.certain && !same && known.origin != JobOrigin::File
    }
}

/// What comes first of a grant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum First {
    /// The work has begun.
    Work,
    /// It waits for its locks.
    Wait,
}

/// Hears of the first grant, and of what comes of it.
#[derive(Debug)]
pub(super) struct Begun {
    granted: AtomicBool,
    first: watch::Sender<Option<First>>,
}

impl Default for Begun {
    fn default() -> Self {
        Self { granted: AtomicBool::new(false), first: watch::Sender::new(None) }
    }
}

impl Begun {
    fn was_granted(&self) -> bool {
        self.granted.load(Ordering::Relaxed)
    }

    /// Nothing comes any more.
    fn end(&self) {
        self.first.send_if_modified(|first| first.is_none() && first.replace(First::Work).is_none());
    }

    /// Not the grant: the start of the work comes before everything else.
    async fn first(&self) -> First {
        let mut first = self.first.subscribe();
        let first = first.wait_for(Option::is_some).await.ok().and_then(|first| *first);
        match first {
            Some(first) => first,
            // It is owned here, and says what came first.
            None => std::future::pending().await,
        }
    }
}

impl Observer for Begun {
    fn event(&self, _slot: Option<&Slot>, event: &Event) {
        let first = match event {
            Event::Granted { .. } => return self.granted.store(true, Ordering::Relaxed),
            Event::RunStarted { .. } => First::Work,
            Event::LockWaiting(_) => First::Wait,
            _ => return,
        };
        self.first.send_if_modified(|known| known.is_none() && known.replace(first).is_none());
    }
}
