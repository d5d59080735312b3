//! What an action does and how it is undone, in English: as commands say it, and the API.

use crate::admin::actions::texts::{
    ActionTexts, MarkDoneTexts, PauseTexts, ResetTexts, ResumeTexts, TriggerTexts, UnlockTexts,
};
use crate::admin::command_line::{no_start, starter};
use crate::admin::words::brief;

/// English.
pub(crate) const ENGLISH: ActionTexts = ActionTexts {
    and: "; ",
    reset: ResetTexts {
        counts: |used| match used {
            0 => "no attempt of the slot counts".to_owned(),
            1 => "1 attempt no longer counts".to_owned(),
            used => format!("{used} attempts no longer count"),
        },
        no_longer_done: "the slot is no longer done",
        runs_when_due: "nodes run the slot when it is due, unless the job is paused then",
        runs_again: "nodes run the slot again within seconds, unless the job is paused",
        not_started: |why, trigger| format!("no node runs the slot by itself: {why}; to run it now: {trigger}"),
        by_command: |end, trigger| format!("the slot ended at {end}; to run it now: {trigger}"),
        starter,
        when: |starts| format!("the slot runs when {starts} again"),
        by_nobody: |end| format!("the slot ended at {end}, so nothing runs it any more"),
        needless: "nothing has happened in the slot",
        undo: |mark| format!("cannot be undone; to keep nodes from running the slot: {mark}"),
    },
    unlock: UnlockTexts {
        effect: |attempt, node, follows| format!("attempt {attempt} on node {node} loses its lease, and {follows}"),
        may_start: "other nodes may start the slot, unless the job is paused",
        none_left: "no attempts are left: no node starts the slot again unless it is reset",
        not_started: |why| format!("no node starts the slot again by itself: {why}"),
        over: "no node starts the slot again: it has ended",
        no_effect: "no node loses a lease",
        needless: "no node holds the lease",
        undo: |node| {
            let node = node.map(|node| format!(" on node {node}")).unwrap_or_default();
            format!("cannot be undone; if the command{node} is still running, stop it: two runs may overlap")
        },
    },
    no_start,
    mark_done: MarkDoneTexts {
        effect: "the slot counts as done, and no node runs it any more",
        needless: "the slot is already done",
    },
    trigger: TriggerTexts {
        here: "on this machine",
        on: |node| format!("on node {node}"),
        effect: |place, is_past| {
            let over = if is_past { "the slot has ended; " } else { "" };
            format!("{over}the command runs now {place}")
        },
        after_reset: |effect| format!("the attempts no longer count; {effect}"),
        undo: |again| format!("cannot be undone; to run the slot again: {again}"),
    },
    pause: PauseTexts {
        effect: |until| match until {
            Some((until, left)) => format!("no slot of the job starts until {until} (in {})", brief(left)),
            None => "no slot of the job starts until the job is resumed".to_owned(),
        },
        replaces: |who, host| format!("this replaces the pause by {who} on {host}"),
        needless: "the job is already paused like this",
    },
    resume: ResumeTexts { effect: "the slots of the job start again", needless: "the job is not paused" },
};
