//! A range of addresses, written as an address and the length of its prefix: `10.0.0.5/32`.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::str::FromStr;

/// A range of addresses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Network {
    address: IpAddr,
    prefix: u8,
}

impl Network {
    /// Whether an address is in the range. An IPv4 address in its IPv6 form is the IPv4 address.
    pub fn contains(&self, other: IpAddr) -> bool {
        match (self.address, other.to_canonical()) {
            (IpAddr::V4(own), IpAddr::V4(other)) => {
                let mask = u32::MAX.checked_shl(32 - u32::from(self.prefix)).unwrap_or(0);
                own.to_bits() & mask == other.to_bits() & mask
            }
            (IpAddr::V6(own), IpAddr::V6(other)) => {
                let mask = u128::MAX.checked_shl(128 - u32::from(self.prefix)).unwrap_or(0);
                own.to_bits() & mask == other.to_bits() & mask
            }
            _ => false,
        }
    }
}

impl FromStr for Network {
    type Err = String;

    /// An address alone is the range that has only it.
    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = || "write an address range like \"10.0.0.5/32\" or \"fd00::/8\"".to_owned();
        let (address, prefix) = text.split_once('/').map_or((text, None), |(address, prefix)| (address, Some(prefix)));
        let address: IpAddr = address.parse().map_err(|_| wrong())?;
        let widest = if address.is_ipv4() { Ipv4Addr::BITS } else { Ipv6Addr::BITS };
        let prefix = prefix.map_or(Ok(widest), |prefix| prefix.parse::<u32>().map_err(|_| wrong()))?;
        let prefix = u8::try_from(prefix).ok().filter(|prefix| u32::from(*prefix) <= widest).ok_or_else(wrong)?;
        Ok(Self { address, prefix })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_range_has_the_addresses_of_its_prefix_and_no_other() {
        let has = |range: &str, address: &str| range.parse::<Network>().unwrap().contains(address.parse().unwrap());
        assert!(has("10.0.0.5/32", "10.0.0.5") && !has("10.0.0.5/32", "10.0.0.4"));
        assert!(has("10.0.0.5", "10.0.0.5") && !has("10.0.0.5", "10.0.0.6"));
        assert!(has("10.1.0.0/16", "10.1.255.255") && !has("10.1.0.0/16", "10.2.0.0"));
        assert!(has("10.1.0.0/16", "::ffff:10.1.2.3"), "as a socket of both families shows it");
        assert!(has("fd00::/8", "fd12::1") && !has("fd00::/8", "fe00::1"));
        assert!(has("0.0.0.0/0", "8.8.8.8") && !has("0.0.0.0/0", "::1"));
    }

    #[test]
    fn what_is_no_range_is_refused() {
        for text in ["", "10.0.0.0/33", "10.0.0/8", "::/129", "host/8", "10.0.0.0/", "10.0.0.0/-1", "10.0.0.0/8/8"] {
            assert!(text.parse::<Network>().is_err(), "{text}");
        }
    }
}
