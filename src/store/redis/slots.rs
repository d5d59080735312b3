//! Which server of a cluster keeps which key. Pure.

use redis::Value;

use super::members::Address;

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
    pub(super) fn homeless(&self) -> usize {
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
