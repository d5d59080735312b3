//! A guarded command that guards the same slot again: it runs under the lease that is held already, instead of waiting for
//! itself. The lease's token travels in the environment; only the outermost settles.

use std::time::Duration;

use crate::cli::failure::Failure;
use crate::cli::guarded::run::Guarded;
use crate::cli::guarded::task::Task;
use crate::cli::guarded::verdict::{Verdict, judge};
use crate::clock::{Clock, Mono, SystemClock};
use crate::drive::{Account, Started, Work, timers};
use crate::job::{LockKey, Policy};
use crate::slot::{Attempt, Exit, Mark, RunContext, Token, Trigger};
use crate::store::{Store, StoreError};

/// How deep the holds of one lease are nested; the outermost has none.
const HOLDS: &str = "CRONWARD_HOLDS";

/// The key of a foreign program that the outer run holds with its lease.
pub(super) const HOLDS_KEY: &str = "CRONWARD_HOLDS_KEY";

/// The pause before a store that did not answer is asked again.
const AGAIN: Duration = Duration::from_millis(200);

/// The lease that this process runs under, as its environment says it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Outer {
    token: Token,
    attempt: Attempt,
    /// Holds so far, the outermost included.
    holds: u32,
    trigger: Trigger,
    revision: Option<u64>,
    /// [`HOLDS_KEY`].
    key: Option<LockKey>,
}

impl Outer {
    /// From the environment, if that is of a run of this very slot.
    pub(super) fn of(task: &Task, variable: impl Fn(&str) -> Option<String>) -> Option<Self> {
        let own = variable("CRONWARD_JOB")? == task.slot.job().as_str()
            && variable("CRONWARD_SLOT")? == task.slot.key().to_string();
        own.then_some(())?;
        let word = variable("CRONWARD_TRIGGER").unwrap_or_default();
        let all = [Trigger::Schedule, Trigger::Retry, Trigger::Manual, Trigger::Exec];
        let trigger = all.into_iter().find(|trigger| trigger.as_str() == word).unwrap_or(Trigger::Exec);
        Some(Self {
            token: variable("CRONWARD_LEASE_TOKEN")?.parse().ok()?,
            attempt: variable("CRONWARD_ATTEMPT")?.parse().ok()?,
            holds: variable(HOLDS).and_then(|count| count.parse().ok()).unwrap_or(1),
            trigger,
            revision: variable("CRONWARD_FENCE_REVISION").and_then(|number| number.parse().ok()),
            key: variable(HOLDS_KEY).and_then(|key| key.parse().ok()),
        })
    }

    /// Whether that lease still holds the slot. Where the store does not say so within `patience` nobody knows: this process
    /// may have outlived its run, whose slot is another's by now. An error starts nothing (I8), here as in any guard.
    async fn still_holds(&self, store: &dyn Store, task: &Task, patience: Duration) -> Result<bool, StoreError> {
        let until = SystemClock.now().mono + patience;
        loop {
            match store.inspect(std::slice::from_ref(&task.slot)).await {
                Ok((_, records)) => {
                    let own = |mark: &Mark| matches!(mark, Mark::Leased { token, .. } if *token == self.token);
                    return Ok(records.iter().any(|record| own(&record.mark)));
                }
                Err(error) if error.is_transient() && SystemClock.now().mono < until => {
                    timers::until(&SystemClock, Some(SystemClock.now().mono + AGAIN)).await;
                }
                Err(error) => return Err(error),
            }
        }
    }

    /// The number of holds with one more.
    pub(super) const fn deeper(&self) -> u32 {
        self.holds.saturating_add(1)
    }

    /// What the command is told: the run that it is part of.
    pub(super) fn context(
        &self,
        task: &Task,
        node: crate::job::NodeName,
        now: chrono::DateTime<chrono::Utc>,
    ) -> RunContext {
        RunContext {
            slot: task.slot.clone(),
            scheduled_at: now,
            attempt: self.attempt,
            max_attempts: task.spec.policy.max_attempts,
            fence: task.slot.fence(self.attempt),
            fence_revision: self.revision,
            run_id: format!("{}-{}", self.attempt, self.holds),
            node,
            trigger: self.trigger,
            deadline: None,
            token: Some(self.token),
            lease_held: true,
        }
    }
}

impl Guarded {
    /// The outer run under whose lease this process stands, if it does.
    pub(super) async fn within_which(&self, outer: Option<Outer>) -> Result<Option<Outer>, StoreError> {
        let Some(outer) = outer else { return Ok(None) };
        let holds = outer.still_holds(&*self.store, &self.task, self.store_patience()).await?;
        Ok(holds.then_some(outer))
    }

    /// Runs the command under the lease of an outer run of the same slot. That run renews the lease, and stops this process
    /// with its own command if it must; the timeout is this one's own.
    pub(super) async fn within(&self, outer: &Outer) -> Result<(Account, Verdict), Failure> {
        if let Some(key) = self.address.options.lock_key.as_ref().filter(|key| outer.key.as_ref() != Some(*key)) {
            return Err(Failure::Usage(format!(
                "--key {key}: this runs within a run of {}, which does not hold that key: give --key to the outermost exec",
                self.task.slot
            )));
        }
        if let Some(signal) = self.signals.ended_by() {
            // It came while the store was asked: nothing has begun, and nothing is to begin.
            let account = Account::new(self.task.slot.clone());
            let verdict = judge(&account, 0, Some(signal));
            return Ok((account, verdict));
        }
        let mut command = self.task.spec.command.clone();
        command.env.insert(HOLDS.to_owned(), outer.deeper().to_string());
        let context = outer.context(&self.task, self.node.clone(), SystemClock.now().wall);
        let work = self.work(command);
        let mut started = work.start(context.clone(), tokio::sync::watch::channel(None).1).await;
        let (exit, timed_out) = end_of(&mut *started, &self.task.spec.policy).await;
        drop(started);
        work.passed_on().await;
        let account = Account::nested(&context, exit, timed_out);
        let verdict = Verdict { result: "nested", ..judge(&account, 0, None) };
        Ok((account, verdict))
    }
}

/// The end of a command, and whether its timeout brought it about: TERM, and KILL where that was not enough.
async fn end_of(started: &mut dyn Started, policy: &Policy) -> (Exit, bool) {
    let within = |span: Duration| SystemClock.now().mono + span;
    let due = policy.timeout.map(within);
    if let Some(exit) = end_by(started, due).await {
        return (exit, false);
    }
    started.terminate();
    let exit = match end_by(started, Some(within(policy.kill_after))).await {
        Some(exit) => exit,
        None => {
            started.kill();
            started.wait().await
        }
    };
    // What it left behind may have taken longer to stop than the command took.
    let in_time = exit.ended.is_some_and(|ended| due.is_some_and(|due| ended < due));
    (exit, !in_time)
}

/// The command's end, unless it is not there by then.
async fn end_by(started: &mut dyn Started, due: Option<Mono>) -> Option<Exit> {
    tokio::select! {
        biased;
        exit = started.wait() => Some(exit),
        () = timers::until(&SystemClock, due) => None,
    }
}
