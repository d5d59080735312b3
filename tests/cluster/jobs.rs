//! Files of jobs, and schedules that are due when a trial wants them to be.

use std::time::Duration;

use chrono::{DateTime, TimeDelta, Timelike, Utc};

/// How long a lease of the trials lasts: the shortest that a busy machine renews in time.
pub(crate) const LEASE_TTL: Duration = Duration::from_secs(2);

/// What every file of the trials starts with: short leases, short waits.
pub(crate) const DEFAULTS: &str = r#"
[defaults]
lease_ttl = "2s"
retry_delay = "200ms"
max_attempts = 3
kill_after = "500ms"
timeout = "5m"
"#;

/// A file with these tables after the defaults.
pub(crate) fn file(tables: &str) -> String {
    format!("{DEFAULTS}\n{tables}")
}

/// A recorded job: `schedule` are the lines that say when, `seconds` how long it runs, `code` how it exits.
pub(crate) fn recorded(name: &str, schedule: &str, seconds: f64, code: i32) -> String {
    format!("[jobs.{name}]\n{schedule}\ncommand = [\"/bin/sh\", \"record.sh\", \"{seconds}\", \"{code}\"]\n")
}

/// A recorded job whose first attempt takes long and whose others are short; all exit well.
pub(crate) fn long_then_short(name: &str, schedule: &str, long: f64, short: f64) -> String {
    let script = format!("[ $CRONWARD_ATTEMPT = 1 ] && exec /bin/sh record.sh {long}; exec /bin/sh record.sh {short}");
    format!("[jobs.{name}]\n{schedule}\ncommand = \"{script}\"\n")
}

/// Slots of so many seconds, a divisor of 60: each tick is one.
pub(crate) fn every(seconds: u32) -> String {
    format!("schedule = \"*/{seconds} * * * * *\"\nslot = \"tick\"")
}

/// One slot, and room in it: an hour of which at least twenty minutes are left, whose only tick comes after `ahead`. No
/// earlier slot of the job is current, so nothing runs before.
pub(crate) fn one_slot(ahead: Duration) -> String {
    let tick = tick_after(ahead);
    // In India the hours turn at half past.
    // Now and the tick are in one hour.
    let zone = if (2..35).contains(&tick.minute()) { "UTC" } else { "Asia/Kolkata" };
    let minute = if zone == "UTC" { tick.minute() } else { (tick.minute() + 30) % 60 };
    format!("schedule = \"{} {minute} * * * *\"\ntimezone = \"{zone}\"\nslot = \"hour\"", tick.second())
}

/// Hourly slots with a tick that is half an hour away: nothing is due now, and no slot ends within the next half hour.
pub(crate) fn far_away() -> String {
    let minute = Utc::now().minute();
    // In India the hours turn at half past: in one of the two zones this hour is less than half over.
    let zone = if minute < 30 { "UTC" } else { "Asia/Kolkata" };
    format!("schedule = \"{} * * * *\"\ntimezone = \"{zone}\"\nslot = \"hour\"", minute % 30 + 30)
}

/// The whole second at least `ahead` from now.
fn tick_after(ahead: Duration) -> DateTime<Utc> {
    let at = Utc::now() + ahead + TimeDelta::milliseconds(999);
    at.with_nanosecond(0).unwrap()
}
