//! A fixed number per job, for its delay after each tick. Not random: every node, and every version, gives the same.

/// FNV-1a, 64 bits, of the job's name, with the final mix of MurmurHash3 (`fmix64`): FNV alone leaves the high bits of
/// names that differ in their last letter nearly equal, and the delay is scaled by the high bits.
///
/// Never to be changed: nodes of two versions side by side would fire at different times.
const fn fixed_hash(name: &str) -> u64 {
    let bytes = name.as_bytes();
    let mut hash: u64 = 0xcbf2_9ce4_8422_2325;
    let mut rest = bytes;
    while let [byte, tail @ ..] = rest {
        hash = (hash ^ *byte as u64).wrapping_mul(0x0000_0100_0000_01b3);
        rest = tail;
    }
    hash = (hash ^ (hash >> 33)).wrapping_mul(0xff51_afd7_ed55_8ccd);
    hash = (hash ^ (hash >> 33)).wrapping_mul(0xc4ce_b9fe_1a85_ec53);
    hash ^ (hash >> 33)
}

/// The name's place in `[0, below)`; 0 when `below` is 0.
pub(super) fn place(name: &str, below: u64) -> u64 {
    let scaled = (u128::from(fixed_hash(name)) * u128::from(below)) >> 64;
    u64::try_from(scaled).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_place_of_a_name_never_changes_between_versions() {
        // Computed apart from this code, with FNV-1a checked against its published vector for "foobar".
        for (name, place_of_a_million) in PINNED {
            assert_eq!(place(name, 1_000_000), place_of_a_million, "{name}");
        }
    }

    const PINNED: [(&str, u64); 4] =
        [("a", 510_294), ("foobar", 172_395), ("hourly-push", 201_014), ("billing", 20_328)];

    #[test]
    fn names_that_differ_in_one_letter_are_spread_over_the_whole_span() {
        let mut buckets = [0_u32; 10];
        for number in 0..1_000 {
            let bucket = usize::try_from(place(&format!("job-{number:03}"), 10)).unwrap();
            buckets[bucket] += 1;
        }
        assert!(buckets.iter().all(|count| (60..=140).contains(count)), "{buckets:?}");
    }

    #[test]
    fn a_place_is_always_below_the_bound() {
        for name in ["", "a", "zzzz"] {
            assert_eq!(place(name, 0), 0);
            assert_eq!(place(name, 1), 0);
            assert!(place(name, u64::MAX) < u64::MAX);
        }
    }
}
