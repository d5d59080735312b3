//! A guarded command that guards the same slot again: it runs under the lease that is held already, instead of waiting for
//! itself. The lease's token travels in the environment; only the outermost settles.

use crate::cli::guarded::task::Task;
use crate::slot::{Attempt, Mark, RunContext, Token, Trigger};
use crate::store::Store;

/// How deep the holds of one lease are nested; the outermost has none.
pub(super) const HOLDS: &str = "CRONWARD_HOLDS";

/// The lease that this process runs under, as its environment says it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Outer {
    token: Token,
    attempt: Attempt,
    /// Holds so far, the outermost included.
    holds: u32,
    trigger: Trigger,
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
        })
    }

    /// Whether that lease still holds the slot. When the store cannot be asked, it is taken to: whoever holds it asks all the
    /// time, and stops this process with its command if it must.
    pub(super) async fn still_holds(&self, store: &dyn Store, task: &Task) -> bool {
        match store.inspect(std::slice::from_ref(&task.slot)).await {
            Ok((_, records)) => {
                records.iter().any(|record| matches!(&record.mark, Mark::Leased { token, .. } if *token == self.token))
            }
            Err(_) => true,
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
            run_id: format!("{}-{}", self.attempt, self.holds),
            node,
            trigger: self.trigger,
            deadline: None,
            token: Some(self.token),
            lease_held: true,
        }
    }
}
