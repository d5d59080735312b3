//! Which slots fell due while the nodes were there: by the clock and the list of jobs alone. No journal and no checker is asked.

use chrono::{DateTime, TimeDelta, Utc};
use cronward::slot::SlotKey;

use super::workload;

/// While all nodes were up, but for the faults.
#[derive(Clone, Copy, Debug)]
pub(super) struct Presence {
    pub(super) from: DateTime<Utc>,
    /// They were asked to leave.
    pub(super) to: DateTime<Utc>,
}

impl Presence {
    /// `job@slot` of every slot that began in it, and was over so long before its end.
    pub(super) fn slots(self, before_the_end: TimeDelta) -> Vec<String> {
        workload::names().flat_map(|job| self.slots_of(job, before_the_end)).collect()
    }

    fn slots_of(self, job: &'static str, before_the_end: TimeDelta) -> impl Iterator<Item = String> {
        let length = i64::from(workload::seconds(job));
        let (from, to) = (self.from.timestamp_micros(), (self.to - before_the_end).timestamp());
        // Lengths divide a minute: slots begin at whole multiples of them.
        let first = from.div_euclid(length * 1_000_000) + i64::from(from.rem_euclid(length * 1_000_000) > 0);
        let starts = (first..).map(move |number| number * length).take_while(move |start| start + length <= to);
        starts.map(move |start| {
            let key = DateTime::from_timestamp(start, 0).and_then(SlotKey::of).unwrap();
            format!("{job}@{key}")
        })
    }
}
