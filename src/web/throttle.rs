//! How many wrong tokens a peer may send: each costs a look at the list and a line in the log.
//!
//! A right token passes all the same. One has 256 random bits, which nobody guesses; and behind a proxy all share one address, so that
//! otherwise whoever sends ten wrong ones would lock everybody out.

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv6Addr};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use crate::clock::Mono;

/// Wrong tokens of one peer within [`WINDOW`].
const MOST: u32 = 10;
pub(super) const WINDOW: Duration = Duration::from_secs(60);
/// Peers that are remembered; beyond that the one that was first counted is forgotten.
const PEERS: usize = 1_024;

/// Who has sent how many.
#[derive(Debug, Default)]
pub(super) struct Throttle(Mutex<BTreeMap<IpAddr, (Mono, u32)>>);

impl Throttle {
    /// Counts a wrong token. Answers whether the peer may still be told so; else it is to wait.
    pub(super) fn count(&self, peer: IpAddr, now: Mono) -> bool {
        let mut peers = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let peer = network(peer);
        if !peers.contains_key(&peer) && peers.len() >= PEERS {
            let first = peers.iter().min_by_key(|(_, (since, _))| *since).map(|(peer, _)| *peer);
            first.map(|first| peers.remove(&first));
        }
        let (since, count) = peers.entry(peer).or_insert((now, 0));
        if now.since(*since) >= WINDOW {
            (*since, *count) = (now, 0);
        }
        *count = count.saturating_add(1);
        *count <= MOST
    }
}

/// Whoever has one IPv6 address mostly has 2^64 of them.
fn network(peer: IpAddr) -> IpAddr {
    match peer.to_canonical() {
        IpAddr::V6(address) => IpAddr::V6(Ipv6Addr::from_bits(address.to_bits() & !u128::from(u64::MAX))),
        own => own,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: u64) -> Mono {
        Mono::from_origin(Duration::from_secs(seconds))
    }

    #[test]
    fn ten_a_minute_and_peer_are_told_and_the_next_minute_begins_anew() {
        let (throttle, peer): (_, IpAddr) = (Throttle::default(), "192.0.2.1".parse().unwrap());
        assert!((0..10).all(|_| throttle.count(peer, at(0))));
        assert!(!throttle.count(peer, at(59)));
        assert!(throttle.count("192.0.2.2".parse().unwrap(), at(59)), "another peer");
        assert!(throttle.count(peer, at(60)));
    }

    #[test]
    fn a_network_of_ipv6_is_one_peer_and_no_more_are_remembered_than_fit() {
        let throttle = Throttle::default();
        for last in 0..10 {
            assert!(throttle.count(format!("2001:db8::{last}").parse().unwrap(), at(0)));
        }
        assert!(!throttle.count("2001:db8::ffff".parse().unwrap(), at(0)));
        assert!(throttle.count("2001:db8:0:1::1".parse().unwrap(), at(0)));
        for bits in 0..5_000_u32 {
            throttle.count(IpAddr::V4(bits.into()), at(1));
        }
        assert_eq!(throttle.0.lock().unwrap().len(), PEERS);
    }
}
