//! A start that found its slot done by an earlier start of the same machine: a crontab starts the job more often than once per slot, or two
//! of its lines share the job's name. One line says so, once per slot.

use std::sync::Arc;
use std::time::Duration;

use chrono::{DateTime, DurationRound, TimeDelta, Utc};

use crate::cli::guarded::task::Task;
use crate::cli::guarded::verdict::to_the_second;
use crate::clock::{between, later};
use crate::drive::{Account, Entropy};
use crate::job::NodeName;
use crate::message::{Delivery, MessageKey, Telling};
use crate::reply::ClaimAnswer;
use crate::slot::{Outcome, Period, RunRecord, Slot, SlotRecord, Token, Trigger};
use crate::store::{CrontabCommand, JobEntry, JobOrigin, Store, StoreError};

/// Two starts of one line are at least this far apart: what comes sooner is a crontab that asks for a retry.
const APART: Duration = Duration::from_secs(60);

/// For all calls of the store together. The caller's work is over.
const LONGEST: Duration = Duration::from_secs(2);

/// Until another start may print the line, where this one dies before it has.
const LEASE: Duration = Duration::from_secs(60);

/// What it takes to find an earlier start of the same machine.
pub(super) struct Repeated {
    store: Arc<dyn Store>,
    node: NodeName,
    period: Period,
    /// The digest of the command; none where a file has the job.
    command: Option<String>,
    /// The caller named one slot by its key.
    is_named: bool,
    token: Token,
}

/// What an earlier start left for this one.
enum Repetition {
    /// The same work.
    Repeated,
    /// The work of another command.
    OtherCommand,
}

impl Repeated {
    /// For the caller whose command is guarded on this node.
    pub(super) fn of(task: &Task, store: Arc<dyn Store>, node: NodeName, entropy: &Entropy) -> Self {
        let Task { spec, introduction, .. } = task;
        let command = introduction.as_ref().and_then(|introduction| introduction.entry.command.as_ref());
        Self {
            store,
            node,
            period: spec.period,
            command: command.map(|command| command.digest.clone()),
            is_named: task.is_named,
            token: entropy.token(),
        }
    }

    /// The line, where there is something to say and no other start of this machine has said it. Best effort: the work is done.
    pub(super) async fn line(&self, account: &Account) -> Option<String> {
        let is_own = account.by.as_ref().is_none_or(|by| *by == self.node);
        let is_found = match account.answer {
            Some(ClaimAnswer::Done) => true,
            Some(ClaimAnswer::Exhausted) => !account.waited,
            _ => false,
        };
        if self.is_named || !is_found || !is_own || !account.runs.is_empty() || account.store_error.is_some() {
            return None;
        }
        tokio::time::timeout(LONGEST, self.find(account)).await.ok()?.ok()?
    }

    async fn find(&self, account: &Account) -> Result<Option<String>, StoreError> {
        let slot = &account.slot;
        let (now, records) = self.store.inspect(std::slice::from_ref(slot)).await?;
        let Some(run) = records.first().and_then(|record| self.earlier(record, account.answer)) else {
            return Ok(None);
        };
        let is_apart = run.ended_at.is_some_and(|ended| later(ended, APART) < now);
        let finding = if self.is_other_command(slot, now).await? {
            Repetition::OtherCommand
        } else if is_apart && !account.waited {
            Repetition::Repeated
        } else {
            return Ok(None);
        };
        let words = self.words(slot, run, now, &finding);
        Ok(self.is_first(slot, &finding).await?.then_some(words))
    }

    /// The run of an earlier start of this machine that leaves nothing to do.
    fn earlier<'r>(&self, record: &'r SlotRecord, answer: Option<ClaimAnswer>) -> Option<&'r RunRecord> {
        let mut runs = record.runs.iter().rev();
        let run = if answer == Some(ClaimAnswer::Done) {
            runs.find(|run| run.outcome == Some(Outcome::Success))
        } else {
            runs.next()
        };
        run.filter(|run| run.node == self.node && run.trigger == Trigger::Exec)
    }

    /// Whether another command of a crontab ran last under the name of the job. The registry then knows of the conflict.
    async fn is_other_command(&self, slot: &Slot, now: DateTime<Utc>) -> Result<bool, StoreError> {
        let Some(command) = &self.command else { return Ok(false) };
        let jobs = self.store.jobs().await?;
        let entry = jobs.into_iter().find(|job| job.name == *slot.job() && job.origin == JobOrigin::Crontab);
        let Some((entry, known)) = entry.and_then(|entry| entry.command.clone().map(|known| (entry, known))) else {
            return Ok(false);
        };
        if known.digest == *command {
            return Ok(false);
        }
        let conflict = now.duration_trunc(TimeDelta::hours(1)).ok();
        if known.conflict != conflict {
            let command = Some(CrontabCommand { conflict, ..known });
            self.store.register(&[JobEntry { command, ..entry }]).await?;
        }
        Ok(true)
    }

    /// Whether no start of this machine has printed the line in this slot. A store that keeps no messages cannot say.
    async fn is_first(&self, slot: &Slot, finding: &Repetition) -> Result<bool, StoreError> {
        let what = match finding {
            Repetition::Repeated => "repeated start",
            Repetition::OtherCommand => "other command",
        };
        let subject = format!("{} {what}", slot.key());
        let key = MessageKey::new(slot.job().clone(), &subject, &format!("exec on {}", self.node));
        let (true, Ok(key)) = (self.store.capability().messages, key) else { return Ok(true) };
        match self.store.tell(&key, &self.node, self.token, LEASE).await? {
            Telling::Yours { .. } => {
                self.store.told(&key, self.token, &Delivery::Delivered).await?;
                Ok(true)
            }
            Telling::Theirs { .. } | Telling::Told { .. } | Telling::GivenUp { .. } | Telling::Later { .. } => {
                Ok(false)
            }
        }
    }

    fn words(&self, slot: &Slot, run: &RunRecord, now: DateTime<Utc>, finding: &Repetition) -> String {
        let ended = run.ended_at.map_or_else(String::new, |ended| format!(" at {}", to_the_second(ended)));
        let what = if run.outcome == Some(Outcome::Success) {
            format!("was done{ended}")
        } else {
            format!("used up its attempts{ended}")
        };
        match finding {
            Repetition::OtherCommand => format!(
                "{slot} {what} by another command that this machine starts under the name {}, so this command did not run: give each \
                 command a --job name of its own",
                slot.job()
            ),
            Repetition::Repeated => {
                let per = match self.period {
                    Period::Tick => "scheduled time".to_owned(),
                    period => period.to_string(),
                };
                let length = between_starts(between(run.claimed_at, now));
                format!(
                    "{slot} {what} by an earlier start on this machine, so this command did not run: the work is done once per {per}; if \
                     each start is to run, write --slot {length}"
                )
            }
        }
    }
}

/// The longest slot in which starts so far apart do not meet.
fn between_starts(apart: Duration) -> Period {
    const MINUTES_OF_DAY: u64 = 1_440;
    let minutes = (apart + Duration::from_secs(30)).as_secs() / 60;
    let fits = |minutes: &u64| MINUTES_OF_DAY.is_multiple_of(*minutes);
    let length = (1..=minutes.min(MINUTES_OF_DAY)).rev().find(fits).unwrap_or(1);
    Period::of_length(Duration::from_secs(length * 60)).unwrap_or(Period::Minute)
}

#[cfg(test)]
mod tests {
    use super::*;

    use crate::admin::fixture;
    use crate::clock::{Clock, ManualClock};
    use crate::store::memory::MemoryStore;
    use crate::store::{Claim, ClaimRequest, StoreOptions};

    /// A machine whose crontab starts the job in the hour of noon.
    struct Machine {
        clock: ManualClock,
        store: Arc<dyn Store>,
        starts: u32,
    }

    impl Machine {
        fn new() -> Self {
            let clock = ManualClock::at(fixture::at("2026-11-21T12:00:00Z"));
            let store = Arc::new(MemoryStore::new(StoreOptions::default(), Arc::new(clock.clone())));
            Self { clock, store, starts: 0 }
        }

        fn slot() -> Slot {
            fixture::untouched().slot
        }

        /// The command with this digest runs as attempt of the slot.
        async fn run(&mut self, digest: &str, outcome: Outcome) {
            self.starts += 1;
            let command = Some(CrontabCommand { digest: digest.to_owned(), conflict: None });
            let entry = JobEntry { command, origin: JobOrigin::Crontab, ..fixture::entry("billing") };
            self.store.register(&[entry]).await.unwrap();
            let (token, node) = (fixture::token(self.starts), fixture::node("a"));
            let request =
                ClaimRequest { trigger: Trigger::Exec, ..ClaimRequest::new(Self::slot(), token, node, LEASE, 9) };
            let Claim::Claimed { attempt, at, .. } = self.store.claim(&request).await.unwrap() else { panic!("free") };
            let run = fixture::ended(attempt, "a", outcome, 0);
            let ended_at = Some(self.clock.now().wall);
            let run = RunRecord { token, trigger: Trigger::Exec, claimed_at: at, ended_at, ..run };
            let lease = request.granted(attempt, at);
            if outcome == Outcome::Success {
                self.store.complete(&lease, &run, LEASE * 60).await.unwrap();
            } else {
                self.store.fail(&lease, &run, Duration::ZERO).await.unwrap();
            }
        }

        /// What a start of the command with this digest on node `a` says that finds this answer.
        async fn start(&mut self, digest: &str, answer: ClaimAnswer) -> Option<String> {
            self.starts += 1;
            let by = (answer == ClaimAnswer::Done).then(|| fixture::node("a"));
            let account = Account { answer: Some(answer), by, ..Account::new(Self::slot()) };
            self.repeated("a", digest).line(&account).await
        }

        fn repeated(&self, node: &str, digest: &str) -> Repeated {
            Repeated {
                store: Arc::clone(&self.store),
                node: fixture::node(node),
                period: Period::Hour,
                command: Some(digest.to_owned()),
                is_named: false,
                token: fixture::token(1_000 + self.starts),
            }
        }

        async fn conflict(&self) -> Option<DateTime<Utc>> {
            self.store.jobs().await.unwrap()[0].command_conflict(self.clock.now().wall)
        }
    }

    #[tokio::test]
    async fn a_line_that_starts_each_five_minutes_is_told_once_per_slot_which_slot_to_write() {
        let mut machine = Machine::new();
        machine.run("0001", Outcome::Success).await;
        machine.clock.advance(Duration::from_secs(60));
        assert_eq!(machine.start("0001", ClaimAnswer::Done).await, None, "a retry that a crontab asks for");
        machine.clock.advance(Duration::from_secs(241));
        let told = machine.start("0001", ClaimAnswer::Done).await;
        let expected = "billing@2026-11-21T12Z was done at 2026-11-21 12:00:00 UTC by an earlier start on this machine, so this command \
                        did not run: the work is done once per hour; if each start is to run, write --slot 5m";
        assert_eq!(told.as_deref(), Some(expected));
        machine.clock.advance(Duration::from_secs(300));
        assert_eq!(machine.start("0001", ClaimAnswer::Done).await, None, "it was told");
        assert_eq!(machine.conflict().await, None);
    }

    #[tokio::test]
    async fn attempts_that_an_earlier_start_used_up_are_told_as_such() {
        let mut machine = Machine::new();
        machine.run("0001", Outcome::Failure).await;
        machine.clock.advance(Duration::from_secs(900));
        let told = machine.start("0001", ClaimAnswer::Exhausted).await.unwrap();
        assert!(told.contains("used up its attempts at 2026-11-21 12:00:00 UTC by an earlier start"), "{told}");
        assert!(told.ends_with("write --slot 15m"), "{told}");
    }

    #[tokio::test]
    async fn another_command_of_the_same_name_is_told_once_per_slot_and_the_registry_knows() {
        let mut machine = Machine::new();
        machine.run("0001", Outcome::Success).await;
        machine.clock.advance(Duration::from_secs(1));
        let told = machine.start("0002", ClaimAnswer::Done).await;
        let expected = "billing@2026-11-21T12Z was done at 2026-11-21 12:00:00 UTC by another command that this machine starts under the \
                        name billing, so this command did not run: give each command a --job name of its own";
        assert_eq!(told.as_deref(), Some(expected));
        assert_eq!(machine.conflict().await, Some(fixture::at("2026-11-21T12:00:00Z")));
        assert_eq!(machine.start("0002", ClaimAnswer::Done).await, None, "it was told");
    }

    #[tokio::test]
    async fn what_another_machine_did_is_not_told() {
        let mut machine = Machine::new();
        machine.run("0001", Outcome::Success).await;
        machine.clock.advance(Duration::from_secs(600));
        for (node, by) in [("b", "a"), ("a", "b")] {
            let by = Some(fixture::node(by));
            let account = Account { answer: Some(ClaimAnswer::Done), by, ..Account::new(Machine::slot()) };
            assert_eq!(machine.repeated(node, "0002").line(&account).await, None);
        }
        assert_eq!(machine.conflict().await, None);
    }

    #[test]
    fn the_slot_to_write_is_the_longest_part_of_a_day_between_two_starts() {
        let length = |seconds| between_starts(Duration::from_secs(seconds)).to_string();
        assert_eq!(
            [61, 299, 301, 430, 1_800, 3_601, 43_200].map(length),
            ["minute", "5m", "5m", "6m", "30m", "hour", "12h"]
        );
    }
}
