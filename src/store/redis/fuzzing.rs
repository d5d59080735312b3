//! A door for the fuzz target: any bytes as the answer of a Redis, through every decoder. Only behind its feature.

use std::time::Duration;

use redis::Value;

use super::cluster::{SlotMap, redirection};
use super::decode::{self, Corrupt, RawMark};
use super::keys::Keys;
use super::link::LinkError;
use super::members::Address;
use super::sentinel::SentinelReplies;
use super::{locks, records, redlock, sentinel};
use crate::job::LockName;
use crate::resource::{Demand, Demands, LockRecord};
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
        told(decode::claim(reply)),
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
        told(records::latest(reply, "last")),
        told(super::messages::topic(reply, "messages")),
        told(records::nodes(reply, "nodes", retention).inspect(|(_, nodes)| assert!(nodes.len() <= length))),
        told(records::output(reply, "outputs", "1")),
        told(records::heartbeat(reply)),
    ];
    let of_locks = locks_read(reply, length);
    let of_one_of_several = redlock::fuzzing::answers(reply, &slot).map(told);
    let topology = [is_mapped(reply, length), is_named(reply), is_led_on(reply)];
    taken.iter().chain(&of_locks).chain(&of_one_of_several).chain(&topology).any(|taken| *taken)
}

/// The answers of the scripts of locks.
fn locks_read(reply: &Value, length: usize) -> [bool; 5] {
    let Ok(name) = LockName::new("a") else { return [false; 5] };
    let keys = Keys::new(&StoreOptions::default().namespace).lock(&name);
    let demands = Demands::from(Demand::exclusive(name.clone()));
    let fits = |record: &LockRecord| {
        assert!(record.entries.len() + record.audit.len() <= length);
        assert!(record.holders().count() + record.waiting().count() == record.entries.len());
    };
    [
        told(locks::acquired(reply, &demands)),
        told(locks::renewed(reply)),
        told(locks::released(reply, &demands)),
        told(locks::names(reply, "locks").inspect(|(_, names)| assert!(names.len() <= length))),
        told(locks::known_locks(reply, &[(name, keys)]).inspect(|(_, records)| records.iter().for_each(fits))),
    ]
}

/// The answer to `CLUSTER SLOTS`: whoever is said to keep a slot is found again, and no more than were named.
fn is_mapped(reply: &Value, length: usize) -> bool {
    let Some(mut map) = SlotMap::read(reply, &asked()) else { return false };
    assert!(map.owners().count() <= length, "no more comes out than went in");
    let owners: Vec<Address> = map.owners().take(3).cloned().collect();
    for slot in [0, 8_191, 16_383] {
        assert!(map.owner(slot).is_none_or(|owner| map.owners().any(|known| known == owner)));
    }
    for owner in owners {
        map.learn(5, owner.clone());
        assert_eq!(map.owner(5), Some(&owner));
    }
    true
}

/// The answers to `SENTINEL MASTER` and `SENTINEL GET-MASTER-ADDR-BY-NAME`. What one sentinel says alone is believed.
fn is_named(reply: &Value) -> bool {
    let address = sentinel::address_of(reply);
    let named = sentinel::named(reply);
    let taken = address.is_some() || named.is_some();
    for current in [None, address] {
        if let Some((address, epoch)) = sentinel::named(reply).map(|named| named.leading(current)) {
            assert!(
                named.as_ref().is_some_and(|named| epoch <= named.epoch),
                "a word counts for more than it is worth"
            );
            let mut told = SentinelReplies::by(1);
            told.answer(0, address.clone(), epoch);
            assert_eq!(told.master(None), Some((address, epoch)));
        }
    }
    taken
}

/// `MOVED` and `ASK`.
fn is_led_on(reply: &Value) -> bool {
    let Err(error) = reply.clone().extract_error() else { return false };
    redirection(&LinkError::Call(error), &asked()).is_some_and(|led| {
        let mut map = SlotMap::default();
        map.learn(led.slot, led.to.clone());
        map.owner(led.slot) == Some(&led.to)
    })
}

/// The server that is said to have answered.
fn asked() -> Address {
    Address { host: "10.0.0.1".to_owned(), port: 6_379 }
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
