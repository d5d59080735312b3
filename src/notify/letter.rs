//! A message as it is sent: its first sentence, what follows, and the same for programs. Pure; what the store knows comes in.

use std::collections::BTreeMap;
use std::sync::Arc;

use chrono::{DateTime, SecondsFormat, Utc};
use serde_json::{Value, json};

use crate::config::{SinkConfig, format_duration};
use crate::event::NoticeKind;
use crate::job::{JobName, JobSpec, Namespace, NodeName};
use crate::message::MessageKey;
use crate::notify::notice::{Notice, digest_id, message_id, run_uuid};
use crate::notify::texts::{self, Texts, fill};
use crate::observe::view::SlotView;
use crate::schedule::Timetable;
use crate::slot::{JobLatest, Outcome, OutputTail, RunRecord, SlotKey, SlotRecord};
use crate::text;

/// Lines of output that a person reads in a message.
const OUTPUT_LINES: usize = 5;
/// Characters of one such line.
const LONGEST_LINE: usize = 300;
/// Events that a digest names; of more it says how many.
const NAMED: usize = 20;
/// What a slot's view may take of a message.
const LARGEST_VIEW: usize = 128 * 1024;
/// What a check keeps of the output.
const OUTPUT_OF_PING: usize = 10 * 1024;

/// Who writes, and where people look.
#[derive(Clone, Debug)]
pub(super) struct Sender {
    pub(super) namespace: Namespace,
    pub(super) node: NodeName,
    /// `[http] public_url`.
    pub(super) page: Option<String>,
}

/// What is known about a notice besides itself.
#[derive(Clone, Debug, Default)]
pub(super) struct Particulars {
    pub(super) spec: Option<Arc<JobSpec>>,
    pub(super) record: Option<SlotRecord>,
    pub(super) output: Option<OutputTail>,
    /// What the job has come to by now: a message may be late.
    pub(super) latest: Option<JobLatest>,
}

/// A notice with all that is known about it.
#[derive(Clone, Debug)]
pub(super) struct LetterItem {
    pub(super) key: MessageKey,
    pub(super) notice: Notice,
    pub(super) known: Particulars,
}

/// A message as it is sent.
#[derive(Clone, Debug)]
pub(super) struct Letter {
    /// The same for each try.
    pub(super) id: String,
    /// When it was written.
    pub(super) at: DateTime<Utc>,
    /// `failed`, …, `digest` or `test`.
    pub(super) kind: &'static str,
    /// The sentence, on one line.
    pub(super) title: String,
    /// What follows, line by line.
    pub(super) lines: Vec<String>,
    /// The same for programs.
    pub(super) json: Value,
    /// The same as a signal to a check.
    pub(super) ping: Option<Ping>,
    /// The slot's job and key, for a command.
    pub(super) job: Option<JobName>,
    pub(super) slot: Option<String>,
}

/// What a check is told of a run.
#[derive(Clone, Debug)]
pub(super) struct Ping {
    pub(super) kind: NoticeKind,
    pub(super) job: JobName,
    pub(super) run: String,
    pub(super) output: String,
    /// A later slot has ended: this one is no news to a check.
    pub(super) outdated: bool,
}

impl Letter {
    /// The whole text.
    pub(super) fn text(&self) -> String {
        std::iter::once(&self.title).chain(&self.lines).map(String::as_str).collect::<Vec<_>>().join("\n")
    }

    /// The text in at most so many bytes, cut between characters.
    pub(super) fn text_within(&self, most: usize) -> String {
        shortened(&self.text(), most)
    }

    /// Of one notice.
    pub(super) fn of(item: &LetterItem, sender: &Sender, sink: &SinkConfig, now: DateTime<Utc>) -> Self {
        let texts = texts::of(sink.lang);
        let sentence = sentence(item, texts);
        let id = message_id(&sender.namespace, &item.key);
        let mut lines = lines(item, sender, texts, sink.output, now);
        lines.extend(sink.footer.clone());
        let data = data(item, sender, &sentence, sink.output, now);
        let job = item.notice.job().cloned();
        let slot = item.notice.slot;
        let ping = job.clone().zip(slot).map(|(job, slot)| Ping {
            kind: item.notice.kind,
            run: run_uuid(&sender.namespace, &job, slot),
            job,
            outdated: later_end(&item.known).is_some_and(|ended| ended > slot),
            output: item.known.output.as_ref().filter(|_| sink.output).map_or(String::new(), |tail| end_of(&tail.text)),
        });
        let kind = item.notice.kind.as_str();
        let json = json!({ "type": kind, "id": id, "timestamp": stamp(now), "data": data });
        let title = titled(sink, &sentence);
        Self { id, at: now, kind, title, lines, json, ping, job, slot: slot.map(|slot| slot.to_string()) }
    }

    /// Of several at once.
    pub(super) fn digest(items: &[LetterItem], sender: &Sender, sink: &SinkConfig, now: DateTime<Utc>) -> Self {
        let texts = texts::of(sink.lang);
        let mut kinds: BTreeMap<NoticeKind, usize> = BTreeMap::new();
        items.iter().for_each(|item| *kinds.entry(item.notice.kind).or_default() += 1);
        let kinds: Vec<String> = kinds.iter().map(|(kind, count)| format!("{count} {}", (texts.kind)(*kind))).collect();
        let values = [("count", items.len().to_string()), ("kinds", kinds.join(", "))];
        let title = fill_owned(texts.digest, &values);
        let mut lines: Vec<String> = items.iter().take(NAMED).map(|item| sentence(item, texts)).collect();
        if let Some(more) = items.len().checked_sub(NAMED).filter(|more| *more > 0) {
            lines.push(fill(texts.digest_more, &[("count", &more.to_string())]));
        }
        lines.extend(sender.page.as_ref().map(|page| fill(texts.page, &[("page", page)])));
        lines.extend(sink.footer.clone());
        let events: Vec<Value> = items.iter().map(|item| event(item, sender, &sentence(item, texts))).collect();
        let ids: Vec<String> = items.iter().map(|item| message_id(&sender.namespace, &item.key)).collect();
        let id = digest_id(&ids);
        let data = json!({ "namespace": sender.namespace, "node": sender.node, "text": title, "events": events });
        let json = json!({ "type": "digest", "id": id, "timestamp": stamp(now), "data": data });
        let title = titled(sink, &title);
        Self { id, at: now, kind: "digest", title, lines, json, ping: None, job: None, slot: None }
    }

    /// Of nothing: it shows that the way is open.
    pub(super) fn test(name: &str, sender: &Sender, sink: &SinkConfig, id: String, now: DateTime<Utc>) -> Self {
        let sentence = fill(texts::of(sink.lang).test, &[("sink", name)]);
        let data = json!({ "namespace": sender.namespace, "node": sender.node, "text": sentence });
        let json = json!({ "type": "test", "id": id, "timestamp": stamp(now), "data": data });
        let title = titled(sink, &sentence);
        let lines = sink.footer.iter().cloned().collect();
        Self { id, at: now, kind: "test", title, lines, json, ping: None, job: None, slot: None }
    }

    /// The same, said to be a trial: for `cronward notify test --event`.
    pub(super) fn into_trial(mut self, id: String, name: &str, sink: &SinkConfig) -> Self {
        self.lines.push(fill(texts::of(sink.lang).test, &[("sink", name)]));
        if let Some(object) = self.json.as_object_mut() {
            object.insert("id".to_owned(), json!(id));
            object.insert("test".to_owned(), json!(true));
        }
        Self { id, ..self }
    }
}

/// The text, or as much of its beginning as fits.
pub(super) fn shortened(text: &str, most: usize) -> String {
    if text.len() <= most {
        return text.to_owned();
    }
    let room = most.saturating_sub("…".len());
    let cut = (0..=room).rev().find(|at| text.is_char_boundary(*at)).unwrap_or(0);
    format!("{}…", text.get(..cut).unwrap_or_default())
}

/// The end of an output, within what a check keeps.
fn end_of(text: &str) -> String {
    let from = text.len().saturating_sub(OUTPUT_OF_PING);
    let from = (from..=text.len()).find(|at| text.is_char_boundary(*at)).unwrap_or(0);
    text.get(from..).unwrap_or_default().to_owned()
}

fn stamp(at: DateTime<Utc>) -> String {
    at.to_rfc3339_opts(SecondsFormat::Secs, true)
}

fn titled(sink: &SinkConfig, sentence: &str) -> String {
    sink.title.as_ref().map_or_else(|| sentence.to_owned(), |title| format!("{title} {sentence}"))
}

fn fill_owned(sentence: &str, values: &[(&str, String)]) -> String {
    let values: Vec<(&str, &str)> = values.iter().map(|(name, value)| (*name, value.as_str())).collect();
    fill(sentence, &values)
}

fn sentence(item: &LetterItem, texts: &Texts) -> String {
    let LetterItem { notice, known, .. } = item;
    let run = run_of(item);
    let text = |value: Option<String>| value.unwrap_or_default();
    let node = notice.about.as_ref().or(run.map(|run| &run.node)).map(ToString::to_string);
    let used = known.record.as_ref().map(SlotRecord::used);
    let values = [
        ("job", text(notice.job().map(ToString::to_string))),
        ("slot", text(notice.slot.map(|slot| slot.to_string()))),
        ("first", text(notice.first.or(notice.slot).map(|slot| slot.to_string()))),
        ("count", notice.slots.to_string()),
        ("number", text(notice.number.map(|number| number.to_string()))),
        ("node", node.unwrap_or_else(|| "?".to_owned())),
        ("nodes", nodes(known)),
        ("used", text(used.map(|used| used.to_string()))),
        ("max", text(known.spec.as_ref().map(|spec| spec.policy.max_attempts.to_string()))),
        ("how", run.map_or_else(|| "?".to_owned(), |run| how(run, known.spec.as_deref(), texts))),
        ("after", text(known.spec.as_ref().and_then(|spec| spec.alert_after).map(format_duration))),
        ("at", text(notice.stamp.map(stamp))),
    ];
    fill_owned(chosen(item, texts), &values)
}

/// The newest slot of the job that is done or has ended without success, as far as is known.
fn later_end(known: &Particulars) -> Option<SlotKey> {
    let latest = known.latest.as_ref()?;
    latest.failing.map(|failing| failing.last).max(latest.success.map(|success| success.slot))
}

/// That a later slot is done since, where the message comes after that.
fn since(item: &LetterItem, texts: &Texts) -> Option<String> {
    let record = item.known.record.as_ref()?;
    let happened = match item.notice.kind {
        NoticeKind::Failed | NoticeKind::AttemptFailed => run_of(item)?.ended_at?,
        NoticeKind::Missed => record.slot.end(),
        _ => return None,
    };
    let success = item.known.latest.as_ref()?.success?;
    let is_later = item.notice.slot < Some(success.slot) && happened < success.at;
    is_later.then(|| fill(texts.since, &[("slot", &success.slot.to_string()), ("at", &stamp(success.at))]))
}

/// Which sentence it is, by what is known.
fn chosen(item: &LetterItem, texts: &Texts) -> &'static str {
    let LetterItem { notice, known, .. } = item;
    let (run, used) = (run_of(item), known.record.as_ref().map(SlotRecord::used));
    match notice.kind {
        NoticeKind::Failed if known.record.as_ref().is_none_or(|record| record.runs.is_empty()) => texts.failed_bare,
        NoticeKind::Missed if notice.slots > 1 => texts.missed_several,
        NoticeKind::Missed if known.spec.is_some() && run.is_some() && used > Some(0) => texts.missed_after,
        NoticeKind::Late if notice.slot.is_none() => texts.late_never,
        kind => texts.sentence(kind),
    }
}

/// The attempt that it is about: the numbered one, else the last.
fn run_of(item: &LetterItem) -> Option<&RunRecord> {
    let runs = &item.known.record.as_ref()?.runs;
    let numbered = item.notice.number.and_then(|number| runs.iter().find(|run| run.attempt == number));
    numbered.or_else(|| runs.last())
}

fn nodes(known: &Particulars) -> String {
    let mut names: Vec<&str> = Vec::new();
    for run in known.record.iter().flat_map(|record| &record.runs) {
        if !names.contains(&run.node.as_str()) {
            names.push(run.node.as_str());
        }
    }
    names.join(", ")
}

fn how(run: &RunRecord, spec: Option<&JobSpec>, texts: &Texts) -> String {
    match (run.exit_code, run.signal, run.outcome) {
        // Which signal ended it is the timeout's doing.
        (_, _, Some(Outcome::Timeout)) => {
            let after = spec.and_then(|spec| spec.policy.timeout).map(format_duration);
            after.map_or_else(
                || fill(texts.outcome, &[("outcome", Outcome::Timeout.as_str())]),
                |after| fill(texts.timeout, &[("after", &after)]),
            )
        }
        (Some(code), _, _) => fill(texts.exit, &[("code", &code.to_string())]),
        (None, Some(signal), _) => fill(texts.signal, &[("code", &signal.to_string())]),
        (None, None, outcome) => {
            fill(texts.outcome, &[("outcome", outcome.map_or("crashed", |outcome| outcome.as_str()))])
        }
    }
}

fn lines(item: &LetterItem, sender: &Sender, texts: &Texts, output: bool, now: DateTime<Utc>) -> Vec<String> {
    let LetterItem { notice, known, .. } = item;
    let mut lines = Vec::new();
    lines.extend(since(item, texts));
    lines.extend(notice.beside.as_ref().map(|node| fill(texts.beside, &[("node", node.as_str())])));
    lines.extend(notice.words.as_ref().map(|words| text::message(words, LONGEST_LINE)));
    let message = run_of(item).and_then(|run| run.message.as_ref()).filter(|_| output && is_trouble(notice.kind));
    lines.extend(message.map(|words| text::message(words, LONGEST_LINE)));
    let tail = known.output.as_ref().filter(|_| output && is_trouble(notice.kind));
    if let Some(last) = tail.map(last_lines).filter(|last| !last.is_empty()) {
        lines.push(texts.output.to_owned());
        lines.extend(last.into_iter().map(|line| format!("  {line}")));
    }
    if let Some(spec) = &known.spec {
        lines.extend(spec.owner.as_ref().map(|owner| fill(texts.owner, &[("owner", owner)])));
        lines.extend(spec.runbook.as_ref().map(|runbook| fill(texts.runbook, &[("runbook", runbook)])));
    }
    lines.extend(page(notice, sender).map(|page| fill(texts.page, &[("page", &page)])));
    lines.extend(command(item, texts, now));
    lines
}

/// Whether somebody has to look after it.
const fn is_trouble(kind: NoticeKind) -> bool {
    matches!(kind, NoticeKind::Failed | NoticeKind::Missed | NoticeKind::Overlap | NoticeKind::AttemptFailed)
}

fn last_lines(tail: &OutputTail) -> Vec<String> {
    let lines: Vec<&str> = tail.text.lines().filter(|line| !line.trim().is_empty()).collect();
    let from = lines.len().saturating_sub(OUTPUT_LINES);
    lines.into_iter().skip(from).map(|line| text::message(line, LONGEST_LINE)).collect()
}

fn page(notice: &Notice, sender: &Sender) -> Option<String> {
    let base = sender.page.as_ref()?.trim_end_matches('/');
    Some(match (notice.job(), notice.slot) {
        (Some(job), Some(slot)) => format!("{base}/jobs/{job}/{slot}"),
        (Some(job), None) => format!("{base}/jobs/{job}"),
        (None, _) => format!("{base}/nodes"),
    })
}

/// The command that mends it, or that shows why.
fn command(item: &LetterItem, texts: &Texts, now: DateTime<Utc>) -> Option<String> {
    let (job, slot) = (item.notice.job()?, item.notice.slot);
    // Without the store the file says when the slot ends.
    let planned = || Timetable::of(item.known.spec.as_ref()?).ok()?.slot_with_key(slot?);
    let end = item.known.record.as_ref().map(|record| record.slot.end()).or_else(|| Some(planned()?.end()));
    let is_over = end.is_none_or(|end| end <= now);
    let (sentence, command) = match (item.notice.kind, slot) {
        (NoticeKind::Failed, Some(slot)) if is_over => {
            (texts.rerun, format!("cronward reset {job}@{slot} && cronward trigger {job}@{slot} --past"))
        }
        (NoticeKind::Failed, Some(slot)) => {
            let end = end.map(stamp).unwrap_or_default();
            let (before, after) =
                (format!("cronward reset {job}@{slot}"), format!("cronward trigger {job}@{slot} --past"));
            return Some(fill(texts.rerun_now, &[("end", &end), ("command", &before), ("then", &after)]));
        }
        (NoticeKind::Missed, Some(slot)) => (texts.rerun, format!("cronward trigger {job}@{slot} --past")),
        (NoticeKind::Overlap | NoticeKind::AttemptFailed, Some(slot)) => {
            (texts.look, format!("cronward why {job}@{slot}"))
        }
        (NoticeKind::Late | NoticeKind::Reminder, _) => (texts.look, format!("cronward attempts --job {job}")),
        _ => return None,
    };
    Some(fill(sentence, &[("command", &command)]))
}

/// An event for programs, without what the store has of its slot.
fn event(item: &LetterItem, sender: &Sender, sentence: &str) -> Value {
    let notice = &item.notice;
    let spec = item.known.spec.as_ref();
    json!({
        "type": notice.kind.as_str(),
        "id": message_id(&sender.namespace, &item.key),
        "namespace": sender.namespace,
        "node": sender.node,
        "job": notice.job(),
        "slot": notice.slot.map(|slot| slot.to_string()),
        "number": notice.number,
        "slots": notice.slots,
        "about": notice.about,
        "reason": notice.words,
        "text": sentence,
        "owner": spec.and_then(|spec| spec.owner.as_deref()),
        "runbook": spec.and_then(|spec| spec.runbook.as_deref()),
        "url": page(notice, sender),
    })
}

fn data(item: &LetterItem, sender: &Sender, sentence: &str, output: bool, now: DateTime<Utc>) -> Value {
    let mut data = event(item, sender, sentence);
    let max = item.known.spec.as_ref().map_or(0, |spec| spec.policy.max_attempts);
    let view = item.known.record.as_ref().and_then(|record| serde_json::to_value(SlotView::of(record, now, max)).ok());
    let mut view = view.filter(|view| view.to_string().len() <= LARGEST_VIEW).unwrap_or(Value::Null);
    // Whoever has the token of a lease can end it.
    if let Some(lease) = view.get_mut("lease").and_then(Value::as_object_mut) {
        lease.remove("token");
    }
    let tail = item.known.output.as_ref().filter(|_| output).map(|tail| end_of(&tail.text));
    if let Some(object) = data.as_object_mut() {
        object.insert("state".to_owned(), view);
        object.insert("output".to_owned(), json!(tail));
    }
    data
}

#[cfg(test)]
#[path = "letter_tests.rs"]
mod letter_tests;
