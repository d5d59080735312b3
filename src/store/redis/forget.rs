//! Removes what a trial wrote. Names every key itself, and never looks for others.

use redis::Cmd;

use super::store::RedisStore;
use crate::store::{Op, StoreError, Trial};

impl RedisStore {
    /// Removes what a trial wrote. One refusal does not keep the rest; the first is told.
    pub(in crate::store) async fn forget(&self, trial: &Trial) -> Result<(), StoreError> {
        let mut first = Ok(());
        for (key, command) in self.removals(trial) {
            first = first.and(self.call((Op::Purge, &key), &command, |_| Ok(())).await);
        }
        first
    }

    /// One command for each key: in a cluster each may be with another server.
    fn removals(&self, trial: &Trial) -> Vec<(String, Cmd)> {
        let of_job =
            trial.job.iter().flat_map(|job| [(self.keys.jobs(), job.as_str()), (self.keys.pauses(), job.as_str())]);
        let of_node = trial.node.iter().map(|node| (self.keys.nodes(), node.as_str()));
        let listed = of_job.chain(of_node);
        let field = |(key, name): (String, &str)| {
            let command = redis::cmd("HDEL").arg(&key).arg(name).take();
            (key, command)
        };
        let whole = |key: String| {
            let command = redis::cmd("DEL").arg(&key).take();
            (key, command)
        };
        let of_slots = trial.slots.iter().flat_map(|slot| {
            let keys = self.keys.slot(slot);
            [keys.mark, keys.attempts, keys.log, self.keys.outputs(slot), self.keys.notes(slot)]
        });
        let of_job = trial.job.iter().flat_map(|job| [self.keys.pause(job), self.keys.running(job)]);
        listed.map(field).chain(of_job.chain(of_slots).map(whole)).collect()
    }
}
