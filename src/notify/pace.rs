//! How long a message waits: for its turn, for its next try, for a store that is away; and what a try comes to. Pure.

use std::time::Duration;

use crate::message::{Delivery, MessageKey};
use crate::notify::entry::PendingMessage;
use crate::notify::notice::turn_of;
use crate::notify::sinks::Receipt;

/// A claim lasts so long: then another node may send, so that no message waits for a dead one for more than a minute.
pub const LEASE: Duration = Duration::from_secs(55);
/// Between two tries, by how many there were.
const RETRIES: [Duration; 6] = [
    Duration::from_secs(10),
    Duration::from_secs(30),
    Duration::from_secs(120),
    Duration::from_secs(600),
    Duration::from_secs(1_800),
    Duration::from_secs(3_600),
];
/// A message that was not taken for so long is given up.
pub(super) const LONGEST_TRYING: Duration = Duration::from_secs(86_400);
/// Between two questions to a store that does not answer: the first wait, doubled up to the last.
const STORE_WAITS: (Duration, Duration) = (Duration::from_secs(2), Duration::from_secs(60));

/// What happened to messages, for who counts them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Tally {
    Sent,
    Retried,
    GaveUp,
    Dropped,
}

/// A part of the spread at least, so that a flood is known as one before its first message is sent.
pub(super) fn spread(over: Duration, key: &MessageKey) -> Duration {
    let least = over / 4;
    let room = u64::try_from((over - least).as_millis()).unwrap_or(0);
    least + Duration::from_millis(if room == 0 { 0 } else { turn_of(key) % room })
}

pub(super) fn delivery(entry: &PendingMessage, answer: &Receipt) -> (Delivery, Tally) {
    match answer {
        Receipt::Taken(_) => (Delivery::Delivered, Tally::Sent),
        Receipt::Refused(error) => (Delivery::GaveUp { error: error.clone() }, Tally::GaveUp),
        Receipt::Again { error, .. } if entry.trying > LONGEST_TRYING => {
            (Delivery::GaveUp { error: format!("tried for 24 h; {error}") }, Tally::GaveUp)
        }
        Receipt::Again { after, error } => {
            let made = usize::try_from(entry.tries.saturating_sub(1)).unwrap_or(usize::MAX);
            let usual = RETRIES.get(made).or(RETRIES.last()).copied().unwrap_or(LEASE);
            let after = after.map_or(usual, |wished| wished.max(Duration::from_secs(1)));
            (Delivery::Again { after, error: error.clone() }, Tally::Retried)
        }
    }
}

/// Before a store is asked again that has not answered so many times in a row.
pub(super) fn store_wait(unanswered: u32) -> Duration {
    STORE_WAITS.0.saturating_mul(1 << unanswered.min(6).saturating_sub(1)).min(STORE_WAITS.1)
}
