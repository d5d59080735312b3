//! One sentence that says why a slot ran or did not, and the command that fixes it. Pure.
//!
//! Some jobs no daemon plans: a crontab's line starts them with `cronward exec`, or a service calls for them. No file has their command,
//! so no command here can run one.

use std::ops::Deref;
use std::time::Duration;

use crate::admin::why::english::ENGLISH;
use crate::admin::why::facts::Facts;
use crate::admin::why::locks;
use crate::admin::why::obstacle::obstacle;
use crate::admin::why::texts::{SlotReasons, WhyTexts};
use crate::admin::words::start_failure;
use crate::clock::{between, later};
use crate::job::NodeName;
use crate::slot::{Audit, Decision, Mark, Outcome, Overlap, RunRecord, SlotState, Verdict};
use crate::store::JobOrigin;

/// What is said of a slot at the end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Explanation {
    pub(crate) sentence: String,
    /// A command line; none where there is nothing to fix.
    pub(crate) fix: Option<String>,
}

impl Explanation {
    fn fine(sentence: impl Into<String>) -> Self {
        Self { sentence: sentence.into(), fix: None }
    }

    fn fixable(sentence: impl Into<String>, fix: impl Into<String>) -> Self {
        Self { sentence: sentence.into(), fix: Some(fix.into()) }
    }
}

/// Why it is as it is, as commands say it.
pub(crate) fn explain(facts: &Facts) -> Explanation {
    explain_in(facts, &ENGLISH)
}

/// The same in a language. Commands are the same in each.
pub(crate) fn explain_in(facts: &Facts, t: &WhyTexts) -> Explanation {
    let told = Reasoning { facts, t };
    match facts.record.state(facts.now, facts.job.max_attempts) {
        SlotState::Done => done(told),
        SlotState::Running => running(told),
        SlotState::Retrying => told.paused().unwrap_or_else(|| retrying(told)),
        SlotState::Failed => failed(told),
        SlotState::Skipped => skipped(told),
        SlotState::Pending => told.paused().unwrap_or_else(|| pending(told)),
        SlotState::Missed => missed(told),
    }
}

/// What is known, and the language in which it is said.
#[derive(Clone, Copy)]
struct Reasoning<'a> {
    facts: &'a Facts,
    t: &'a WhyTexts,
}

impl Deref for Reasoning<'_> {
    type Target = Facts;

    fn deref(&self) -> &Facts {
        self.facts
    }
}

impl Facts {
    fn is_over(&self) -> bool {
        self.now >= self.record.slot.end()
    }

    /// What starts a node.
    fn run(&self) -> String {
        self.store.command_of_file("run", self.has_command)
    }

    /// Whether daemons plan the job, or did.
    fn is_planned(&self) -> bool {
        self.job.origin == JobOrigin::File
    }

    /// The nodes whose decision log has something of this kind, each once.
    pub(super) fn who(&self, is: impl Fn(&Decision) -> bool) -> Vec<&NodeName> {
        let mut nodes: Vec<&NodeName> = Vec::new();
        for page in self.pages.iter().filter(|page| page.notes.iter().any(|note| is(&note.decision))) {
            if !nodes.contains(&&page.node) {
                nodes.push(&page.node);
            }
        }
        nodes
    }
}

impl<'a> Reasoning<'a> {
    const fn slot(self) -> &'a SlotReasons {
        &self.t.slot
    }

    fn span(self, span: Duration) -> String {
        (self.t.span)(span)
    }

    fn obstacle(self) -> Option<String> {
        obstacle(self.facts, self.t)
    }

    /// Who starts it, where no daemon does.
    fn starter(self) -> Option<&'static str> {
        (self.t.starter.who)(self.job.origin)
    }

    fn person(self, audit: &Audit) -> String {
        (self.slot().who)(&audit.who, &audit.host)
    }

    /// What runs the slot once more: by name, when it is over.
    fn again(self) -> String {
        if !self.is_planned() {
            return run_again(self);
        }
        let past = if self.is_over() { " --past" } else { "" };
        let run = self.store.command_of_file(format_args!("trigger {}{past}", self.record.slot), self.has_command);
        // A paused job runs nothing that is asked for either.
        let paused = self.facts.pause.as_ref().is_some_and(|pause| pause.remaining(self.now).is_some());
        if paused { format!("{} && {run}", self.resume()) } else { run }
    }

    /// A pause that is in force.
    fn paused(self) -> Option<Explanation> {
        let pause = self.facts.pause.as_ref()?;
        let left = pause.remaining(self.now)?.map(|left| self.span(left));
        let (who, at) = (self.person(&pause.audit), self.at(pause.since));
        let sentence = (self.slot().paused)(&who, &at, &pause.audit.why, left.as_deref());
        Some(Explanation::fixable(sentence, self.resume()))
    }

    fn resume(self) -> String {
        self.store.command(format_args!("resume {}", self.job.name))
    }
}

fn done(told: Reasoning<'_>) -> Explanation {
    let record = &told.record;
    let ended = match (&record.mark, &record.verdict) {
        (Mark::Done(mark), _) => Some((mark.by.node.clone(), mark.by.attempt, mark.at)),
        (_, Some(told)) => Some((told.by.clone(), told.attempt, told.at)),
        _ => None,
    };
    let Some((node, attempt, at)) = ended else { return Explanation::fine(told.slot().done) };
    let at = told.at(at);
    // A run without a guard has the number 0 as well.
    let is_marked = attempt == 0 && !record.runs.iter().any(|run| run.attempt == 0);
    if is_marked {
        let succeeded = record.runs.iter().any(|run| run.outcome == Some(Outcome::Success));
        return Explanation::fine((told.slot().marked)(node.as_str(), &at, succeeded));
    }
    // An attempt whose command was never started did not fail at anything.
    let tried = |run: &&RunRecord| run.outcome != Some(Outcome::GivenBack) || run.started_at.is_some();
    let before = record.runs.iter().filter(tried).filter(|run| run.outcome != Some(Outcome::Success)).count();
    let successes: Vec<&RunRecord> = record.runs.iter().filter(|run| run.outcome == Some(Outcome::Success)).collect();
    // One that was claimed after the one before had ended, as after a reset, did not run at the same time.
    let pairs = successes
        .iter()
        .enumerate()
        .flat_map(|(index, one)| successes.iter().skip(index + 1).map(move |next| (one, next)));
    let overlap = pairs.map(|(one, next)| Overlap::of(one, next)).max().unwrap_or(Overlap::No);
    let sentence = (told.slot().ran)(node.as_str(), &at, attempt, before, successes.len(), overlap);
    let still = record.runs.iter().filter_map(|run| {
        let (after, by) = run.ended_between()?;
        Some((told.slot().stood_still)(run.node.as_str(), run.attempt, &told.at(after), &told.at(by)))
    });
    Explanation::fine(std::iter::once(sentence).chain(still).collect::<Vec<_>>().join(told.t.and))
}

fn running(told: Reasoning<'_>) -> Explanation {
    let Mark::Leased { by, remaining, token } = &told.record.mark else {
        return Explanation::fine(told.slot().running);
    };
    let since = told.record.runs.iter().find(|run| run.token == *token).map(|run| told.at(run.claimed_at));
    let (node, since) = (by.node.as_str(), since.as_deref());
    let sentence = match locks::waits(told.facts, by.attempt, told.t) {
        Some(waits) => (told.slot().waits)(&waits, node, since),
        None if told.is_over() => {
            let end = told.at(told.record.slot.end());
            (told.slot().held_past_end)(node, since, by.attempt, &told.span(*remaining), &end)
        }
        None => (told.slot().running_on)(node, since, by.attempt, &told.span(*remaining)),
    };
    match locks::deadlock(&told.ring, told.t) {
        Some((deadlock, evicts)) => Explanation::fixable(sentence + told.t.and + &deadlock, told.store.command(evicts)),
        None => Explanation::fine(sentence),
    }
}

/// How the last attempt ended, as the middle of a sentence.
fn last(told: Reasoning<'_>) -> String {
    told.record.runs.last().map_or_else(|| told.t.attempt.none.to_owned(), |run| attempt(told, run))
}

fn attempt(told: Reasoning<'_>, run: &RunRecord) -> String {
    let (t, node, attempt) = (&told.t.attempt, run.node.as_str(), run.attempt);
    match told.record.outcome_of(run) {
        Some(Outcome::Crashed) => {
            let doubt =
                told.who(|decision| matches!(decision, Decision::LeaseInDoubt { attempt: of } if *of == attempt));
            (t.lost)(node, attempt, &told.at(run.claimed_at), doubt.contains(&&run.node))
        }
        None => (t.running)(attempt, node),
        Some(Outcome::GivenBack) => (t.given_back)(attempt, node, None, run.message.as_deref()),
        Some(_) => {
            let cause = start_failure(run).map(t.cause).unwrap_or_default();
            (t.ended)(attempt, node, &((t.ending)(&told.record, run) + &cause))
        }
    }
}

fn retrying(told: Reasoning<'_>) -> Explanation {
    let (t, last, used, max) = (told.slot(), last(told), told.record.used(), told.job.max_attempts);
    if let Some(why) = told.no_start {
        let trigger = told.store.command_of_file(format_args!("trigger {}", told.record.slot), told.has_command);
        return Explanation::fixable((t.retry_not)(&last, why), trigger);
    }
    match (&told.record.mark, told.starter()) {
        (Mark::Backoff { remaining, .. }, starts) => {
            Explanation::fine((t.retry_in)(&last, &told.span(*remaining), starts))
        }
        (_, Some(starts)) => Explanation::fixable((t.retry_when)(&last, used, max, starts), told.again()),
        (_, None) if told.alive.is_empty() => Explanation::fixable((t.retry_by_nobody)(&last), told.again()),
        (_, None) => Explanation::fine((t.retry)(&last, used, max)),
    }
}

fn failed(told: Reasoning<'_>) -> Explanation {
    let sentence = (told.slot().failed)(told.record.used(), &last(told));
    if told.is_over() {
        // The attempts are used up: the slot has to be opened before it is run once more.
        let reset = told.store.command(format_args!("reset {}", told.record.slot));
        let again = told.again();
        return Explanation::fixable(sentence, if told.is_planned() { format!("{reset} && {again}") } else { again });
    }
    let then = told.starter().map(told.t.starter.after_reset);
    let reset = told.store.command(format_args!("reset {}", told.record.slot));
    Explanation::fixable(sentence + &then.unwrap_or_default(), reset)
}

fn skipped(told: Reasoning<'_>) -> Explanation {
    let slot = &told.record.slot;
    let touching = told.pause.as_ref().filter(|pause| pause.touches(slot.start(), slot.end()));
    let sentence = match touching.filter(|pause| pause.audit.verb == "pause") {
        Some(pause) => (told.slot().skipped_by)(&told.person(&pause.audit), &told.at(pause.since), &pause.audit.why),
        None => told.slot().skipped.to_owned(),
    };
    Explanation::fixable(sentence, told.again())
}

fn pending(told: Reasoning<'_>) -> Explanation {
    let t = told.slot();
    if !told.is_planned() {
        return unplanned_pending(told);
    }
    if told.orphaned {
        return orphaned(told);
    }
    if !told.job.enabled {
        return Explanation::fine(t.is_disabled);
    }
    let Some(tick) = told.tick else { return Explanation::fine((t.no_tick)(&told.job.schedule, false)) };
    let nobody = told.alive.is_empty();
    if told.now < tick {
        let wait = told.span(between(told.now, tick));
        let sentence = (t.scheduled)(&told.at(tick), &wait, nobody);
        return Explanation { sentence, fix: nobody.then(|| told.run()) };
    }
    if let Some(why) = told.obstacle() {
        // While another slot runs, a trigger is refused as well.
        let fix = told.blocker.is_none().then(|| told.again());
        return Explanation { sentence: (t.not_yet)(&why), fix };
    }
    if let Some(since) = told.not_owed {
        return Explanation::fixable((t.not_owed)(false, &told.at(since)), told.again());
    }
    let late = told.span(between(tick, told.now));
    if nobody {
        return Explanation::fixable((t.no_node)(&late), told.run());
    }
    Explanation::fixable((t.unclaimed)(&late), told.again())
}

/// No live node has the job in its file.
fn orphaned(told: Reasoning<'_>) -> Explanation {
    let since = told.job.planned.map(|at| told.at(at));
    let sentence = (told.slot().orphaned)(told.is_over(), since.as_deref());
    Explanation::fixable(sentence, told.store.command(format_args!("forget {}", told.job.name)))
}

fn missed(told: Reasoning<'_>) -> Explanation {
    let (t, others, used) = (told.slot(), told.obstacle(), told.record.used());
    let end = told.at(told.record.slot.end());
    let sentence = if let Some(why) = locks::given_back(told.facts, told.t) {
        (t.did_not_run)(&why, others.as_deref())
    } else if used > 0 {
        (t.missed_after)(used, told.job.max_attempts, &end, &last(told), others.as_deref())
    } else if told.record.attempts > 0 {
        (t.no_success)(&last(told), &end, others.as_deref())
    } else if let Some(why) = others {
        (t.did_not_run)(&why, None)
    } else {
        return unheard(told);
    };
    Explanation::fixable(sentence, told.again())
}

/// Over, never claimed, and no decision log says why.
fn unheard(told: Reasoning<'_>) -> Explanation {
    let t = told.slot();
    if told.orphaned {
        return orphaned(told);
    }
    if told.tick.is_none() {
        return Explanation::fine((t.no_tick)(&told.job.schedule, true));
    }
    if let Some(since) = told.not_owed {
        return Explanation::fixable((t.not_owed)(true, &told.at(since)), told.again());
    }
    match told.known_since {
        None => Explanation::fixable(t.never_known, told.run()),
        Some(since) if since >= told.record.slot.end() => Explanation::fine((t.known_later)(&told.at(since))),
        Some(_) if later(told.record.slot.end(), told.retention) < told.now => {
            Explanation::fine((t.forgotten)(&told.span(told.retention)))
        }
        Some(_) if !told.is_planned() => {
            Explanation::fixable((t.did_not_run)((told.t.starter.nobody)(told.job.origin), None), run_again(told))
        }
        Some(_) if !told.job.enabled => Explanation::fine(t.was_disabled),
        Some(_) => {
            let closed = told.record.verdict.as_ref().filter(|verdict| verdict.verdict == Verdict::Missed);
            let closed = closed.map(|verdict| (verdict.by.as_str(), told.at(verdict.at)));
            let closed = closed.as_ref().map(|(node, at)| (*node, at.as_str()));
            // A note is a sign of life.
            let sentence = match told.silence.filter(|_| told.pages.is_empty()) {
                Some((since, until)) => {
                    let until = until.map(|until| told.at(until));
                    (t.nobody_alive)(&told.at(since), until.as_deref()) + &(t.recorded)(closed)
                }
                None => (t.unheard)(closed),
            };
            Explanation::fixable(sentence, told.again())
        }
    }
}

/// What runs the slot once more; in words, where that is no command of this program.
fn run_again(told: Reasoning<'_>) -> String {
    if told.is_over() {
        // Not a command alone: a slot that is marked without a check would hide a miss.
        return (told.t.starter.by_hand)(&told.store.command(format_args!("mark-done {}", told.record.slot)));
    }
    (told.t.starter.again)(told.job.origin).to_owned()
}

/// Of a job that no daemon plans: not over, never claimed.
fn unplanned_pending(told: Reasoning<'_>) -> Explanation {
    let start = told.record.slot.start();
    if told.now < start {
        let wait = told.span(between(told.now, start));
        return Explanation::fine((told.slot().starts)(&told.at(start), &wait));
    }
    let why = told.obstacle().unwrap_or_else(|| (told.t.starter.nobody)(told.job.origin).to_owned());
    Explanation::fixable((told.slot().not_yet)(&why), run_again(told))
}
