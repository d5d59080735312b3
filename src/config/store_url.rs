//! `url` and `url_file` of `[store]`. Whether the store is there is not for a file to say; whether its url can be meant is.

use std::path::{Path, PathBuf};

use crate::config::environment::read_text;
use crate::config::nearest::nearest;
use crate::config::reader::Section;
use crate::config::secrets;
use crate::config::value::Entry;
use crate::config::{Diagnostic, Severity};
use crate::store::{Advice, SCHEMES, UrlFault, check_url, shown_scheme};

/// A file with a url in it holds little else.
const LARGEST: u64 = 64 * 1024;

/// The url in a `url_file`: its first line.
///
/// # Errors
/// Why there is none, without the path and without the url.
pub fn read_url_file(path: &Path) -> Result<String, String> {
    let text = read_text(path, LARGEST)?;
    Ok(text.lines().next().unwrap_or("").trim().to_owned())
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
