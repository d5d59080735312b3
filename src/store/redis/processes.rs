//! Which processes wait for locks at this store, and whether the connection that listens hears for them by now. Each has a channel of
//! its own, so that a message wakes nobody else.

use std::collections::BTreeSet;
use std::time::Duration;

use tokio::sync::{Notify, watch};

use crate::resource::LockHint;
use crate::slot::Token;
use crate::store::locks::{LockHints, LockWakeups};

/// Channels that are kept although nobody listens just now: a process that takes one lock after the other subscribes once.
const KEPT: usize = 64;

/// Whoever listens for hints about locks here.
#[derive(Debug, Default)]
pub(super) struct Processes {
    hints: LockHints,
    heard: watch::Sender<Subscriptions>,
    joined: Notify,
}

/// What the connection hears.
#[derive(Debug, Default)]
struct Subscriptions {
    instances: BTreeSet<Token>,
    /// There is no connection, and none is to be had just now; or this user may not listen there.
    in_vain: bool,
    /// The server has said that this user may not listen on the channel of a process.
    refused: bool,
}

impl Processes {
    /// Hints to this process from now on.
    pub(super) fn listen(&self, instance: Token) -> LockWakeups {
        let wakeups = self.hints.listen(instance);
        if !self.hears(instance) {
            self.joined.notify_one();
        }
        wakeups
    }

    /// Whether what is published to it comes here.
    pub(super) fn hears(&self, instance: Token) -> bool {
        self.heard.borrow().instances.contains(&instance)
    }

    /// True while the server refuses such a subscription.
    pub(super) fn is_refused(&self) -> bool {
        self.heard.borrow().refused
    }

    /// Waits until it does, where somebody listens for it at all and there is a connection to be had. Whether it does then.
    pub(super) async fn comes_to_hear(&self, instance: Token, limit: Duration) -> bool {
        if !self.hints.instances().contains(&instance) {
            return false;
        }
        let mut heard = self.heard.subscribe();
        let known = heard.wait_for(|heard| heard.in_vain || heard.instances.contains(&instance));
        let known = tokio::time::timeout(limit, known).await;
        known.is_ok_and(|known| known.is_ok_and(|heard| heard.instances.contains(&instance)))
    }
}

/// For the connection that listens.
impl Processes {
    /// Ends when somebody listens who is not heard for.
    pub(super) async fn joined(&self) {
        self.joined.notified().await;
    }

    /// Those whose channels are to be subscribed to.
    pub(super) fn unheard(&self) -> Vec<Token> {
        self.hints.instances().into_iter().filter(|instance| !self.hears(*instance)).collect()
    }

    /// Those whose channels nobody needs, where there are many.
    pub(super) fn idle(&self) -> Vec<Token> {
        let heard = &self.heard.borrow().instances;
        if heard.len() <= KEPT {
            return Vec::new();
        }
        let needed = self.hints.instances();
        heard.iter().filter(|instance| !needed.contains(instance)).copied().collect()
    }

    /// A connection stands.
    pub(super) fn connected(&self) {
        self.heard.send_modify(|heard| heard.in_vain = false);
    }

    /// Its channel is subscribed to. Whatever was published before was lost.
    pub(super) fn add(&self, instance: Token) {
        self.heard.send_modify(|heard| {
            heard.instances.insert(instance);
            (heard.in_vain, heard.refused) = (false, false);
        });
        self.tell(instance, LockHint::Resync);
    }

    /// Its channel is so no more. Whoever began to listen meanwhile took it for one that is.
    pub(super) fn remove(&self, instance: Token) {
        self.heard.send_modify(|heard| heard.instances.retain(|kept| *kept != instance));
        if self.hints.instances().contains(&instance) {
            self.joined.notify_one();
        }
    }

    /// The connection is gone.
    pub(super) fn disconnected(&self) {
        self.heard.send_modify(|heard| heard.instances.clear());
    }

    /// It was tried, and nothing will be heard for some time.
    pub(super) fn in_vain(&self, refused: bool) {
        self.heard.send_modify(|heard| {
            heard.in_vain = true;
            heard.refused |= refused;
        });
    }

    /// A hint came on this process's channel.
    pub(super) fn tell(&self, instance: Token, hint: LockHint) {
        self.hints.pass_on(instance, hint);
    }

    /// Nobody hears anything for some time.
    pub(super) fn resync(&self) {
        for instance in self.hints.instances() {
            self.tell(instance, LockHint::Resync);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn who_listens_again_while_its_channel_is_given_up_is_subscribed_for_once_more() {
        let processes = Processes::default();
        let instance = Token::from_bits(1);
        let first = processes.listen(instance);
        processes.joined().await;
        processes.add(instance);
        drop(first);
        // The subscription is being given up; meanwhile it is taken for one that stands.
        let _again = processes.listen(instance);
        processes.remove(instance);
        tokio::time::timeout(Duration::from_secs(5), processes.joined()).await.expect("somebody is unheard");
        assert_eq!(processes.unheard(), [instance]);
    }
}
