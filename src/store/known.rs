//! Which slots this process has asked a store for before. Says nothing about what stands there.

use std::collections::HashSet;
use std::sync::{Mutex, PoisonError};

use crate::slot::Slot;

/// So many are remembered; then all are forgotten, which costs the next claim of each one more round trip at the most.
const MOST: usize = 1_000;

/// The slots that were claimed by this store, whatever came of it.
#[derive(Debug, Default)]
pub(super) struct Known(Mutex<HashSet<Slot>>);

impl Known {
    /// True the first time that it is asked about a slot.
    pub(super) fn is_new(&self, slot: &Slot) -> bool {
        let mut slots = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if slots.len() >= MOST {
            slots.clear();
        }
        slots.insert(slot.clone())
    }
}

#[cfg(test)]
mod tests {
    use chrono::TimeDelta;

    use super::*;

    #[test]
    fn a_slot_is_new_once_and_what_is_remembered_is_bounded() {
        let first = Slot::parse("a", "2026-11-21T14Z", "2026-11-21T15Z").unwrap();
        let known = Known::default();
        assert!(known.is_new(&first) && !known.is_new(&first));
        for hour in 1..3_000 {
            let span = TimeDelta::hours(hour);
            assert!(known.is_new(&Slot::new(first.job().clone(), first.start() + span, first.end() + span).unwrap()));
        }
        assert!(known.0.lock().unwrap().len() <= MOST);
    }
}
