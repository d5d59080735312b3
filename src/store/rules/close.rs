//! `close`: the verdict of a slot that is over, once (L2).

use super::SlotStep;
use crate::clock::between;
use crate::job::NodeName;
use crate::slot::{Verdict, VerdictRecord};
use crate::store::Closing;

impl SlotStep {
    /// Records the verdict ([`crate::store::Store::close`]): refused while the slot is open, then if it was recorded
    /// before, then while a run goes on.
    pub(in crate::store) fn close(&mut self, max_attempts: u32, by: &NodeName) -> Closing {
        if self.now < self.slot.end() {
            return Closing::Open { remaining: between(self.now, self.slot.end()) };
        }
        if let Some(record) = &self.state.verdict {
            return Closing::Already(record.verdict);
        }
        if let Some(lease) = self.held() {
            return Closing::Running { by: lease.by.clone(), remaining: lease.remaining(self.now) };
        }
        let verdict = self.verdict(max_attempts);
        self.state.verdict = Some(VerdictRecord { verdict, by: by.clone(), at: self.now, attempt: 0 });
        Closing::First(verdict)
    }

    fn verdict(&self, max_attempts: u32) -> Verdict {
        let paused = || self.pause.as_ref().is_some_and(|pause| pause.touches(self.slot.start(), self.slot.end()));
        if self.is_marked_done() {
            Verdict::Done
        } else if self.state.used() >= max_attempts {
            Verdict::Failed
        } else if self.state.known() == 0 && paused() {
            Verdict::Skipped
        } else {
            Verdict::Missed
        }
    }
}
