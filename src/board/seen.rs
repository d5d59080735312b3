//! The slots of a job that the board keeps one by one. Values only.

use std::time::Duration;

use chrono::{DateTime, Utc};

use crate::board::CellState;
use crate::board::window::hour_of;
use crate::clock::later;
use crate::slot::SlotKey;

/// One slot, as it was read.
#[derive(Clone, Copy, Debug)]
pub(super) struct Seen {
    pub(super) key: SlotKey,
    pub(super) state: CellState,
    pub(super) attempts: u16,
    /// It has its verdict: nobody but an operator changes it.
    pub(super) settled: bool,
    /// Seconds from its start to its end, and to its first tick.
    pub(super) lasts: u32,
    pub(super) tick: u32,
}

impl Seen {
    pub(super) fn first(&self) -> DateTime<Utc> {
        later(self.key.start(), Duration::from_secs(self.tick.into()))
    }

    /// The hour in which it is shown: that of its first tick.
    pub(super) fn hour(&self) -> DateTime<Utc> {
        hour_of(self.first())
    }

    pub(super) fn end(&self) -> DateTime<Utc> {
        later(self.key.start(), Duration::from_secs(self.lasts.into()))
    }
}

/// By their keys, oldest first. A vector and no tree: of a thousand jobs with a day's slots each it takes half the memory.
#[derive(Clone, Debug, Default)]
pub(super) struct SeenSlots(Vec<Seen>);

impl SeenSlots {
    fn place(&self, key: SlotKey) -> Result<usize, usize> {
        self.0.binary_search_by_key(&key, |seen| seen.key)
    }

    pub(super) fn len(&self) -> usize {
        self.0.len()
    }

    pub(super) fn oldest(&self) -> Option<&Seen> {
        self.0.first()
    }

    pub(super) fn newest(&self) -> Option<&Seen> {
        self.0.last()
    }

    pub(super) fn get(&self, key: SlotKey) -> Option<&Seen> {
        self.place(key).ok().and_then(|place| self.0.get(place))
    }

    pub(super) fn get_mut(&mut self, key: SlotKey) -> Option<&mut Seen> {
        self.place(key).ok().and_then(|place| self.0.get_mut(place))
    }

    /// Adds a slot; one of the same key stays as it is.
    pub(super) fn add(&mut self, seen: Seen) {
        if let Err(place) = self.place(seen.key) {
            self.0.insert(place, seen);
        }
    }

    /// Takes away the oldest ones beyond so many, and answers them.
    pub(super) fn cut(&mut self, most: usize) -> Vec<Seen> {
        self.0.drain(..self.0.len().saturating_sub(most)).collect()
    }

    /// Keeps these alone, in no more memory than they need: the board lasts longer than it grows.
    pub(super) fn keep(&mut self, wanted: impl FnMut(&Seen) -> bool) {
        self.0.retain(wanted);
        self.0.shrink_to_fit();
    }

    pub(super) fn iter(&self) -> impl DoubleEndedIterator<Item = &Seen> {
        self.0.iter()
    }

    pub(super) fn iter_mut(&mut self) -> impl DoubleEndedIterator<Item = &mut Seen> {
        self.0.iter_mut()
    }
}
