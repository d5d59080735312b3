//! Instants and spans as a page shows them: in the zone that its reader chose, which is written beside each, and counted from the
//! store's clock. Reads no clock.

use std::fmt::Write;
use std::time::Duration;

use askama::Template;
use chrono::{DateTime, Datelike, Timelike, Utc};

use crate::admin::words::zone_name;
use crate::clock::between;
use crate::web::pages::texts::Texts;
use crate::zone::Zone;

/// An instant with its zone.
#[derive(Clone, Debug, PartialEq, Eq, Template)]
#[template(source = "<time datetime=\"{{ iso }}\">{{ text }}</time>", ext = "html")]
pub(super) struct Moment {
    iso: String,
    pub(super) text: String,
}

impl askama::filters::HtmlSafe for Moment {}

/// How long ago an instant was, or how soon it comes; the script counts on.
#[derive(Clone, Debug, PartialEq, Eq, Template)]
#[template(source = "<time datetime=\"{{ iso }}\" title=\"{{ exact }}\" data-rel>{{ text }}</time>", ext = "html")]
pub(super) struct Apart {
    iso: String,
    exact: String,
    pub(super) text: String,
}

impl askama::filters::HtmlSafe for Apart {}

/// How times are told to one reader.
#[derive(Clone, Debug)]
pub(super) struct Teller {
    pub(super) zone: Zone,
    /// The store's clock, or this node's where the store is not heard.
    pub(super) now: DateTime<Utc>,
    pub(super) t: &'static Texts,
}

impl Teller {
    /// With its date where that is not today's.
    pub(super) fn moment(&self, at: DateTime<Utc>) -> Moment {
        Moment { iso: iso(at), text: self.exact(at) }
    }

    /// Hour and minute, seconds where there are any.
    pub(super) fn exact(&self, at: DateTime<Utc>) -> String {
        let local = self.zone.local(at);
        let today = self.zone.local(self.now).date_naive();
        let mut text = String::new();
        if local.date_naive() != today {
            let _ = write!(text, "{} ", local.format("%Y-%m-%d"));
        }
        let form = if local.second() == 0 { "%H:%M" } else { "%H:%M:%S" };
        let _ = write!(text, "{} {}", local.format(form), zone_name(&self.zone));
        text
    }

    /// A time to come: with its weekday where it is another day, and its date where it is more than six days off.
    pub(super) fn coming(&self, at: DateTime<Utc>) -> Moment {
        let local = self.zone.local(at);
        let today = self.zone.local(self.now).date_naive();
        let days = local.date_naive().signed_duration_since(today).num_days();
        let text = match days {
            1..=6 => {
                let weekday = usize::try_from(local.weekday().num_days_from_monday()).unwrap_or_default();
                let weekday = self.t.time.weekdays.get(weekday).copied().unwrap_or_default();
                format!("{weekday} {} {}", local.format("%H:%M"), zone_name(&self.zone))
            }
            _ => self.exact(at),
        };
        Moment { iso: iso(at), text }
    }

    /// How far away.
    pub(super) fn apart(&self, at: DateTime<Utc>) -> Apart {
        Apart { iso: iso(at), exact: self.exact(at), text: self.relative(at) }
    }

    /// The same as text.
    pub(super) fn relative(&self, at: DateTime<Utc>) -> String {
        if at > self.now {
            self.t.time.ahead.replacen("{}", &self.span(between(self.now, at)), 1)
        } else {
            self.t.time.ago.replacen("{}", &self.span(between(at, self.now)), 1)
        }
    }

    /// A span in its largest sensible unit, cut.
    pub(super) fn span(&self, span: Duration) -> String {
        let seconds = span.as_secs();
        let (number, unit) = match seconds {
            0..=119 => (seconds, 0),
            120..=7_199 => (seconds / 60, 1),
            7_200..=172_799 => (seconds / 3_600, 2),
            _ => (seconds / 86_400, 3),
        };
        let unit = self.t.time.units.get(unit).copied().unwrap_or("{} s");
        unit.replacen("{}", &number.to_string(), 1)
    }

    /// A span of a run: milliseconds below ten seconds.
    pub(super) fn fine_span(&self, seconds: f64) -> String {
        if seconds < 10.0 {
            let [unit, ..] = self.t.time.units;
            return unit.replacen("{}", &format!("{seconds:.1}"), 1);
        }
        self.span(Duration::from_secs_f64(seconds.min(1e12)))
    }
}

fn iso(at: DateTime<Utc>) -> String {
    at.to_rfc3339_opts(chrono::SecondsFormat::AutoSi, true)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::web::pages::texts::{CHINESE, ENGLISH};

    fn at(text: &str) -> DateTime<Utc> {
        text.parse().unwrap()
    }

    fn teller(zone: &str, t: &'static Texts) -> Teller {
        Teller { zone: zone.parse().unwrap(), now: at("2026-11-21T14:12:00Z"), t }
    }

    #[test]
    fn each_time_has_its_zone_and_its_date_where_that_is_another() {
        let utc = teller("UTC", &ENGLISH);
        assert_eq!(utc.exact(at("2026-11-21T14:00:00Z")), "14:00 UTC");
        assert_eq!(utc.exact(at("2026-11-20T14:00:31Z")), "2026-11-20 14:00:31 UTC");
        let kolkata = teller("Asia/Kolkata", &ENGLISH);
        assert_eq!(kolkata.exact(at("2026-11-21T14:00:00Z")), "19:30 Kolkata");
        assert_eq!(teller("America/New_York", &ENGLISH).exact(at("2026-11-21T14:00:00Z")), "09:00 New York");
    }

    #[test]
    fn a_time_to_come_has_its_weekday() {
        let utc = teller("UTC", &ENGLISH);
        assert_eq!(utc.coming(at("2026-11-23T06:00:00Z")).text, "Mon 06:00 UTC");
        assert_eq!(utc.coming(at("2026-12-23T06:00:00Z")).text, "2026-12-23 06:00 UTC");
        assert_eq!(teller("UTC", &CHINESE).coming(at("2026-11-23T06:00:00Z")).text, "周一 06:00 UTC");
    }

    #[test]
    fn spans_are_told_in_both_languages() {
        let (english, chinese) = (teller("UTC", &ENGLISH), teller("UTC", &CHINESE));
        for (instant, en, zh) in [
            ("2026-11-21T14:00:00Z", "12 min ago", "12 分钟前"),
            ("2026-11-21T14:53:00Z", "in 41 min", "41 分钟后"),
            ("2026-11-21T14:11:57Z", "3 s ago", "3 秒前"),
            ("2026-11-18T14:12:00Z", "3 d ago", "3 天前"),
        ] {
            assert_eq!((&*english.relative(at(instant)), &*chinese.relative(at(instant))), (en, zh));
        }
        assert_eq!(english.fine_span(3.04), "3.0 s");
        assert_eq!(english.fine_span(75.0), "75 s");
    }

    #[test]
    fn a_moment_is_written_as_the_element_that_the_script_reads() {
        let utc = teller("UTC", &ENGLISH);
        let apart = utc.apart(at("2026-11-21T14:00:00Z"));
        assert_eq!(
            apart.render().unwrap(),
            "<time datetime=\"2026-11-21T14:00:00Z\" title=\"14:00 UTC\" data-rel>12 min ago</time>"
        );
    }
}
