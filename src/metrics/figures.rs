//! Numbers that many may change at once: counters by a word, and an instant that may be unknown.

use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};

use chrono::{DateTime, Utc};

/// A counter for each of some words.
#[derive(Debug)]
pub(super) struct Counters<const N: usize> {
    words: &'static [&'static str; N],
    counts: [AtomicU64; N],
}

impl<const N: usize> Counters<N> {
    /// All at 0.
    pub(super) fn new(words: &'static [&'static str; N]) -> Self {
        Self { words, counts: std::array::from_fn(|_| AtomicU64::new(0)) }
    }

    /// One more; of another word, nothing.
    pub(super) fn add(&self, word: &str) {
        let of_word = self.words.iter().zip(&self.counts).find(|(known, _)| **known == word);
        if let Some((_, count)) = of_word {
            count.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Each word with its count.
    pub(super) fn each(&self) -> impl Iterator<Item = (&'static str, u64)> + '_ {
        self.words.iter().zip(&self.counts).map(|(word, count)| (*word, count.load(Ordering::Relaxed)))
    }
}

/// No instant.
const UNKNOWN: i64 = i64::MIN;

/// An instant in milliseconds since 1970, where it is known.
#[derive(Debug)]
pub(super) struct Stamp(AtomicI64);

impl Default for Stamp {
    fn default() -> Self {
        Self(AtomicI64::new(UNKNOWN))
    }
}

impl Stamp {
    /// It is this one from now on.
    pub(super) fn set(&self, at: Option<DateTime<Utc>>) {
        self.0.store(at.map_or(UNKNOWN, |at| at.timestamp_millis()), Ordering::Relaxed);
    }

    /// This one, if it is later.
    pub(super) fn advance(&self, at: DateTime<Utc>) {
        self.0.fetch_max(at.timestamp_millis(), Ordering::Relaxed);
    }

    /// In milliseconds since 1970.
    pub(super) fn millis(&self) -> Option<i64> {
        Some(self.0.load(Ordering::Relaxed)).filter(|at| *at != UNKNOWN)
    }
}
