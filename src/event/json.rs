//! How instants and spans stand in a line of a journal.

/// An instant in RFC 3339, UTC, always with three digits of a second, so that lines sort as text.
pub(crate) mod instant {
    use chrono::{DateTime, SecondsFormat, Utc};
    use serde::{Deserialize, Deserializer, Serializer};

    pub(crate) fn serialize<S: Serializer>(at: &DateTime<Utc>, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&at.to_rfc3339_opts(SecondsFormat::Millis, true))
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<DateTime<Utc>, D::Error> {
        DateTime::deserialize(deserializer)
    }
}

/// Of a field that is left out unless it says something.
#[allow(clippy::trivially_copy_pass_by_ref, reason = "the signature that serde calls")]
pub(super) const fn is_false(value: &bool) -> bool {
    !*value
}

/// A span in seconds. In a line that is read nonsense is nothing, and no span is so long that a sum of a few has no end.
pub(super) mod seconds {
    use std::time::Duration;

    use serde::{Deserialize, Deserializer, Serializer};

    const LONGEST: Duration = Duration::from_secs(100 * 366 * 86_400);

    pub(crate) fn serialize<S: Serializer>(span: &Duration, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_f64(span.as_secs_f64())
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Duration, D::Error> {
        f64::deserialize(deserializer).map(span)
    }

    pub(super) fn span(seconds: f64) -> Duration {
        Duration::try_from_secs_f64(seconds).unwrap_or_default().min(LONGEST)
    }
}

/// The same of a field that may be missing.
pub(crate) mod maybe_seconds {
    use std::time::Duration;

    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    pub(crate) fn serialize<S: Serializer>(span: &Option<Duration>, serializer: S) -> Result<S::Ok, S::Error> {
        span.as_ref().map(Duration::as_secs_f64).serialize(serializer)
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Duration>, D::Error> {
        Ok(Option::<f64>::deserialize(deserializer)?.map(super::seconds::span))
    }
}
