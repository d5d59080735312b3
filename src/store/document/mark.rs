//! The mark as a text.

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};

use super::Why;
use crate::job::NodeName;
use crate::slot::{Attempt, Holder, Token};
use crate::store::state::{MarkKind, StoredMark};

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Word {
    Running,
    Backoff,
    Done,
}

/// The mark as it stands at its key, readable by a person.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(in crate::store) struct MarkText {
    state: Word,
    node: NodeName,
    attempt: Attempt,
    /// None where an operator said that it is done.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    token: Option<Token>,
    #[serde(rename = "since_ms", with = "chrono::serde::ts_milliseconds")]
    since: DateTime<Utc>,
    /// None where the store itself removes the mark in time.
    #[serde(
        default,
        rename = "until_ms",
        with = "chrono::serde::ts_milliseconds_option",
        skip_serializing_if = "Option::is_none"
    )]
    until: Option<DateTime<Utc>>,
}

#[cfg_attr(not(feature = "etcd"), allow(dead_code, reason = "in ZooKeeper a mark is a part of its slot"))]
impl MarkText {
    pub(in crate::store) fn read(bytes: &[u8]) -> Result<Self, Why> {
        let text: Self = serde_json::from_slice(bytes).map_err(|error| error.to_string())?;
        if text.token.is_none() && text.state != Word::Done {
            return Err("a lease without its token".to_owned());
        }
        Ok(text)
    }

    /// A mark that ends by its text.
    pub(in crate::store) fn of(mark: &StoredMark) -> Self {
        let (state, token) = match mark.kind {
            MarkKind::Lease(token) => (Word::Running, Some(token)),
            MarkKind::Wait(token) => (Word::Backoff, Some(token)),
            MarkKind::Done(token) => (Word::Done, token),
        };
        let Holder { node, attempt } = mark.by.clone();
        Self { state, node, attempt, token, since: mark.since, until: Some(mark.until) }
    }

    /// The same, ended by the store.
    pub(in crate::store) fn without_end(self) -> Self {
        Self { until: None, ..self }
    }

    pub(in crate::store) fn is_lease(&self) -> bool {
        self.state == Word::Running
    }

    pub(in crate::store) const fn until(&self) -> Option<DateTime<Utc>> {
        self.until
    }

    /// As a rule sees it; `until` where the text does not say.
    pub(in crate::store) fn stored(self, until: DateTime<Utc>) -> Result<StoredMark, Why> {
        let kind = match (self.state, self.token) {
            (Word::Running, Some(token)) => MarkKind::Lease(token),
            (Word::Backoff, Some(token)) => MarkKind::Wait(token),
            (Word::Done, token) => MarkKind::Done(token),
            (_, None) => return Err("a lease without its token".to_owned()),
        };
        let by = Holder { node: self.node, attempt: self.attempt };
        Ok(StoredMark { kind, by, since: self.since, until: self.until.unwrap_or(until) })
    }
}
