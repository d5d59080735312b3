//! What differs from one run of a command to the next is put behind a word, so that the rest can be compared.

/// Patterns and the word that takes their place; the first that fits wins. In a pattern `#` is a digit, `+` one or more
/// digits, `%` a hexadecimal digit, `~` a letter for a unit of time, `*` everything up to a space, and the rest itself.
const PATTERNS: [(&str, &str); 23] = [
    // A column of instants is wider where they are of another day than the slot's first.
    ("AT                   NODE", "AT  NODE"),
    ("AT        NODE", "AT  NODE"),
    ("####-##-## ##:##:##", "[TIME]"),
    ("####-##-##T##:##:##.+Z", "[TIME]"),
    ("####-##-##T##:##:##Z", "[TIME]"),
    ("####-##-##T##:##:##+##:##", "[TIME]"),
    ("####-##-##T##:##Z", "[TIME]"),
    ("####-##-##T##Z", "[TIME]"),
    ("##:##:##.+", "[TIME]"),
    ("##:##:##", "[TIME]"),
    ("%%%%%%%%%%%%%%%%%%%%%%%%%%%%%%%%", "[TOKEN]"),
    ("in +~", "[WHEN]"),
    ("another +~", "another [SPAN]"),
    ("for +~", "for [SPAN]"),
    ("+~ ago", "[WHEN]"),
    ("remaining_s\": +.+", "remaining_s\": [SECONDS]"),
    ("age_s\": +.+", "age_s\": [SECONDS]"),
    ("duration_s\": +.+", "duration_s\": [SECONDS]"),
    ("after + ms", "after [MILLIS] ms"),
    ("############+", "[FENCE]"),
    ("by * on *", "by [WHO] on [HOST]"),
    ("\"who\": *", "\"who\": [WHO]"),
    ("\"host\": *", "\"host\": [HOST]"),
];

/// What a run wrote, comparable.
pub(crate) fn redacted(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        let begins = !out.chars().next_back().is_some_and(char::is_alphanumeric);
        let found = PATTERNS.iter().filter(|_| begins).find_map(|(pattern, word)| Some((fits(pattern, rest)?, word)));
        let taken = match found {
            Some((length, word)) => {
                out.push_str(word);
                length
            }
            None => {
                out.push(first);
                first.len_utf8()
            }
        };
        rest = &rest[taken..];
    }
    out
}

/// How much of the beginning of a text a pattern fits.
fn fits(pattern: &str, text: &str) -> Option<usize> {
    let bytes = text.as_bytes();
    let mut at = 0;
    let run = |at: usize, of: fn(&u8) -> bool| bytes[at..].iter().take_while(|byte| of(byte)).count();
    for symbol in pattern.bytes() {
        at += match symbol {
            b'#' => bytes.get(at).filter(|byte| byte.is_ascii_digit()).map(|_| 1)?,
            b'%' => bytes.get(at).filter(|byte| byte.is_ascii_hexdigit()).map(|_| 1)?,
            b'~' => bytes.get(at).filter(|byte| b"smhd".contains(byte)).map(|_| 1)?,
            b'+' if bytes.get(at) == Some(&b'+') => 1,
            b'+' => Some(run(at, u8::is_ascii_digit)).filter(|length| *length > 0)?,
            b'*' => Some(run(at, |byte| !byte.is_ascii_whitespace())).filter(|length| *length > 0)?,
            other => bytes.get(at).filter(|byte| **byte == other).map(|_| 1)?,
        };
    }
    let ended = pattern.ends_with('*') || !bytes.get(at).is_some_and(u8::is_ascii_alphanumeric);
    ended.then_some(at)
}

#[test]
fn what_changes_is_hidden_and_what_stays_is_not() {
    for (text, shown) in [
        ("2026-11-21T12:00:00.020Z after 1500 ms", "[TIME] after [MILLIS] ms"),
        ("2026-03-29T03:00:00+02:00", "[TIME]"),
        ("billing@2026-11-21T12Z  in 48m", "billing@[TIME]  [WHEN]"),
        ("retry in 8s", "retry [WHEN]"),
        ("11m ago", "[WHEN]"),
        ("3 for 14d", "3 for [SPAN]"),
        ("the last 24h, 2/3, exit 7", "the last 24h, 2/3, exit 7"),
        ("fence 1795262400001", "fence [FENCE]"),
        ("did it at 2026-11-21 12:00:00 with", "did it at [TIME] with"),
        ("AT        NODE  DECISION", "AT  NODE  DECISION"),
        ("token 000000000000000000000000000000ff", "token [TOKEN]"),
        ("\"remaining_s\": 599.92,", "\"remaining_s\": [SECONDS],"),
        ("reset by root on build-7: disk", "reset by [WHO] on [HOST] disk"),
    ] {
        assert_eq!(redacted(text), shown);
    }
}
