//! Which sentences say what an action does and how it is undone: the fields that each language fills in, so that one that a language
//! lacks does not compile. No sentence stands here. Commands, and what people wrote, are passed through as they are.

use std::time::Duration;

use crate::observe::view::NoStart;
use crate::store::JobOrigin;

/// The sentences of one language. Instants and commands come written already.
pub(crate) struct ActionTexts {
    /// Between two effects.
    pub(crate) and: &'static str,
    pub(crate) reset: ResetTexts,
    pub(crate) unlock: UnlockTexts,
    /// Why no node starts a slot.
    pub(crate) no_start: fn(NoStart) -> &'static str,
    pub(crate) mark_done: MarkDoneTexts,
    pub(crate) trigger: TriggerTexts,
    pub(crate) pause: PauseTexts,
    pub(crate) resume: ResumeTexts,
}

/// Of a reset.
pub(crate) struct ResetTexts {
    /// How many attempts no longer count.
    pub(crate) counts: fn(u32) -> String,
    pub(crate) no_longer_done: &'static str,
    pub(crate) runs_again: &'static str,
    /// Of a slot that is to come.
    pub(crate) runs_when_due: &'static str,
    /// Why no node runs it by itself, and the command that runs it.
    pub(crate) not_started: fn(&str, &str) -> String,
    /// When the slot ended, and the command that runs it.
    pub(crate) by_command: fn(&str, &str) -> String,
    /// Who starts a job that no daemon plans, as the middle of the next sentence; none for a job of a file.
    pub(crate) starter: fn(JobOrigin) -> Option<&'static str>,
    /// Who starts it.
    pub(crate) when: fn(&str) -> String,
    /// When the slot ended.
    pub(crate) by_nobody: fn(&str) -> String,
    pub(crate) needless: &'static str,
    /// The command that keeps nodes from the slot.
    pub(crate) undo: fn(&str) -> String,
}

/// Of an unlock.
pub(crate) struct UnlockTexts {
    /// Which attempt, on which node, and what follows: one of the next three.
    pub(crate) effect: fn(u32, &str, &str) -> String,
    pub(crate) may_start: &'static str,
    pub(crate) none_left: &'static str,
    /// Why.
    pub(crate) not_started: fn(&str) -> String,
    pub(crate) over: &'static str,
    pub(crate) no_effect: &'static str,
    pub(crate) needless: &'static str,
    /// On which node.
    pub(crate) undo: fn(Option<&str>) -> String,
}

/// Of a slot that is marked as done.
pub(crate) struct MarkDoneTexts {
    pub(crate) effect: &'static str,
    pub(crate) needless: &'static str,
}

/// Of a run that is asked for.
pub(crate) struct TriggerTexts {
    pub(crate) here: &'static str,
    /// On which node.
    pub(crate) on: fn(&str) -> String,
    /// Where, and whether the slot has ended.
    pub(crate) effect: fn(&str, bool) -> String,
    /// What follows where the attempts are used up.
    #[cfg_attr(not(feature = "http"), allow(dead_code, reason = "the port alone runs a slot again"))]
    pub(crate) after_reset: fn(&str) -> String,
    /// The commands that run the slot again.
    pub(crate) undo: fn(&str) -> String,
}

/// Of a pause.
pub(crate) struct PauseTexts {
    /// Until when, and how long that is.
    pub(crate) effect: fn(Option<(&str, Duration)>) -> String,
    /// Whose pause on which host is replaced.
    pub(crate) replaces: fn(&str, &str) -> String,
    pub(crate) needless: &'static str,
}

/// Of the end of a pause.
pub(crate) struct ResumeTexts {
    pub(crate) effect: &'static str,
    pub(crate) needless: &'static str,
}
