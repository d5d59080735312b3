//! Words for messages that are told once: what is to be told, how a claim of it is answered, what became of it. Words and
//! their limits only: who tells, and how, is not said here.

use std::fmt;
use std::time::Duration;

use chrono::{DateTime, Utc};

use crate::job::{JobName, NodeName};

/// The longest subject and name of a sink of one message together, in bytes.
pub const LONGEST_MESSAGE: usize = 200;

/// The most messages that a store remembers of one topic. Of more the oldest that were told go first, then the oldest that were given
/// up, then the oldest of all.
pub const MOST_MESSAGES: usize = 256;

/// The longest reason that is kept of a try, in characters.
pub const LONGEST_REASON: usize = 200;

/// What messages are about. A store keeps those of one topic together.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Topic {
    /// A job, or one of its slots.
    Job(JobName),
    /// The nodes, or the namespace as a whole.
    Cluster,
}

/// The topic of all nodes as text: no job has such a name.
const CLUSTER: &str = "@cluster";

impl Topic {
    /// The name in keys and tables: the job's name, or `@cluster`.
    pub fn as_str(&self) -> &str {
        match self {
            Self::Job(job) => job.as_str(),
            Self::Cluster => CLUSTER,
        }
    }
}

impl fmt::Display for Topic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl From<JobName> for Topic {
    fn from(job: JobName) -> Self {
        Self::Job(job)
    }
}

/// What is to be told: one event, to one sink. The namespace is the store's.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct MessageKey {
    topic: Topic,
    subject: String,
    sink: String,
}

/// A message's subject or sink that no store takes.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "a message's subject and sink are printable, not empty, and take {LONGEST_MESSAGE} bytes together at the most: {0:?}"
)]
pub struct MessageKeyError(String);

impl MessageKey {
    /// A message about the topic: the event, such as `2026-11-21T14Z failed`, and the sink's name.
    ///
    /// # Errors
    /// Where one is empty or has control characters, or both are longer than [`LONGEST_MESSAGE`].
    pub fn new(topic: impl Into<Topic>, subject: &str, sink: &str) -> Result<Self, MessageKeyError> {
        let fits = subject.len() + sink.len() <= LONGEST_MESSAGE;
        if !fits || [subject, sink].into_iter().any(|part| part.is_empty() || part.chars().any(char::is_control)) {
            return Err(MessageKeyError(subject.chars().chain(" → ".chars()).chain(sink.chars()).take(80).collect()));
        }
        Ok(Self { topic: topic.into(), subject: subject.to_owned(), sink: sink.to_owned() })
    }

    /// What it is about.
    pub const fn topic(&self) -> &Topic {
        &self.topic
    }

    /// The event.
    pub fn subject(&self) -> &str {
        &self.subject
    }

    /// Where it goes.
    pub fn sink(&self) -> &str {
        &self.sink
    }
}

impl fmt::Display for MessageKey {
    /// For people and logs: `billing 2026-11-21T14Z failed → ops`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { topic, subject, sink } = self;
        write!(f, "{topic} {subject} → {sink}")
    }
}

/// The answer to a claim of a message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Telling {
    /// The caller sends it now, and tells the store what became of it before the lease lapses.
    Yours {
        /// Tries so far, this one included.
        tries: u32,
        /// When it was claimed the first time, by the store's clock.
        first: DateTime<Utc>,
    },
    /// Another claim sends it.
    Theirs {
        /// Who.
        by: NodeName,
        /// Until the claim lapses: then another may be granted.
        remaining: Duration,
    },
    /// It was sent, then.
    Told {
        /// When, by the store's clock.
        at: DateTime<Utc>,
    },
    /// It was given up, then: nobody sends it.
    GivenUp {
        /// When, by the store's clock.
        at: DateTime<Utc>,
    },
    /// A try failed, and the next is due later. Zero only where the claim's token has had its try: the next one needs another token.
    Later {
        /// Until it is due.
        remaining: Duration,
    },
}

/// What became of a try.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Delivery {
    /// The sink has taken it.
    Delivered,
    /// It has not, and is asked again.
    Again {
        /// The next try is due so much later, by the store's clock.
        after: Duration,
        /// Why, without secrets; kept up to [`LONGEST_REASON`].
        error: String,
    },
    /// Nobody tries again.
    GaveUp {
        /// Why, without secrets; kept up to [`LONGEST_REASON`].
        error: String,
    },
}

/// The answer to what became of a try.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DeliveryReply {
    /// It stands there, now or since an earlier send of the same.
    Recorded,
    /// Another claim was granted meanwhile, or has told it: it may have been sent more than once.
    Overtaken,
}

/// A message that was begun and not told, as the store knows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UntoldMessage {
    /// Which.
    pub key: MessageKey,
    /// How it stands.
    pub stage: UntoldStage,
    /// Tries so far.
    pub tries: u32,
    /// When it was claimed the first time, by the store's clock.
    pub first: DateTime<Utc>,
    /// When it changed last, by the store's clock.
    pub changed: DateTime<Utc>,
    /// Why the last try failed.
    pub error: Option<String>,
}

/// How a message stands that is not told.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum UntoldStage {
    /// Somebody sends it. Whoever asks once the claim has lapsed may send it.
    Sending {
        /// Who.
        by: NodeName,
        /// Until the claim lapses; zero where it has.
        remaining: Duration,
    },
    /// A try failed.
    Waiting {
        /// Until the next is due; zero where it is.
        remaining: Duration,
    },
    /// It was given up.
    GivenUp,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_names_its_topic_its_event_and_its_sink() {
        let job = JobName::new("billing").unwrap();
        let key = MessageKey::new(job, "2026-11-21T14Z failed", "ops").unwrap();
        assert_eq!(key.to_string(), "billing 2026-11-21T14Z failed → ops");
        assert_eq!((key.topic().as_str(), key.subject(), key.sink()), ("billing", "2026-11-21T14Z failed", "ops"));
        assert!(JobName::new(Topic::Cluster.as_str()).is_err(), "no job is named as all nodes are");
    }

    #[test]
    fn a_message_that_no_store_takes_is_refused_on_one_short_line() {
        let long = "x".repeat(LONGEST_MESSAGE);
        assert!(MessageKey::new(Topic::Cluster, &long[1..], "o").is_ok());
        for (subject, sink) in [(&*long, "o"), ("", "o"), ("a", ""), ("a\nb", "o"), ("a", "o\0")] {
            let error = MessageKey::new(Topic::Cluster, subject, sink).unwrap_err().to_string();
            assert!(error.len() < 300 && !error.contains('\n'), "{error}");
        }
    }
}
