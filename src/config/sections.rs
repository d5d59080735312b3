//! `[node]` and `[store]`. The store's `url` and `url_file`
//! included: whether the store is there is not for a file to say; whether its url can be meant is.

use std::collections::BTreeMap;
use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::config::context::read_text;
use crate::config::reader::{LONGEST, Section, put, put_some};
use crate::config::settings::KEYS as DEFAULTS;
use crate::config::value::{Entry, nearest};
use crate::config::{Diagnostic, NodeConfig, Severity, StoreConfig, secrets};
use crate::drive::MAX_RUNNING;
use crate::job::{Namespace, NodeName};
use crate::store::{Advice, EMBEDDED, SCHEMES, UrlFault, check_url, shown_scheme};

const NODE: &[&str] = &["name", "labels", "drain", "journal", "max_running"];
/// Of `[http]`.
pub(super) const HTTP: &[&str] = &[
    "listen",
    "read_only",
    "base_path",
    "public_url",
    "behind_tls_proxy",
    "tls",
    "metrics_open",
    "metrics_jobs",
    "auth",
];
const STORE: &[&str] = &["url", "url_file", "namespace", "op_timeout", "retention"];

/// Which section a key belongs to, for those who put it elsewhere.
pub(super) const HOMES: &[(&str, &[&str])] =
    &[("[node]", NODE), ("[store]", STORE), ("[http]", HTTP), ("[defaults] or a job", DEFAULTS)];

const DRAIN: RangeInclusive<Duration> = Duration::ZERO..=Duration::from_secs(7 * 86_400);
/// Each run costs a keeper, a command and some file descriptors: more than that is no machine's.
const RUNNING: RangeInclusive<i64> = 1..=100_000;
const OP_TIMEOUT: RangeInclusive<Duration> = Duration::from_millis(10)..=Duration::from_secs(60);
/// The attempt counter of a slot is a record: it has to outlive an hour at least. Longer slots are checked with the jobs.
const RETENTION: RangeInclusive<Duration> = Duration::from_secs(3_600 + 60)..=LONGEST;

/// Reads `[node]`.
pub(super) fn node(section: &Section<'_>) -> NodeConfig {
    section.only(NODE, HOMES);
    let drain = Duration::from_secs(600);
    let name = host_name(section);
    let mut node = NodeConfig { name, labels: BTreeMap::new(), drain, journal: None, max_running: MAX_RUNNING };
    put(&mut node.name, node_name(section));
    put(&mut node.labels, section.text_map("labels", "{ zone = \"eu-1\" }"));
    put(&mut node.drain, section.duration("drain", DRAIN));
    put_some(&mut node.journal, journal(section));
    put(&mut node.max_running, max_running(section));
    node
}

/// `${HOSTNAME:-local}`. A host name may have characters that a node name cannot; nobody chose them for this purpose.
fn host_name(section: &Section<'_>) -> NodeName {
    NodeName::nearest(section.ctx.env.variable("HOSTNAME").filter(|name| !name.is_empty()).unwrap_or("local"))
}

fn node_name(section: &Section<'_>) -> Option<NodeName> {
    let entry = section.entry("name")?;
    let text = entry.text("\"${HOSTNAME:-local}\"")?;
    match NodeName::new(&text) {
        Ok(name) => Some(name),
        Err(error) => {
            entry.object("bad-name", error, format!("for example {:?}", NodeName::nearest(&text).as_str()));
            None
        }
    }
}

fn journal(section: &Section<'_>) -> Option<PathBuf> {
    let entry = section.entry("journal")?;
    let text = entry.text("\"/var/lib/cronward/journal.jsonl\"")?;
    if text.is_empty() {
        entry.refuse("bad-path", "is empty", "name a file, or leave the key out for no journal");
        return None;
    }
    Some(PathBuf::from(text))
}

fn max_running(section: &Section<'_>) -> Option<usize> {
    usize::try_from(section.entry("max_running")?.integer(RUNNING, 512)?).ok()
}

/// Reads `[store]`.
pub(super) fn store(section: &Section<'_>) -> StoreConfig {
    section.only(STORE, HOMES);
    let mut store = StoreConfig::default();
    if let Some((url, file)) = read(section) {
        (store.url, store.url_file) = (url, file);
    }
    put(&mut store.namespace, namespace(section));
    put(&mut store.op_timeout, section.duration("op_timeout", OP_TIMEOUT));
    put(&mut store.retention, section.duration("retention", RETENTION));
    store
}

fn namespace(section: &Section<'_>) -> Option<Namespace> {
    let entry = section.entry("namespace")?;
    let text = entry.text("\"prod\"")?;
    match Namespace::new(&text) {
        Ok(name) => Some(name),
        Err(error) => {
            entry.object("bad-name", error, "for example \"prod\"");
            None
        }
    }
}

/// A file with a url in it holds little else.
const LARGEST: u64 = 64 * 1024;

/// The url in a `url_file`: its first line, without the mark with which some editors begin a file.
///
/// # Errors
/// Why there is none, without the path and without the url.
pub fn read_url_file(path: &Path) -> Result<String, String> {
    let line = read_secret_file(path)?;
    let what = match line.chars().next() {
        None => "has nothing in its first line",
        Some('#') => "has a comment in its first line",
        Some('"' | '\'') => "has quotes around the url in its first line",
        _ if is_assignment(&line) => "has NAME=url in its first line, as a file of variables has",
        _ => return Ok(line),
    };
    Err(format!("{what}: write the url alone"))
}

/// The secret in a `secret_file`: its first line, without the mark with which some editors begin a file.
///
/// # Errors
/// Why there is none, without the path and without the secret.
pub fn read_secret_file(path: &Path) -> Result<String, String> {
    let text = read_text(path, LARGEST)?;
    Ok(text.trim_start_matches('\u{feff}').lines().next().unwrap_or("").trim().to_owned())
}

/// `STORE_URL=redis://…`. No url and no secret looks so.
fn is_assignment(line: &str) -> bool {
    let Some((name, value)) = line.strip_prefix("export ").unwrap_or(line).split_once('=') else { return false };
    let (name, value) = (name.trim_end(), value.trim_start().trim_start_matches(['"', '\'']));
    let is_name = !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
    is_name && (value.contains("://") || value.starts_with(EMBEDDED))
}

/// The store's url, if the file names one, and the file that it was read from.
pub(super) fn read(section: &Section<'_>) -> Option<(String, Option<PathBuf>)> {
    match (section.entry("url"), section.entry("url_file")) {
        (Some(_), Some(file)) => {
            file.refuse(
                "both-urls",
                "is given besides url",
                "keep one of them; url_file keeps the password out of here",
            );
            None
        }
        (Some(url), None) => {
            let text = url.filled_text("\"redis://127.0.0.1:6379\"")?;
            secrets::look_at_url(&url);
            check(&url, "url", &text).then_some((text, None))
        }
        (None, Some(file)) => from_file(&file),
        (None, None) => None,
    }
}

fn from_file(file: &Entry<'_>) -> Option<(String, Option<PathBuf>)> {
    let path = file.filled_text("\"/run/secrets/redis-url\"")?;
    match read_url_file(Path::new(&path)) {
        Ok(url) => check(file, "its url", &url).then(|| (url, Some(PathBuf::from(path)))),
        Err(message) => {
            let hint = "write the url into that file, on one line";
            file.refuse("unreadable-file", &format!("{path:?} {message}"), hint);
            None
        }
    }
}

/// Whether a url can be opened by this build. No secret of it is ever told.
fn check(entry: &Entry<'_>, what: &str, url: &str) -> bool {
    let scheme = url.split(':').next().unwrap_or("");
    if !SCHEMES.iter().any(|(known, _)| *known == scheme) {
        // What is no scheme may be a password.
        unknown(entry, what, shown_scheme(url).unwrap_or(""));
        return false;
    }
    match check_url(url) {
        Ok(advice) => advice.into_iter().for_each(|advice| tell(entry, advice)),
        Err(UrlFault { what, hint }) => {
            entry.refuse("bad-url", &what, hint);
            return false;
        }
    }
    true
}

/// What the store cannot do is told where it is chosen.
fn tell(entry: &Entry<'_>, advice: Advice) {
    let Advice { code, message, hint } = advice;
    let (message, hint) = (message.to_owned(), Some(hint.to_owned()));
    entry.ctx.add(Diagnostic { severity: Severity::Note, code, message, span: entry.span(), hint });
}

fn unknown(entry: &Entry<'_>, what: &str, scheme: &str) {
    let known = || SCHEMES.iter().map(|(scheme, _)| *scheme);
    let list = known().collect::<Vec<_>>().join(", ");
    let (message, near) = if scheme.is_empty() {
        (format!("cannot be used: {what} has no scheme"), None)
    } else {
        (format!("cannot be used: unknown scheme {scheme:?}"), nearest(scheme, known()))
    };
    let hint = match near {
        Some(near) => format!("did you mean {near:?}? Known schemes: {list}"),
        None => format!("known schemes: {list}"),
    };
    entry.refuse("bad-url", &message, hint);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read_from(content: &str) -> Result<String, String> {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), content).unwrap();
        read_url_file(file.path())
    }

    #[test]
    fn the_url_of_a_file_is_read_behind_the_mark_of_an_editor() {
        assert_eq!(read_from("\u{feff}redis://h\r\n").unwrap(), "redis://h");
        for url in ["redis://u:a=b@h?x=1", "sqlite:/a=b", "a=b"] {
            assert_eq!(read_from(url).unwrap(), url);
        }
        let file = tempfile::NamedTempFile::new().unwrap();
        for secret in ["whsec_c2VjcmV0==", "#1\"", "A=sqlite:"] {
            std::fs::write(file.path(), secret).unwrap();
            assert_eq!(read_secret_file(file.path()).unwrap(), secret);
        }
    }

    #[test]
    fn a_file_that_does_not_begin_with_the_url_says_what_it_begins_with() {
        for (text, wanted) in
            [("\nredis://h", "nothing"), ("# store\nredis://h", "a comment"), ("\"redis://h\"", "quotes")]
        {
            let error = read_from(text).unwrap_err();
            assert!(error.contains(wanted) && error.ends_with("write the url alone"), "{error}");
        }
    }

    #[test]
    fn a_file_of_variables_is_refused_without_its_secret() {
        for line in [
            "STORE_URL=redis://u:hunter2@h",
            "export URL='redis://u:hunter2@h'",
            "A=\"sqlite:/hunter2\"",
            "url = \"redis://u:hunter2@h\"",
        ] {
            let error = read_from(line).unwrap_err();
            assert!(error.contains("write the url alone") && !error.contains("hunter2"), "{error}");
        }
    }
}
