//! What every language has to say, and how a sentence is filled in. Pure.

use crate::event::NoticeKind;

/// Every sentence. What stands in braces is filled in.
#[derive(Debug)]
pub(in crate::notify) struct Texts {
    pub(in crate::notify) failed: &'static str,
    pub(in crate::notify) missed: &'static str,
    /// After attempts that failed.
    pub(in crate::notify) missed_after: &'static str,
    pub(in crate::notify) missed_several: &'static str,
    pub(in crate::notify) late: &'static str,
    pub(in crate::notify) late_never: &'static str,
    pub(in crate::notify) overlap: &'static str,
    pub(in crate::notify) beside: &'static str,
    pub(in crate::notify) recovered: &'static str,
    pub(in crate::notify) reminder: &'static str,
    pub(in crate::notify) started: &'static str,
    pub(in crate::notify) succeeded: &'static str,
    pub(in crate::notify) attempt_failed: &'static str,
    pub(in crate::notify) paused: &'static str,
    pub(in crate::notify) resumed: &'static str,
    pub(in crate::notify) node_silent: &'static str,
    pub(in crate::notify) config_rejected: &'static str,
    /// Without what the store knows of the slot.
    pub(in crate::notify) failed_bare: &'static str,
    pub(in crate::notify) exit: &'static str,
    pub(in crate::notify) signal: &'static str,
    pub(in crate::notify) outcome: &'static str,
    /// That the job has succeeded after what is told.
    pub(in crate::notify) since: &'static str,
    pub(in crate::notify) timeout: &'static str,
    /// While the slot lasts, and what follows after that.
    pub(in crate::notify) rerun_now: &'static str,
    /// What a digest counts.
    pub(in crate::notify) kind: fn(NoticeKind) -> &'static str,
    pub(in crate::notify) output: &'static str,
    pub(in crate::notify) owner: &'static str,
    pub(in crate::notify) runbook: &'static str,
    pub(in crate::notify) page: &'static str,
    pub(in crate::notify) rerun: &'static str,
    pub(in crate::notify) look: &'static str,
    pub(in crate::notify) digest: &'static str,
    pub(in crate::notify) digest_more: &'static str,
    pub(in crate::notify) test: &'static str,
}

impl Texts {
    /// The first sentence of a message of this kind.
    pub(in crate::notify) const fn sentence(&self, kind: NoticeKind) -> &'static str {
        match kind {
            NoticeKind::Failed => self.failed,
            NoticeKind::Missed => self.missed,
            NoticeKind::Late => self.late,
            NoticeKind::Overlap => self.overlap,
            NoticeKind::Recovered => self.recovered,
            NoticeKind::Reminder => self.reminder,
            NoticeKind::Started => self.started,
            NoticeKind::Succeeded => self.succeeded,
            NoticeKind::AttemptFailed => self.attempt_failed,
            NoticeKind::Paused => self.paused,
            NoticeKind::Resumed => self.resumed,
            NoticeKind::NodeSilent => self.node_silent,
            NoticeKind::ConfigRejected => self.config_rejected,
        }
    }
}

/// The sentence with its places filled in. What is put in is never looked at again.
pub(in crate::notify) fn fill(sentence: &str, values: &[(&str, &str)]) -> String {
    let mut filled = String::with_capacity(sentence.len() + 64);
    let mut rest = sentence;
    while let Some((before, after)) = rest.split_once('{') {
        let Some((name, after)) = after.split_once('}') else { break };
        filled.push_str(before);
        filled.push_str(values.iter().find(|(known, _)| *known == name).map_or("", |(_, value)| value));
        rest = after;
    }
    filled.push_str(rest);
    filled
}
