//! Drives the desk with a runtime: asks the store, writes letters, sends them. No run waits for it, and it decides nothing.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{mpsc, watch};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use crate::clock::{Clock, Mono};
use crate::config::Sinks;
use crate::drive::timers;
use crate::exec::Launcher;
use crate::job::{JobName, Namespace, NodeName};
use crate::message::{Delivery, MessageKey, Telling, Topic};
use crate::notify::desk::{Dispatch, LookRequest, PausesAt, Sighting};
use crate::notify::ear::{NoticeEar, Word};
use crate::notify::entry::CourierStep;
use crate::notify::figures::Figures;
use crate::notify::letter::{Letter, LetterItem, Particulars, Sender};
use crate::notify::notice::Notice;
use crate::notify::pace::Tally;
use crate::notify::sinks::{Receipt, Sink, Ways};
use crate::observe::view::NodeView;
use crate::schedule::Timetable;
use crate::slot::{JobLatest, Slot, SlotRecord, Token};
use crate::store::{HEARD_AGAIN, Store, inspect_each};

/// Between two looks at the store.
const LOOK: Duration = Duration::from_secs(60);
/// Every so many looks, and at the first one, what was begun and not told is looked for.
const UNTOLD_EVERY: u32 = 5;
/// Jobs that one call asks for.
const AT_ONCE: usize = 250;
/// What a node that leaves has for its last messages.
const LAST_WORDS: Duration = Duration::from_secs(5);

/// What a notifier works with.
#[derive(Debug)]
pub struct Setup {
    /// The shared store.
    pub store: Arc<dyn Store>,
    /// The node's clocks.
    pub clock: Arc<dyn Clock>,
    /// Random: what its claims are made of.
    pub token: Token,
    /// Starts commands, those of `exec` sinks among them. It hides the secrets of every sink from all that it starts.
    pub launcher: Launcher,
    /// Whose keys.
    pub namespace: Namespace,
    /// Who sends.
    pub node: NodeName,
    /// How long a claim of a message lasts: [`super::LEASE`], but in tests.
    pub lease: Duration,
}

/// Sinks whose secrets were read, and where people look.
#[derive(Debug, Default)]
struct OpenSinks {
    sinks: BTreeMap<String, Arc<Sink>>,
    page: Option<String>,
    /// None before the first sinks are there.
    ways: Option<Arc<Ways>>,
}

/// Changes what a notifier sends to.
#[derive(Clone, Debug)]
pub struct Receivers {
    opened: watch::Sender<Arc<OpenSinks>>,
    launcher: Launcher,
    namespace: Namespace,
}

impl Receivers {
    /// Takes these sinks, with the secrets that are in their files now, and where people look.
    ///
    /// # Errors
    /// A secret that cannot be read; then nothing has changed.
    pub fn set(&self, sinks: &Sinks, page: Option<String>) -> Result<(), String> {
        let open = |(name, config): (&String, _)| Ok((name.clone(), Arc::new(Sink::open(name, Clone::clone(config))?)));
        let sinks = sinks.iter().map(open).collect::<Result<BTreeMap<String, Arc<Sink>>, String>>()?;
        // Of those that are no more, too: a variable that held one is no command's matter.
        self.launcher.hide(sinks.values().flat_map(|sink| sink.secrets()));
        let ways = Some(Arc::new(Ways::new(self.launcher.clone(), self.namespace.to_string())));
        self.opened.send_replace(Arc::new(OpenSinks { sinks, page, ways }));
        Ok(())
    }

    fn get(&self) -> Arc<OpenSinks> {
        Arc::clone(&self.opened.borrow())
    }
}

/// Sends the messages of one node.
#[derive(Debug)]
pub struct Notifier {
    setup: Setup,
    desk: Dispatch,
    ear: Arc<NoticeEar>,
    words: mpsc::Receiver<Word>,
    receivers: Receivers,
    changed: watch::Receiver<Arc<OpenSinks>>,
    figures: Arc<Figures>,
    tasks: JoinSet<Done>,
    looks: u32,
    next_look: Option<Mono>,
}

/// What a task has come to.
#[derive(Debug)]
enum Done {
    Told(MessageKey, Option<Telling>),
    Answered(String, Receipt),
    Recorded(MessageKey, bool),
    Looked(Sighting),
}

impl Notifier {
    /// Of no sink yet.
    pub fn new(setup: Setup) -> Self {
        let (ear, words) = NoticeEar::new();
        let (opened, changed) = watch::channel(Arc::default());
        let (launcher, namespace) = (setup.launcher.clone(), setup.namespace.clone());
        let receivers = Receivers { opened, launcher, namespace };
        let asks = setup.store.capability().messages;
        let desk = Dispatch::new(setup.node.clone(), asks, setup.token);
        let (figures, tasks) = (Arc::default(), JoinSet::new());
        Self { setup, desk, ear, words, receivers, changed, figures, tasks, looks: 0, next_look: None }
    }

    /// What is to hear of everything that happens on the node.
    pub fn ear(&self) -> Arc<NoticeEar> {
        Arc::clone(&self.ear)
    }

    /// What is counted.
    pub fn figures(&self) -> Arc<Figures> {
        Arc::clone(&self.figures)
    }

    /// By what its sinks are changed.
    pub fn receivers(&self) -> Receivers {
        self.receivers.clone()
    }

    /// Sends, until it is told to stop; then what is left is sent at once, for a few seconds.
    pub async fn run(mut self, stop: CancellationToken) {
        let clock = Arc::clone(&self.setup.clock);
        let mut end = None;
        loop {
            self.step();
            if end.is_some_and(|end| clock.now().mono >= end) || (end.is_some() && self.has_done_its_part()) {
                return;
            }
            let wait = [self.desk.courier.poll_timeout(), self.next_look.filter(|_| end.is_none()), end];
            let wait = wait.into_iter().flatten().min();
            tokio::select! {
                biased;
                () = stop.cancelled(), if end.is_none() => {
                    end = Some(clock.now().mono + LAST_WORDS);
                    self.hurry();
                }
                Ok(()) = self.changed.changed() => self.set_sinks(),
                Some(done) = self.tasks.join_next() => self.take(done.ok()),
                Some(word) = self.words.recv() => self.hear(word),
                () = timers::until(&*clock, wait) => self.look(),
            }
        }
    }

    fn has_done_its_part(&self) -> bool {
        let now = self.setup.clock.now().mono;
        self.tasks.is_empty()
            && self.desk.courier.is_idle()
            && self.desk.courier.poll_timeout().is_none_or(|due| due > now)
    }

    /// Whatever was heard is told now.
    fn hurry(&mut self) {
        while let Ok(word) = self.words.try_recv() {
            self.hear(word);
        }
        self.desk.courier.hurry(self.setup.clock.now());
    }

    fn set_sinks(&mut self) {
        let opened = self.receivers.get();
        let rules =
            opened.sinks.iter().map(|(name, sink)| (name.clone(), (sink.config.clone(), sink.digests()))).collect();
        self.figures.set_sinks(opened.sinks.keys());
        self.desk.set_sinks(&rules, self.setup.clock.now());
    }

    fn hear(&mut self, word: Word) {
        let now = self.setup.clock.now();
        if matches!(word, Word::Plan) {
            self.desk.set_jobs(&self.ear.jobs(), now);
            self.next_look = Some(now.mono);
        } else {
            self.desk.hear(now, word);
        }
    }

    fn look(&mut self) {
        let now = self.setup.clock.now();
        if self.next_look.is_none_or(|at| at > now.mono) {
            return;
        }
        self.next_look = Some(now.mono + LOOK);
        let Some(wanted) = self.desk.wanted(now) else { return };
        let untold = self.looks.is_multiple_of(UNTOLD_EVERY);
        self.looks = self.looks.wrapping_add(1);
        let store = Arc::clone(&self.setup.store);
        self.tasks.spawn(async move { Done::Looked(look(&*store, wanted, untold).await) });
    }

    /// Does all that is to be done now.
    fn step(&mut self) {
        self.desk.courier.handle_timeout(self.setup.clock.now());
        while let Some(step) = self.desk.courier.poll_step() {
            self.begin(step);
        }
        for (sink, tally) in self.desk.courier.take_tallies() {
            self.figures.count(&sink, tally);
        }
        let lost = self.ear.take_lost();
        if lost > 0 {
            tracing::error!(
                lost,
                "events were not looked at: too many at once; their messages come late, or not at all"
            );
            self.receivers.get().sinks.keys().for_each(|sink| self.figures.count(sink, Tally::Dropped));
        }
        self.figures.set_pending(&self.desk.courier.pending());
    }

    fn begin(&mut self, step: CourierStep) {
        let store = Arc::clone(&self.setup.store);
        match step {
            CourierStep::Tell(key, token) => {
                let (node, lease) = (self.setup.node.clone(), self.setup.lease);
                self.tasks.spawn(async move {
                    let told = store.tell(&key, &node, token, lease).await;
                    let told = told.inspect_err(|error| tracing::debug!(%key, %error, "a message was not claimed"));
                    Done::Told(key, told.ok())
                });
            }
            CourierStep::Record(key, token, delivery) => drop(self.tasks.spawn(record(store, key, token, delivery))),
            CourierStep::Send { sink, notices, digest } => self.send(sink, notices, digest),
        }
    }

    fn send(&mut self, sink: String, notices: Vec<(MessageKey, Notice)>, digest: bool) {
        let opened = self.receivers.get();
        let (Some(to), Some(ways)) = (opened.sinks.get(&sink).cloned(), opened.ways.clone()) else { return };
        let items: Vec<LetterItem> = notices.into_iter().map(|(key, notice)| self.item(key, notice)).collect();
        let sender = Sender {
            namespace: self.setup.namespace.clone(),
            node: self.setup.node.clone(),
            page: opened.page.clone(),
        };
        let (store, clock) = (Arc::clone(&self.setup.store), Arc::clone(&self.setup.clock));
        self.tasks.spawn(async move {
            let items = with_records(&*store, items, digest).await;
            let now = clock.now().wall;
            let letter = match items.first().filter(|_| !digest) {
                Some(item) => Letter::of(item, &sender, &to.config, now),
                None => Letter::digest(&items, &sender, &to.config, now),
            };
            let answer = to.send(&letter, &ways).await;
            log(&sink, &letter, &answer);
            Done::Answered(sink, answer)
        });
    }

    fn item(&self, key: MessageKey, notice: Notice) -> LetterItem {
        let spec = notice.job().and_then(|job| self.desk.spec(job));
        LetterItem { key, notice, known: Particulars { spec, ..Particulars::default() } }
    }

    fn take(&mut self, done: Option<Done>) {
        let now = self.setup.clock.now();
        match done {
            Some(Done::Told(key, telling)) => self.desk.courier.handle_telling(now, &key, telling),
            Some(Done::Answered(sink, answer)) => self.desk.courier.handle_answer(now, &sink, &answer),
            Some(Done::Recorded(key, recorded)) => self.desk.courier.handle_recorded(now, &key, recorded),
            Some(Done::Looked(found)) => {
                self.desk.see(now, found);
                if self.desk.is_in_doubt() {
                    let again = now.mono + HEARD_AGAIN;
                    self.next_look = self.next_look.map(|at| at.min(again));
                }
            }
            // A task that panicked has said so; what it was about is asked again at the next start.
            None => {}
        }
    }
}

async fn record(store: Arc<dyn Store>, key: MessageKey, token: Token, delivery: Delivery) -> Done {
    let recorded = store.told(&key, token, &delivery).await;
    let recorded = recorded.inspect_err(|error| tracing::debug!(%key, %error, "a message was not recorded"));
    Done::Recorded(key, recorded.is_ok())
}

fn log(sink: &str, letter: &Letter, answer: &Receipt) {
    let (id, event) = (&letter.id, letter.kind);
    match answer {
        Receipt::Taken(said) => tracing::info!(sink, event, id, said, "notification sent"),
        Receipt::Again { error, .. } => {
            tracing::warn!(sink, event, id, error, "notification not sent; it is tried again");
        }
        Receipt::Refused(error) => {
            tracing::error!(sink, event, id, error, "notification given up; look at [notify] and at the receiver");
        }
    }
}

/// Asks the store; what it does not answer is asked the next time.
async fn look(store: &dyn Store, wanted: LookRequest, untold: bool) -> Sighting {
    let mut found = Sighting::default();
    for names in wanted.jobs.chunks(AT_ONCE) {
        if let Ok(latest) = store.latest(names).await {
            found.latest.extend(names.iter().cloned().zip(latest));
        }
    }
    if untold && store.capability().messages {
        let jobs = wanted.jobs.iter().cloned().map(Topic::Job);
        let topics: Vec<Topic> = jobs.chain([Topic::Cluster]).collect();
        for topics in topics.chunks(AT_ONCE) {
            if let Ok((_, messages)) = store.untold(topics).await {
                found.untold.extend(messages);
            }
        }
    }
    if wanted.nodes {
        found.nodes = store.nodes().await.ok().map(|(now, nodes)| NodeView::all(&nodes, now));
    }
    if wanted.pauses {
        found.pauses = pauses(store).await;
    }
    found
}

async fn pauses(store: &dyn Store) -> Option<PausesAt> {
    let (now, _) = store.nodes().await.ok()?;
    Some((now, store.pauses().await.ok()?.into_iter().collect()))
}

/// The items with what their jobs have come to and what the store has of their slots; of one alone with its output too.
async fn with_records(store: &dyn Store, mut items: Vec<LetterItem>, digest: bool) -> Vec<LetterItem> {
    let names: BTreeSet<JobName> = items.iter().filter_map(|item| item.notice.job().cloned()).collect();
    let names: Vec<JobName> = names.into_iter().collect();
    if let (false, Ok(latest)) = (names.is_empty(), store.latest(&names).await) {
        let latest: BTreeMap<&JobName, JobLatest> = names.iter().zip(latest).collect();
        for item in &mut items {
            item.known.latest = item.notice.job().and_then(|job| latest.get(job)).cloned();
        }
    }
    let slots: Vec<Option<Slot>> = items.iter().map(slot_of).collect();
    let asked: Vec<Slot> = slots.iter().flatten().cloned().collect();
    if asked.is_empty() {
        return items;
    }
    let Ok((_, records)) = inspect_each(store, &asked).await else { return items };
    let records: Vec<SlotRecord> = records.into_iter().flatten().collect();
    for (item, slot) in items.iter_mut().zip(&slots) {
        item.known.record = slot.as_ref().and_then(|slot| records.iter().find(|record| record.slot == *slot).cloned());
    }
    if let (false, [item]) = (digest, &mut *items) {
        let last = item.known.record.as_ref().and_then(|record| Some((record.slot.clone(), record.runs.last()?)));
        if let Some((slot, run)) = last {
            let kept = store.output(&slot, run.attempt, run.token).await.ok().flatten();
            item.known.output = kept.or_else(|| run.output.clone());
        }
    }
    items
}

/// The slot that is shown, where it is the one that the notice is about.
fn slot_of(item: &LetterItem) -> Option<Slot> {
    use crate::event::NoticeKind::{Late, Recovered, Reminder};
    if matches!(item.notice.kind, Late | Recovered | Reminder) {
        return None;
    }
    let (spec, key) = (item.known.spec.as_ref()?, item.notice.slot?);
    Timetable::of(spec).ok()?.slot_with_key(key)
}
