//! What may be asked for, by its name; and what is asked of a person before: a reason, or the job's name once more.

#![cfg_attr(not(feature = "http"), allow(dead_code, reason = "the port alone asks by names"))]

use chrono::{DateTime, Utc};

use crate::slot::{Mark, SlotRecord};

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
    pub(crate) fn offered(record: &SlotRecord, now: DateTime<Utc>) -> &'static [Self] {
        if record.slot.start() > now {
            return &[Self::MarkDone];
        }
        match &record.mark {
            Mark::Leased { .. } => &[Self::Unlock],
            Mark::Done(_) => &[Self::Reset],
            Mark::Backoff { .. } => &[Self::Reset, Self::MarkDone],
            Mark::Free if record.slot.end() <= now => &[Self::Trigger, Self::MarkDone],
            Mark::Free if record.used() > 0 => &[Self::Reset, Self::MarkDone],
            Mark::Free => &[Self::Trigger, Self::MarkDone],
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    use crate::admin::fixture::{at, done, failed, running, untouched, waiting};

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
        assert_eq!(Verb::offered(&running(), during), [Verb::Unlock]);
        assert_eq!(Verb::offered(&done(), during), [Verb::Reset]);
        assert_eq!(Verb::offered(&waiting(), during), [Verb::Reset, Verb::MarkDone]);
        assert_eq!(Verb::offered(&failed(), during), [Verb::Reset, Verb::MarkDone]);
        assert_eq!(Verb::offered(&untouched(), during), [Verb::Trigger, Verb::MarkDone]);
        assert_eq!(Verb::offered(&untouched(), after), [Verb::Trigger, Verb::MarkDone]);
        assert_eq!(Verb::offered(&untouched(), before), [Verb::MarkDone]);
    }
}
