//! Placeholders in the words of a command.

use chrono::TimeDelta;

use super::{NOON, is_one_line};
use crate::exec::placeholders::{check, fill};
use crate::job::{JobName, NodeName};
use crate::slot::{Fence, RunContext, Slot, Trigger};

/// One word. A text that is checked is filled in, and filling in adds no more than the values themselves.
pub fn placeholders(bytes: &[u8]) -> bool {
    let text = String::from_utf8_lossy(bytes);
    let Some(run) = run() else { return false };
    let (checked, filled) = (check(&text), fill(&text, &run));
    assert_eq!(checked.is_ok(), filled.is_ok(), "what is checked can be filled in, and only that");
    match filled {
        Ok(filled) => {
            // The shortest placeholder, `{job}`, stands for up to 52 characters.
            assert!(filled.len() <= text.len().saturating_mul(16), "{} bytes of {}", filled.len(), text.len());
            true
        }
        Err(error) => {
            is_one_line(&error.to_string());
            false
        }
    }
}

fn run() -> Option<RunContext> {
    Some(RunContext {
        slot: Slot::new(JobName::new(&"j".repeat(52)).ok()?, NOON, NOON + TimeDelta::hours(1)).ok()?,
        scheduled_at: NOON,
        attempt: 1,
        max_attempts: 3,
        fence: Fence(u64::MAX),
        fence_revision: Some(u64::MAX),
        run_id: "r".to_owned(),
        node: NodeName::new("n").ok()?,
        trigger: Trigger::Schedule,
        deadline: None,
        token: None,
        lease_held: true,
    })
}
