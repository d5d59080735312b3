//! Secrets in the file: found, warned of, and never shown again. Heuristics: they can miss one, so a report is still
//! nothing to publish.

use std::ops::Range;

use crate::config::value::Entry;
use crate::config::{Diagnostic, Diagnostics, Severity};
use crate::store::{SCHEMES, secret_ranges};

const CODE: &str = "secret-in-file";

/// Parts of a variable's name that tell of a secret, and endings that tell of a place where one is.
const TELLING: [&str; 8] = ["PASSWORD", "PASSWD", "PASSPHRASE", "TOKEN", "SECRET", "API_KEY", "APIKEY", "PRIVATE_KEY"];
const PLACES: [&str; 5] = ["_FILE", "_PATH", "_DIR", "_NAME", "_URL"];

/// Warns of a password in a literal url.
pub(super) fn look_at_url(url: &Entry<'_>) {
    let Some(raw) = url.value().as_str() else { return };
    let spans: Vec<_> = secret_ranges(raw).into_iter().map(|secret| url.ctx.within(&url.span(), raw, secret)).collect();
    spans.iter().for_each(|span| url.ctx.hide(span.clone()));
    if let Some(span) = spans.into_iter().next() {
        let hint = "use url_file = \"/run/secrets/…\", or \"${REDIS_URL:?set it}\"";
        url.ctx.warn(CODE, span, "the store's password is in the file".to_owned(), hint);
    }
}

/// Warns of a variable that has the name of a secret and a literal value.
pub(super) fn look_at_variable(name: &str, value: &Entry<'_>) {
    let Some(raw) = value.value().as_str().filter(|raw| !raw.is_empty() && !raw.contains("${")) else { return };
    let upper = name.to_ascii_uppercase();
    let telling = TELLING.iter().any(|part| upper.contains(part)) && !PLACES.iter().any(|end| upper.ends_with(end));
    if telling || !in_text(raw).is_empty() {
        let span = value.span();
        value.ctx.hide(span.start + 1..span.end.saturating_sub(1).max(span.start + 1));
        let hint = format!("use env_file, or {name} = \"${{{name}:?set it}}\" from the environment of cronward");
        value.ctx.warn(CODE, span, format!("env: the value of {name} looks like a secret"), hint);
    }
}

/// Adds a warning when everybody on the host may read a file with secrets in it.
pub(super) fn warn_if_readable(report: &mut Diagnostics, world_readable: bool) {
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

/// The text with what is hidden, and every secret of a url, replaced byte by byte: spans still fit.
pub(super) fn mask(text: &str, hidden: &[Range<usize>]) -> String {
    let mut bytes = text.as_bytes().to_vec();
    for range in in_text(text).iter().chain(hidden) {
        let whole = text.get(range.clone()).is_some();
        for byte in bytes.get_mut(range.clone()).filter(|_| whole).into_iter().flatten() {
            if *byte != b'\n' && *byte != b'\r' {
                *byte = b'*';
            }
        }
    }
    String::from_utf8(bytes).unwrap_or_default()
}

/// What ends a url in a text.
const ENDS: &[char] = &['"', '\'', ' ', '\t', '\r', '\n'];

/// Where secrets are in the urls of a text, the misspelt ones of a store among them.
fn in_text(text: &str) -> Vec<Range<usize>> {
    let (mut found, mut read) = (Vec::new(), 0);
    for start in starts(text) {
        // Inside of what was read, there is at most the end of the same secret.
        if start < read {
            continue;
        }
        let rest = text.get(start..).unwrap_or_default();
        let url = rest.get(..rest.find(ENDS).unwrap_or(rest.len())).unwrap_or_default();
        read = start + url.len();
        found.extend(secret_ranges(url).into_iter().map(|secret| start + secret.start..start + secret.end));
    }
    found
}

/// Where urls begin: at the word before each `://`, and at each known scheme with a `:` or `//` after it.
fn starts(text: &str) -> Vec<usize> {
    let in_scheme = |c: char| c.is_ascii_alphanumeric() || matches!(c, '+' | '-' | '.');
    let begin = |end: usize| text.get(..end).unwrap_or_default().trim_end_matches(in_scheme).len();
    let mut starts: Vec<usize> = text.match_indices("://").map(|(at, _)| begin(at)).collect();
    for at in [":", "//"].into_iter().flat_map(|mark| text.match_indices(mark)).map(|(at, _)| at) {
        let start = begin(at);
        let word = text.get(start..at).unwrap_or_default();
        starts.extend(SCHEMES.iter().any(|(known, _)| *known == word).then_some(start));
    }
    starts.sort_unstable();
    starts.dedup();
    starts
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
            ("url = \"redis:u:hunter2@h\"", "url = \"redis:***********\""),
            ("url = 'rediss//u:hunter2@h'", "url = 'rediss//***********'"),
            ("url = \"redis://hunter2@h\"", "url = \"redis://*******@h\""),
            ("'postgres:///d?password=x&user=u'", "'postgres:///d?password=*&user=u'"),
            ("redis: me@h, a postgres://me@h/d", "redis: me@h, a postgres://me@h/d"),
            ("redis+sentinel://a,b/m?sentinel_pass=${PW}", "redis+sentinel://a,b/m?sentinel_pass=${PW}"),
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
