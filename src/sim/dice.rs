//! Random draws from one seed. Each aspect of a world has its own stream, so that leaving one aspect out (as shrinking does)
//! leaves the draws of the others as they were. Never draws from the system.

use std::time::Duration;

/// A stream of draws: SplitMix64 (Steele, Lea, Flood 2014).
#[derive(Clone, Debug)]
pub(super) struct Dice(u64);

impl Dice {
    /// The stream of this seed and aspect.
    pub(super) const fn new(seed: u64, aspect: u64) -> Self {
        let mut dice = Self(seed ^ aspect.wrapping_mul(0xD6E8_FEB8_6659_FD93));
        // Seeds that differ in one bit must not begin alike.
        let _ = dice.bits();
        dice.0 ^= seed.rotate_left(17);
        dice
    }

    /// 64 bits.
    pub(super) const fn bits(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    /// A number below `bound`; 0 when that is 0.
    pub(super) fn below(&mut self, bound: u64) -> u64 {
        let scaled = (u128::from(self.bits()) * u128::from(bound)) >> 64;
        u64::try_from(scaled).unwrap_or(0)
    }

    /// True this often in a million.
    pub(super) fn chance(&mut self, in_a_million: u64) -> bool {
        in_a_million > 0 && self.below(1_000_000) < in_a_million
    }

    /// A span in `[from, to)`.
    pub(super) fn span(&mut self, from: Duration, to: Duration) -> Duration {
        let nanos = |span: Duration| u64::try_from(span.as_nanos()).unwrap_or(u64::MAX);
        from + Duration::from_nanos(self.below(nanos(to.saturating_sub(from))))
    }

    /// One of these; `otherwise` when there is none.
    pub(super) fn pick<T: Copy>(&mut self, of: &[T], otherwise: T) -> T {
        let index = self.below(u64::try_from(of.len()).unwrap_or(0));
        usize::try_from(index).ok().and_then(|index| of.get(index)).copied().unwrap_or(otherwise)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_seed_draws_the_same_and_another_aspect_draws_otherwise() {
        let draws = |seed, aspect| {
            let mut dice = Dice::new(seed, aspect);
            [(); 8].map(|()| dice.bits())
        };
        assert_eq!(draws(7, 1), draws(7, 1));
        assert_ne!(draws(7, 1), draws(7, 2));
        assert_ne!(draws(7, 1), draws(8, 1));
    }

    #[test]
    fn a_chance_is_about_what_it_says() {
        let mut dice = Dice::new(1, 1);
        let hits = (0..10_000).filter(|_| dice.chance(250_000)).count();
        assert!((2_300..2_700).contains(&hits), "{hits}");
        assert!((0..1_000).all(|_| !dice.chance(0)));
    }
}
