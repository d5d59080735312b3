//! A hash of jobs, to tell whether two nodes run the same file. Not for security.
//!
//! **Algorithm.** FNV-1a with 64 bits over a canonical form, as 16 hexadecimal digits. The form of a job is its fields in a
//! fixed order after variables and defaults, each as the field's name and its value, each of these as its length in bytes
//! (eight bytes, little-endian) followed by the bytes. Maps go in the order of their keys; lists and maps begin with their
//! number of items; an absent value is a number of items of 0. Durations are whole milliseconds in decimal. The hash of a
//! file is that over the hashes of its jobs in the order of their names. Comments, order, spelling, `[node]`, `[store]` and
//! `[http]` do not count. A job whose values refer to variables of the host has a hash per host: that is a difference.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use crate::job::{
    Backoff, CommandSpec, Concurrency, JobName, JobSpec, KillMode, OnLost, OnStoreError, Policy, Program, RetryPolicy,
};

/// The hash of one job.
pub fn of_job(spec: &JobSpec) -> String {
    let mut form = Form::new();
    job(&mut form, spec);
    form.finish()
}

/// The hash of several jobs in the order of their names.
pub fn of_jobs<'j>(jobs: impl Iterator<Item = &'j JobSpec>) -> String {
    let mut form = Form::new();
    for spec in jobs {
        form.field("job", &of_job(spec));
    }
    form.finish()
}

/// A digest of a command, to tell two commands of one job apart: 4 hexadecimal digits of a hash of the job's name and the words. So
/// short a digest says too little of a word to find a secret by.
pub fn of_command<'w>(job: &JobName, words: impl ExactSizeIterator<Item = &'w str>) -> String {
    let mut form = Form::new();
    form.field("job", job.as_str());
    form.list("command", words);
    let folded = [0, 16, 32, 48].into_iter().fold(0, |folded, bits| folded ^ (form.0 >> bits));
    format!("{:04x}", folded & 0xffff)
}

/// The canonical form, hashed as it is written.
struct Form(u64);

impl Form {
    /// The offset basis and the prime of FNV-1a (draft-eastlake-fnv).
    const fn new() -> Self {
        Self(0xcbf2_9ce4_8422_2325)
    }

    fn bytes(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.0 = (self.0 ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3);
        }
    }

    fn text(&mut self, text: &str) {
        self.bytes(&u64::try_from(text.len()).unwrap_or(u64::MAX).to_le_bytes());
        self.bytes(text.as_bytes());
    }

    fn field(&mut self, name: &str, value: &str) {
        self.text(name);
        self.text(value);
    }

    fn list<'v>(&mut self, name: &str, items: impl ExactSizeIterator<Item = &'v str>) {
        self.field(name, &items.len().to_string());
        items.for_each(|item| self.text(item));
    }

    fn map(&mut self, name: &str, map: &BTreeMap<String, String>) {
        self.field(name, &map.len().to_string());
        map.iter().for_each(|(key, value)| self.field(key, value));
    }

    fn option(&mut self, name: &str, value: Option<&str>) {
        self.list(name, value.into_iter().collect::<Vec<_>>().into_iter());
    }

    fn millis(&mut self, name: &str, duration: Duration) {
        self.field(name, &duration.as_millis().to_string());
    }

    fn optional_millis(&mut self, name: &str, duration: Option<Duration>) {
        self.option(name, duration.map(|duration| duration.as_millis().to_string()).as_deref());
    }

    fn finish(self) -> String {
        format!("{:016x}", self.0)
    }
}

// Each part is taken apart field by field: a new field does not compile until it is decided how it counts.

fn job(form: &mut Form, spec: &JobSpec) {
    let JobSpec { name, description, owner, runbook, tags, schedule, timezone, period, .. } = spec;
    let JobSpec { policy: limits, command: program, enabled, jitter, only_on, alert_after, notify, .. } = spec;
    form.field("name", name.as_str());
    form.option("description", description.as_deref());
    form.option("owner", owner.as_deref());
    form.option("runbook", runbook.as_deref());
    form.list("tags", tags.iter().map(String::as_str));
    form.field("schedule", schedule);
    form.field("timezone", timezone.name());
    form.field("period", &period.to_string());
    policy(form, limits);
    command(form, program);
    form.field("enabled", if *enabled { "true" } else { "false" });
    form.millis("jitter", *jitter);
    form.map("only_on", only_on);
    form.optional_millis("alert_after", *alert_after);
    form.list("notify", notify.iter().map(String::as_str));
}

fn policy(form: &mut Form, policy: &Policy) {
    let Policy { lease_ttl, done_ttl, max_attempts, retry, timeout, .. } = policy;
    let Policy { kill_after, on_lost, on_store_error, concurrency, start_deadline, .. } = policy;
    let Policy { locks, lock_wait, .. } = policy;
    let RetryPolicy { delay, backoff, max_delay } = retry;
    form.millis("lease_ttl", *lease_ttl);
    form.millis("done_ttl", *done_ttl);
    form.field("max_attempts", &max_attempts.to_string());
    form.millis("retry_delay", *delay);
    form.field("retry_backoff", backoff_word(*backoff));
    form.millis("retry_max_delay", *max_delay);
    form.optional_millis("timeout", *timeout);
    form.millis("kill_after", *kill_after);
    form.field("on_lost", on_lost_word(*on_lost));
    form.field("on_store_error", on_store_error_word(*on_store_error));
    form.field("concurrency", concurrency_word(*concurrency));
    form.optional_millis("start_deadline", *start_deadline);
    // Left out where nothing is said, so that a file that does not name them keeps its hash.
    locks.iter().flatten().for_each(|demand| form.field("lock", &demand.to_string()));
    if lock_wait.is_some() {
        form.optional_millis("lock_wait", *lock_wait);
    }
}

fn command(form: &mut Form, command: &CommandSpec) {
    let CommandSpec { program, env, env_file, cwd, user, group, success_codes, output_limit, kill_mode } = command;
    match program {
        Program::Direct(words) => form.list("command", words.iter().map(String::as_str)),
        Program::Shell(line) => form.field("shell", line),
    }
    form.map("env", env);
    form.option("env_file", env_file.as_deref().map(Path::to_string_lossy).as_deref());
    form.option("cwd", cwd.as_deref().map(Path::to_string_lossy).as_deref());
    form.option("user", user.as_deref());
    form.option("group", group.as_deref());
    let codes: Vec<String> = success_codes.iter().map(i32::to_string).collect();
    form.list("success_codes", codes.iter().map(String::as_str));
    form.field("output_limit", &output_limit.to_string());
    // Left out where it is the default, so that a file that does not name it keeps its hash.
    if *kill_mode == KillMode::Process {
        form.field("kill_mode", "process");
    }
}

const fn backoff_word(backoff: Backoff) -> &'static str {
    match backoff {
        Backoff::Fixed => "fixed",
        Backoff::Exponential => "exponential",
    }
}

const fn on_lost_word(on_lost: OnLost) -> &'static str {
    match on_lost {
        OnLost::Continue => "continue",
        OnLost::Kill => "kill",
    }
}

const fn on_store_error_word(on_store_error: OnStoreError) -> &'static str {
    match on_store_error {
        OnStoreError::Skip => "skip",
        OnStoreError::Run => "run",
    }
}

const fn concurrency_word(concurrency: Concurrency) -> &'static str {
    match concurrency {
        Concurrency::Forbid => "forbid",
        Concurrency::Allow => "allow",
        Concurrency::Replace => "replace",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::job::JobName;

    fn spec(name: &str) -> JobSpec {
        JobSpec::new(JobName::new(name).unwrap(), "0 * * * *", Program::Direct(vec!["/bin/true".to_owned()]))
    }

    #[test]
    fn fnv_1a_is_the_published_one() {
        for (text, hash) in [("", "cbf29ce484222325"), ("a", "af63dc4c8601ec8c"), ("foobar", "85944171f73967e8")] {
            let mut form = Form::new();
            form.bytes(text.as_bytes());
            assert_eq!(form.finish(), hash);
        }
    }

    #[test]
    fn a_digest_of_a_command_is_short_and_depends_on_the_job_and_on_each_word() {
        let of = |job: &str, words: &[&str]| of_command(&JobName::new(job).unwrap(), words.iter().copied());
        let digest = of("push", &["sync", "--all"]);
        assert_eq!((digest.len(), &digest), (4, &of("push", &["sync", "--all"])));
        for other in [of("pull", &["sync", "--all"]), of("push", &["sync --all"]), of("push", &["sync", "--al", "l"])] {
            assert_ne!(digest, other);
        }
    }

    #[test]
    fn a_hash_stays_what_it_is() {
        // When this fails, nodes of two versions look as if they ran different files: say so in the changelog.
        assert_eq!(of_job(&spec("a")), "360f3586b40e1a5e");
        assert_eq!(of_jobs([spec("a"), spec("b")].iter()), "bd99c4c45133e713");
    }

    #[test]
    fn what_is_moved_from_one_field_to_the_next_is_another_job() {
        let mut one = spec("a");
        one.tags = vec!["x".to_owned()];
        let mut other = spec("a");
        other.notify = vec!["x".to_owned()];
        let mut joined = spec("a");
        joined.command.program = Program::Shell("/bin/true".to_owned());
        let mut sparing = spec("a");
        sparing.command.kill_mode = KillMode::Process;
        let locking = |locks: &str, wait: Option<u64>| {
            let mut spec = spec("a");
            spec.policy.locks = Some(locks.parse::<crate::resource::Demand>().unwrap().into());
            spec.policy.lock_wait = wait.map(Duration::from_secs);
            spec
        };
        let locking =
            [locking("db", None), locking("db:shared", None), locking("gpu:1/4", None), locking("db", Some(1))];
        let specs = [spec("a"), one, other, joined, sparing].into_iter().chain(locking);
        let hashes: Vec<String> = specs.map(|spec| of_job(&spec)).collect();
        let distinct: std::collections::BTreeSet<_> = hashes.iter().collect();
        assert_eq!(distinct.len(), hashes.len());
    }
}
