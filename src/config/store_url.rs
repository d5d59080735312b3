//! `url` and `url_file` of `[store]`. Whether the store is there is not for a file to say; whether its url can be meant is.

use std::path::Path;

use crate::config::nearest::nearest;
use crate::config::reader::Section;
use crate::config::secrets;
use crate::config::value::Entry;
use crate::config::{Diagnostic, Severity};
use crate::store::{SCHEMES, shown_scheme};

/// The store's url, if the file names one.
pub(super) fn read(section: &Section<'_>) -> Option<String> {
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
            check(&url, "url", &text).then_some(text)
        }
        (None, Some(file)) => from_file(&file),
        (None, None) => None,
    }
}

fn from_file(file: &Entry<'_>) -> Option<String> {
    let path = file.filled_text("\"/run/secrets/redis-url\"")?;
    match file.ctx.env.read_secret(Path::new(&path)) {
        Ok(url) => check(file, "its url", &url).then_some(url),
        Err(message) => {
            let hint = "write the url into that file, on one line";
            file.refuse("unreadable-file", &format!("{path:?} {message}"), hint);
            None
        }
    }
}

/// Whether a url can be opened by this build. Of the url only the scheme is ever told.
fn check(entry: &Entry<'_>, what: &str, url: &str) -> bool {
    let scheme = url.split(':').next().unwrap_or("");
    let Some((_, feature)) = SCHEMES.iter().find(|(known, _)| *known == scheme) else {
        // What is no scheme may be a password.
        unknown(entry, what, shown_scheme(url).unwrap_or(""));
        return false;
    };
    if !is_built(feature) {
        let hint = format!("build with the cargo feature {feature:?}");
        entry.refuse("bad-url", &format!("needs {scheme}, which this build has not"), hint);
        return false;
    }
    match scheme {
        "redis" | "rediss" => check_server(entry, url, scheme),
        "redis+sentinel" | "rediss+sentinel" | "redis+cluster" | "rediss+cluster" => check_servers(entry, url, scheme),
        "redlock" | "redlocks" => check_masters(entry, url, scheme),
        "etcd" | "etcds" => {
            tell_of_clocks(entry);
            true
        }
        _ => true,
    }
}

/// A list of servers, and behind sentinels the name of a master.
fn check_servers(entry: &Entry<'_>, url: &str, scheme: &str) -> bool {
    let rest = url.split_once("://").map_or("", |(_, rest)| rest);
    let rest = rest.split(['?', '#']).next().unwrap_or("");
    let (authority, path) = rest.split_once('/').unwrap_or((rest, ""));
    let hosts = authority.rsplit('@').next().unwrap_or("");
    let name = if scheme.ends_with("sentinel") { "/mymaster" } else { "" };
    let hint = format!(
        "write {scheme}://HOST1,HOST2,HOST3{name}, with USER:PASSWORD@ before the hosts if the servers need them"
    );
    if hosts.split(',').any(str::is_empty) {
        entry.refuse("bad-url", "names no host, or an empty one", hint);
        return false;
    }
    if !name.is_empty() && path.is_empty() {
        entry.refuse("bad-url", "does not name the master that the sentinels watch", hint);
        return false;
    }
    true
}

/// A majority needs an odd number of masters. What it cannot promise is said once, where it is chosen.
fn check_masters(entry: &Entry<'_>, url: &str, scheme: &str) -> bool {
    let rest = url.split_once("://").map_or("", |(_, rest)| rest);
    let authority = rest.split(['/', '?', '#']).next().unwrap_or("");
    let hosts: Vec<&str> = authority.rsplit('@').next().unwrap_or("").split(',').collect();
    let hint =
        format!("write {scheme}://HOST1,HOST2,HOST3, with USER:PASSWORD@ before the hosts if the servers need them");
    if hosts.iter().any(|host| host.is_empty()) {
        entry.refuse("bad-url", "names no host, or an empty one", hint);
        return false;
    }
    if hosts.len() < 3 || hosts.len().is_multiple_of(2) {
        let what = format!("names {} masters: three, five or seven make a majority worth having", hosts.len());
        entry.refuse("bad-url", &what, hint);
        return false;
    }
    let message =
        "redlock: leases hold while most masters' clocks run at one rate, fences are unique while most keep their data";
    let hint = Some(
        "let the resource check the fence (CRONWARD_FENCE); docs/redlock.md has what each failure can lose".to_owned(),
    );
    let span = entry.span();
    entry.ctx.add(Diagnostic {
        severity: Severity::Note,
        code: "redlock-limits",
        message: message.to_owned(),
        span,
        hint,
    });
    true
}

/// What the store cannot do is told where it is chosen.
fn tell_of_clocks(entry: &Entry<'_>) {
    let message = "etcd has no clock that nodes could share: each node's own judges when a slot begins and ends";
    let hint = Some("keep every node's clock in step by NTP; leases do not depend on it".to_owned());
    let (code, message) = ("no-store-clock", message.to_owned());
    entry.ctx.add(Diagnostic { severity: Severity::Note, code, message, span: entry.span(), hint });
}

fn check_server(entry: &Entry<'_>, url: &str, scheme: &str) -> bool {
    let hint = || format!("write {scheme}://HOST:6379, with USER:PASSWORD@ before the host if it needs them");
    match url::Url::parse(url) {
        Ok(parsed) if parsed.host_str().is_some_and(|host| !host.is_empty()) => true,
        Ok(_) => {
            entry.refuse("bad-url", "names no host", hint());
            false
        }
        Err(error) => {
            entry.refuse("bad-url", &format!("is no url: {error}"), hint());
            false
        }
    }
}

fn is_built(feature: &str) -> bool {
    match feature {
        "sqlite" => cfg!(feature = "sqlite"),
        "redis" => cfg!(feature = "redis"),
        "postgres" => cfg!(feature = "postgres"),
        "mysql" => cfg!(feature = "mysql"),
        "etcd" => cfg!(feature = "etcd"),
        "zookeeper" => cfg!(feature = "zookeeper"),
        "redis-sentinel" => cfg!(feature = "redis-sentinel"),
        "redis-cluster" => cfg!(feature = "redis-cluster"),
        "redis-redlock" => cfg!(feature = "redis-redlock"),
        _ => true,
    }
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
