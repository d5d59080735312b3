//! Records as they stand in Redis, to and from the words of the contract: slots, jobs, nodes, pauses. As total as
//! `decode`: what cannot be read is a [`Corrupt`] that names its key.

use std::collections::BTreeMap;
use std::time::Duration;

use chrono::{DateTime, Utc};
use redis::Value;
use serde::{Deserialize, Serialize};

use super::decode::{Corrupt, Fields, MarkState, RawMark, instant, integer, json, list, millis, text};
use super::keys::SlotKeys;
use crate::clock::later;
use crate::job::JobName;
use crate::slot::{Audit, DoneMark, JobLatest, Mark, NotePage, OutputTail, RunRecord, Slot, SlotRecord};
use crate::store::{HeartbeatReply, JobEntry, NodeEntry, NodeReport, Pause};

#[derive(Serialize, Deserialize)]
struct StoredPause {
    #[serde(rename = "since_ms", with = "chrono::serde::ts_milliseconds")]
    since: DateTime<Utc>,
    #[serde(rename = "until_ms", with = "chrono::serde::ts_milliseconds_option")]
    until: Option<DateTime<Utc>>,
    audit: Audit,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    ended: Option<Audit>,
}

#[derive(Deserialize)]
struct StoredNode {
    #[serde(flatten)]
    report: NodeReport,
    #[serde(rename = "seen_ms", with = "chrono::serde::ts_milliseconds")]
    seen: DateTime<Utc>,
}

/// A record's JSON, left open after one more field's name: a script puts its clock there and closes it.
pub(super) fn open_json<T: Serialize>(record: &T, field: &str) -> String {
    let whole = serde_json::to_string(record).unwrap_or_default();
    format!("{},\"{field}\":", whole.strip_suffix('}').unwrap_or_default())
}

/// The same for a record whose own last field that is: its value is cut off.
pub(super) fn cut_json<T: Serialize>(record: &T, field: &str) -> String {
    let whole = serde_json::to_string(record).unwrap_or_default();
    let marker = format!("\"{field}\":");
    let end = whole.rfind(&marker).map_or(0, |at| at + marker.len());
    whole.get(..end).unwrap_or_default().to_owned()
}

/// The answer of `inspect.lua`: the clock, then one array per slot.
pub(super) fn slots(reply: &Value, asked: &[(Slot, SlotKeys)]) -> Result<(DateTime<Utc>, Vec<SlotRecord>), Corrupt> {
    let short = || Corrupt::at("the answer", "fewer slots than asked for");
    let mut items = list(reply)?.iter();
    let now = instant(integer(items.next().ok_or_else(short)?)?)?;
    let mut records = Vec::with_capacity(asked.len());
    for (slot, keys) in asked {
        records.push(slot_record(items.next().ok_or_else(short)?, slot, keys)?);
    }
    Ok((now, records))
}

fn slot_record(reply: &Value, slot: &Slot, keys: &SlotKeys) -> Result<SlotRecord, Corrupt> {
    let [mark, left, attempts, log] = list(reply)? else {
        return Err(Corrupt::at(&keys.mark, "its answer has another form"));
    };
    let mut record = SlotRecord::untouched(slot.clone());
    record.mark = mark_of(mark, integer(left)?, &keys.mark)?;
    record.attempts = match present(attempts) {
        Some(counter) => number(counter, &keys.attempts, "the counter")?,
        None => 0,
    };
    read_log(&mut record, log, &keys.log)?;
    // A counter that was evicted while the log was kept does not start again.
    let logged = record.runs.iter().map(|run| run.attempt).max();
    record.attempts = record.attempts.max(logged.unwrap_or(0));
    Ok(record)
}

const fn present(value: &Value) -> Option<&Value> {
    match value {
        // Lua's false and nil both arrive as nil.
        Value::Nil => None,
        value => Some(value),
    }
}

fn number(value: &Value, key: &str, what: &str) -> Result<u32, Corrupt> {
    let digits = text(value).map_err(|_| Corrupt::at(key, what))?;
    digits.parse().map_err(|_| Corrupt::at(key, &format!("{what} is {digits:?}")))
}

fn mark_of(value: &Value, left: i64, key: &str) -> Result<Mark, Corrupt> {
    let Some(value) = present(value) else { return Ok(Mark::Free) };
    let text = text(value).map_err(|_| Corrupt::at(key, "no text"))?;
    let RawMark { state, token, by, at } = RawMark::parse(text).ok_or_else(|| Corrupt::at(key, text))?;
    let remaining = millis(left);
    match (state, token) {
        (MarkState::Done, token) => Ok(Mark::Done(DoneMark { by, at, token })),
        (_, None) => Err(Corrupt::at(key, text)),
        _ if left < 0 => Err(Corrupt::at(key, "a mark that never expires; delete it")),
        (MarkState::Running, Some(token)) => Ok(Mark::Leased { by, token, remaining }),
        (MarkState::Backoff, Some(_)) => Ok(Mark::Backoff { by, remaining }),
    }
}

/// Sorts a log's fields into the record.
fn read_log(record: &mut SlotRecord, log: &Value, key: &str) -> Result<(), Corrupt> {
    let mut audits = BTreeMap::new();
    for pair in list(log)?.chunks(2) {
        let [field, value] = pair else { return Err(Corrupt::at(key, "a field without a value")) };
        let field = text(field).map_err(|_| Corrupt::at(key, "a field's name that is no text"))?;
        let content = text(value).map_err(|_| Corrupt::at(key, &format!("field {field:?} is no text")))?;
        match field.split_once('.') {
            None if field == "verdict" => record.verdict = Some(json(content, key, field)?),
            None if field == "forgiven" => record.forgiven = number(value, key, "forgiven")?,
            // For the scripts alone.
            None if field == "borrowed" => {}
            Some(("audit", n)) => {
                let n: u32 = n.parse().map_err(|_| Corrupt::at(key, &format!("field {field:?}")))?;
                audits.insert(n, json::<Audit>(content, key, field)?);
            }
            _ => record.runs.push(json::<RunRecord>(content, key, field)?),
        }
    }
    record.audit = audits.into_values().collect();
    record.runs.sort_by_key(|run| (run.attempt, run.claimed_at, run.token));
    Ok(())
}

/// HGETALL of a registry: field and value, in the order of the fields.
fn table<'a>(reply: &'a Value, key: &str) -> Result<BTreeMap<&'a str, &'a str>, Corrupt> {
    let mut table = BTreeMap::new();
    for pair in list(reply)?.chunks(2) {
        let [field, value] = pair else { return Err(Corrupt::at(key, "a field without a value")) };
        let foreign = |_| Corrupt::at(key, "a field that is no text");
        table.insert(text(field).map_err(foreign)?, text(value).map_err(foreign)?);
    }
    Ok(table)
}

/// HGETALL of the jobs.
pub(super) fn jobs(reply: &Value, key: &str) -> Result<Vec<JobEntry>, Corrupt> {
    table(reply, key)?.into_iter().map(|(field, value)| json(value, key, field)).collect()
}

/// HGETALL of a slot's notes, in the order in which the pages were begun.
pub(super) fn notes(reply: &Value, key: &str) -> Result<Vec<NotePage>, Corrupt> {
    let pages = table(reply, key)?.into_iter().map(|(field, value)| json(value, key, field));
    let mut pages = pages.collect::<Result<Vec<NotePage>, Corrupt>>()?;
    NotePage::sort(&mut pages);
    Ok(pages)
}

/// HGET of one run's output.
pub(super) fn output(reply: &Value, key: &str, field: &str) -> Result<Option<OutputTail>, Corrupt> {
    let foreign = |_| Corrupt::at(key, &format!("field {field:?} is no text"));
    present(reply).map(|reply| json(text(reply).map_err(foreign)?, key, field)).transpose()
}

/// HGETALL of the list of jobs that were ever paused, by name.
pub(super) fn paused_jobs(reply: &Value, key: &str) -> Result<Vec<JobName>, Corrupt> {
    let name = |field: &str| JobName::new(field).map_err(|_| Corrupt::at(key, &format!("field {field:?}")));
    table(reply, key)?.into_keys().map(name).collect()
}

/// GET of a job's pause.
pub(super) fn pause(reply: &Value, key: &str) -> Result<Option<Pause>, Corrupt> {
    let Some(reply) = present(reply) else { return Ok(None) };
    let content = text(reply).map_err(|_| Corrupt::at(key, "no text"))?;
    let StoredPause { since, until, audit, ended } = json(content, key, "the pause")?;
    Ok(Some(Pause { since, until, audit, ended }))
}

/// The answer of `pause_of`: the clock, then GET of the job's pause.
pub(super) fn pause_at(reply: &Value, key: &str) -> Result<(DateTime<Utc>, Option<Pause>), Corrupt> {
    let [now, stored] = list(reply)? else { return Err(Corrupt::at(key, "its answer has another form")) };
    Ok((instant(integer(now)?)?, pause(stored, key)?))
}

/// GET of what a job has come to lately.
pub(super) fn latest(reply: &Value, key: &str) -> Result<JobLatest, Corrupt> {
    let Some(reply) = present(reply) else { return Ok(JobLatest::default()) };
    json(text(reply).map_err(|_| Corrupt::at(key, "no text"))?, key, "the latest")
}

/// The answer of `nodes.lua`: the clock, then HGETALL of the nodes.
pub(super) fn nodes(reply: &Value, key: &str, retention: Duration) -> Result<(DateTime<Utc>, Vec<NodeEntry>), Corrupt> {
    let [now, entries] = list(reply)? else { return Err(Corrupt::at(key, "its answer has another form")) };
    let now = instant(integer(now)?)?;
    let mut nodes = Vec::new();
    for (field, value) in table(entries, key)? {
        let StoredNode { report, seen } = json(value, key, field)?;
        // The next heartbeat of any node removes it.
        if later(seen, retention) > now {
            nodes.push(NodeEntry { report, seen });
        }
    }
    Ok((now, nodes))
}

/// The answer of `heartbeat.lua`.
pub(super) fn heartbeat(reply: &Value) -> Result<HeartbeatReply, Corrupt> {
    let mut fields = Fields::of(reply)?;
    Ok(HeartbeatReply { now: fields.instant()?, was_known: fields.integer()? == 1 })
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::time::Duration;

    use proptest::prelude::*;

    use super::super::decode;
    use super::super::keys::Keys;
    use super::*;
    use crate::slot::{Outcome, Token, Trigger};

    fn bulk(text: &str) -> Value {
        Value::BulkString(text.as_bytes().to_vec())
    }

    fn asked() -> Vec<(Slot, SlotKeys)> {
        let slot = Slot::parse("a", "2026-11-21T14Z", "2026-11-21T15Z").unwrap();
        let keys = Keys::new(&"ns".parse().unwrap()).slot(&slot);
        vec![(slot, keys)]
    }

    /// Words that get far into the decoders, beside anything else.
    fn values() -> impl Strategy<Value = Value> {
        let known = prop::sample::select(vec![
            "claimed",
            "held",
            "done",
            "exhausted",
            "paused",
            "blocked",
            "early",
            "corrupt",
            "lost",
            "overtaken",
            "first",
            "running",
            "open",
            "verdict",
            "forgiven",
            "audit.1",
            "audit.x",
            "1",
            "1.00000001",
            "-1",
            "{}",
            "running 00000000000000000000000000000001 a 1 1",
            "done - a 0 1",
            "done - a 0 99999999999999999999",
            r#"{"verdict":"done","by":"a","at_ms":9223372036854775807}"#,
            r#"{"attempt":1,"token":"00000000000000000000000000000001","node":"a","trigger":"exec","claimed_ms":1}"#,
        ]);
        let leaf = prop_oneof![
            4 => known.prop_map(bulk),
            1 => prop::collection::vec(any::<u8>(), 0..20).prop_map(Value::BulkString),
            1 => any::<i64>().prop_map(Value::Int),
            1 => (0..5_i64).prop_map(Value::Int),
            1 => Just(Value::Nil),
            1 => Just(Value::Okay),
            1 => any::<String>().prop_map(Value::SimpleString),
            1 => any::<bool>().prop_map(Value::Boolean),
        ];
        leaf.prop_recursive(3, 40, 6, |inner| prop::collection::vec(inner, 0..6).prop_map(Value::Array))
    }

    proptest! {
        #[test]
        fn no_answer_makes_a_decoder_panic(reply in values()) {
            let asked = asked();
            let _ = decode::claim(&reply);
            let _ = decode::renewal(&reply);
            let _ = decode::settlement(&reply);
            let _ = decode::release(&reply);
            let _ = decode::closing(&reply, "log");
            let _ = decode::intervention(&reply);
            let _ = decode::taking(&reply);
            let _ = slots(&reply, &asked);
            let _ = slot_record(&reply, &asked[0].0, &asked[0].1);
            let _ = jobs(&reply, "jobs");
            let _ = notes(&reply, "notes");
            let _ = output(&reply, "outputs", "1");
            let _ = paused_jobs(&reply, "pauses");
            let _ = pause(&reply, "pause");
            let _ = latest(&reply, "last");
            let _ = nodes(&reply, "nodes", Duration::MAX);
            let _ = pause_at(&reply, "pause");
            let _ = heartbeat(&reply);
        }

        #[test]
        fn no_text_makes_the_mark_panic(text in "\\PC*") {
            let _ = RawMark::parse(&text);
        }
    }

    #[test]
    fn a_log_is_sorted_by_number_and_not_by_text() {
        let (slot, keys) = asked().remove(0);
        let run = |attempt: u32| {
            let text = format!(
                r#"{{"attempt":{attempt},"token":"{}","node":"a","trigger":"exec","claimed_ms":1}}"#,
                Token::from_bits(u128::from(attempt))
            );
            [bulk(&attempt.to_string()), bulk(&text)]
        };
        let audit = |n: u32| {
            let text = format!(r#"{{"verb":"v{n}","who":"w","host":"h","why":"","at_ms":{n}}}"#);
            [bulk(&format!("audit.{n}")), bulk(&text)]
        };
        let log = [run(10), run(2), audit(10), audit(9)].concat();
        let reply = Value::Array(vec![Value::Nil, Value::Int(-2), Value::Nil, Value::Array(log)]);
        let record = slot_record(&reply, &slot, &keys).unwrap();
        assert_eq!(record.runs.iter().map(|run| run.attempt).collect::<Vec<_>>(), [2, 10]);
        assert_eq!(record.audit.iter().map(|audit| audit.verb.as_str()).collect::<Vec<_>>(), ["v9", "v10"]);
        assert_eq!(record.attempts, 10, "a counter that is gone is made up for by the log");
    }

    #[test]
    fn json_is_left_open_after_the_field_whatever_the_record_holds() {
        let audit = Audit {
            verb: "reset".into(),
            who: r#"x","at_ms":7}"#.into(),
            host: "h".into(),
            why: String::new(),
            at: DateTime::UNIX_EPOCH,
        };
        let stamped: Audit = serde_json::from_str(&format!("{}5}}", cut_json(&audit, "at_ms"))).unwrap();
        assert_eq!(stamped.who, audit.who);
        assert_eq!(stamped.at.timestamp_millis(), 5);

        let report = NodeReport {
            version: "0".into(),
            labels: BTreeMap::from([("seen_ms".into(), "1".into())]),
            ..NodeReport::new("n".parse().unwrap(), "i", DateTime::UNIX_EPOCH)
        };
        let stored: StoredNode = serde_json::from_str(&format!("{}5}}", open_json(&report, "seen_ms"))).unwrap();
        assert_eq!((stored.report, stored.seen.timestamp_millis()), (report, 5));
    }

    #[test]
    fn a_run_reads_back_as_the_claim_script_writes_it() {
        let text =
            r#"{"attempt":3,"token":"0000000000000000000000000000000a","node":"n","trigger":"retry","claimed_ms":7}"#;
        let run: RunRecord = serde_json::from_str(text).unwrap();
        assert_eq!((run.attempt, run.token, run.trigger), (3, Token::from_bits(10), Trigger::Retry));
        assert_eq!(serde_json::to_string(&run).unwrap(), text);
        // What `slot.lua` looks for in a record.
        let ended = serde_json::to_string(&RunRecord { outcome: Some(Outcome::Success), ..run }).unwrap();
        assert!(ended.contains(r#""outcome":"success""#), "{ended}");
    }
}
