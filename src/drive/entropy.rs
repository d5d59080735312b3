//! Where random bits come from. The one file that draws them.

use std::sync::atomic::{AtomicU64, Ordering};

use crate::slot::Token;

/// A source of tokens.
#[derive(Debug)]
pub struct Entropy {
    /// Drawn at the start, and used with a counter should the system ever refuse more.
    base: u128,
    drawn: AtomicU64,
    fixed: bool,
}

impl Entropy {
    /// From the operating system. Fails only where there is no random source at all.
    pub fn from_system() -> std::io::Result<Self> {
        Ok(Self { base: draw().map_err(std::io::Error::other)?, drawn: AtomicU64::new(0), fixed: false })
    }

    /// 256 bits for a secret. Without a random source there is none.
    ///
    /// # Errors
    /// There is no random source.
    #[cfg(feature = "http")]
    pub fn secret() -> std::io::Result<[u8; 32]> {
        let mut secret = [0; 32];
        for half in secret.chunks_exact_mut(16) {
            half.copy_from_slice(&draw().map_err(std::io::Error::other)?.to_le_bytes());
        }
        Ok(secret)
    }

    /// Always the same tokens in the same order; for tests.
    pub const fn fixed(base: u128) -> Self {
        Self { base, drawn: AtomicU64::new(0), fixed: true }
    }

    /// 128 bits for a machine's first token. The machine counts on from there, so the counter stays in the upper half.
    pub fn token(&self) -> Token {
        let count = u128::from(self.drawn.fetch_add(1, Ordering::Relaxed));
        let counted = self.base.wrapping_add(count << 64);
        Token::from_bits(if self.fixed { counted } else { draw().unwrap_or(counted) })
    }
}

#[allow(clippy::disallowed_methods, reason = "the one file that draws random bits")]
fn draw() -> Result<u128, getrandom::Error> {
    let mut bytes = [0_u8; 16];
    getrandom::fill(&mut bytes)?;
    Ok(u128::from_le_bytes(bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_two_tokens_are_alike() {
        let entropy = Entropy::from_system().unwrap();
        let tokens: std::collections::BTreeSet<_> = (0..100).map(|_| entropy.token()).collect();
        assert_eq!(tokens.len(), 100);
    }
}
