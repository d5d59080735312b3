//! The url of a store: which schemes there are, where its secrets are, and why it could not be opened. Never reads what a url
//! leads to, and knows no store.
//!
//! Whoever shows a url, warns of one or keeps it from others asks here and nowhere else. Rather too much is hidden than too
//! little: urls are also written wrongly, and are shown above all then.

use std::ops::Range;

use url::form_urlencoded;

use crate::error::StoreError;

/// The schemes that are known, with the cargo feature each needs.
pub const SCHEMES: &[(&str, &str)] = &[
    ("sqlite", "sqlite"),
    ("redis", "redis"),
    ("rediss", "redis"),
    ("redis+unix", "redis"),
    ("valkey", "redis"),
    ("valkeys", "redis"),
    ("valkey+unix", "redis"),
    ("postgres", "postgres"),
    ("postgresql", "postgres"),
    ("mysql", "mysql"),
    ("mariadb", "mysql"),
    ("etcd", "etcd"),
    ("etcds", "etcd"),
    ("zookeeper", "zookeeper"),
    ("redis+sentinel", "redis-sentinel"),
    ("rediss+sentinel", "redis-sentinel"),
    ("valkey+sentinel", "redis-sentinel"),
    ("valkeys+sentinel", "redis-sentinel"),
    ("redis+cluster", "redis-cluster"),
    ("rediss+cluster", "redis-cluster"),
    ("valkey+cluster", "redis-cluster"),
    ("valkeys+cluster", "redis-cluster"),
    ("redlock", "redis-redlock"),
    ("redlocks", "redis-redlock"),
    ("memory", ""),
];

/// The embedded store, where no other is named: a file in `$STATE_DIRECTORY`, else in `$XDG_STATE_HOME/cronward`.
pub const EMBEDDED: &str = "sqlite";

/// Stores without users: a path may look like anything.
const OPEN: [&str; 2] = ["sqlite", "memory"];
/// Where a user without a password is usual. Elsewhere what stands alone before the `@` is a password that was meant as one.
const LONE_USERS: [&str; 11] =
    ["postgres", "postgresql", "mysql", "mariadb", "http", "https", "ssh", "git", "git+ssh", "ftp", "sftp"];
/// Parts of a parameter's name that tell of a secret.
const TELLING: [&str; 4] = ["pass", "pwd", "secret", "token"];
/// A scheme is shown where it is one: a password may stand in its place.
const LONGEST_SCHEME: usize = 20;
/// What is so short stands in any message.
const SHORT: usize = 4;

/// Why a store could not be opened.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum OpenError {
    /// The url cannot be used as it is written.
    #[error("store url {url:?}: {message}")]
    Url {
        /// The url, without secrets.
        url: String,
        /// What is wrong and what to write.
        message: String,
    },
    /// A lock of a foreign program cannot be held there.
    #[error("an external lock can be held in one Redis only (also behind sentinels), not in {store}")]
    LockKey {
        /// What it is.
        store: &'static str,
    },
    /// It keeps no locks.
    #[error("{store} keeps no locks: docs/locks.md says which stores do")]
    Locks {
        /// What it is.
        store: &'static str,
    },
    /// The store answered, or did not.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// Why a url cannot be meant. Quotes no secret of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UrlFault {
    /// What is wrong, after the url's name: `cannot be used: it names no host`.
    pub what: String,
    /// What to write instead.
    pub hint: String,
}

/// What stands between the reason and the way out in the message of an [`OpenError`].
const WAY_OUT: &str = ": write ";

impl UrlFault {
    /// What an adapter refuses. The hint is what its message says to write, or else `form`.
    pub(super) fn of(url: &str, error: OpenError, form: String) -> Self {
        let told = match error {
            OpenError::Url { message, .. } => without_secrets(url, message),
            other => other.to_string(),
        };
        let (what, hint) = match told.split_once(WAY_OUT) {
            Some((what, way_out)) => (what, format!("write {way_out}")),
            None => (told.as_str(), form),
        };
        Self { what: format!("cannot be used: {what}"), hint }
    }
}

/// What a kind of store does not promise, told where it is chosen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Advice {
    /// The stable code of the note.
    pub code: &'static str,
    /// What is not promised.
    pub message: &'static str,
    /// What to do about it.
    pub hint: &'static str,
}

/// What a migration did: the tables' version before and after.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Migration {
    /// 0 when there were no tables.
    pub from: i64,
    /// The same as before when nothing was to do.
    pub to: i64,
}

/// Where the secrets of a url are, from left to right: the password, or the user where it stands in the place of one, and
/// parameters like `pass`, `password` and `sentinel_pass`. A variable (`${NAME}`) is none.
pub fn secret_ranges(url: &str) -> Vec<Range<usize>> {
    if OPEN.contains(&scheme(url)) {
        return Vec::new();
    }
    let Some(start) = authority(url) else { return formless(url).into_iter().collect() };
    let user = of_user(url, start);
    let read = user.as_ref().map_or(start, |range| range.end);
    let user = user.filter(|range| is_secret(part(url, range.clone())));
    user.into_iter().chain(of_parameters(url, read)).collect()
}

/// The url without its secrets and without its parameters, for messages. Of what has not the form of a url only a known scheme
/// is shown.
pub fn redact(url: &str) -> String {
    let scheme = scheme(url);
    if OPEN.contains(&scheme) || SCHEMES.iter().any(|(known, _)| *known == url) {
        return url.to_owned();
    }
    let Some(start) = authority(url) else {
        let known = known_start(url);
        return if known.is_empty() { "***".to_owned() } else { format!("{known}:***") };
    };
    if is_ambiguous(url, start) {
        return format!("{scheme}://***");
    }
    let (user, from) = match of_user(url, start) {
        Some(range) => (format!("{}***", part(url, start..range.start)), range.end),
        None => (String::new(), start),
    };
    let rest = part(url, from..url.len()).split(['?', '#']).next().unwrap_or("");
    format!("{scheme}://{user}{rest}")
}

/// What nobody else may see of a url: itself when it carries a secret, and each secret as written and decoded. Empty for a
/// url without one.
pub fn secrets(url: &str) -> Vec<String> {
    let ranges = secret_ranges(url);
    if ranges.is_empty() {
        return Vec::new();
    }
    let mut secrets: Vec<String> = ranges.into_iter().map(|range| part(url, range).to_owned()).collect();
    // Where its end cannot be told for sure, also the one that the general rules find.
    secrets.extend(url::Url::parse(url).ok().and_then(|url| url.password().map(str::to_owned)));
    let decoded: Vec<String> =
        secrets.iter().flat_map(|secret| [decoded(secret), decoded(&secret.replace('+', "%2B"))]).collect();
    secrets.extend(decoded);
    secrets.push(url.to_owned());
    secrets.retain(|secret| !secret.is_empty());
    secrets.sort_unstable();
    secrets.dedup();
    secrets
}

/// Whether two urls differ in a password and in nothing else. False where that cannot be told, and for stores without users.
pub(super) fn differ_in_password(one: &str, other: &str) -> bool {
    one != other && without_password(one).is_some_and(|rest| without_password(other) == Some(rest))
}

/// The url without its passwords. None where it cannot be told for sure what they are.
fn without_password(url: &str) -> Option<String> {
    let start = authority(url)?;
    if OPEN.contains(&scheme(url)) || is_ambiguous(url, start) || url.contains('#') {
        return None;
    }
    let end = end_of_authority(url, start);
    let (login, hosts) = part(url, start..end).rsplit_once('@').unwrap_or(("", part(url, start..end)));
    let user = match login.split_once(':') {
        Some((user, _)) => user,
        None if LONE_USERS.contains(&scheme(url)) => login,
        None => "",
    };
    let (path, query) = part(url, end..url.len()).split_once('?').unwrap_or((part(url, end..url.len()), ""));
    let mut kept = Vec::new();
    for parameter in query.split('&').filter(|parameter| !parameter.is_empty()) {
        // The rest of a value with a raw `&` in it may be the rest of a password.
        let (name, _) = parameter.split_once('=')?;
        kept.extend((!is_telling(name)).then_some(parameter));
    }
    Some(format!("{}://{user}@{hosts}{path}?{}", scheme(url), kept.join("&")))
}

/// The scheme, unless what stands in its place may be something else.
pub fn shown_scheme(url: &str) -> Option<&str> {
    let (scheme, _) = url.split_once(':')?;
    (!scheme.is_empty() && scheme.len() <= LONGEST_SCHEME && scheme.chars().all(is_plain)).then_some(scheme)
}

/// A message about a url, unless a piece of a secret may have got into it.
pub(super) fn without_secrets(url: &str, message: String) -> String {
    let cut = |c: char| !c.is_alphanumeric();
    let ranges = secret_ranges(url);
    let pieces =
        ranges.iter().flat_map(|range| part(url, range.clone()).split(cut)).filter(|piece| piece.len() >= SHORT);
    let mut told = pieces.filter(|piece| message.contains(piece));
    if told.next().is_some() || authority(url).is_some_and(|start| is_ambiguous(url, start)) {
        return "it cannot be read: write special characters of the password percent-encoded (/ is %2F, ? %3F, # %23, & %26)"
            .to_owned();
    }
    message
}

/// What stands before the first `:`, or all of it; it may be no scheme at all.
pub(super) fn scheme(url: &str) -> &str {
    url.split_once(':').map_or(url, |(scheme, _)| scheme)
}

const fn is_plain(c: char) -> bool {
    c.is_ascii_alphanumeric() || matches!(c, '+' | '-' | '.')
}

fn part(url: &str, range: Range<usize>) -> &str {
    url.get(range).unwrap_or("")
}

/// Where the user and the hosts begin; none where nothing has the form of a url.
fn authority(url: &str) -> Option<usize> {
    let (scheme, _) = url.split_once("://")?;
    (!scheme.is_empty() && scheme.chars().all(is_plain)).then_some(scheme.len() + 3)
}

/// The longest known scheme that a text begins with.
fn known_start(text: &str) -> &'static str {
    let fits = |known: &&str| text.strip_prefix(known).is_some_and(|rest| !rest.starts_with(is_plain));
    SCHEMES.iter().map(|(known, _)| *known).filter(fits).max_by_key(|known| known.len()).unwrap_or("")
}

/// All that follows the scheme, if there can be a secret in it.
fn formless(url: &str) -> Option<Range<usize>> {
    let known = known_start(url).len();
    let rest = part(url, known..url.len());
    let from = url.len() - rest.trim_start_matches([':', '/']).len();
    (rest.contains('@') || of_parameters(url, known).next().is_some()).then_some(from..url.len())
}

/// The end of the authority by the general rules.
fn end_of_authority(url: &str, start: usize) -> usize {
    url.get(start..).and_then(|rest| rest.find(['/', '?', '#'])).map_or(url.len(), |length| start + length)
}

/// A password with a raw `/`, `?` or `#` in it: where it ends cannot be told.
fn is_ambiguous(url: &str, start: usize) -> bool {
    let end = end_of_authority(url, start);
    let lone = LONE_USERS.contains(&scheme(url)) && !part(url, start..end).contains(':');
    end > start && !lone && part(url, end..url.len()).contains('@')
}

/// The password, or the user that stands alone; up to the last `@` where it is ambiguous which one ends it.
fn of_user(url: &str, start: usize) -> Option<Range<usize>> {
    let end = if is_ambiguous(url, start) { url.len() } else { end_of_authority(url, start) };
    let at = start + part(url, start..end).rfind('@')?;
    match part(url, start..at).find(':') {
        Some(colon) => Some(start + colon + 1..at),
        None if LONE_USERS.contains(&scheme(url)) => None,
        None => Some(start..at),
    }
}

/// The values of telling parameters after this place. What has no `=` is the rest of a value with a raw `&` or `#` in it.
fn of_parameters(url: &str, from: usize) -> impl Iterator<Item = Range<usize>> {
    let begin = part(url, from..url.len()).find(['?', '#']).map_or(url.len(), |at| from + at + 1);
    let (mut at, mut found) = (begin, Vec::<Range<usize>>::new());
    let mut in_secret = false;
    for parameter in part(url, begin..url.len()).split(['&', '?', '#']) {
        let end = at + parameter.len();
        match parameter.split_once('=') {
            Some((name, value)) => {
                in_secret = is_telling(name) && is_secret(value);
                found.extend(in_secret.then_some(at + name.len() + 1..end));
            }
            None => found.last_mut().filter(|_| in_secret).into_iter().for_each(|range| range.end = end),
        }
        at = end + 1;
    }
    found.into_iter()
}

fn is_telling(name: &str) -> bool {
    let name = decoded(name).to_lowercase();
    TELLING.iter().any(|part| name.contains(part))
}

fn is_secret(text: &str) -> bool {
    let variable = text.starts_with("${") && text.ends_with('}') && !text.contains(":-");
    !text.is_empty() && !variable
}

fn decoded(text: &str) -> String {
    let text = text.replace('&', "%26").replace('=', "%3D");
    form_urlencoded::parse(text.as_bytes()).next().map(|(name, _)| name.into_owned()).unwrap_or_default()
}

/// A host with its port, which is this one where none is written.
#[cfg(any(feature = "etcd", feature = "zookeeper"))]
pub(super) fn host_and_port(text: &str, port: u16) -> Result<String, String> {
    let bad = || format!("{text:?} is no host: write HOST or HOST:PORT, with commas between several");
    // The colons of an address like [::1] are inside of brackets.
    let after_host = text.rfind(']').map_or(0, |end| end + 1);
    let has_port = text.get(after_host..).is_some_and(|rest| rest.contains(':'));
    let whole = if has_port { text.to_owned() } else { format!("{text}:{port}") };
    let parsed = url::Url::parse(&format!("http://{whole}")).map_err(|_| bad())?;
    let plain = parsed.host_str().is_some_and(|host| !host.is_empty()) && parsed.path() == "/";
    if plain { Ok(whole) } else { Err(bad()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_secrets_of_a_url_are_the_url_and_its_password_and_none_where_there_is_no_password() {
        assert_eq!(secrets("redis://user:hunter2@h"), ["hunter2", "redis://user:hunter2@h"]);
        let several = "redlock://user:hunter2@a:1,b:2,c:3";
        assert_eq!(secrets(several), ["hunter2", several]);
        assert!(secrets("redlock://hunter2@a:1,b:2,c:3").contains(&"hunter2".to_owned()));
        assert!(secrets("redis://:a%2Fb@h").contains(&"a/b".to_owned()));
        assert!(secrets("redis+unix:///s?user=a&pass=hunter2").contains(&"hunter2".to_owned()));
        assert!(secrets("etcd://u:hunter2@a:2379,b:2379").contains(&"hunter2".to_owned()));
        let sentinels = secrets("redis+sentinel://h1:1,h2:2/m?sentinel_user=x&sentinel_pass=hunter2&db=1");
        assert!(sentinels.contains(&"hunter2".to_owned()) && !sentinels.contains(&"x".to_owned()), "{sentinels:?}");
        for url in ["sqlite", "sqlite:///var/a@b.db", "redis://h:6379/0", "memory:", "rediss://h?ca=/etc/ca.pem"] {
            assert_eq!(secrets(url), [""; 0], "{url}");
        }
    }

    #[test]
    fn no_password_of_a_database_is_shown_and_each_is_hidden_from_commands() {
        for url in [
            "postgres://u:hunter2@h:1/d?sslmode=require",
            "mysql://u:hunter2@h/d",
            "postgres:///d?host=/run/p&user=u&password=hunter2",
            "postgresql://u:hun%74er2@h/d",
        ] {
            assert!(!redact(url).contains("ter2"), "{}", redact(url));
            assert!(secrets(url).contains(&"hunter2".to_owned()), "{url}: {:?}", secrets(url));
        }
    }

    #[test]
    fn no_password_is_shown_however_the_url_is_written() {
        for url in [
            "redis://user:hunter2@h:1/2",
            "redis://:hunter2@h",
            "redis://hunter2@h",
            "redis://user:hun/ter2@h",
            "redis://user:hun?ter2@h",
            "redis://user:hun#ter2@h",
            "redis+unix:///s?user=a@b&pass=hunter2",
            "redlock://user:hunter2@a:1,b:2,c:3/0?longest_lease=60s",
            "redlocks://hunter2@a,b,c?ca=/x",
            "redlock://user:hun/ter2@a,b,c",
        ] {
            let shown = redact(url);
            assert!(!shown.contains("ter2") && !shown.contains("hun"), "{shown}");
        }
        for (url, shown) in [
            ("redis:u:hunter2@h", "redis:***"),
            ("redlock:u:hunter2@a", "redlock:***"),
            ("rediss//u:hunter2@h", "rediss:***"),
            ("redis+sentinel:hunter2@h", "redis+sentinel:***"),
            ("u:hunter2@h", "***"),
            ("hunter2", "***"),
            ("u:hunter2@h://x", "***"),
            ("sqlite", "sqlite"),
            ("sqlite:a@b.db", "sqlite:a@b.db"),
            ("memory:", "memory:"),
            ("nowhere://x", "nowhere://x"),
            ("postgres://user@h/d?password=hunter2", "postgres://user@h/d"),
        ] {
            assert_eq!(redact(url), shown);
        }
        assert_eq!(redact("redis://user:hunter2@h:1/2"), "redis://user:***@h:1/2");
        assert_eq!(redact("sqlite:///var/a@b.db"), "sqlite:///var/a@b.db");
        assert_eq!(redact("etcds://u:hunter2@a:1,b:2?ca=/x"), "etcds://u:***@a:1,b:2");
    }

    #[test]
    fn a_secret_is_found_wherever_a_url_may_have_one() {
        let found = |url: &'static str| -> Vec<&str> {
            secret_ranges(url).into_iter().map(|range| url.get(range).unwrap()).collect()
        };
        for (url, secret) in [
            ("redis://:x@h", "x"),
            ("redis://x@h", "x"),
            ("redis://u:a:b@h", "a:b"),
            ("redis://u:a@b@h", "a@b"),
            ("redis://u:a/b?c#d@h", "a/b?c#d"),
            ("redis://u:a@b/c@h", "a@b/c"),
            ("redis+sentinel://h/m?sentinel_pass=x&db=1", "x"),
            ("redis+unix:///s?user=a@b&pass=x", "x"),
            ("postgres:///d?password=x", "x"),
            ("postgres:///d?PASS%77ord=x", "x"),
            ("postgres:///d?password=x#y&z", "x#y&z"),
            ("redis:u:x@h", "u:x@h"),
            ("rediss//u:x@h", "u:x@h"),
            ("redis:/u:x@h", "u:x@h"),
            ("x@h", "x@h"),
        ] {
            assert_eq!(found(url), [secret], "{url}");
        }
        assert_eq!(found("redis+sentinel://u:x@h/m?sentinel_pass=y"), ["x", "y"]);
        for url in [
            "redis://h:6379/0",
            "redis",
            "redis:h",
            "postgres://user@h/d",
            "sqlite:/a?password=b@c",
            "redis://:${PW}@h",
            "redis+sentinel://h/m?sentinel_pass=${PW}",
            "redis+sentinel://h/m?sentinel_user=u",
            "jobs.db",
        ] {
            assert_eq!(found(url), [""; 0], "{url}");
        }
    }

    #[test]
    fn urls_that_differ_in_a_password_are_told_from_those_that_differ_in_more() {
        for (one, other) in [
            ("redis://u:a@h:1/2", "redis://u:b@h:1/2"),
            ("redis://:a@h", "redis://h"),
            ("redis://a@h", "redis://b%2F@h"),
            ("redis+unix:///s?db=1&user=u&pass=a", "redis+unix:///s?db=1&user=u&pass=b"),
            ("redis+sentinel://u:a@h,i/m?sentinel_pass=a&db=1", "redis+sentinel://u:b@h,i/m?sentinel_pass=b&db=1"),
            ("postgres://u:a@h/d?sslmode=require", "postgres://u:b@h/d?sslmode=require"),
            ("postgres:///d?host=/run/p&user=u&password=a", "postgres:///d?host=/run/p&user=u&password=b"),
            ("postgres://u@h/d", "postgres://u:b@h/d"),
            ("postgres://u:a@h", "postgres://u:b@h"),
            ("redlock://u:a@a,b,c", "redlock://u:b@a,b,c"),
            ("etcd://u:a@a,b", "etcd://u:b@a,b"),
        ] {
            assert!(differ_in_password(one, other) && differ_in_password(other, one), "{one} {other}");
        }
        for (one, other) in [
            ("redis://u:a@h", "redis://u:a@h"),
            ("redis://u:a@h", "redis://v:a@h"),
            ("redis://u:a@h", "redis://v:b@h"),
            ("redis://u:a@h", "redis://:b@h"),
            ("redis+unix:///s?user=u&pass=a", "redis+unix:///s?user=v&pass=b"),
            (
                "redis+sentinel://h/m?sentinel_user=u&sentinel_pass=a",
                "redis+sentinel://h/m?sentinel_user=v&sentinel_pass=b",
            ),
            ("postgres://u:a@h/d", "postgres://v:b@h/d"),
            ("postgres://u@h/d", "postgres://v@h/d"),
            ("postgres://u:a@h/d", "postgres://u:b@h/d?migrate=off"),
            ("redis://u:a@h", "redis://u:b@i"),
            ("redis://u:a@h:1", "redis://u:b@h:2"),
            ("redis://u:a@h/1", "redis://u:b@h/2"),
            ("redis://u:a@h", "rediss://u:b@h"),
            ("rediss://u:a@h?ca=/x", "rediss://u:b@h?ca=/y"),
            ("redis://u:a@h", "redis://u:b/c@h"),
            ("redis://u:a@h", "redis://u:b#c@h"),
            ("postgres:///d?password=a", "postgres:///d?password=b&c"),
            ("redlock://u:a@a,b,c", "redlock://u:b@a,b,d"),
            ("sqlite:///a", "sqlite:///b"),
            ("redis://u:a@h", "u:b@h"),
            ("redis://u:a@h", ""),
        ] {
            assert!(!differ_in_password(one, other) && !differ_in_password(other, one), "{one} {other}");
        }
    }

    #[test]
    fn a_message_that_quotes_a_piece_of_a_secret_is_not_told() {
        let told = |url, message: &str| without_secrets(url, message.to_owned());
        assert_eq!(told("etcd://u:secret@h/x", "a path, /x"), "a path, /x");
        assert!(told("etcd://u:hun/ter2@h", "a path, /ter2@h").contains("percent-encode"));
        assert!(told("postgres:///d?password=hun&ter2", "parameter \"ter2\"").contains("percent-encode"));
    }
}
