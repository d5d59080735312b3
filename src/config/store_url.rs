//! `url` and `url_file` of `[store]`. Whether the store is there is not for a file to say; whether its url can be meant is.

use std::path::Path;

use crate::config::nearest::nearest;
use crate::config::reader::Section;
use crate::config::secrets;
use crate::config::value::Entry;
use crate::store::SCHEMES;

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
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '+' | '-' | '.');
    let Some((_, feature)) = SCHEMES.iter().find(|(known, _)| *known == scheme) else {
        // What is no scheme may be a password.
        let readable =
            !scheme.is_empty() && scheme.len() <= 20 && scheme.len() < url.len() && scheme.chars().all(plain);
        let shown = if readable { scheme } else { "" };
        unknown(entry, what, shown);
        return false;
    };
    if !is_built(feature) {
        let hint = format!("build with the cargo feature {feature:?}");
        entry.refuse("bad-url", &format!("needs {scheme}, which this build has not"), hint);
        return false;
    }
    if matches!(scheme, "redis" | "rediss") {
        return check_server(entry, url, scheme);
    }
    true
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
