//! The forms of actions, in English.

use super::sentences::ActTexts;

/// English.
pub(super) const FORMS: ActTexts = ActTexts {
    label: |verb| match verb {
        "reset" => "Run again…",
        "unlock" => "Unlock…",
        "mark-done" => "Mark as done…",
        "trigger" => "Run now…",
        "retry" => "Run again…",
        "pause" => "Pause…",
        "resume" => "Resume…",
        _ => "Do it…",
    },
    heading: |verb, what| {
        let verb = match verb {
            "reset" | "retry" => "Run again",
            "unlock" => "Unlock",
            "mark-done" => "Mark as done",
            "trigger" => "Run now",
            "pause" => "Pause",
            "resume" => "Resume",
            other => other,
        };
        format!("{verb}: {what}")
    },
    effect: "What will happen",
    undo: "To undo",
    command: "The same on a terminal",
    reason: "Reason",
    reason_required: "required; recorded with your name",
    reason_optional: "recorded with your name",
    confirm: |job| format!("Type {job} to confirm"),
    until: "Until",
    until_hint: "30m, 2h, or a time like 2026-11-21T18:00:00Z; empty: until resumed",
    back: "Back",
    off_away: "Actions are off while the store cannot be used.",
    needless: "There is nothing to do:",
    refused: "This cannot be done now:",
    audited: |who| format!("Recorded as done by {who}."),
    changed: "The slot changed in the meantime. This is its state now; what you typed is kept.",
};
