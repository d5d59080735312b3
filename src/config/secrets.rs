//! Secrets in the file: found, warned of, and never shown again. Heuristics: they can miss one, so a report is still
//! nothing to publish.

use std::ops::Range;

use crate::config::value::Entry;
use crate::config::{Diagnostic, Report, Severity};

const CODE: &str = "secret-in-file";

/// Parts of a variable's name that tell of a secret, and endings that tell of a place where one is.
const TELLING: [&str; 8] = ["PASSWORD", "PASSWD", "PASSPHRASE", "TOKEN", "SECRET", "API_KEY", "APIKEY", "PRIVATE_KEY"];
const PLACES: [&str; 5] = ["_FILE", "_PATH", "_DIR", "_NAME", "_URL"];

/// Warns of a password in a literal url.
pub(super) fn look_at_url(url: &Entry<'_>) {
    let Some(raw) = url.value().as_str() else { return };
    if let Some(password) = passwords(raw, STRICT).into_iter().next() {
        let span = url.ctx.within(&url.span(), raw, password);
        url.ctx.hide(span.clone());
        let hint = "use url_file = \"/run/secrets/…\", or \"${REDIS_URL:?set it}\"";
        url.ctx.warn(CODE, span, "the store's password is in the file".to_owned(), hint);
    }
}

/// Warns of a variable that has the name of a secret and a literal value.
pub(super) fn look_at_variable(name: &str, value: &Entry<'_>) {
    let Some(raw) = value.value().as_str().filter(|raw| !raw.is_empty() && !raw.contains("${")) else { return };
    let upper = name.to_ascii_uppercase();
    let telling = TELLING.iter().any(|part| upper.contains(part)) && !PLACES.iter().any(|end| upper.ends_with(end));
    if telling || !passwords(raw, STRICT).is_empty() {
        let span = value.span();
        value.ctx.hide(span.start + 1..span.end.saturating_sub(1).max(span.start + 1));
        let hint = format!("use env_file, or {name} = \"${{{name}:?set it}}\" from the environment of cronward");
        value.ctx.warn(CODE, span, format!("env: the value of {name} looks like a secret"), hint);
    }
}

/// Adds a warning when everybody on the host may read a file with secrets in it.
pub(super) fn warn_if_readable(report: &mut Report, world_readable: bool) {
    let Some(secret) = report.findings.iter().find(|finding| finding.code == CODE).filter(|_| world_readable) else {
        return;
    };
    let finding = Diagnostic {
        severity: Severity::Warning,
        code: "file-mode",
        message: "every user of this host can read the file and the secret in it".to_owned(),
        span: secret.span.clone(),
        hint: Some(format!("chmod 640 {}", report.path)),
    };
    report.findings.push(finding);
}

/// The text with what is hidden, and every password of a url, replaced byte by byte: spans still fit.
pub(super) fn mask(text: &str, hidden: &[Range<usize>]) -> String {
    let mut bytes = text.as_bytes().to_vec();
    for range in passwords(text, LENIENT).iter().chain(hidden) {
        let whole = text.get(range.clone()).is_some();
        for byte in bytes.get_mut(range.clone()).filter(|_| whole).into_iter().flatten() {
            if *byte != b'\n' && *byte != b'\r' {
                *byte = b'*';
            }
        }
    }
    String::from_utf8(bytes).unwrap_or_default()
}

/// What ends the part of a url that can have a password in it. People also write passwords that should be escaped, so
/// more is masked than is warned of.
const STRICT: &[char] = &['/', '?', '#', '"', '\'', ' ', '\t', '\r', '\n'];
const LENIENT: &[char] = &['"', '\'', ' ', '\t', '\r', '\n'];

/// Where passwords are in the urls of a text: between the `:` and the `@` after `://`. A variable is none.
fn passwords(text: &str, ends: &[char]) -> Vec<Range<usize>> {
    let (mut found, mut read) = (Vec::new(), 0);
    for (at, _) in text.match_indices("://") {
        // Inside of what was read, there is at most the end of the same password.
        if at < read {
            continue;
        }
        let start = at + 3;
        let rest = text.get(start..).unwrap_or_default();
        read = start + rest.find(ends).unwrap_or(rest.len());
        found.extend(password(text.get(start..read).unwrap_or_default(), start));
    }
    found
}

fn password(authority: &str, start: usize) -> Option<Range<usize>> {
    let (user, _) = authority.rsplit_once('@')?;
    let (name, password) = user.split_once(':')?;
    let variable = password.starts_with("${") && password.ends_with('}') && !password.contains(":-");
    let from = start + name.len() + 1;
    (!password.is_empty() && !variable).then_some(from..from + password.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_password_is_masked_wherever_a_url_stands_and_nothing_else() {
        for (text, masked) in [
            ("url = \"redis://:hunter2@h:6379/0\"", "url = \"redis://:*******@h:6379/0\""),
            ("# redis://me:a@b@h, and http://h/x@y:z", "# redis://me:***@h, and http://h/x@y:z"),
            ("redis://:${PW}@h redis://:${PW:-x}@h", "redis://:${PW}@h redis://:********@h"),
            ("redis://:a/b#c?d@h", "redis://:*******@h"),
            ("redis://h:6379 mail a:b@c", "redis://h:6379 mail a:b@c"),
            ("x://u:pä@h", "x://u:***@h"),
            ("x://u:p://y:q@h x://y:q@h", "x://u:*******@h x://y:*@h"),
        ] {
            assert_eq!(mask(text, &[]), masked);
        }
    }

    #[test]
    fn a_range_that_cuts_a_character_masks_nothing() {
        assert_eq!(mask("ä", std::slice::from_ref(&(0..1))), "ä");
        assert_eq!(mask("ab", std::slice::from_ref(&(0..9))), "ab");
    }
}
