//! The tokens that let somebody in: the file that lists them, by their hashes alone, and what one looks like.
//!
//! A token is 256 random bits, so one SHA-256 is enough to keep it by: there is nothing to guess and nothing to stretch.

use std::fmt::Write;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use chrono::{DateTime, NaiveDate, NaiveTime, SecondsFormat, Utc};
use sha2::{Digest as _, Sha256};
use subtle::{Choice, ConstantTimeEq};

use crate::config::Role;
use crate::file;
use crate::web::session::{LASTS, LoginCookie, LoginKey, digest, hex};

/// How each token begins, so that scanners for secrets can find one.
const PREFIX: &str = "cronward_";
/// Then come so many hexadecimal digits.
const DIGITS: usize = 64;
/// The largest file that is read.
const LARGEST: u64 = 256 * 1_024;
const FORM: &str = "write `viewer|operator NAME sha256:HEX [EXPIRES]`, as `cronward token new` prints it";

/// Who asks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Bearer {
    pub(super) name: String,
    pub(super) role: Role,
    pub(super) way: Way,
}

/// How it is known who asks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Way {
    /// It is not: nothing is said of who may ask.
    Anybody,
    /// By a token in a header, which no browser sends by itself.
    Token,
    /// By a proxy.
    Proxy,
    /// By a login, whose forms carry this.
    Login { form_token: String },
}

impl Bearer {
    /// What the forms of this login carry; none where nobody logged in.
    pub(super) fn form_token(&self) -> Option<&str> {
        if let Way::Login { form_token } = &self.way { Some(form_token) } else { None }
    }
}

/// What is wrong with a file of tokens.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TokensFault {
    /// The file.
    pub file: String,
    /// The line, counted from 1; none where the file itself cannot be used.
    pub line: Option<usize>,
    /// What is wrong.
    pub what: String,
    /// What to do.
    pub fix: String,
}

impl std::fmt::Display for TokensFault {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { file, line, what, fix } = self;
        match line {
            Some(line) => write!(f, "tokens_file {file}:{line}: {what}; {fix}"),
            None => write!(f, "tokens_file {file} {what}; {fix}"),
        }
    }
}

/// The hash of a token. Only [`ConstantTimeEq`] compares it: `==` would end at the first difference, and tell by its time where that is.
#[derive(Clone, Copy)]
struct TokenHash([u8; 32]);

impl ConstantTimeEq for TokenHash {
    fn ct_eq(&self, other: &Self) -> Choice {
        self.0.ct_eq(&other.0)
    }
}

/// One line.
#[derive(Clone)]
struct Listed {
    name: String,
    role: Role,
    hash: TokenHash,
    expires: Option<DateTime<Utc>>,
}

/// The tokens of a file.
#[derive(Clone)]
pub struct Tokens {
    listed: Vec<Listed>,
    /// Every user of the machine can read the file, and with it what logins are signed with: there are none.
    is_open: bool,
}

/// How many there are, and nothing by which one could be known.
impl std::fmt::Debug for Tokens {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Tokens").field(&self.listed.len()).finish()
    }
}

impl Tokens {
    /// Reads a file.
    ///
    /// # Errors
    /// What is wrong with it: the file, the line, what to do.
    pub fn read(path: &Path) -> Result<Self, TokensFault> {
        let shown = path.display();
        let fault = |line, what, fix: &str| TokensFault { file: shown.to_string(), line, what, fix: fix.to_owned() };
        let read = || {
            let file = file::open(path)?;
            let mode = file.metadata().map_or(0, |data| data.mode());
            if mode & 0o002 != 0 {
                return Err(format!("can be written by every user, who could let anybody in: chmod o-w {shown}"));
            }
            let text = String::from_utf8(file::read(file, LARGEST)?);
            Ok((text.map_err(|_| "is not UTF-8: save it as that".to_owned())?, mode & 0o004 != 0))
        };
        let (text, is_open) = read().map_err(|error| fault(None, error, "name one that this user can read"))?;
        let tokens = Self::parse(&text).map_err(|(line, what)| fault(Some(line), what, FORM))?;
        Ok(Self { is_open, ..tokens })
    }

    /// Of the text of a file; else which line is wrong, and what is.
    pub(crate) fn parse(text: &str) -> Result<Self, (usize, String)> {
        let lines = text.lines().map(str::trim).enumerate();
        let lines = lines.filter(|(_, line)| !line.is_empty() && !line.starts_with('#'));
        let known = lines.map(|(index, line)| known(line).map_err(|what| (index + 1, what)));
        Ok(Self { listed: known.collect::<Result<_, _>>()?, is_open: false })
    }

    /// Whose token it is; nobody's when it is none, is not listed, or is over: the answer to all three is the same.
    pub(super) fn find(&self, token: &str, now: DateTime<Utc>) -> Option<Bearer> {
        self.line_of(token, now).map(|known| known.bearer(Way::Token))
    }

    fn line_of(&self, token: &str, now: DateTime<Utc>) -> Option<&Listed> {
        let hash = hash_of(token);
        // Each is looked at, and each to its end.
        let found = self
            .listed
            .iter()
            .fold(None, |found, known| if bool::from(known.hash.ct_eq(&hash)) { Some(known) } else { found });
        found.filter(|known| is_token(token) && known.is_valid(now))
    }

    /// The cookie for whoever has this token, and when it ends: with the token, if that comes first.
    pub(super) fn log_in(&self, token: &str, now: DateTime<Utc>) -> Option<(String, DateTime<Utc>)> {
        let known = self.line_of(token, now).filter(|_| !self.is_open)?;
        let ends = known.expires.map_or(now + LASTS, |expires| expires.min(now + LASTS));
        Some((known.key().cookie(&known.name, ends), ends))
    }

    /// Whose login it is; nobody's when it is not signed by a line of this file, or is over.
    pub(super) fn by_cookie(&self, value: &str, now: DateTime<Utc>) -> Option<Bearer> {
        let cookie = LoginCookie::parse(value).filter(|_| !self.is_open)?;
        let own = self.listed.iter().filter(|known| known.name == cookie.name && known.is_valid(now));
        // Of each line with that name: one person may have several tokens.
        let known =
            own.fold(None, |found, known| if known.key().accepts(&cookie, now) { Some(known) } else { found })?;
        let form_token = known.key().form_token(&cookie);
        Some(known.bearer(Way::Login { form_token }))
    }

    /// How many there are.
    pub const fn count(&self) -> usize {
        self.listed.len()
    }

    /// Whether one of them is an operator's.
    pub fn has_operator(&self) -> bool {
        self.listed.iter().any(|known| known.role == Role::Operator)
    }

    /// Whether every user of the machine can read the file: then nobody can log in with a page, because whoever reads the file could
    /// sign a login. Tokens in a header work all the same.
    pub const fn is_open(&self) -> bool {
        self.is_open
    }
}

impl Listed {
    fn is_valid(&self, now: DateTime<Utc>) -> bool {
        self.expires.is_none_or(|expires| now < expires)
    }

    fn bearer(&self, way: Way) -> Bearer {
        Bearer { name: self.name.clone(), role: self.role, way }
    }

    const fn key(&self) -> LoginKey {
        LoginKey::of(self.hash.0)
    }
}

fn known(line: &str) -> Result<Listed, String> {
    let mut words = line.split_whitespace();
    let (role, name, hash) = (words.next().unwrap_or(""), words.next(), words.next());
    let role = Role::named(role).ok_or("the first word is no role")?;
    let name = name.filter(|name| is_name(name)).ok_or("the second word is no name")?;
    let hash =
        hash.and_then(|hash| hash.strip_prefix("sha256:")).and_then(digest).ok_or("the third word is no sha256:HEX")?;
    let hash = TokenHash(hash);
    let expires = words.next().map(|expires| instant(expires).ok_or("the fourth word is no date")).transpose()?;
    if words.next().is_some() {
        return Err("there are more than four words".to_owned());
    }
    Ok(Listed { name: name.to_owned(), role, hash, expires })
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

fn hash_of(token: &str) -> TokenHash {
    TokenHash(Sha256::digest(token.as_bytes()).into())
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
        let mut line = format!("{} {name} sha256:{}", role.as_str(), hex(&hash_of(&token).0));
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
        let name = |token: &str, now| tokens.find(token, at(now)).map(|bearer| (bearer.name, bearer.role));
        assert_eq!(name(&mint.token, "2026-12-31T23:59:59Z"), Some(("ana".to_owned(), Role::Operator)));
        assert_eq!(name(&mint.token, "2027-01-01T00:00:00Z"), None);
        assert_eq!(name(&mint.token.replace('0', "1"), "2026-01-01T00:00:00Z"), None);
        assert!(!mint.line.contains(&mint.token) && !format!("{tokens:?}").contains("ana"));
        assert!(mint.line.ends_with(" 2027-01-01T00:00:00Z"), "{}", mint.line);
        let day = Tokens::parse(&mint.line.replace("T00:00:00Z", "")).unwrap();
        assert_eq!(day.listed[0].expires, tokens.listed[0].expires, "a day ends where it begins");
    }

    #[test]
    fn a_login_lasts_twelve_hours_or_as_long_as_its_token_and_ends_with_its_line() {
        let mint = |bits, expires| Mint::new([bits; 32], Role::Operator, "ana", expires).unwrap();
        let (long, short) = (mint(1, None), mint(2, Some(at("2026-11-21T18:00:00Z"))));
        let tokens = Tokens::parse(&format!("{}\n{}\n", long.line, short.line)).unwrap();
        let now = at("2026-11-21T15:00:00Z");
        let (cookie, ends) = tokens.log_in(&long.token, now).unwrap();
        assert_eq!(ends, at("2026-11-22T03:00:00Z"));
        assert_eq!(tokens.log_in(&short.token, now).unwrap().1, at("2026-11-21T18:00:00Z"));
        assert_eq!(tokens.log_in("cronward_", now), None);
        let name = |tokens: &Tokens, now| tokens.by_cookie(&cookie, at(now)).map(|bearer| (bearer.name, bearer.role));
        assert_eq!(name(&tokens, "2026-11-22T02:59:59Z"), Some(("ana".to_owned(), Role::Operator)));
        assert_eq!(name(&tokens, "2026-11-22T03:00:00Z"), None);
        let without = Tokens::parse(&short.line).unwrap();
        assert_eq!(name(&without, "2026-11-21T15:00:00Z"), None, "though another line has that name");
        let demoted = Tokens::parse(&long.line.replace("operator", "viewer")).unwrap();
        assert_eq!(
            name(&demoted, "2026-11-21T15:00:00Z"),
            Some(("ana".to_owned(), Role::Viewer)),
            "as the line is now"
        );
    }

    #[test]
    fn where_every_user_can_read_the_file_tokens_are_believed_and_logins_are_not() {
        let mint = Mint::new([7; 32], Role::Viewer, "vic", None).unwrap();
        let (closed, now) = (Tokens::parse(&mint.line).unwrap(), at("2026-11-21T15:00:00Z"));
        let open = Tokens { is_open: true, ..closed.clone() };
        let (cookie, _) = closed.log_in(&mint.token, now).unwrap();
        assert!(closed.by_cookie(&cookie, now).is_some() && open.by_cookie(&cookie, now).is_none());
        assert!(open.log_in(&mint.token, now).is_none() && open.find(&mint.token, now).is_some());
    }

    /// Does not compile where it can be: which of the two is meant is not clear then.
    #[test]
    fn the_hash_of_a_token_cannot_be_compared_with_what_ends_at_the_first_difference() {
        trait NotComparable<Way> {
            fn is_so() {}
        }
        struct Comparable;
        impl<T> NotComparable<()> for T {}
        impl<T: PartialEq> NotComparable<Comparable> for T {}
        <TokenHash as NotComparable<_>>::is_so();
        <Listed as NotComparable<_>>::is_so();
    }

    #[test]
    fn what_is_no_token_is_none_though_its_hash_is_listed() {
        let line = format!("viewer weak sha256:{}", hex(&hash_of("password").0));
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
        for (mode, is_open) in [(0o644, true), (0o640, false), (0o600, false)] {
            std::fs::set_permissions(&path, std::fs::Permissions::from_mode(mode)).unwrap();
            assert_eq!(Tokens::read(&path).unwrap().is_open(), is_open, "{mode:o}");
        }
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o646)).unwrap();
        assert!(Tokens::read(&path).unwrap_err().to_string().contains("chmod o-w"));
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o600)).unwrap();
        std::fs::write(&path, "viewer\n").unwrap();
        let told = Tokens::read(&path).unwrap_err().to_string();
        assert!(told.contains("tokens:1: ") && told.contains("write `viewer|operator NAME"), "{told}");
    }
}
