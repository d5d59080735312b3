//! What is worth a message to somebody: the kinds, and their words in files, keys and metrics. Words only.

use serde::{Deserialize, Serialize};

/// A kind of message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum NoticeKind {
    /// The last attempt of a slot failed: nobody tries again.
    Failed,
    /// A slot ended without success, with attempts left.
    Missed,
    /// The last success is older than the job's `alert_after`.
    Late,
    /// Two runs of one slot may have overlapped.
    Overlap,
    /// The first success after slots that failed or were missed.
    Recovered,
    /// A job goes on failing (`remind_after`).
    Reminder,
    /// A run was started.
    Started,
    /// A slot is done.
    Succeeded,
    /// An attempt failed and another one follows.
    AttemptFailed,
    /// An operator paused a job.
    Paused,
    /// A pause was ended.
    Resumed,
    /// A node is not heard of any more and did not stop cleanly.
    NodeSilent,
    /// A node refused a changed file.
    ConfigRejected,
}

impl NoticeKind {
    /// Each with its word.
    pub const ALL: [(&'static str, Self); 13] = [
        ("failed", Self::Failed),
        ("missed", Self::Missed),
        ("late", Self::Late),
        ("overlap", Self::Overlap),
        ("recovered", Self::Recovered),
        ("reminder", Self::Reminder),
        ("started", Self::Started),
        ("succeeded", Self::Succeeded),
        ("attempt_failed", Self::AttemptFailed),
        ("paused", Self::Paused),
        ("resumed", Self::Resumed),
        ("node_silent", Self::NodeSilent),
        ("config_rejected", Self::ConfigRejected),
    ];

    /// Those that a sink is told of when its section says nothing.
    pub const USUAL: [Self; 5] = [Self::Failed, Self::Missed, Self::Late, Self::Overlap, Self::Recovered];

    /// The word used in files, keys and metrics.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Failed => "failed",
            Self::Missed => "missed",
            Self::Late => "late",
            Self::Overlap => "overlap",
            Self::Recovered => "recovered",
            Self::Reminder => "reminder",
            Self::Started => "started",
            Self::Succeeded => "succeeded",
            Self::AttemptFailed => "attempt_failed",
            Self::Paused => "paused",
            Self::Resumed => "resumed",
            Self::NodeSilent => "node_silent",
            Self::ConfigRejected => "config_rejected",
        }
    }

    /// The kind of this word.
    pub fn named(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find_map(|(known, kind)| (known == word).then_some(kind))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_is_found_by_its_word() {
        for (word, kind) in NoticeKind::ALL {
            assert_eq!((kind.as_str(), NoticeKind::named(word)), (word, Some(kind)));
            assert_eq!(serde_json::to_string(&kind).unwrap(), format!("{word:?}"));
        }
        assert_eq!(NoticeKind::named("Failed"), None);
    }
}
