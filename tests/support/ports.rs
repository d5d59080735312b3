//! Free ports of 127.0.0.1 for servers.
#![allow(clippy::expect_used, clippy::panic, dead_code, unreachable_pub, reason = "a test says what it expects")]

use std::collections::HashSet;
use std::hash::{BuildHasher, RandomState};
use std::net::TcpListener;
use std::sync::{Mutex, PoisonError};

/// Below those that Linux gives to clients by default (32768 and up). A client that looks for a server which is away could
/// otherwise be given the very port that it looks for, talk to itself, and keep the server from coming back.
const PORTS: std::ops::Range<u64> = 20_000..32_000;

/// Those that were given to a test. Each is given once: while a server is away, another test's would be taken for it.
static GIVEN: Mutex<Option<HashSet<u16>>> = Mutex::new(None);

/// Holds a free port, so that another call gets another one.
pub fn held() -> TcpListener {
    let mut given = GIVEN.lock().unwrap_or_else(PoisonError::into_inner);
    let given = given.get_or_insert_default();
    let drawn = || PORTS.start + RandomState::new().hash_one(()) % (PORTS.end - PORTS.start);
    let tried = std::iter::repeat_with(drawn).take(10_000).filter_map(|port| u16::try_from(port).ok());
    let bound = |port| given.insert(port).then(|| TcpListener::bind(("127.0.0.1", port)).ok()).flatten();
    tried.filter_map(bound).next().unwrap_or_else(|| panic!("no free port in {PORTS:?}"))
}

/// Which one it is.
pub fn port_of(held: &TcpListener) -> u16 {
    held.local_addr().expect("a listener has an address").port()
}

/// A port that was free a moment ago.
pub fn free_port() -> u16 {
    port_of(&held())
}

/// The same, for several that differ.
pub fn free_ports<const N: usize>() -> [u16; N] {
    let held = [(); N].map(|()| held());
    held.each_ref().map(port_of)
}
