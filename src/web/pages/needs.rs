//! NEEDS YOU: what only a person mends, in lines with a place to go and, for those who may, the one action.

use crate::board::{Concern, ConcernKind, Fault, Snapshot};
use crate::job::{JobName, NodeName};
use crate::slot::{Outcome, Verdict};
use crate::web::pages::moment::Teller;
use crate::web::pages::state::Shown;

/// One line.
pub(super) struct Need {
    pub(super) glyph: &'static str,
    pub(super) word: &'static str,
    pub(super) subject: String,
    pub(super) slot: Option<String>,
    pub(super) what: String,
    pub(super) since: Option<String>,
    pub(super) link: String,
    /// Address and words.
    pub(super) acts: Vec<(String, String)>,
}

/// In the board's order.
pub(super) fn lines(shown: &Snapshot, acts: bool, tell: &Teller) -> Vec<Need> {
    let acts = acts && shown.takes_changes();
    shown.concerns.iter().map(|concern| line(concern, acts, tell)).collect()
}

fn line(concern: &Concern, acts: bool, tell: &Teller) -> Need {
    let since = format!("{} · {}", (tell.t.needs.since)(&tell.exact(concern.since)), tell.relative(concern.since));
    let mut need = match &concern.what {
        ConcernKind::Failing { .. } => failing(concern, acts, tell),
        ConcernKind::Late { job, alert_after, .. } => {
            warning_of(job, (tell.t.needs.late)(&tell.span(*alert_after)), tell)
        }
        ConcernKind::Unreadable { job: Some(job), slot, records, error } => {
            let mut need = of_job(job, (tell.t.needs.unreadable)(*records, error), Shown::Unknown, tell);
            need.slot = slot.map(|key| key.to_string());
            need
        }
        ConcernKind::Undelivered { job: Some(job), sink, error, messages } => {
            warning_of(job, undelivered(sink, error, *messages, tell), tell)
        }
        other => of_cluster(other, tell),
    };
    need.since = Some(since);
    need
}

fn failing(concern: &Concern, acts: bool, tell: &Teller) -> Need {
    let ConcernKind::Failing { job, slot, verdict, slots, fault, trying, too_late } = &concern.what else {
        return of_cluster(&concern.what, tell);
    };
    let t = &tell.t.needs;
    let mut what = vec![match (verdict, fault) {
        (Verdict::Failed, Some(fault)) => (t.failed)(fault.attempts, fault.max_attempts),
        _ if *too_late => t.too_late.to_owned(),
        (Verdict::Missed, Some(fault)) if fault.attempts > 0 => (t.missed_after)(fault.attempts, fault.max_attempts),
        (Verdict::Missed, _) => t.missed.to_owned(),
        _ => (tell.t.words.state)(Shown::Failed).to_owned(),
    }];
    what.extend(fault.iter().flat_map(|fault| ending(fault, tell)));
    what.extend((*slots > 1).then(|| (t.failed_slots)(*slots)));
    what.extend((!trying && *verdict == Verdict::Failed).then(|| t.nobody_tries.to_owned()));
    let state = if *verdict == Verdict::Missed { Shown::Missed } else { Shown::Failed };
    let key = slot.to_string();
    let mut need = of_job(job, what.join(separator(tell)), state, tell);
    if let Some(line) = fault.as_ref().and_then(|fault| fault.last_line.as_ref()) {
        need.what = format!("{} “{}”", need.what, crate::text::message(line, 160));
    }
    need.slot = Some(tell.exact(slot.start()));
    need.link = format!("/jobs/{job}/{key}");
    need.acts.extend(acts.then(|| (format!("/jobs/{job}/{key}/retry"), (tell.t.act.label)("retry").to_owned())));
    need
}

const fn separator(tell: &Teller) -> &'static str {
    if tell.t.tag.len() == 2 { ", " } else { "，" }
}

/// How the newest attempt ended, and where.
fn ending(fault: &Fault, tell: &Teller) -> Vec<String> {
    let t = tell.t;
    let how = match (fault.exit_code, fault.signal, fault.outcome) {
        // Which signal ended it is the timeout's doing.
        (_, _, Some(outcome @ Outcome::Timeout)) => Some((t.words.outcome)(outcome.as_str())),
        (Some(code), _, _) => Some((t.needs.exit)(code)),
        (None, Some(signal), Some(_)) => Some((t.needs.signal)(signal)),
        (_, _, Some(outcome)) => Some((t.words.outcome)(outcome.as_str())),
        _ => None,
    };
    let node = fault.node.as_ref().map(|node| (t.needs.on_node)(node.as_str()));
    match (how, node) {
        (Some(how), Some(node)) if t.tag == "en" => vec![format!("{how} {node}")],
        (how, node) => how.into_iter().chain(node).collect(),
    }
}

fn of_job(job: &JobName, what: String, state: Shown, tell: &Teller) -> Need {
    Need {
        glyph: state.key(),
        word: (tell.t.words.state)(state),
        subject: job.to_string(),
        slot: None,
        what,
        since: None,
        link: format!("/jobs/{job}"),
        acts: Vec::new(),
    }
}

/// Of a job, and about no state of its slots.
fn warning_of(job: &JobName, what: String, tell: &Teller) -> Need {
    let word = (tell.t.words.severity)("warning");
    Need { glyph: "warning", word, ..of_job(job, what, Shown::Unknown, tell) }
}

fn undelivered(sink: &str, error: &str, messages: u32, tell: &Teller) -> String {
    let error = crate::text::message(error, 200);
    let what = (tell.t.needs.undelivered)(sink, messages);
    if error.is_empty() { what } else { format!("{what}: {error}") }
}

fn of_cluster(kind: &ConcernKind, tell: &Teller) -> Need {
    let (t, frame) = (&tell.t.needs, &tell.t.frame);
    let node = |node: &NodeName| format!("{} {node}", tell.t.cluster.node);
    let (subject, what, link) = match kind {
        ConcernKind::StoreAway { error } => (frame.store.to_owned(), format!("{}: {error}", t.store_away), "/store"),
        ConcernKind::StoreRefuses { error } => {
            (frame.store.to_owned(), format!("{}: {error}", t.store_refuses), "/store")
        }
        ConcernKind::StoreUnusable { error } => {
            (frame.store.to_owned(), format!("{}: {error}", t.store_unusable), "/store")
        }
        ConcernKind::Unreadable { records, error, .. } => {
            (frame.store.to_owned(), (t.unreadable)(*records, error), "/store")
        }
        ConcernKind::NodeLost { node: name, .. } => (node(name), t.node_lost.to_owned(), "/nodes"),
        ConcernKind::ClockOff { node: name, offset_s } => {
            (node(name), (t.clock)(&format!("{offset_s:+.1} s")), "/nodes")
        }
        ConcernKind::FilesDiffer { node: name, jobs } => (node(name), (t.files)(&few(jobs)), "/nodes"),
        ConcernKind::ZonesOld { node: name, zones } => (node(name), (t.zones)(zones), "/nodes"),
        ConcernKind::VersionsDiffer { versions } => {
            (frame.nodes.to_owned(), (t.versions)(&versions.join(", ")), "/nodes")
        }
        ConcernKind::Undelivered { sink, error, messages, .. } => {
            (frame.nodes.to_owned(), undelivered(sink, error, *messages, tell), "/nodes")
        }
        // What is about a job is said with the job.
        ConcernKind::Failing { job, .. } | ConcernKind::Late { job, .. } => (job.to_string(), String::new(), "/"),
    };
    Need {
        glyph: "warning",
        word: (tell.t.words.severity)("warning"),
        subject,
        slot: None,
        what,
        since: None,
        link: link.to_owned(),
        acts: Vec::new(),
    }
}

/// Some names of many.
pub(super) fn few(names: &[JobName]) -> String {
    const MOST: usize = 5;
    let shown: Vec<&str> = names.iter().take(MOST).map(JobName::as_str).collect();
    let more = names.len().saturating_sub(MOST);
    if more > 0 { format!("{} +{more}", shown.join(", ")) } else { shown.join(", ") }
}
