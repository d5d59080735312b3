//! What may be asked for, by its name; and what is asked of a person before: a reason, or the job's name once more.

#![cfg_attr(not(feature = "http"), allow(dead_code, reason = "the port alone asks by names"))]

use chrono::{DateTime, Utc};

use crate::admin::KnownJob;
use crate::slot::{Mark, SlotRecord, SlotState};

/// What may be done to a slot or to a job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verb {
    /// Attempts of the slot no longer count.
    Reset,
    /// The holder of the slot loses its lease.
    Unlock,
    /// The slot is done without a run.
    MarkDone,
    /// The slot's command runs now.
    Trigger,
    /// The slot is tried again: by a reset while it lasts, by running it after that.
    Retry,
    /// No slot of the job starts.
    Pause,
    /// The job's slots start again.
    Resume,
}

impl Verb {
    /// Its word on a command line and in an address.
    pub(crate) const fn as_str(self) -> &'static str {
        match self {
            Self::Reset => "reset",
            Self::Unlock => "unlock",
            Self::MarkDone => "mark-done",
            Self::Trigger => "trigger",
            Self::Retry => "retry",
            Self::Pause => "pause",
            Self::Resume => "resume",
        }
    }

    const ALL: [Self; 7] =
        [Self::Reset, Self::Unlock, Self::MarkDone, Self::Trigger, Self::Retry, Self::Pause, Self::Resume];

    /// The verb of a word.
    pub(crate) fn named(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|verb| verb.as_str() == word)
    }

    /// Whether it is done to a job, not to a slot.
    pub(crate) const fn is_of_job(self) -> bool {
        matches!(self, Self::Pause | Self::Resume)
    }

    /// Whether whoever asks over HTTP has to say why: two runs may overlap, work is said to be done, or old work is done again.
    pub(crate) const fn needs_reason(self, past: bool) -> bool {
        matches!(self, Self::Unlock | Self::MarkDone) || (matches!(self, Self::Trigger | Self::Retry) && past)
    }

    /// Whether a form wants the job's name typed: what may make two runs overlap is not done by a slip of the hand.
    pub(crate) const fn needs_name(self) -> bool {
        matches!(self, Self::Unlock)
    }

    /// What makes sense for a slot that stands like this, the most likely one first. A page offers these; none is forbidden by it.
    pub(crate) fn offered(job: &KnownJob, record: &SlotRecord, now: DateTime<Utc>) -> &'static [Self] {
        if record.slot.start() > now {
            return &[Self::MarkDone];
        }
        // A reset makes nodes run the slot again where they run it by themselves, and else this node has to be asked for that.
        let runs_itself = record.slot.end() > now && job.no_start(&record.slot, now).is_none();
        let is_done = record.state(now, job.entry.max_attempts) == SlotState::Done;
        match &record.mark {
            Mark::Leased { .. } => &[Self::Unlock],
            _ if is_done && runs_itself => &[Self::Reset],
            // What is done is not done again by one press of a button.
            _ if is_done => &[],
            Mark::Backoff { .. } if runs_itself => &[Self::Reset, Self::MarkDone],
            Mark::Free if runs_itself && record.used() > 0 => &[Self::Reset, Self::MarkDone],
            Mark::Free if runs_itself => &[Self::Trigger, Self::MarkDone],
            Mark::Free | Mark::Backoff { .. } | Mark::Done(_) => &[Self::Retry, Self::MarkDone],
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    use crate::admin::Catalog;
    use crate::admin::fixture::{at, done, entry, failed, running, untouched, waiting};
    use crate::store::JobEntry;

    #[test]
    fn a_verb_is_found_by_its_word_and_by_no_other() {
        for verb in Verb::ALL {
            assert_eq!(Verb::named(verb.as_str()), Some(verb));
        }
        for word in ["", "mark_done", "Reset", "forget"] {
            assert_eq!(Verb::named(word), None, "{word}");
        }
    }

    #[test]
    fn a_page_offers_what_makes_sense_for_a_slot_as_it_stands() {
        let (during, after, before) =
            (at("2026-11-21T12:10:00Z"), at("2026-11-21T13:00:00Z"), at("2026-11-21T11:59:59Z"));
        let job = |enabled| {
            let entry = JobEntry { enabled, ..entry("billing") };
            Catalog::unite(None, vec![entry]).unwrap().iter().next().unwrap().clone()
        };
        let offered = |record: &SlotRecord, now| Verb::offered(&job(true), record, now);
        assert_eq!(offered(&running(), during), [Verb::Unlock]);
        assert_eq!(offered(&done(), during), [Verb::Reset]);
        assert_eq!(offered(&waiting(), during), [Verb::Reset, Verb::MarkDone]);
        assert_eq!(offered(&failed(), during), [Verb::Reset, Verb::MarkDone]);
        assert_eq!(offered(&untouched(), during), [Verb::Trigger, Verb::MarkDone]);
        assert_eq!(offered(&untouched(), before), [Verb::MarkDone]);
        // What has ended no node runs again: a reset alone would only make it missed.
        assert_eq!(offered(&done(), after), [Verb::Trigger; 0]);
        for record in [waiting(), failed(), untouched()] {
            assert_eq!(offered(&record, after), [Verb::Retry, Verb::MarkDone]);
        }
        // Nor one of a disabled job.
        let offered = |record: &SlotRecord| Verb::offered(&job(false), record, during);
        assert_eq!(offered(&done()), [Verb::Trigger; 0]);
        assert_eq!(offered(&failed()), [Verb::Retry, Verb::MarkDone]);
        assert_eq!(offered(&running()), [Verb::Unlock]);
    }
}
