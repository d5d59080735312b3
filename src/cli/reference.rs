//! How a person names a slot: `billing@2026-11-21T14Z`, `billing` for the current one, `billing@-1` for the one before.

use std::str::FromStr;

use crate::job::JobName;
use crate::slot::SlotKey;

/// The farthest that `J@-n` goes back; beyond it a key is clearer.
const FARTHEST: usize = 1_000;

/// A slot as it was typed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct SlotRef {
    /// The job.
    pub(crate) job: JobName,
    /// Which of its slots.
    pub(crate) which: Which,
}

/// Which slot of a job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Which {
    /// The current one.
    Current,
    /// So many before the current one; at least 1.
    Back(usize),
    /// The one with this key.
    Key(SlotKey),
}

impl FromStr for SlotRef {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (job, which) = match text.split_once('@') {
            None => (text, Which::Current),
            Some((job, which)) => (job, which_of(which)?),
        };
        Ok(Self { job: JobName::new(job).map_err(|error| error.to_string())?, which })
    }
}

fn which_of(text: &str) -> Result<Which, String> {
    let Some(back) = text.strip_prefix('-') else {
        return text.parse().map(Which::Key).map_err(|error: crate::slot::SlotKeyError| error.to_string());
    };
    match back.parse() {
        Ok(steps @ 1..=FARTHEST) if back.bytes().all(|byte| byte.is_ascii_digit()) => Ok(Which::Back(steps)),
        _ => Err(format!("{text:?} names no slot: @-1 is the one before the current, up to @-{FARTHEST}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn which(text: &str) -> Result<Which, String> {
        text.parse::<SlotRef>().map(|slot| slot.which)
    }

    #[test]
    fn a_slot_is_named_by_its_key_by_its_distance_or_not_at_all() {
        let key: SlotKey = "2026-11-21T14Z".parse().unwrap();
        assert_eq!(which("billing@2026-11-21T14Z"), Ok(Which::Key(key)));
        assert_eq!(which("billing"), Ok(Which::Current));
        assert_eq!(which("billing@-1"), Ok(Which::Back(1)));
        assert_eq!(which("billing@-1000"), Ok(Which::Back(1_000)));
    }

    #[test]
    fn what_names_no_slot_is_refused_with_an_example() {
        for (text, hint) in [
            ("Billing", "a-z"),
            ("", "1 to 52"),
            ("billing@", "2026-11-21T14Z"),
            ("billing@14", "2026-11-21T14Z"),
            ("billing@2026-11-21T14:00Z", "left out"),
            ("billing@-0", "@-1"),
            ("billing@-", "@-1"),
            ("billing@-+1", "@-1"),
            ("billing@-1001", "@-1"),
            ("billing@2026-11-21T14Z@", "2026-11-21T14Z"),
        ] {
            let error = which(text).unwrap_err();
            assert!(error.contains(hint), "{text}: {error}");
        }
    }
}
