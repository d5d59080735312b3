//! Reads for those who look, and only while there are some: one call at a time, with a pause after each, what happened first.
//!
//! While the store is away what was known stays, with its age, and the store is asked again every five seconds.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use chrono::{DateTime, Utc};
use tokio::sync::broadcast::error::{RecvError, TryRecvError};

use crate::admin::catalog::Catalog;
use crate::board::chores::Chore;
use crate::board::handle::Board;
use crate::board::judge::Judgement;
use crate::board::pace::{KEPT, LONG_ROUND, PAUSE, Pace, ROUND, SHORT_ROUND, TOGETHER, wait_for_ticks};
use crate::board::sheet::Sheet;
use crate::board::store_loss::StoreLoss;
use crate::board::{Snapshot, StoreStanding};
use crate::clock::{Mono, later};
use crate::drive::timers;
use crate::error::{Op, Reply};
use crate::observe::view::NodeView;
use crate::store::{ChangeHint, Changes, NodeEntry, Store, StoreError, inspect_each, latest_each, untold_each};

/// What is known while somebody looks.
struct Following<'a> {
    board: &'a Board,
    store: &'a dyn Store,
    sheet: Sheet,
    standing: StoreStanding,
    chores: VecDeque<Chore>,
    nodes: Vec<NodeEntry>,
    judged: Judgement,
    /// The store's clock, when it was heard.
    heard: Option<(DateTime<Utc>, Mono)>,
    /// When the current slots were read last.
    read_at: Option<DateTime<Utc>>,
    round_at: Mono,
    long_at: Mono,
    /// What happened first that was not looked at.
    urgent_since: Option<Mono>,
    pace: Pace,
    /// What failed last, while the store is away.
    failed: Option<Op>,
    /// Since then the store has answered something else: what failed may be tried.
    answers: bool,
    plans: u64,
    /// When a call failed last.
    failed_at: Option<Mono>,
    /// That the node cannot use its store, as it is shown.
    loss: Option<StoreLoss>,
}

impl Board {
    /// Reads for those who look; for ever.
    pub async fn follow(&self, store: &dyn Store) {
        loop {
            if self.is_looked_at() {
                self.live.store(true, Ordering::Relaxed);
                Following::new(self, store).run().await;
                self.forget();
            } else {
                self.asked.notified().await;
            }
        }
    }

    /// Whether somebody looks, or has within the last minute.
    fn is_looked_at(&self) -> bool {
        let now = self.setting.clock.now().mono;
        self.patches.viewers() > 0 || self.looked_at().is_some_and(|at| now.since(at) < KEPT)
    }
}

impl<'a> Following<'a> {
    fn new(board: &'a Board, store: &'a dyn Store) -> Self {
        let (now, standing) = (board.setting.clock.now(), StoreStanding::of(store));
        let sheet = Sheet::new(now.wall, board.hours(), board.setting.retention, board.patches.clone());
        let sheet = sheet.unheard(!standing.tells);
        Self {
            board,
            store,
            sheet,
            standing,
            chores: VecDeque::new(),
            nodes: Vec::new(),
            judged: Judgement::default(),
            heard: None,
            read_at: None,
            round_at: now.mono,
            long_at: now.mono,
            urgent_since: None,
            pace: Pace::default(),
            failed: None,
            answers: true,
            plans: 0,
            failed_at: None,
            loss: None,
        }
    }

    /// Until nobody looks any more.
    async fn run(&mut self) {
        let mut changes = self.standing.tells.then(|| self.store.changes());
        while self.board.is_looked_at() {
            self.pause(wait_for_ticks(self.board.setting.clock.now().wall), changes.as_mut()).await;
            self.hear(changes.as_mut());
            self.begin_round();
            if self.step().await {
                self.publish();
                self.pause(Some(PAUSE), changes.as_mut()).await;
            } else {
                self.wait(changes.as_mut()).await;
            }
        }
    }

    /// A moment; a longer one while the node goes first.
    async fn pause(&mut self, mut rest: Option<Duration>, mut changes: Option<&mut Changes>) {
        while let Some(span) = rest {
            let before = self.board.happened();
            timers::until(&*self.board.setting.clock, Some(self.mono() + span)).await;
            rest = self.pace.gives_way(self.board.happened() - before, self.mono()).then_some(PAUSE);
            self.hear(changes.as_deref_mut());
        }
    }

    fn mono(&self) -> Mono {
        self.board.setting.clock.now().mono
    }

    /// The store's clock, as far as it is known.
    fn now(&self) -> DateTime<Utc> {
        let now = self.board.setting.clock.now();
        self.heard.map_or(now.wall, |(store, at)| later(store, now.mono.since(at)))
    }

    /// What was told since the last time, here and by the store.
    fn hear(&mut self, changes: Option<&mut Changes>) {
        let (loss, now) = (self.board.loss(), self.mono());
        let known = loss.filter(|loss| loss.known_at(self.failed_at) <= now);
        if std::mem::replace(&mut self.loss, known) != self.loss {
            self.publish();
        }
        let touched = self.board.take_touched();
        touched.slots.iter().for_each(|(job, key)| self.sheet.touch(job, *key));
        let mut lost = touched.lost;
        if let Some(changes) = changes {
            loop {
                match changes.try_recv() {
                    Ok(hint) => lost |= self.heed(hint),
                    Err(TryRecvError::Lagged(_)) => lost = true,
                    Err(TryRecvError::Empty | TryRecvError::Closed) => break,
                }
            }
        }
        if lost {
            self.sheet.doubt(self.now(), true);
        }
        self.sheet.expire(self.now());
        if self.sheet.is_urgent() {
            let now = self.mono();
            self.urgent_since.get_or_insert(now);
        }
    }

    /// Whether hints were lost.
    fn heed(&mut self, hint: ChangeHint) -> bool {
        match hint {
            ChangeHint::Slot { job, key } => self.sheet.touch(&job, key),
            ChangeHint::Job(_) => self.chores.push_front(Chore::Pauses),
            ChangeHint::Resync => return true,
        }
        false
    }

    /// Begins to look at everything that may have changed, where that is due.
    fn begin_round(&mut self) {
        let now = self.mono();
        let (plans, hours) = (self.board.plans.load(Ordering::Relaxed), self.board.hours());
        let turned = self.sheet.window.end() <= self.now() || self.sheet.window.hours().len() < hours;
        let planned = std::mem::replace(&mut self.plans, plans) != plans;
        let is_due = now >= self.round_at && self.chores.is_empty();
        let is_long = now >= self.long_at && is_due;
        if turned {
            self.sheet.pass(self.now(), hours);
        }
        self.chores.extend(is_due.then_some(Chore::Nodes));
        self.chores.extend((is_long || planned).then_some(Chore::Jobs));
        if is_long {
            self.long_at = now + LONG_ROUND;
            self.sheet.doubt(self.now(), true);
        }
        if is_due {
            self.round_at = now + if self.standing.tells { ROUND } else { SHORT_ROUND };
            self.chores.extend([Chore::Pauses, Chore::Doubt]);
            let messages = is_long && self.store.capability().messages;
            self.chores.extend(Chore::by_job(&self.sheet, &self.sheet.names(), messages));
        }
    }

    /// Makes the next call. Answers whether there was one to be made.
    async fn step(&mut self) -> bool {
        let first = self.read_at.is_none();
        let ready = self.urgent_since.is_some_and(|since| first || self.mono().since(since) >= TOGETHER);
        // Nothing is known of the jobs before the first chores are done.
        let done = if ready && self.heard.is_some() && self.answers {
            self.read_slots().await
        } else if let Some(chore) = self.chores.pop_front() {
            self.work(chore).await
        } else if self.answers && self.sheet.faults.wants_output() {
            self.read_output().await
        } else if self.answers && self.sheet.is_filling(self.now()) {
            self.read_slots().await
        } else {
            return false;
        };
        match done {
            Ok(op) => self.reached(op),
            Err(error) => self.lost(&error),
        }
        // The first time that is once it is known, too, how each job fares, and which are paused.
        let is_all = self.answers && self.heard.is_some() && self.chores.is_empty() && !self.sheet.is_urgent();
        self.read_at = self.read_at.or_else(|| is_all.then(|| self.now()));
        true
    }

    async fn work(&mut self, chore: Chore) -> Reply<Option<Op>> {
        Ok(match chore {
            Chore::Nodes => {
                self.read_nodes().await?;
                Some(Op::Nodes)
            }
            Chore::Jobs => {
                let catalog = Catalog::planned(&self.board.specs(), self.store.jobs().await?);
                let (is_first, now) = (self.sheet.rows().next().is_none(), self.now());
                self.sheet.know(catalog, now);
                self.sheet.take_nodes(&self.nodes, now);
                let messages = is_first && self.store.capability().messages;
                self.chores.extend(Chore::by_job(&self.sheet, &self.sheet.unread(), messages));
                Some(Op::Jobs)
            }
            Chore::Pauses => {
                let pauses = self.store.pauses().await?;
                self.sheet.take_pauses(pauses, self.now());
                Some(Op::Pauses)
            }
            Chore::Latest(names) => {
                let latest = latest_each(self.store, &names).await?;
                self.sheet.take_latest(&names, latest, self.now());
                Some(Op::Latest)
            }
            Chore::Untold(topics) => {
                let found = untold_each(self.store, &topics).await?;
                let now = found.now.unwrap_or_else(|| self.now());
                self.sheet.unreadable.take_topics(&topics, found.unreadable, now);
                self.judged.take_untold(&topics, &found.messages, now);
                Some(Op::Untold)
            }
            Chore::Doubt => {
                let (now, hours) = (self.now(), self.board.hours());
                self.sheet.pass(now, hours);
                self.sheet.doubt(now, false);
                if !self.sheet.is_urgent() && self.answers {
                    self.read_at = self.read_at.map(|_| now);
                }
                None
            }
        })
    }

    async fn read_nodes(&mut self) -> Reply<()> {
        let asked = self.mono();
        let (now, nodes) = self.store.nodes().await?;
        let took = self.mono().since(asked);
        self.heard = Some((later(now, took / 2), self.mono()));
        self.standing.latency_ms = u32::try_from(took.as_millis()).ok();
        self.judged.take_nodes(NodeView::all(&nodes, now), &self.sheet.patches);
        self.sheet.take_nodes(&nodes, now);
        self.nodes = nodes;
        Ok(())
    }

    async fn read_slots(&mut self) -> Reply<Option<Op>> {
        let live = self.sheet.is_urgent();
        let batch = self.sheet.next_batch();
        let slots: Vec<_> = batch.iter().flat_map(|(_, slots)| slots.iter().cloned()).collect();
        if !slots.is_empty() {
            match inspect_each(self.store, &slots).await {
                Ok((now, records)) => self.sheet.take(&batch, records, now.unwrap_or_else(|| self.now()), live),
                Err(error) => {
                    self.sheet.put_back(batch);
                    return Err(error);
                }
            }
        }
        if live && !self.sheet.is_urgent() {
            self.urgent_since = None;
            self.read_at = self.read_at.map(|_| self.now());
        }
        Ok((!slots.is_empty()).then_some(Op::Inspect))
    }

    /// One that cannot be read is shown without.
    async fn read_output(&mut self) -> Reply<Option<Op>> {
        if let Some((slot, attempt, token)) = self.sheet.faults.next_output()
            && let Ok(output) = self.store.output(&slot, attempt, token).await
        {
            self.sheet.faults.take_output(&slot, output);
        }
        Ok(None)
    }

    /// The store has answered this. It is away until it has answered what failed.
    fn reached(&mut self, op: Option<Op>) {
        self.answers |= op.is_some();
        if self.standing.away_since.is_none() || op.is_none() || op != self.failed {
            return;
        }
        self.standing.recovers();
        self.failed = None;
        self.sheet.patches.push("store", &self.standing);
        // What happened meanwhile nobody has told.
        self.sheet.doubt(self.now(), true);
    }

    fn lost(&mut self, error: &StoreError) {
        let now = self.mono();
        // The rest would fail as well.
        self.chores.clear();
        (self.urgent_since, self.round_at) = (None, now + SHORT_ROUND);
        (self.failed, self.failed_at, self.answers) = (Some(error.op), Some(now), false);
        if self.read_at.is_none() || error.op == Op::Jobs {
            self.long_at = now;
        }
        if self.standing.fails(error, self.board.lost_by(self.now())) {
            self.sheet.patches.push("store", &self.standing);
        }
    }

    /// Shows what is known now.
    fn publish(&mut self) {
        let now = self.now();
        self.judged.weigh(&self.sheet, &self.standing, self.loss.as_ref(), now);
        let snapshot = Snapshot {
            version: self.board.moment(self.sheet.patches.last()),
            store_time: now,
            read_at: self.read_at,
            store: self.standing.clone(),
            hours: self.sheet.window.hours().to_vec(),
            filled: self.sheet.filled(),
            rows: self.sheet.rows().cloned().collect(),
            nodes: Arc::clone(&self.judged.nodes),
            concerns: Arc::clone(&self.judged.concerns),
            warnings: self.sheet.warnings.clone(),
        };
        self.board.shown.send_replace(Some((self.mono(), Arc::new(snapshot))));
    }

    /// Waits until something happens, or is due.
    async fn wait(&mut self, changes: Option<&mut Changes>) {
        let now = self.mono();
        let to_hour = crate::clock::between(self.now(), self.sheet.window.end());
        let idle = self.board.looked_at().map_or(now, |at| at + KEPT).max(now + Duration::from_secs(1));
        // While the store is away nothing else is asked than what the next round does.
        let urgent = self.urgent_since.filter(|_| self.answers).map(|since| since + TOGETHER);
        let expiry = self.sheet.next_expiry().map(|until| now + crate::clock::between(self.now(), until));
        let known = self.board.loss().filter(|_| self.loss.is_none()).map(|loss| loss.known_at(self.failed_at));
        let due =
            [Some(self.round_at), Some(idle), Some(now + to_hour), urgent, expiry, known].into_iter().flatten().min();
        let due = due.map(|due| due.max(now + PAUSE));
        let told = async {
            match changes {
                Some(changes) => changes.recv().await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            () = timers::until(&*self.board.setting.clock, due) => {}
            () = self.board.asked.notified() => {}
            hint = told => {
                let lost = match hint {
                    Ok(hint) => self.heed(hint),
                    Err(RecvError::Lagged(_)) => true,
                    // A store that told has no more to tell: it is closed.
                    Err(RecvError::Closed) => {
                        timers::until(&*self.board.setting.clock, due).await;
                        false
                    }
                };
                if lost {
                    self.sheet.doubt(self.now(), true);
                }
            }
        }
    }
}
