//! A door for the fuzz target: any bytes as the answer of a Redis, through every decoder. Only behind its feature.

use std::time::Duration;

use redis::Value;

use super::decode::{self, Corrupt, RawMark};
use super::keys::Keys;
use super::records;
use crate::slot::{Slot, SlotRecord};
use crate::store::{Pause, StoreOptions};

/// An answer as it comes over the wire. True when a decoder takes it. What is refused is told in one line.
pub fn redis_reply(bytes: &[u8]) -> bool {
    mark(&String::from_utf8_lossy(bytes));
    redis::parse_redis_value(bytes).is_ok_and(|reply| decoded(&reply, bytes.len()))
}

fn decoded(reply: &Value, length: usize) -> bool {
    let Ok(slot) = Slot::parse("a", "2026-11-21T14Z", "2026-11-21T15Z") else { return false };
    let keys = Keys::new(&StoreOptions::default().namespace).slot(&slot);
    let asked = [(slot.clone(), keys)];
    let retention = Duration::MAX;
    let taken = [
        told(decode::claim(reply, std::slice::from_ref(&slot))),
        told(decode::renewal(reply)),
        told(decode::settlement(reply)),
        told(decode::release(reply)),
        told(decode::closing(reply, "log")),
        told(decode::intervention(reply)),
        told(records::slots(reply, &asked).inspect(|(_, slots)| slots.iter().for_each(|slot| fits(slot, length)))),
        told(records::jobs(reply, "jobs").inspect(|jobs| assert!(jobs.len() <= length))),
        told(records::notes(reply, "notes").inspect(|pages| assert!(pages.len() <= length))),
        told(records::paused_jobs(reply, "pauses").inspect(|jobs| assert!(jobs.len() <= length))),
        told(records::pause(reply, "pause").inspect(|pause| pause.iter().for_each(ends))),
        told(records::nodes(reply, "nodes", retention).inspect(|(_, nodes)| assert!(nodes.len() <= length))),
        told(records::heartbeat(reply)),
    ];
    taken.contains(&true)
}

fn told<T>(outcome: Result<T, Corrupt>) -> bool {
    if let Err(Corrupt { message, .. }) = &outcome {
        assert!(!message.chars().any(crate::text::is_harmful), "not one harmless line: {message:?}");
        assert!(message.len() <= 1_000, "{} bytes of message", message.len());
    }
    outcome.is_ok()
}

fn fits(record: &SlotRecord, length: usize) {
    assert!(record.runs.len() + record.audit.len() <= length);
    let newest = record.runs.iter().map(|run| run.attempt).max();
    assert!(record.attempts >= newest.unwrap_or(0), "a counter that was lost is made up for");
}

fn ends(pause: &Pause) {
    let _ = pause.remaining(pause.since);
}

/// The text of a mark is read into its parts, or not at all.
fn mark(text: &str) {
    if let Some(RawMark { state, token, by, at }) = RawMark::parse(text) {
        let word = match state {
            decode::MarkState::Running => "running",
            decode::MarkState::Backoff => "backoff",
            decode::MarkState::Done => "done",
        };
        let token = token.map_or("-".to_owned(), |token| token.to_string());
        let written = format!("{word} {token} {} {} {}", by.node, by.attempt, at.timestamp_millis());
        let again = RawMark::parse(&written);
        assert!(again.is_some_and(|mark| (mark.state, mark.by, mark.at) == (state, by, at)), "{text:?}");
    }
}
