//! What the registry of nodes says of this node: whether another one goes by its name, and whether the store still knows what it has
//! acknowledged. Pure.

use std::time::Duration;

use crate::clock::Now;
use crate::event::Event;
use crate::store::NodeReport;

/// Each so many heartbeats the node looks at the registry. Not at the first: whoever was heard of before the node started may be
/// itself.
const LOOKS: u64 = 6;

/// An acknowledged heartbeat is kept for longer than this by every store: no retention is shorter.
const KEPT: Duration = Duration::from_secs(3_600);

/// What the node knows of its entry.
#[derive(Debug, Default)]
pub(super) struct Presence {
    /// Heartbeats so far.
    heartbeats: u64,
    /// Hints were lost: the next heartbeat looks at the registry.
    pub(super) doubts: bool,
    /// The last heartbeat that the store acknowledged; none since the store was found to have lost it.
    pub(super) acknowledged: Option<Now>,
    /// What another node of this name said, when it was looked for last.
    pub(super) namesake: Option<Box<NodeReport>>,
    /// The instance of the one that was told of last.
    told: Option<String>,
}

impl Presence {
    /// Whether the next heartbeat looks at the registry: once in a while, and where the store may have lost its data.
    pub(super) fn looks(&mut self, store_was_away: bool) -> bool {
        let doubts = std::mem::take(&mut self.doubts);
        let looks = self.heartbeats % LOOKS == 1 || doubts || store_was_away;
        self.heartbeats += 1;
        looks
    }

    /// Another node of this name was looked for. What is to be told, where it is one that was not told of.
    pub(super) fn meet(&mut self, namesake: Option<Box<NodeReport>>) -> Option<Event> {
        self.namesake = namesake;
        let NodeReport { instance, started_at, .. } = &**self.namesake.as_ref()?;
        let is_known = self.told.replace(instance.clone()).as_ref() == Some(instance);
        (!is_known).then(|| Event::Namesake { other: instance.clone(), started: *started_at })
    }

    /// The registry has no entry of this node's name. What is to be told, where the store had acknowledged one.
    pub(super) fn forgotten(&mut self, now: Now) -> Option<Event> {
        let heard = self.acknowledged.take()?;
        (now.mono.since(heard.mono) < KEPT).then_some(Event::StoreForgot { acknowledged: heard.wall })
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use chrono::DateTime;

    use super::*;
    use crate::clock::Mono;
    use crate::job::NodeName;
    use crate::node::plan::{Identity, Plan};

    #[test]
    fn another_node_of_the_same_name_is_told_once_and_the_next_one_again() {
        let mut presence = Presence::default();
        let other = |instance: &str| {
            let name = NodeName::new("a").unwrap();
            let (labels, started_at) = (BTreeMap::new(), DateTime::UNIX_EPOCH);
            let identity = Identity { name, instance: instance.to_owned(), labels, started_at };
            Some(Box::new(Plan::default().report(&identity)))
        };
        let told = |instance: &str| Some(Event::Namesake { other: instance.to_owned(), started: DateTime::UNIX_EPOCH });
        assert_eq!(presence.meet(None), None);
        assert_eq!(presence.meet(other("b")), told("b"));
        assert_eq!(presence.meet(other("b")), None);
        // It was not heard of for a moment.
        assert_eq!(presence.meet(None), None);
        assert_eq!(presence.meet(other("b")), None);
        assert_eq!(presence.meet(other("c")), told("c"));
    }

    #[test]
    fn an_entry_is_lost_that_the_store_acknowledged_and_cannot_have_purged() {
        let at = Now { mono: Mono::default(), wall: DateTime::UNIX_EPOCH };
        let mut presence = Presence::default();
        assert_eq!(presence.forgotten(at), None, "the store never had one");
        for (minutes, told) in [(59, true), (60, false)] {
            presence.acknowledged = Some(at);
            let later = at.plus(Duration::from_secs(60 * minutes));
            assert_eq!(presence.forgotten(later).is_some(), told, "{minutes}");
            assert_eq!(presence.forgotten(later), None, "once");
        }
    }
}
