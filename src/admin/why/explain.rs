//! One sentence that says why a slot ran or did not, and the command that fixes it. Pure.
//!
//! Some jobs no daemon plans: a crontab's line starts them with `cronward exec`, or a service calls for them. No file has their command,
//! so no command here can run one.

use crate::admin::command_line::starter;
use crate::admin::why::facts::{Facts, clock};
use crate::admin::why::locks;
use crate::admin::why::obstacle::obstacle;
use crate::admin::words::{brief, ending};
use crate::clock::between;
use crate::job::NodeName;
use crate::slot::{Audit, Decision, Mark, Outcome, RunRecord, SlotState, Verdict};
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

/// Why it is as it is.
pub(crate) fn explain(facts: &Facts) -> Explanation {
    match facts.record.state(facts.now, facts.job.max_attempts) {
        SlotState::Done => done(facts),
        SlotState::Running => running(facts),
        SlotState::Retrying => facts.paused().unwrap_or_else(|| retrying(facts)),
        SlotState::Failed => failed(facts),
        SlotState::Skipped => skipped(facts),
        SlotState::Pending => facts.paused().unwrap_or_else(|| pending(facts)),
        SlotState::Missed => missed(facts),
    }
}

impl Facts {
    pub(super) fn at(&self, at: chrono::DateTime<chrono::Utc>) -> String {
        clock(self.record.slot.start(), at)
    }

    fn is_over(&self) -> bool {
        self.now >= self.record.slot.end()
    }

    /// What runs the slot once more: by name, when it is over.
    fn again(&self) -> String {
        if !self.is_planned() {
            return run_again(self);
        }
        let past = if self.is_over() { " --past" } else { "" };
        self.store.command_of_file(format_args!("trigger {}{past}", self.record.slot), self.has_command)
    }

    /// What starts a node.
    fn run(&self) -> String {
        self.store.command_of_file("run", self.has_command)
    }

    /// Whether daemons plan the job, or did.
    fn is_planned(&self) -> bool {
        self.job.origin == JobOrigin::File
    }

    /// A pause that is in force.
    fn paused(&self) -> Option<Explanation> {
        let pause = self.pause.as_ref()?;
        let left = pause.remaining(self.now)?;
        let until =
            left.map_or_else(|| "until the job is resumed".to_owned(), |left| format!("for another {}", brief(left)));
        let why = if pause.audit.why.is_empty() { String::new() } else { format!(" ({})", pause.audit.why) };
        let sentence = format!(
            "the slot does not run: {} paused the job at {}{why}, {until}",
            who(&pause.audit),
            self.at(pause.since)
        );
        Some(Explanation::fixable(sentence, self.store.command(format_args!("resume {}", self.job.name))))
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

fn done(facts: &Facts) -> Explanation {
    let record = &facts.record;
    let told = match (&record.mark, &record.verdict) {
        (Mark::Done(mark), _) => Some((mark.by.node.clone(), mark.by.attempt, mark.at)),
        (_, Some(told)) => Some((told.by.clone(), told.attempt, told.at)),
        _ => None,
    };
    let Some((node, attempt, at)) = told else { return Explanation::fine("the slot is done") };
    if attempt == 0 && !record.runs.iter().any(|run| run.outcome == Some(Outcome::Success)) {
        return Explanation::fine(format!(
            "the slot counts as done: {node} marked it as done at {}, without a run",
            facts.at(at)
        ));
    }
    // An attempt whose command was never started did not fail at anything.
    let tried = |run: &&RunRecord| run.outcome != Some(Outcome::GivenBack) || run.started_at.is_some();
    let before = record.runs.iter().filter(tried).filter(|run| run.outcome != Some(Outcome::Success)).count();
    let after = match before {
        0 => String::new(),
        1 => ", after 1 attempt without success".to_owned(),
        more => format!(", after {more} attempts without success"),
    };
    let successes = record.runs.iter().filter(|run| run.outcome == Some(Outcome::Success)).count();
    let twice = if successes > 1 {
        format!("; {successes} attempts succeeded: the runs may have overlapped")
    } else {
        String::new()
    };
    Explanation::fine(format!(
        "the slot ran: node {node} completed it at {} with attempt {attempt}{after}{twice}",
        facts.at(at)
    ))
}

fn running(facts: &Facts) -> Explanation {
    let Mark::Leased { by, remaining, token } = &facts.record.mark else {
        return Explanation::fine("the slot is running");
    };
    let since = facts.record.runs.iter().find(|run| run.token == *token).map(|run| run.claimed_at);
    let since = since.map(|at| format!(" since {}", facts.at(at))).unwrap_or_default();
    if let Some(waits) = locks::waits(facts, by.attempt) {
        return Explanation::fine(format!("the slot waits for {waits}; node {} has held the lease{since}", by.node));
    }
    Explanation::fine(format!(
        "the slot is running: node {} has held the lease{since} with attempt {}; the lease expires in {} unless renewed",
        by.node,
        by.attempt,
        brief(*remaining)
    ))
}

/// How the last attempt ended, as the middle of a sentence.
fn last(facts: &Facts) -> String {
    let record = &facts.record;
    let Some(run) = record.runs.last() else { return "no attempt is recorded".to_owned() };
    told(facts, run)
}

fn told(facts: &Facts, run: &RunRecord) -> String {
    let (node, attempt, at) = (&run.node, run.attempt, facts.at(run.claimed_at));
    match facts.record.outcome_of(run) {
        Some(Outcome::Crashed) => {
            let doubt =
                facts.who(|decision| matches!(decision, Decision::LeaseInDoubt { attempt: of } if *of == attempt));
            let lost =
                if doubt.contains(&node) { "could not renew the lease in time" } else { "did not report a result" };
            format!("node {node} claimed attempt {attempt} at {at} and {lost}")
        }
        None => format!("attempt {attempt} on node {node} is running"),
        Some(Outcome::GivenBack) => {
            let why = run.message.as_deref().map(|why| format!(": {why}")).unwrap_or_default();
            format!("attempt {attempt} on node {node} was given back{why}")
        }
        Some(_) => format!("attempt {attempt} on node {node} ended with {}", ending(&facts.record, run)),
    }
}

fn retrying(facts: &Facts) -> Explanation {
    let (last, used, max) = (last(facts), facts.record.used(), facts.job.max_attempts);
    let when = starter(facts.job.origin).map(|starts| format!("when {starts} again"));
    match (&facts.record.mark, when) {
        (Mark::Backoff { remaining, .. }, when) => {
            let (wait, when) = (brief(*remaining), when.map(|when| format!(", {when}")).unwrap_or_default());
            Explanation::fine(format!("the slot is not done yet: {last}; the next attempt may start in {wait}{when}"))
        }
        (_, Some(when)) => {
            let sentence = format!(
                "the slot is not done yet: {last}; {used} of {max} attempts are used, the next attempt starts {when}"
            );
            Explanation::fixable(sentence, facts.again())
        }
        (_, None) if facts.alive.is_empty() => {
            let sentence = format!("the slot is not done: {last}, and no node is alive to retry");
            Explanation::fixable(sentence, facts.again())
        }
        (_, None) => Explanation::fine(format!("the slot is not done yet: {last}; {used} of {max} attempts are used")),
    }
}

fn failed(facts: &Facts) -> Explanation {
    let slot = &facts.record.slot;
    let used = facts.record.used();
    let sentence = format!("the slot failed: all {used} attempts are exhausted; {}", last(facts));
    if facts.is_over() {
        return Explanation::fixable(sentence, facts.again());
    }
    let then = starter(facts.job.origin).map(|starts| format!("; after a reset the slot runs when {starts} again"));
    let reset = facts.store.command(format_args!("reset {slot}"));
    Explanation::fixable(sentence + &then.unwrap_or_default(), reset)
}

fn skipped(facts: &Facts) -> Explanation {
    let slot = &facts.record.slot;
    let touching = facts.pause.as_ref().filter(|pause| pause.touches(slot.start(), slot.end()));
    let sentence = match touching {
        Some(pause) if pause.audit.verb == "pause" => {
            let why = if pause.audit.why.is_empty() { String::new() } else { format!(": {}", pause.audit.why) };
            format!("the slot was skipped: {} paused the job at {}{why}", who(&pause.audit), facts.at(pause.since))
        }
        _ => "the slot was skipped: the job was paused".to_owned(),
    };
    Explanation::fixable(sentence, facts.again())
}

fn who(audit: &Audit) -> String {
    format!("{} on {}", audit.who, audit.host)
}

fn pending(facts: &Facts) -> Explanation {
    if !facts.is_planned() {
        return unplanned_pending(facts, obstacle(facts));
    }
    if facts.orphaned {
        return orphaned(facts);
    }
    if !facts.job.enabled {
        return Explanation::fine("the slot does not run: the job is not enabled in the file that was registered last");
    }
    let Some(tick) = facts.tick else {
        return Explanation::fine(format!(
            "the slot does not run: the schedule {} does not fire in it",
            facts.job.schedule
        ));
    };
    if facts.now < tick {
        let wait = brief(between(facts.now, tick));
        let nobody = if facts.alive.is_empty() { ", and no node is alive" } else { "" };
        let sentence = format!("the slot has not run yet: it is scheduled for {}, in {wait}{nobody}", facts.at(tick));
        return if nobody.is_empty() {
            Explanation::fine(sentence)
        } else {
            Explanation::fixable(sentence, facts.run())
        };
    }
    if let Some(why) = obstacle(facts) {
        return Explanation::fixable(format!("the slot has not run yet: {why}"), facts.again());
    }
    let late = brief(between(tick, facts.now));
    if facts.alive.is_empty() {
        let sentence = format!("the slot has not run: it was scheduled {late} ago, and no node is alive");
        return Explanation::fixable(sentence, facts.run());
    }
    let sentence = format!("the slot has not run yet: it was scheduled {late} ago, and no node has claimed it");
    Explanation::fixable(sentence, facts.again())
}

/// No live node has the job in its file.
fn orphaned(facts: &Facts) -> Explanation {
    let since = facts.job.planned.map(|at| format!(" since {}", facts.at(at))).unwrap_or_default();
    let word = if facts.is_over() { "did" } else { "does" };
    let sentence = format!("the slot {word} not run: the job is not in any live node's file{since}");
    Explanation::fixable(sentence, facts.store.command(format_args!("forget {}", facts.job.name)))
}

fn missed(facts: &Facts) -> Explanation {
    let sentence = if let Some(why) = locks::given_back(facts) {
        let others = obstacle(facts).map(|why| format!("; then {why}")).unwrap_or_default();
        format!("the slot did not run: {why}{others}")
    } else if facts.record.attempts > 0 {
        let others = obstacle(facts).map(|why| format!("; then {why}")).unwrap_or_default();
        let end = facts.at(facts.record.slot.end());
        format!("no attempt of the slot succeeded: {}; no other attempt started before {end}{others}", last(facts))
    } else if let Some(why) = obstacle(facts) {
        format!("the slot did not run: {why}")
    } else {
        return unheard(facts);
    };
    Explanation::fixable(sentence, facts.again())
}

/// Where the decision log says nothing.
pub(super) const UNKNOWN_REASON: &str =
    "no node was alive, or the nodes were overloaded, or they could not write their decision log";

/// Over, never claimed, and no decision log says why.
fn unheard(facts: &Facts) -> Explanation {
    let slot = &facts.record.slot;
    if facts.orphaned {
        return orphaned(facts);
    }
    if facts.tick.is_none() {
        return Explanation::fine(format!(
            "the slot did not run: the schedule {} does not fire in it",
            facts.job.schedule
        ));
    }
    match facts.known_since {
        None => Explanation::fixable("the slot did not run: no node has ever run this job", facts.run()),
        Some(since) if since >= slot.end() => {
            Explanation::fine(format!("the slot did not run: the job was first registered at {}", facts.at(since)))
        }
        Some(_) if !facts.is_planned() => unplanned_unheard(facts),
        Some(_) if !facts.job.enabled => Explanation::fixable(
            "the slot did not run: the job was not enabled in the file that was registered last",
            facts.again(),
        ),
        Some(_) => {
            let closed = facts.record.verdict.as_ref().filter(|told| told.verdict == Verdict::Missed);
            let by =
                closed.map(|told| format!("; node {} recorded the slot as missed at {}", told.by, facts.at(told.at)));
            let sentence = format!("the slot did not run: {UNKNOWN_REASON}{}", by.unwrap_or_default());
            Explanation::fixable(sentence, facts.again())
        }
    }
}

/// Who knows the job, and what they did not do.
const fn nobody(origin: JobOrigin) -> &'static str {
    match origin {
        JobOrigin::Service => "the job runs only in a service, and no process of the service has called for this slot",
        JobOrigin::File | JobOrigin::Crontab => {
            "the job runs only from a crontab, and no crontab has started it in this slot"
        }
    }
}

/// What runs the slot once more; in words, where that is no command of this program.
fn run_again(facts: &Facts) -> String {
    let slot = &facts.record.slot;
    match (facts.job.origin, facts.is_over()) {
        // Not a command alone: a slot that is marked without a check would hide a miss.
        (_, true) => {
            let then = facts.store.command(format_args!("mark-done {slot}"));
            format!("if the work is still needed, do it manually, then `{then}`")
        }
        (JobOrigin::Service, false) => "let the service call for the slot: the next call runs it".to_owned(),
        (JobOrigin::File | JobOrigin::Crontab, false) => {
            "run the crontab's line manually, on any of its machines".to_owned()
        }
    }
}

/// Not over, never claimed. `obstacle` is what those who asked were told.
fn unplanned_pending(facts: &Facts, obstacle: Option<String>) -> Explanation {
    let start = facts.record.slot.start();
    if facts.now < start {
        let wait = brief(between(facts.now, start));
        return Explanation::fine(format!("the slot has not started: it starts at {}, in {wait}", facts.at(start)));
    }
    let why = obstacle.unwrap_or_else(|| nobody(facts.job.origin).to_owned());
    Explanation::fixable(format!("the slot has not run yet: {why}"), run_again(facts))
}

/// Over, never claimed, and no decision log says why.
fn unplanned_unheard(facts: &Facts) -> Explanation {
    Explanation::fixable(format!("the slot did not run: {}", nobody(facts.job.origin)), run_again(facts))
}
