//! The daemon's heap: small, at the price of a lock that two busy threads would wait for. The C library gives each thread a heap of its
//! own, and each keeps what its busiest moment took; a daemon's threads are idle.
#![allow(unsafe_code, reason = "the settings of the C library's allocator have no other way in")]

/// One heap for all threads; and what is large comes from the system and goes back there, however often it is needed. To be called
/// before there is a second thread: heaps that exist stay. Another C library has one heap anyway.
pub(crate) fn keep_small() {
    #[cfg(target_env = "gnu")]
    {
        use nix::libc::{M_ARENA_MAX, M_MMAP_THRESHOLD, M_TRIM_THRESHOLD, mallopt};
        for (setting, value) in [(M_ARENA_MAX, 1), (M_MMAP_THRESHOLD, LARGE), (M_TRIM_THRESHOLD, LARGE)] {
            // SAFETY: it takes two numbers and its own lock. A setting that it refuses stays as it was.
            unsafe { mallopt(setting, value) };
        }
    }
}

/// Bytes: the C library's own first value, which grows with what is freed unless it is set.
#[cfg(target_env = "gnu")]
const LARGE: nix::libc::c_int = 128 * 1_024;
