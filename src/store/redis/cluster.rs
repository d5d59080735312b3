//! The servers of a Redis Cluster: one [`Link`] each, and a map of who keeps what. A redirection is followed, for nothing was
//! done where it was said; every other failure is the caller's to repeat, as with one server. What fails makes the map
//! doubtful, and it is then asked for anew in the background.
//!
//! Why not the client library's own cluster connection: it repeats by itself, so that an answer may come after the trust in
//! a lease has ended, and of a failed call it does not tell whether anything was sent (docs/adr).

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use redis::{Cmd, ErrorKind, RedisError, ServerErrorKind, Value};
use tokio_util::task::AbortOnDropHandle;

use super::examine::{at_place, look};
use super::link::{AnyOf, Endpoint};
use super::link::{Link, LinkError, is_answer};
use super::members::{Address, Members};
use super::target::Target;
use crate::store::backend::Files;
use crate::store::{Finding, OpenError};

/// How many slots a cluster has.
const SLOTS: u16 = 16_384;

/// The slot of a key: CRC16 (XMODEM) of what stands between its first braces, or of all of it.
pub(super) fn slot_of(key: &str) -> u16 {
    let tag = key.split_once('{').and_then(|(_, rest)| rest.split_once('}')).map(|(tag, _)| tag);
    crc16(tag.filter(|tag| !tag.is_empty()).unwrap_or(key).as_bytes()) % SLOTS
}

fn crc16(bytes: &[u8]) -> u16 {
    bytes.iter().fold(0, |crc, byte| {
        (0..8).fold(
            crc ^ (u16::from(*byte) << 8),
            |crc, _| if crc & 0x8000 == 0 { crc << 1 } else { (crc << 1) ^ 0x1021 },
        )
    })
}

/// Who keeps which slots.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct SlotMap {
    ranges: Vec<(u16, u16, Address)>,
    /// Single slots that were heard of since.
    moved: std::collections::BTreeMap<u16, Address>,
}

impl SlotMap {
    /// Reads `CLUSTER SLOTS`. A server that does not know its own address leaves it out: it is the one that was asked.
    pub(super) fn read(answer: &Value, asked: &Address) -> Option<Self> {
        let Value::Array(items) = answer else { return None };
        let ranges: Option<Vec<_>> = items.iter().map(|range| read_range(range, asked)).collect();
        ranges
            .filter(|ranges| !ranges.is_empty())
            .map(|ranges| Self { ranges, moved: std::collections::BTreeMap::new() })
    }

    pub(super) fn owner(&self, slot: u16) -> Option<&Address> {
        let within = |(first, last, _): &&(u16, u16, Address)| (*first..=*last).contains(&slot);
        self.moved.get(&slot).or_else(|| self.ranges.iter().find(within).map(|(_, _, owner)| owner))
    }

    /// How many slots nobody keeps.
    fn homeless(&self) -> usize {
        (0..SLOTS).filter(|slot| self.owner(*slot).is_none()).count()
    }

    /// One slot is kept by another server than was known.
    pub(super) fn learn(&mut self, slot: u16, owner: Address) {
        self.moved.insert(slot, owner);
    }

    pub(super) fn owners(&self) -> impl Iterator<Item = &Address> {
        self.ranges.iter().map(|(_, _, owner)| owner).chain(self.moved.values())
    }
}

fn read_range(range: &Value, asked: &Address) -> Option<(u16, u16, Address)> {
    let Value::Array(range) = range else { return None };
    let [Value::Int(first), Value::Int(last), Value::Array(owner), ..] = range.as_slice() else { return None };
    let [host, Value::Int(port), ..] = owner.as_slice() else { return None };
    let host = match host {
        Value::BulkString(bytes) if !bytes.is_empty() => String::from_utf8(bytes.clone()).ok()?,
        Value::BulkString(_) | Value::Nil => asked.host.clone(),
        _ => return None,
    };
    let address = Address { host, port: u16::try_from(*port).ok()? };
    Some((u16::try_from(*first).ok()?, u16::try_from(*last).ok()?, address))
}

/// Redirections that one call follows: a slot that moves more often meanwhile is not to be had just now.
const REDIRECTIONS: usize = 5;

/// The servers of a cluster.
#[derive(Debug)]
pub(super) struct Cluster {
    known: Arc<Known>,
    refreshing: Mutex<Option<AbortOnDropHandle<()>>>,
}

#[derive(Debug)]
struct Known {
    seeds: Vec<Address>,
    data: Target,
    op_timeout: Duration,
    state: Mutex<ClusterState>,
    listeners: Arc<AnyOf>,
}

#[derive(Debug, Default)]
struct ClusterState {
    map: SlotMap,
    links: BTreeMap<Address, Arc<Link>>,
}

/// Where a call is to be sent instead.
pub(super) struct Redirection {
    pub(super) slot: u16,
    pub(super) to: Address,
    /// Only this one, and with leave: the slot is on its way there.
    once: bool,
}

impl Cluster {
    /// Reads `redis+cluster://[user:password@]h1,h2[?ca=…]`; answers where wake-ups are heard, too.
    pub(super) fn parse(
        url: &str,
        client: &str,
        op_timeout: Duration,
        files: Files,
    ) -> Result<(Self, Endpoint), OpenError> {
        let members = Members::parse(url, 6_379, &[])?;
        if !members.path.is_empty() && members.path != "0" {
            return Err(members.refuse("a cluster has only database 0: leave the path out"));
        }
        let data = members.data("", client, files)?;
        let listeners = members.hosts.iter().map(|seed| data.at(&seed.host, seed.port)).collect();
        let listeners = Arc::new(AnyOf::new(listeners));
        let heard = Endpoint::AnyOf(Arc::clone(&listeners));
        let known = Known { seeds: members.hosts, data, op_timeout, state: Mutex::default(), listeners };
        Ok((Self { known: Arc::new(known), refreshing: Mutex::default() }, heard))
    }

    /// Sends a command about this key, or about none, to who keeps it.
    pub(super) async fn call(&self, key: Option<&str>, command: &Cmd) -> Result<Value, LinkError> {
        let slot = key.map_or(0, slot_of);
        let mut owner = self.owner(slot).await?;
        let mut asking = false;
        for _ in 0..REDIRECTIONS {
            let link = self.known.link(&owner)?;
            let answer = if asking { link.call_asking(command).await } else { link.call(command).await };
            let Err(error) = &answer else { return answer };
            let Some(redirection) = redirection(error, &owner) else {
                if is_doubtful(error) {
                    self.refresh(Some(owner));
                }
                return answer;
            };
            asking = redirection.once;
            owner = redirection.to;
            if !asking {
                self.known.lock().map.learn(redirection.slot, owner.clone());
                self.refresh(None);
            }
        }
        Err(LinkError::Connect(RedisError::from(std::io::Error::other("the slot is moving between servers"))))
    }

    /// Asks in the background who keeps what: a server that was replaced is noticed also by a node that has nothing to ask it.
    pub(super) fn look_again(&self) {
        self.refresh(None);
    }

    /// Looks at each master, as the cluster tells now who they are.
    pub(super) async fn examine(&self, kind: &str) -> Vec<Finding> {
        // That no server tells of the cluster is found out by whoever asks first.
        if self.known.refresh(None).await.is_err() {
            return Vec::new();
        }
        let (masters, homeless) = {
            let state = self.known.lock();
            (state.map.owners().cloned().collect::<BTreeSet<_>>(), state.map.homeless())
        };
        let mut findings = vec![coverage(masters.len(), homeless)];
        for address in masters {
            let away = |error: &str| {
                let effect = "the jobs whose slots it keeps are not claimed until a replica takes over, and as a rule no \
                              other either";
                let fix = "start it, give each master a replica, and set cluster-require-full-coverage no";
                Finding::fault("server", error, effect, fix)
            };
            let looked = match self.known.link(&address) {
                Ok(link) => look(&link, kind).await,
                Err(error) => Err(error),
            };
            findings.extend(at_place(&address.in_url(), looked, away));
        }
        findings
    }

    /// Who keeps what, as the cluster tells now; none where no server tells.
    pub(super) async fn map(&self) -> Option<SlotMap> {
        self.known.refresh(None).await.ok()?;
        Some(self.known.lock().map.clone())
    }

    /// Who was last known to keep this key.
    pub(super) fn keeper(&self, key: &str) -> Option<Address> {
        self.known.lock().map.owner(slot_of(key)).cloned()
    }

    /// Who keeps the slot. Without a map, which a new store has none of, it is asked for first.
    async fn owner(&self, slot: u16) -> Result<Address, LinkError> {
        if let Some(owner) = self.known.lock().map.owner(slot) {
            return Ok(owner.clone());
        }
        self.known.refresh(None).await.map_err(LinkError::Connect)?;
        let owner = self.known.lock().map.owner(slot).cloned();
        let nobody = || RedisError::from(std::io::Error::other("no server of the cluster keeps this slot"));
        owner.ok_or_else(|| LinkError::Connect(nobody()))
    }

    /// Asks for the map anew in the background, unless that is under way; the one that failed comes last.
    fn refresh(&self, failed: Option<Address>) {
        let mut refreshing = self.refreshing.lock().unwrap_or_else(PoisonError::into_inner);
        if refreshing.as_ref().is_none_or(AbortOnDropHandle::is_finished) {
            let known = Arc::clone(&self.known);
            *refreshing = Some(AbortOnDropHandle::new(tokio::spawn(async move {
                if let Err(error) = known.refresh(failed).await {
                    tracing::debug!(%error, "no server reports the slots of the cluster");
                }
            })));
        }
    }
}

impl Known {
    fn lock(&self) -> std::sync::MutexGuard<'_, ClusterState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn link(&self, address: &Address) -> Result<Arc<Link>, LinkError> {
        let mut state = self.lock();
        if let Some(link) = state.links.get(address) {
            return Ok(Arc::clone(link));
        }
        let target = self.data.at(&address.host, address.port);
        let link = Arc::new(Link::new(Endpoint::Fixed(Box::new(target)), self.op_timeout));
        state.links.insert(address.clone(), Arc::clone(&link));
        Ok(link)
    }

    /// Asks one server after the other until one tells of the cluster.
    async fn refresh(&self, failed: Option<Address>) -> Result<(), RedisError> {
        let mut last = RedisError::from(std::io::Error::other("no server is named"));
        for address in self.candidates(failed) {
            match self.ask(&address).await {
                Ok(map) => {
                    self.replace(map);
                    return Ok(());
                }
                Err(LinkError::Connect(error) | LinkError::Call(error)) => last = error,
            }
        }
        Err(last)
    }

    async fn ask(&self, address: &Address) -> Result<SlotMap, LinkError> {
        let answer = self.link(address)?.call(redis::cmd("CLUSTER").arg("SLOTS")).await?;
        let unreadable = || RedisError::from((ErrorKind::Parse, "CLUSTER SLOTS cannot be read"));
        SlotMap::read(&answer, address).ok_or_else(|| LinkError::Call(unreadable()))
    }

    /// Those that keep something now, then those of the url; whoever failed last of all.
    fn candidates(&self, failed: Option<Address>) -> Vec<Address> {
        let mut candidates: Vec<Address> = Vec::new();
        let owners: Vec<Address> = self.lock().map.owners().cloned().collect();
        for address in owners.into_iter().chain(self.seeds.iter().cloned()) {
            if !candidates.contains(&address) {
                candidates.push(address);
            }
        }
        candidates.sort_by_key(|address| Some(address) == failed.as_ref());
        candidates
    }

    /// Servers that keep nothing any more are let go of. Where one was, its replica may have taken over without its last
    /// writes, and that is told.
    fn replace(&self, map: SlotMap) {
        let mut state = self.lock();
        let keeps = |address: &Address| map.owners().any(|owner| owner == address);
        let is_replaced = state.map.owners().any(|owner| !keeps(owner));
        state.links.retain(|address, _| keeps(address));
        state.map = map;
        drop(state);
        if is_replaced {
            self.listeners.was_replaced();
        }
    }
}

/// What is to be said of this many masters that leave this many slots to nobody.
fn coverage(masters: usize, homeless: usize) -> Finding {
    if homeless == 0 {
        return Finding::ok("slots", format!("all are kept, by {masters} masters"));
    }
    let effect = "the jobs whose keys belong there are not claimed, and as a rule no other either";
    let found = format!("{homeless} of the cluster's slots are kept by nobody");
    Finding::fault("slots", found, effect, "redis-cli --cluster fix HOST:PORT")
}

/// True for an error after which somebody else may keep the slot.
fn is_doubtful(error: &LinkError) -> bool {
    match error {
        LinkError::Connect(_) => true,
        LinkError::Call(error) => {
            !is_answer(error) || matches!(error.code(), Some("CLUSTERDOWN" | "READONLY" | "MASTERDOWN" | "LOADING"))
        }
    }
}

pub(super) fn redirection(error: &LinkError, asked: &Address) -> Option<Redirection> {
    let LinkError::Call(error) = error else { return None };
    let once = error.kind() == ErrorKind::Server(ServerErrorKind::Ask);
    let (address, slot) = error.redirect_node()?;
    let to = match address.strip_prefix(':') {
        // A server that does not know its own address: the same host.
        Some(port) => Address { host: asked.host.clone(), port: port.parse().ok()? },
        None => Address::parse(address, asked.port)?,
    };
    Some(Redirection { slot, to, once })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn address(host: &str, port: u16) -> Address {
        Address { host: host.to_owned(), port }
    }

    #[test]
    fn slots_are_those_that_redis_computes() {
        // CLUSTER KEYSLOT of Redis 7.0.15; 12739 is the check value of the specification, CRC16("123456789") = 0x31C3.
        assert_eq!(crc16(b"123456789"), 0x31c3);
        assert_eq!(slot_of("123456789"), 12_739);
        assert_eq!(slot_of("foo"), 12_182);
        assert_eq!(slot_of("cronward:prod:{foo}@2026-11-21T14Z:log"), slot_of("foo"));
        assert_eq!(slot_of("a{}b"), crc16(b"a{}b") % SLOTS, "an empty tag is none");
    }

    #[test]
    fn all_keys_of_a_job_are_kept_together() {
        let keys = ["cronward:a:{j}@2026-11-21T14Z", "cronward:a:{j}@2026-11-21T13Z:log", "cronward:b:{j}:pause"];
        assert!(keys.iter().all(|key| slot_of(key) == slot_of("j")));
    }

    #[test]
    fn a_map_is_read_and_mended() {
        let bulk = |text: &str| Value::BulkString(text.as_bytes().to_vec());
        let server = |host: &str, port| Value::Array(vec![bulk(host), Value::Int(port), bulk("id")]);
        let range = |first, last, owner| Value::Array(vec![Value::Int(first), Value::Int(last), owner, server("r", 1)]);
        let answer = Value::Array(vec![range(0, 99, server("", 7_000)), range(100, 16_383, server("b", 7_001))]);
        let mut map = SlotMap::read(&answer, &address("seed", 1)).unwrap();
        assert_eq!(map.owner(99), Some(&address("seed", 7_000)));
        assert_eq!(map.owner(100), Some(&address("b", 7_001)));
        map.learn(99, address("c", 1));
        assert_eq!(map.owner(99), Some(&address("c", 1)));
        for other in [
            Value::Nil,
            Value::Array(vec![]),
            Value::Array(vec![Value::Nil]),
            Value::Array(vec![range(0, 1, Value::Nil)]),
        ] {
            assert_eq!(SlotMap::read(&other, &address("seed", 1)), None);
        }
    }
}
