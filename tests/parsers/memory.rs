//! How much memory a parser takes, counted by the allocator of this test and not by the machine: what is reserved counts
//! although it is never touched, and no other thread is counted in. Nothing here judges time.

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};

/// Bytes that a parser may hold at one moment for each byte of its input. A crontab of nothing but line ends takes the most,
/// about 450, for each becomes an item of a list; a file of jobs that are all wrong takes a hundred.
const FACTOR: u64 = 512;

/// Bytes that it may hold besides: what it keeps of a kind up to a fixed number, and tables of its own.
const BESIDES: u64 = 8 << 20;

/// Hands the bytes to a parser; what it holds at any moment is bounded by what it is given.
#[track_caller]
pub(crate) fn bounded(what: &str, body: fn(&[u8]) -> bool, bytes: &[u8]) -> bool {
    let (answer, peak) = measured(|| body(bytes));
    let most = BESIDES + FACTOR * u64::try_from(bytes.len()).unwrap();
    assert!(peak <= most, "{what}: {} bytes took {peak} bytes of memory, {most} is the most", bytes.len());
    answer
}

/// What a body answers, and the most bytes that it held at one moment.
fn measured(body: impl FnOnce() -> bool) -> (bool, u64) {
    let mut outcome = None;
    // A panic must not pass through the measurement, which would count on.
    let taken = allocation_counter::measure(|| outcome = Some(catch_unwind(AssertUnwindSafe(body))));
    match outcome.unwrap() {
        Ok(answer) => (answer, taken.bytes_max),
        Err(panic) => resume_unwind(panic),
    }
}

/// The first four bytes say how many follow.
fn believes_a_length(bytes: &[u8]) -> bool {
    let announced = u32::from_be_bytes(bytes[..4].try_into().unwrap());
    let mut taken: Vec<u8> = Vec::with_capacity(usize::try_from(announced).unwrap());
    taken.extend(&bytes[4..]);
    std::hint::black_box(taken).len() == usize::try_from(announced).unwrap()
}

/// Keeps for each byte all bytes up to it.
fn keeps_each_beginning(bytes: &[u8]) -> bool {
    let beginnings: Vec<Vec<u8>> = (0..bytes.len()).map(|end| bytes[..end].to_vec()).collect();
    !std::hint::black_box(beginnings).is_empty()
}

#[test]
#[should_panic(expected = "a length: 5 bytes took 268435456 bytes of memory")]
fn a_parser_that_believes_a_length_is_caught_though_it_touches_nothing() {
    bounded("a length", believes_a_length, b"\x10\0\0\0x");
}

#[test]
#[should_panic(expected = "beginnings: 8000 bytes took")]
fn a_parser_that_takes_the_square_of_its_input_is_caught() {
    bounded("beginnings", keeps_each_beginning, &[b'x'; 8_000]);
}

#[test]
fn what_is_given_back_does_not_count_and_a_panic_is_passed_on() {
    for _ in 0..100 {
        assert!(!bounded("a length", believes_a_length, b"\0\x10\0\0x"), "each takes a megabyte");
        let panicked = catch_unwind(|| bounded("a panic", |bytes| bytes[9] == 0, b"x"));
        assert!(panicked.is_err());
    }
}
