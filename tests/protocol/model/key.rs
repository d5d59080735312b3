//! When two machines are the same. A machine's key is its `Debug` text, which has every field, with instants as ticks and
//! without what can make no difference from now on. The shorter the key, the fewer states; what it leaves out, and why:
//!
//! - Instants are rounded up to whole ticks. The machine compares an instant with the present, or with another one, and the
//!   present is always a whole tick: `at <= now` says the same of both. It reckons new instants from the present only.
//! - An instant after the end of the world is never reached: all of them are one. Of what is due, it does not matter since
//!   when. Other instants of the past are reckoned with for one TTL: until an answer is too late to be believed, until a
//!   node that was told of errors has waited long enough.
//! - A trust window tells its start for the first renewal, which is an instant of its own, and for `kill_after`, which is
//!   zero here. Once the command has ended, the window only bounds how long a renewal may take.
//! - `draws` decides how waits are spread, by less than a tick, and so after rounding nothing.
//! - `started` tells how long a command ran; a timeout would read it, and there is none. The times of records, the trigger,
//!   whether it is a retry and which errors were told are for people. Why a node waits decides what a wake-up does.
//! - A machine that has ended ignores whatever it is told, once it has left its locks: all that ended in the same way are one.
//! - How long an attempt has waited for its locks, and what was told of that, are for people. Since when the store is silent about
//!   them decides nothing: a slot's own deadlines are its patience.

use cronward::machine::SlotMachine;

use super::setup::{Setup, Tick};

/// The key of a machine as it is at a tick.
pub(crate) fn of(machine: &SlotMachine, setup: &Setup, now: Tick) -> String {
    if let Some(end) = machine.ended().filter(|_| !machine.leaves_locks()) {
        return format!("{end:?}");
    }
    let text = without(&format!("{machine:?}"), setup);
    let mut due = vec!["until: ", "At(", "send_at: Some(", "deadline: ", "kill_at: "];
    if setup.locks.is_some() {
        due.extend(["until: Some(", "again_at: Some(", "ask_at: "]);
    }
    let text = due.iter().fold(text, |text, head| {
        let tick = |text: &str| format!("{head}{}", ticks(text).clamp(now, setup.far()));
        replaced(&text, &format!("{head}Mono("), ")", tick)
    });
    let earliest = now.saturating_sub(setup.ttl);
    let text = replaced(&text, "Mono(", ")", |text| ticks(text).clamp(earliest, setup.far()).to_string());
    format!("{now} {text}")
}

fn without(text: &str, setup: &Setup) -> String {
    // What was told of a wait ends its part: before "told: ", which would take more.
    let of_locks = [("LockPatience { begun: ", ","), ("told: Some((", "}"), ("silent_since: ", ",")];
    let mut parts = if setup.locks.is_some() { of_locks.to_vec() } else { Vec::new() };
    parts.extend([
        ("TrustWindow { sent: ", ","),
        ("started: Some(", "})"),
        ("draws: ", ","),
        ("claimed_at: ", ","),
        ("started_at: ", ","),
        ("ended_at: ", ","),
        ("duration_ms: ", ","),
        ("trigger: ", ","),
        ("retrying: ", ","),
        ("told: ", ","),
    ]);
    if !setup.wakes {
        parts.push(("why: ", "}"));
    }
    if text.contains("phase: Settling(") {
        parts.extend([("trust: ", "}"), ("in_doubt: ", ",")]);
    }
    parts.into_iter().fold(text.to_owned(), |text, (head, tail)| replaced(&text, head, tail, |_| head.to_owned()))
}

/// Every part of a text between a head and the next tail, both included, by something else.
fn replaced(text: &str, head: &str, tail: &str, by: impl Fn(&str) -> String) -> String {
    let mut parts = text.split(head);
    let mut whole = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let (between, rest) = part.split_once(tail).expect("a tail after each head");
        whole.push_str(&by(between));
        whole.push_str(rest);
    }
    whole
}

/// An instant as `Debug` shows it, as the first tick at or after it.
fn ticks(text: &str) -> Tick {
    let seconds = text.strip_suffix('s').and_then(|number| number.parse::<f64>().ok());
    let seconds = seconds.unwrap_or_else(|| panic!("not a number of seconds: {text}"));
    Setup::tick_after(seconds.ceil() as u64)
}
