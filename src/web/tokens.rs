//! The tokens that let somebody in: the file that lists them, by their hashes alone, and what one looks like.
//!
//! A token is 256 random bits, so one SHA-256 is enough to keep it by: there is nothing to guess and nothing to stretch.

use std::fmt::Write;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use chrono::{DateTime, NaiveDate, NaiveTime, SecondsFormat, Utc};
use sha2::{Digest as _, Sha256};
use subtle::ConstantTimeEq;

use crate::config::Role;
use crate::file;

/// How each token begins, so that scanners for secrets can find one.
const PREFIX: &str = "cronward_";
/// Then come so many hexadecimal digits.
const DIGITS: usize = 64;
/// The largest file that is read.
const LARGEST: u64 = 256 * 1_024;
const FORM: &str = "write `viewer|operator NAME sha256:HEX [EXPIRES]`, as `cronward token new` prints it";

/// Who has a token.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Bearer {
    pub(super) name: String,
    pub(super) role: Role,
}

#[derive(Clone, PartialEq, Eq)]
struct Listed {
    bearer: Bearer,
    hash: [u8; 32],
    expires: Option<DateTime<Utc>>,
}

/// The tokens of a file.
#[derive(Clone, PartialEq, Eq)]
pub struct Tokens(Vec<Listed>);

/// How many there are, and nothing by which one could be known.
impl std::fmt::Debug for Tokens {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Tokens").field(&self.0.len()).finish()
    }
}

impl Tokens {
    /// Reads a file.
    ///
    /// # Errors
    /// What is wrong with it: the file, the line, what to do.
    pub fn read(path: &Path) -> Result<Self, String> {
        let shown = path.display();
        let read = || {
            let file = file::open(path)?;
            let open_to_all = file.metadata().is_ok_and(|data| data.mode() & 0o002 != 0);
            if open_to_all {
                return Err(format!("can be written by every user, who could let anybody in: chmod o-w {shown}"));
            }
            String::from_utf8(file::read(file, LARGEST)?).map_err(|_| "is not UTF-8: save it as that".to_owned())
        };
        let text = read().map_err(|error| format!("tokens_file {shown} {error}; name one that this user can read"))?;
        Self::parse(&text).map_err(|(line, what)| format!("tokens_file {shown}:{line}: {what}; {FORM}"))
    }

    fn parse(text: &str) -> Result<Self, (usize, String)> {
        let lines = text.lines().map(str::trim).enumerate();
        let lines = lines.filter(|(_, line)| !line.is_empty() && !line.starts_with('#'));
        let known = lines.map(|(index, line)| known(line).map_err(|what| (index + 1, what)));
        known.collect::<Result<_, _>>().map(Self)
    }

    /// Whose token it is; nobody's when it is none, is not listed, or is over: the answer to all three is the same.
    pub(super) fn find(&self, token: &str, now: DateTime<Utc>) -> Option<&Bearer> {
        let hash = hash_of(token);
        // Each is looked at, and each to its end.
        let found = self
            .0
            .iter()
            .fold(None, |found, known| if bool::from(known.hash.ct_eq(&hash)) { Some(known) } else { found });
        found
            .filter(|known| is_token(token) && known.expires.is_none_or(|expires| now < expires))
            .map(|known| &known.bearer)
    }

    /// How many there are.
    pub const fn count(&self) -> usize {
        self.0.len()
    }
}

fn known(line: &str) -> Result<Listed, String> {
    let mut words = line.split_whitespace();
    let (role, name, hash) = (words.next().unwrap_or(""), words.next(), words.next());
    let role = Role::named(role).ok_or("the first word is no role")?;
    let name = name.filter(|name| is_name(name)).ok_or("the second word is no name")?;
    let hash =
        hash.and_then(|hash| hash.strip_prefix("sha256:")).and_then(digest).ok_or("the third word is no sha256:HEX")?;
    let expires = words.next().map(|expires| instant(expires).ok_or("the fourth word is no date")).transpose()?;
    if words.next().is_some() {
        return Err("there are more than four words".to_owned());
    }
    Ok(Listed { bearer: Bearer { name: name.to_owned(), role }, hash, expires })
}

/// What may be the name of who has a token: one word that can stand in a log.
pub(super) fn is_name(name: &str) -> bool {
    let allowed = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-' | '@' | '+');
    !name.is_empty() && name.len() <= 64 && name.chars().all(allowed)
}

fn is_token(text: &str) -> bool {
    let digits = text.strip_prefix(PREFIX).unwrap_or("");
    digits.len() == DIGITS && digits.bytes().all(|byte| byte.is_ascii_hexdigit())
}

/// An instant, or a day: until it begins.
fn instant(text: &str) -> Option<DateTime<Utc>> {
    let day = || Some(text.parse::<NaiveDate>().ok()?.and_time(NaiveTime::MIN).and_utc());
    DateTime::parse_from_rfc3339(text).map(|at| at.to_utc()).ok().or_else(day)
}

fn digest(hex: &str) -> Option<[u8; 32]> {
    if hex.len() != DIGITS || !hex.is_ascii() {
        return None;
    }
    let mut bytes = [0; 32];
    for (index, byte) in bytes.iter_mut().enumerate() {
        *byte = u8::from_str_radix(hex.get(index * 2..index * 2 + 2)?, 16).ok()?;
    }
    Some(bytes)
}

fn hash_of(token: &str) -> [u8; 32] {
    Sha256::digest(token.as_bytes()).into()
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut text, byte| {
        // Writing to a string cannot fail.
        let _ = write!(text, "{byte:02x}");
        text
    })
}

/// A new token.
pub struct Mint {
    /// The token: shown once, kept nowhere.
    pub token: String,
    /// Its line for the file.
    pub line: String,
}

impl Mint {
    /// Of these random bits.
    ///
    /// # Errors
    /// The name cannot be one.
    pub fn new(bits: [u8; 32], role: Role, name: &str, expires: Option<DateTime<Utc>>) -> Result<Self, String> {
        if !is_name(name) {
            return Err(format!(
                "{:?} is no name: write up to 64 letters, digits, '.', '_', '-', '@', '+'",
                crate::text::message(name, 70)
            ));
        }
        let token = format!("{PREFIX}{}", hex(&bits));
        let mut line = format!("{} {name} sha256:{}", role.as_str(), hex(&hash_of(&token)));
        if let Some(expires) = expires {
            let _ = write!(line, " {}", expires.to_rfc3339_opts(SecondsFormat::Secs, true));
        }
        Ok(Self { token, line })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(text: &str) -> DateTime<Utc> {
        text.parse().unwrap()
    }

    #[test]
    fn a_minted_token_is_found_by_its_line_until_it_is_over() {
        let mint = Mint::new([7; 32], Role::Operator, "ana", Some(at("2027-01-01T00:00:00Z"))).unwrap();
        let tokens = Tokens::parse(&format!("# people\n\n  {}  \n", mint.line)).unwrap();
        let name = |token: &str, now| tokens.find(token, at(now)).map(|bearer| (bearer.name.as_str(), bearer.role));
        assert_eq!(name(&mint.token, "2026-12-31T23:59:59Z"), Some(("ana", Role::Operator)));
        assert_eq!(name(&mint.token, "2027-01-01T00:00:00Z"), None);
        assert_eq!(name(&mint.token.replace('0', "1"), "2026-01-01T00:00:00Z"), None);
        assert!(!mint.line.contains(&mint.token) && !format!("{tokens:?}").contains("ana"));
        assert!(mint.line.ends_with(" 2027-01-01T00:00:00Z"), "{}", mint.line);
        let day = Tokens::parse(&mint.line.replace("T00:00:00Z", "")).unwrap();
        assert_eq!(day, tokens, "a day ends where it begins");
    }

    #[test]
    fn what_is_no_token_is_none_though_its_hash_is_listed() {
        let line = format!("viewer weak sha256:{}", hex(&hash_of("password")));
        assert_eq!(Tokens::parse(&line).unwrap().find("password", at("2026-01-01T00:00:00Z")), None);
    }

    #[test]
    fn a_line_that_cannot_be_read_is_told_with_its_number() {
        let hash = "0".repeat(64);
        for (line, what) in [
            ("admin ana".to_owned(), "no role"),
            ("viewer".to_owned(), "no name"),
            (format!("viewer a/b sha256:{hash}"), "no name"),
            ("viewer ana".to_owned(), "no sha256:HEX"),
            ("viewer ana sha256:12".to_owned(), "no sha256:HEX"),
            (format!("viewer ana {hash}"), "no sha256:HEX"),
            (format!("viewer ana sha256:{}", "é".repeat(32)), "no sha256:HEX"),
            (format!("viewer ana sha256:{hash} soon"), "no date"),
            (format!("viewer ana sha256:{hash} 2027-01-01 x"), "more than four"),
        ] {
            let (number, told) = Tokens::parse(&format!("# one\n{line}\n")).unwrap_err();
            assert!(number == 2 && told.contains(what), "{line}: {number}: {told}");
        }
    }

    #[test]
    fn a_file_that_every_user_can_write_lets_nobody_in() {
        use std::os::unix::fs::PermissionsExt;
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("tokens");
        std::fs::write(&path, "").unwrap();
        assert_eq!(Tokens::read(&path).unwrap().count(), 0);
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o646)).unwrap();
        assert!(Tokens::read(&path).unwrap_err().contains("chmod o-w"));
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o600)).unwrap();
        std::fs::write(&path, "viewer\n").unwrap();
        let told = Tokens::read(&path).unwrap_err();
        assert!(told.contains("tokens:1: ") && told.contains("write `viewer|operator NAME"), "{told}");
    }
}
