//! What the daemon asks of a shim that keeps a command: frames of [`FRAME`] bytes, one after the other. Words only.
//!
//! ```text
//! byte 0   1..9, little-endian              9..17, little-endian
//! s        signal number, 1 to 31           0                                  pass the signal on to the group
//! t        0                                0                                  stop: TERM, once, whoever asks for it
//! k        0                                0                                  KILL, to everything
//! l        stop_at                          kill_at, not before stop_at        the lease was renewed
//! ```
//!
//! Instants are nanoseconds of `CLOCK_BOOTTIME`, which the daemon and its shim read alike. Anything else, and an end of the
//! socket, also within a frame, is the end of the daemon as the shim knows it: it kills the command.

use rustix::process::Signal;

use crate::clock::Mono;
use crate::slot::LeaseDeadline;

/// Bytes of a request.
pub(super) const FRAME: usize = 17;

/// One request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Request {
    /// Pass this signal on.
    Signal(Signal),
    /// TERM, unless that was sent already because of the lease.
    Stop,
    /// KILL.
    Kill,
    /// The lease was renewed: this holds from now on.
    Lease(LeaseDeadline),
}

impl Request {
    /// The frame.
    pub(super) fn encode(self) -> [u8; FRAME] {
        let (kind, first, second) = match self {
            Self::Signal(signal) => (b's', u64::from(signal.as_raw().unsigned_abs()), 0),
            Self::Stop => (b't', 0, 0),
            Self::Kill => (b'k', 0, 0),
            Self::Lease(LeaseDeadline { stop_at, kill_at }) => (b'l', stop_at.nanos(), kill_at.nanos()),
        };
        let mut frame = [kind; FRAME];
        for (place, byte) in frame.iter_mut().skip(1).zip(first.to_le_bytes().into_iter().chain(second.to_le_bytes())) {
            *place = byte;
        }
        frame
    }

    /// Reads a frame; none when it is not one.
    pub(super) fn decode(frame: [u8; FRAME]) -> Option<Self> {
        let (kind, numbers) = frame.split_first()?;
        let (first, second) = numbers.split_first_chunk()?;
        let (first, second) = (u64::from_le_bytes(*first), u64::from_le_bytes(second.try_into().ok()?));
        match (kind, first, second) {
            (b's', number, 0) => Signal::from_named_raw(i32::try_from(number).ok()?).map(Self::Signal),
            (b't', 0, 0) => Some(Self::Stop),
            (b'k', 0, 0) => Some(Self::Kill),
            (b'l', stop_at, kill_at) if stop_at <= kill_at => Some(Self::Lease(LeaseDeadline {
                stop_at: Mono::from_nanos(stop_at),
                kill_at: Mono::from_nanos(kill_at),
            })),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_request_reads_back_as_written() {
        let lease = LeaseDeadline { stop_at: Mono::from_nanos(7), kill_at: Mono::from_nanos(u64::MAX) };
        for request in [Request::Signal(Signal::USR2), Request::Stop, Request::Kill, Request::Lease(lease)] {
            assert_eq!(Request::decode(request.encode()), Some(request));
        }
    }

    #[test]
    fn what_is_no_request_is_none() {
        let signal = |number: u64| {
            let mut frame = Request::Signal(Signal::INT).encode();
            frame[1..9].copy_from_slice(&number.to_le_bytes());
            frame
        };
        let lease = LeaseDeadline { stop_at: Mono::from_nanos(8), kill_at: Mono::from_nanos(7) };
        let mut trailing = Request::Stop.encode();
        trailing[16] = 1;
        for frame in [[0; FRAME], [15; FRAME], signal(0), signal(65), signal(1 << 32), trailing] {
            assert_eq!(Request::decode(frame), None, "{frame:?}");
        }
        assert_eq!(Request::decode(Request::Lease(lease).encode()), None, "killed before it is stopped");
    }

    proptest! {
        #[test]
        fn any_bytes_are_a_request_that_is_written_so_or_none(frame in prop::array::uniform17(any::<u8>())) {
            prop_assert!(Request::decode(frame).is_none_or(|request| request.encode() == frame));
        }
    }
}
