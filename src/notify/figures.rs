//! What is counted of messages, for whoever scrapes: by sink and by what became of them.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use crate::clock::Mono;
use crate::notify::pace::Tally;

/// The figures of one node.
#[derive(Debug, Default)]
pub struct Figures {
    sinks: Mutex<BTreeMap<String, OfSink>>,
}

#[derive(Clone, Copy, Debug, Default)]
struct OfSink {
    sent: u64,
    retried: u64,
    gave_up: u64,
    dropped: u64,
    /// Since when the oldest message waits.
    #[cfg_attr(not(feature = "http"), allow(dead_code, reason = "shown on the port alone"))]
    oldest: Option<Mono>,
}

impl Figures {
    fn with<T>(&self, what: impl FnOnce(&mut BTreeMap<String, OfSink>) -> T) -> T {
        what(&mut self.sinks.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// There are these sinks: each is told of from its first moment on, at 0.
    pub(super) fn set_sinks<'a>(&self, names: impl Iterator<Item = &'a String>) {
        let names: Vec<&String> = names.collect();
        self.with(|sinks| {
            sinks.retain(|name, _| names.contains(&name));
            for name in names {
                sinks.entry(name.clone()).or_default();
            }
        });
    }

    pub(super) fn count(&self, sink: &str, tally: Tally) {
        self.with(|sinks| {
            let Some(figures) = sinks.get_mut(sink) else { return };
            let count = match tally {
                Tally::Sent => &mut figures.sent,
                Tally::Retried => &mut figures.retried,
                Tally::GaveUp => &mut figures.gave_up,
                Tally::Dropped => &mut figures.dropped,
            };
            *count = count.saturating_add(1);
        });
    }

    pub(super) fn set_pending(&self, pending: &BTreeMap<String, (usize, Mono)>) {
        self.with(|sinks| {
            for (name, figures) in sinks {
                figures.oldest = pending.get(name).map(|(_, oldest)| *oldest);
            }
        });
    }
}

#[cfg(feature = "http")]
impl crate::metrics::Notifications for Figures {
    fn each(&self, now: Mono) -> Vec<crate::metrics::SinkFigures> {
        let shown = |(sink, figures): (&String, &OfSink)| crate::metrics::SinkFigures {
            sink: sink.clone(),
            results: [
                ("sent", figures.sent),
                ("retry", figures.retried),
                ("gave_up", figures.gave_up),
                ("dropped", figures.dropped),
            ],
            oldest_pending: figures.oldest.map_or(std::time::Duration::ZERO, |oldest| now.since(oldest)),
        };
        self.with(|sinks| sinks.iter().map(shown).collect())
    }
}
