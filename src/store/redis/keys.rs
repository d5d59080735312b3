//! The names of the keys in Redis, made to be read with `redis-cli`. They come from checked names only, so no name can
//! break out of its place. Never talks to a server.

use crate::job::Namespace;
use crate::slot::Slot;

/// The names of one namespace's keys (invariant I9).
#[derive(Clone, Debug)]
pub(super) struct Keys {
    prefix: String,
}

/// The three keys of one slot. The braces are a hash tag: the three share a cluster slot.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct SlotKeys {
    /// The lease, a failed attempt's wait, or the done marker: one string.
    pub(super) mark: String,
    /// The attempt counter: a plain integer.
    pub(super) attempts: String,
    /// A hash: each attempt's record, the verdict, what is forgiven, operators' verbs.
    pub(super) log: String,
}

impl Keys {
    pub(super) fn new(namespace: &Namespace) -> Self {
        Self { prefix: format!("cronward:{namespace}:") }
    }

    /// `cronward:<ns>:{<job>@<key>}`.
    pub(super) fn mark(&self, slot: &Slot) -> String {
        format!("{}{{{slot}}}", self.prefix)
    }

    /// The mark's key and the two beside it.
    pub(super) fn slot(&self, slot: &Slot) -> SlotKeys {
        let mark = self.mark(slot);
        SlotKeys { attempts: format!("{mark}:attempts"), log: format!("{mark}:log"), mark }
    }

    /// The registry of jobs: a hash, one field per job.
    pub(super) fn jobs(&self) -> String {
        format!("{}jobs", self.prefix)
    }

    /// The registry of nodes: a hash, one field per node name.
    pub(super) fn nodes(&self) -> String {
        format!("{}nodes", self.prefix)
    }

    /// The pauses: a hash, one field per job.
    pub(super) fn pauses(&self) -> String {
        format!("{}pauses", self.prefix)
    }

    /// The channel on which wake-ups are published.
    pub(super) fn wake(&self) -> String {
        format!("{}wake", self.prefix)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_those_that_the_protocol_documents() {
        let keys = Keys::new(&Namespace::new("prod").unwrap());
        let slot = Slot::parse("billing", "2026-11-21T14Z", "2026-11-21T15Z").unwrap();
        let slot = keys.slot(&slot);
        assert_eq!(slot.mark, "cronward:prod:{billing@2026-11-21T14Z}");
        assert_eq!(slot.attempts, "cronward:prod:{billing@2026-11-21T14Z}:attempts");
        assert_eq!(slot.log, "cronward:prod:{billing@2026-11-21T14Z}:log");
        assert_eq!(
            [keys.jobs(), keys.nodes(), keys.pauses(), keys.wake()],
            ["cronward:prod:jobs", "cronward:prod:nodes", "cronward:prod:pauses", "cronward:prod:wake"]
        );
    }
}
