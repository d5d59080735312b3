//! The names of the keys in Redis, made to be read with `redis-cli`. They come from checked names only, so no name can
//! break out of its place. Never talks to a server.

use crate::job::{JobName, LockName, Namespace};
use crate::slot::{Attempt, Slot, Token};
use crate::store::Topic;

/// The names of one namespace's keys (invariant I9).
#[derive(Clone, Debug)]
pub(super) struct Keys {
    prefix: String,
    tag: Tag,
    /// What all keys of locks begin with. The part in braces is one for all of them, for a request over several locks is one step,
    /// also in a cluster; no job's name has a colon.
    locks: String,
}

/// What the braces hold: the part of a key by which a Redis Cluster finds its server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Tag {
    Slot,
    /// In a cluster one step may look at keys of one tag alone, and a claim looks at its slot, at what runs of the job and at its
    /// pause.
    #[cfg(any(feature = "redis-cluster", test))]
    Job,
}

/// The three keys of one slot; they share a hash tag.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct SlotKeys {
    /// The lease, a failed attempt's wait, or the done marker: one string.
    pub(super) mark: String,
    /// The attempt counter: a plain integer.
    pub(super) attempts: String,
    /// A hash: each attempt's record, the verdict, what is forgiven, operators' verbs.
    pub(super) log: String,
}

/// The keys of one lock.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct LockKeys {
    /// A hash: the largest numbers, and each request's entry by its token.
    pub(super) known: String,
    /// A sorted set: owner and token of each entry, by its place.
    pub(super) queue: String,
    /// A sorted set: tokens that were left, by until when that is remembered.
    pub(super) spent: String,
    /// Operators' verbs: a string, one JSON record a line.
    pub(super) audit: String,
}

impl Keys {
    pub(super) fn new(namespace: &Namespace) -> Self {
        let prefix = format!("cronward:{namespace}:");
        Self { locks: format!("{prefix}{{{namespace}:locks}}"), prefix, tag: Tag::Slot }
    }

    /// The names in a Redis Cluster.
    #[cfg(any(feature = "redis-cluster", test))]
    pub(super) fn in_cluster(namespace: &Namespace) -> Self {
        Self { tag: Tag::Job, ..Self::new(namespace) }
    }

    /// `cronward:<ns>:{<job>@<key>}`, in a cluster `cronward:<ns>:{<job>}@<key>`.
    pub(super) fn mark(&self, slot: &Slot) -> String {
        match self.tag {
            Tag::Slot => format!("{}{{{slot}}}", self.prefix),
            #[cfg(any(feature = "redis-cluster", test))]
            Tag::Job => format!("{}{{{}}}@{}", self.prefix, slot.job(), slot.key()),
        }
    }

    /// `cronward:<ns>:{<job>}:pause`: the job's last pause.
    pub(super) fn pause(&self, job: &JobName) -> String {
        format!("{}{{{job}}}:pause", self.prefix)
    }

    /// `cronward:<ns>:{<job>}:running`: a hash, one field per slot that is leased.
    pub(super) fn running(&self, job: &JobName) -> String {
        format!("{}{{{job}}}:running", self.prefix)
    }

    /// `cronward:<ns>:{<job>}:last`: what the job has come to lately.
    pub(super) fn latest(&self, job: &JobName) -> String {
        format!("{}{{{job}}}:last", self.prefix)
    }

    /// `cronward:<ns>:{<topic>}:messages`: what is known of messages about a job, or about the cluster.
    pub(super) fn messages(&self, topic: &Topic) -> String {
        format!("{}{{{topic}}}:messages", self.prefix)
    }

    /// `cronward:<ns>:{<job>}:longest`: the longest lease that was asked for, in ms. Of a Redlock's masters alone.
    #[cfg(any(feature = "redis-redlock", test))]
    pub(super) fn longest(&self, job: &JobName) -> String {
        format!("{}{{{job}}}:longest", self.prefix)
    }

    /// The mark's key and the two beside it.
    pub(super) fn slot(&self, slot: &Slot) -> SlotKeys {
        let mark = self.mark(slot);
        SlotKeys { attempts: format!("{mark}:attempts"), log: format!("{mark}:log"), mark }
    }

    /// What nodes noted on a slot: a hash, one field per page. Beside the slot's keys, and no script of a rule touches it.
    pub(super) fn notes(&self, slot: &Slot) -> String {
        format!("{}:notes", self.mark(slot))
    }

    /// The ends of a slot's outputs: a hash, one field per run ([`output_field`]). Beside the slot's keys, and no script of a rule
    /// reads it.
    pub(super) fn outputs(&self, slot: &Slot) -> String {
        format!("{}:outputs", self.mark(slot))
    }

    /// The registry of jobs: a hash, one field per job.
    pub(super) fn jobs(&self) -> String {
        format!("{}jobs", self.prefix)
    }

    /// The registry of nodes: a hash, one field per node name.
    pub(super) fn nodes(&self) -> String {
        format!("{}nodes", self.prefix)
    }

    /// The jobs that were ever paused: a hash, one field per job. The pauses themselves stand with their jobs.
    pub(super) fn pauses(&self) -> String {
        format!("{}pauses", self.prefix)
    }

    /// `cronward:<ns>:{<ns>:locks}`: a sorted set of the names of all locks, by until when they are kept.
    pub(super) fn lock_names(&self) -> String {
        self.locks.clone()
    }

    /// `cronward:<ns>:{<ns>:locks}:<lock>`, and three more that begin so.
    pub(super) fn lock(&self, lock: &LockName) -> LockKeys {
        let known = format!("{}:{lock}", self.locks);
        let with = |end: &str| format!("{known}:{end}");
        LockKeys { queue: with("queue"), spent: with("spent"), audit: with("audit"), known }
    }

    /// The channel on which wake-ups are published.
    pub(super) fn wake(&self) -> String {
        format!("{}wake", self.prefix)
    }

    /// The channel for whoever looks on. The scripts know what it is called beside that of wake-ups.
    pub(super) fn events(&self) -> String {
        format!("{}events", self.prefix)
    }

    /// What the channel of each process begins with, before its instance.
    pub(super) fn wake_of_processes(&self) -> String {
        format!("{}wake:", self.prefix)
    }
}

/// The field of one run's output.
pub(super) fn output_field(attempt: Attempt, token: Token) -> String {
    format!("{attempt}.{token}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_those_that_the_protocol_documents() {
        let keys = Keys::new(&Namespace::new("prod").unwrap());
        let slot = Slot::parse("billing", "2026-11-21T14Z", "2026-11-21T15Z").unwrap();
        assert_eq!(keys.notes(&slot), "cronward:prod:{billing@2026-11-21T14Z}:notes");
        assert_eq!(keys.outputs(&slot), "cronward:prod:{billing@2026-11-21T14Z}:outputs");
        assert_eq!(keys.pause(slot.job()), "cronward:prod:{billing}:pause");
        assert_eq!(keys.running(slot.job()), "cronward:prod:{billing}:running");
        assert_eq!(keys.latest(slot.job()), "cronward:prod:{billing}:last");
        assert_eq!(keys.messages(&slot.job().clone().into()), "cronward:prod:{billing}:messages");
        assert_eq!(keys.messages(&Topic::Cluster), "cronward:prod:{@cluster}:messages");
        assert_eq!(keys.events(), "cronward:prod:events");
        assert_eq!(keys.longest(slot.job()), "cronward:prod:{billing}:longest");
        let in_cluster = Keys::in_cluster(&Namespace::new("prod").unwrap()).slot(&slot);
        assert_eq!(in_cluster.log, "cronward:prod:{billing}@2026-11-21T14Z:log");
        let slot = keys.slot(&slot);
        assert_eq!(slot.mark, "cronward:prod:{billing@2026-11-21T14Z}");
        assert_eq!(slot.attempts, "cronward:prod:{billing@2026-11-21T14Z}:attempts");
        assert_eq!(slot.log, "cronward:prod:{billing@2026-11-21T14Z}:log");
        let lock = keys.lock(&LockName::new("db-heavy").unwrap());
        assert_eq!(keys.lock_names(), "cronward:prod:{prod:locks}");
        assert_eq!(lock.known, "cronward:prod:{prod:locks}:db-heavy");
        assert_eq!(lock.queue, "cronward:prod:{prod:locks}:db-heavy:queue");
        assert_eq!(lock.spent, "cronward:prod:{prod:locks}:db-heavy:spent");
        assert_eq!(lock.audit, "cronward:prod:{prod:locks}:db-heavy:audit");
        assert_eq!(keys.wake_of_processes(), "cronward:prod:wake:");
        assert_eq!(
            [keys.jobs(), keys.nodes(), keys.pauses(), keys.wake()],
            ["cronward:prod:jobs", "cronward:prod:nodes", "cronward:prod:pauses", "cronward:prod:wake"]
        );
    }
}
