//! What a login is: a cookie that names its owner and its end, under a key that is made of the owner's line in the tokens file. Every
//! node with that line accepts it, and taking the line away ends it. No node keeps anything of a login.
//!
//! From the cookie comes what a form carries: a page of another site can make a browser send the cookie, and cannot know that.

use std::fmt::Write;

use chrono::{DateTime, TimeDelta, Utc};
use hmac::digest::{Key, KeyInit};
use hmac::{Hmac, Mac};
use sha2::Sha256;

/// How long a login lasts.
pub(super) const LASTS: TimeDelta = TimeDelta::hours(12);

/// The most bytes of a cookie that is looked at: a name has 64.
const LONGEST: usize = 256;

/// What is signed is never the one for the other.
const LOGIN: &str = "cronward login 1";
const FORM: &str = "cronward form 1";

/// The key of one line of the tokens file: of its hash, so that it goes when the token is replaced.
#[derive(Clone, PartialEq, Eq)]
pub(super) struct LoginKey([u8; 32]);

/// A cookie as it was sent: nothing of it is believed before its signature is looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct LoginCookie<'a> {
    pub(super) name: &'a str,
    ends: i64,
    signed: &'a str,
    signature: [u8; 32],
}

impl LoginKey {
    pub(super) const fn of(hash: [u8; 32]) -> Self {
        Self(hash)
    }

    /// The cookie of a login.
    pub(super) fn cookie(&self, name: &str, ends: DateTime<Utc>) -> String {
        let signed = format!("{}.{name}", ends.timestamp());
        let signature = hex(&self.mac(LOGIN, &signed).finalize().into_bytes());
        format!("{signed}.{signature}")
    }

    /// Whether the cookie is of this key, and not over.
    pub(super) fn accepts(&self, cookie: &LoginCookie<'_>, now: DateTime<Utc>) -> bool {
        let is_own = self.mac(LOGIN, cookie.signed).verify_slice(&cookie.signature).is_ok();
        is_own && now.timestamp() < cookie.ends
    }

    /// What a form of this login carries.
    pub(super) fn form_token(&self, cookie: &LoginCookie<'_>) -> String {
        hex(&self.mac(FORM, cookie.signed).finalize().into_bytes())
    }

    fn mac(&self, purpose: &str, text: &str) -> Hmac<Sha256> {
        let mut mac = <Hmac<Sha256> as KeyInit>::new(&block(self.0));
        mac.update(purpose.as_bytes());
        mac.update(b"\n");
        mac.update(text.as_bytes());
        mac
    }
}

/// A key as HMAC takes it: padded with zeros to the block of SHA-256.
fn block(key: [u8; 32]) -> Key<Hmac<Sha256>> {
    let mut block = Key::<Hmac<Sha256>>::default();
    block.iter_mut().zip(key).for_each(|(padded, byte)| *padded = byte);
    block
}

impl<'a> LoginCookie<'a> {
    /// Of a cookie's value.
    pub(super) fn parse(value: &'a str) -> Option<Self> {
        if value.len() > LONGEST {
            return None;
        }
        let (signed, signature) = value.rsplit_once('.')?;
        let (ends, name) = signed.split_once('.')?;
        if ends.is_empty() || !ends.bytes().all(|byte| byte.is_ascii_digit()) {
            return None;
        }
        Some(Self { name, ends: ends.parse().ok()?, signed, signature: digest(signature)? })
    }
}

/// 32 bytes as 64 hexadecimal digits.
pub(super) fn digest(hex: &str) -> Option<[u8; 32]> {
    if hex.len() != 64 || !hex.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        return None;
    }
    let mut bytes = [0; 32];
    for (index, byte) in bytes.iter_mut().enumerate() {
        *byte = u8::from_str_radix(hex.get(index * 2..index * 2 + 2)?, 16).ok()?;
    }
    Some(bytes)
}

/// Bytes as hexadecimal digits.
pub(super) fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut text, byte| {
        // Writing to a string cannot fail.
        let _ = write!(text, "{byte:02x}");
        text
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(text: &str) -> DateTime<Utc> {
        text.parse().unwrap()
    }

    fn accepts(key: &LoginKey, cookie: &str, now: &str) -> bool {
        LoginCookie::parse(cookie).is_some_and(|cookie| key.accepts(&cookie, at(now)))
    }

    #[test]
    fn a_cookie_is_accepted_under_its_key_until_its_end() {
        let (own, other) = (LoginKey::of([1; 32]), LoginKey::of([2; 32]));
        let cookie = own.cookie("ana.b@example", at("2026-11-22T03:00:00Z"));
        assert_eq!(LoginCookie::parse(&cookie).unwrap().name, "ana.b@example");
        assert!(accepts(&own, &cookie, "2026-11-22T02:59:59Z"));
        assert!(!accepts(&own, &cookie, "2026-11-22T03:00:00Z"));
        assert!(!accepts(&other, &cookie, "2026-11-22T02:59:59Z"));
    }

    #[test]
    fn a_cookie_that_was_changed_anywhere_is_none() {
        let key = LoginKey::of([1; 32]);
        let cookie = key.cookie("ana", at("2026-11-22T03:00:00Z"));
        for at in 0..cookie.len() {
            let mut bytes = cookie.clone().into_bytes();
            bytes[at] = if bytes[at] == b'1' { b'2' } else { b'1' };
            let changed = String::from_utf8(bytes).unwrap();
            assert!(!accepts(&key, &changed, "2026-11-22T00:00:00Z"), "{changed}");
        }
        let later = cookie.replacen("179", "279", 1);
        assert!(later != cookie && !accepts(&key, &later, "2026-11-22T00:00:00Z"), "{later}");
    }

    #[test]
    fn what_is_no_cookie_is_none() {
        let hex = "0".repeat(64);
        for value in ["", ".", "..", "1.ana", &format!("-1.ana.{hex}"), &format!("1ana.{hex}"), &format!("x.ana.{hex}")]
        {
            assert_eq!(LoginCookie::parse(value), None, "{value}");
        }
        assert_eq!(LoginCookie::parse(&format!("1.{}.{hex}", "a".repeat(300))), None);
        assert_eq!(LoginCookie::parse(&format!("99999999999999999999.ana.{hex}")), None);
        assert_eq!(LoginCookie::parse(&format!("1.ana.{}", "é".repeat(32))), None);
    }

    #[test]
    fn a_forms_token_is_that_of_its_cookie_and_is_no_signature_of_it() {
        let key = LoginKey::of([1; 32]);
        let (one, two) = (key.cookie("ana", at("2026-11-22T03:00:00Z")), key.cookie("ana", at("2026-11-22T03:00:01Z")));
        let token = |cookie: &str| key.form_token(&LoginCookie::parse(cookie).unwrap());
        assert_eq!(token(&one), token(&one));
        assert_ne!(token(&one), token(&two));
        assert!(!one.ends_with(&token(&one)));
    }
}
