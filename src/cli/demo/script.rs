//! What is played: three jobs, and a schedule whose first slot begins now, so that nobody waits for a full hour. Text and
//! arithmetic only.

use std::time::Duration;

use chrono::{DateTime, Timelike, Utc};

use crate::cli::failure::Failure;
use crate::clock::{earlier, later};
use crate::job::JobName;
use crate::schedule::Timetable;
use crate::slot::Slot;
use crate::store::{EMBEDDED, JobEntry, JobOrigin};

/// The nodes.
pub(super) const NODES: [&str; 3] = ["a", "b", "c"];
/// The one that never runs `export` where dashboards are served, and so is never killed: its dashboard stays.
pub(super) const SPARED: &str = "a";
/// The variable that makes a node run `export`.
pub(super) const EXPORTS: &str = "CRONWARD_DEMO_EXPORT";

/// The job that succeeds.
const PUSH: &str = "push";
/// The one whose first attempt fails.
const FLAKY: &str = "flaky";
/// The one that takes long enough for its node to be killed under it.
pub(super) const EXPORT: &str = "export";

/// How long a slot lasts: a divisor of a minute, and long enough for a lease to lapse and another run to end in it.
const SLOT: u32 = 12;

/// What the file says besides the schedule. Leases are short: whoever watches waits for one to lapse.
const JOBS: &str = r#"[node]
drain = "2s"
labels = { export = "${CRONWARD_DEMO_EXPORT:-no}" }

[defaults]
slot = "tick"
max_attempts = 3
lease_ttl = "3s"
retry_delay = "1s"
kill_after = "500ms"

[jobs.push]
schedule = "SCHEDULE"
command = "sleep 1; echo pushed $CRONWARD_SLOT"

[jobs.flaky]
schedule = "SCHEDULE"
command = "sleep 0.3; test $CRONWARD_ATTEMPT -ge 2 || { echo no route; exit 1; }"

[jobs.export]
schedule = "SCHEDULE"
only_on = { export = "yes" }
command = "sleep 3; echo exported $CRONWARD_SLOT"
"#;

/// Two slots of each job: the first goes its way, in the second a node is killed.
#[derive(Debug)]
pub(super) struct Script {
    schedule: String,
    /// When the second slots begin.
    pub(super) second: DateTime<Utc>,
    timetables: Vec<Timetable>,
}

impl Script {
    /// The script whose first slots begin with the second of `now`.
    pub(super) fn beginning(now: DateTime<Utc>) -> Result<Self, Failure> {
        let first = now.second() % SLOT;
        let seconds: Vec<String> = (0..60 / SLOT).map(|slot| (first + slot * SLOT).to_string()).collect();
        let schedule = format!("{} * * * * *", seconds.join(","));
        let timetables = [PUSH, FLAKY, EXPORT].map(|job| timetable(job, &schedule));
        let timetables = timetables.into_iter().collect::<Result<Vec<_>, _>>()?;
        let second = later(now.with_nanosecond(0).unwrap_or(now), Duration::from_secs(SLOT.into()));
        Ok(Self { schedule, second, timetables })
    }

    /// The file of the nodes; `store` is the path of its database.
    pub(super) fn file(&self, store: &str) -> String {
        // In a file `$` begins a variable, and `$$` is the sign itself.
        let quoted = toml::Value::String(format!("{EMBEDDED}:{}", store.replace('$', "$$")));
        format!("[store]\nurl = {quoted}\nop_timeout = \"1s\"\n\n{}", JOBS.replace("SCHEDULE", &self.schedule))
    }

    /// The jobs, known since their first slots began: a job that is new waits for its next scheduled time.
    pub(super) fn entries(&self) -> Vec<JobEntry> {
        let known = |table: &Timetable| JobEntry {
            name: table.job().clone(),
            schedule: self.schedule.clone(),
            timezone: "UTC".to_owned(),
            period: "tick".to_owned(),
            max_attempts: 3,
            enabled: true,
            origin: JobOrigin::File,
            planned: None,
            command: None,
            first_seen: earlier(self.second, Duration::from_secs(SLOT.into())),
        };
        self.timetables.iter().map(known).collect()
    }

    /// The slots that an instant lies in.
    pub(super) fn slots(&self, at: DateTime<Utc>) -> Vec<Slot> {
        self.timetables.iter().filter_map(|table| table.slot_at(at)).collect()
    }
}

fn timetable(job: &str, schedule: &str) -> Result<Timetable, Failure> {
    let bug = |what: String| Failure::Internal(format!("the demo's own job {job}: {what}"));
    let name = JobName::new(job).map_err(|error| bug(error.to_string()))?;
    Timetable::parse(name, schedule, "UTC", "tick").map_err(|error| bug(error.to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::{self, Environment};

    fn at(text: &str) -> DateTime<Utc> {
        text.parse().unwrap()
    }

    #[test]
    fn the_first_slots_begin_now_whatever_the_second() {
        for now in ["2026-11-21T14:00:00Z", "2026-11-21T14:00:59.9Z", "2026-11-21T14:00:13.5Z"] {
            let (now, script) = (at(now), Script::beginning(at(now)).unwrap());
            let starts: Vec<_> = script.slots(now).iter().map(Slot::start).collect();
            assert_eq!(starts, [now.with_nanosecond(0).unwrap(); 3]);
            let ends: Vec<_> = script.slots(now).iter().map(Slot::end).collect();
            assert_eq!(ends, [script.second; 3], "the second ones follow at once");
        }
    }

    #[test]
    fn the_file_is_one_that_the_nodes_take_without_a_warning() {
        let script = Script::beginning(at("2026-11-21T14:00:13Z")).unwrap();
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("jobs.toml");
        std::fs::write(&path, script.file("/tmp/a \"$b\"/store.db")).unwrap();
        let (config, report) = config::load(&path, &Environment::of_process(at("2026-11-21T14:00:13Z"))).unwrap();
        assert_eq!((config.jobs.len(), report.findings.len()), (3, 0), "{}", report.render(false));
        assert_eq!(config.store.url, "sqlite:/tmp/a \"$b\"/store.db");
    }
}
