//! The daemon's heap: one for all threads, at the price of a lock that two busy threads would wait for. The C library gives each thread a
//! heap of its own, and each keeps what its busiest moment took; a daemon's threads are idle.
#![allow(unsafe_code, reason = "the settings of the C library's allocator have no other way in")]

/// One heap for all threads. To be called before there is a second one: heaps that exist stay. Another C library has one heap anyway.
pub(crate) fn keep_small() {
    #[cfg(target_env = "gnu")]
    {
        use nix::libc::{M_ARENA_MAX, mallopt};
        // SAFETY: it takes two numbers and its own lock. A setting that it refuses stays as it was.
        unsafe { mallopt(M_ARENA_MAX, 1) };
    }
}
