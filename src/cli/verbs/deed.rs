//! What every verb does around its one step: ask, tell what was changed, and how it is undone.

use serde::Serialize;

use crate::cli::console::{Console, OutputArgs};
use crate::cli::failure::Failure;
use crate::cli::store_args::StoreArgs;
use crate::cli::text::brief;
use crate::cli::verbs::OperatorArgs;
use crate::store::Intervention;

/// A verb and its object, in words.
pub(crate) struct Deed {
    /// `reset`, `unlock`, `mark-done`, `pause`, `resume`, `trigger`.
    pub(crate) verb: &'static str,
    /// The slot or the job.
    pub(crate) target: String,
    /// What will happen, as a question's beginning: "3 attempts are forgiven".
    pub(crate) effect: String,
    /// Said where nothing had to be changed.
    pub(crate) needless: String,
    /// The command that takes it back, or why there is none.
    pub(crate) undo: String,
    /// What was typed to get here: told commands go to the same store.
    pub(crate) store: StoreArgs,
}

/// What a verb did, for programs.
#[derive(Debug, Serialize)]
struct DeedView<'a> {
    /// `reset`, `unlock`, `mark-done`, `pause`, `resume`.
    verb: &'a str,
    /// The slot or the job.
    target: &'a str,
    /// False where it was so already.
    changed: bool,
    /// The command that takes it back, or why there is none.
    undo: &'a str,
}

impl Deed {
    /// Asks, unless `--yes` was given. Answers whether to go on; without somebody to ask, says what to add.
    pub(crate) fn confirm(&self, operator: &OperatorArgs, console: &mut Console) -> Result<bool, Failure> {
        if operator.yes {
            return Ok(true);
        }
        let Self { verb, target, effect, .. } = self;
        let Some(agreed) = console.ask(&format!("{verb} {target}: {effect}. Go on? [y/N] "))? else {
            return Err(Failure::Usage(format!(
                "{verb} {target} changes the store and nobody can be asked: add --yes"
            )));
        };
        if !agreed {
            console.note("nothing was changed");
        }
        Ok(agreed)
    }

    /// Tells what came of it.
    pub(crate) fn tell(&self, answer: Intervention, output: OutputArgs, console: &mut Console) -> Result<(), Failure> {
        let Self { verb, target, effect, needless, undo, store } = self;
        let changed = match answer {
            Intervention::Applied => true,
            Intervention::Unchanged => false,
            Intervention::Held { by, remaining } => {
                let unlock = store.command(format_args!("unlock {target}"));
                return Err(Failure::Held(format!(
                    "{target} is held by node {}, attempt {}, for another {} unless renewed: wait for it, or take the lease \
                     away with `{unlock}`",
                    by.node,
                    by.attempt,
                    brief(remaining)
                )));
            }
        };
        if output.json {
            return console.json(&DeedView { verb, target, changed, undo });
        }
        if changed {
            console.print(&format!("{verb} {target}: {effect}\n"))?;
            console.print(&format!("to undo: {undo}\n"))
        } else {
            console.print(&format!("{verb} {target}: nothing to do, {needless}\n"))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    use crate::cli::fixture::node;
    use crate::slot::Holder;

    fn deed() -> Deed {
        Deed {
            verb: "reset",
            target: "billing@2026-11-21T14Z".to_owned(),
            effect: "3 attempts are forgiven".to_owned(),
            needless: "nothing happened in it".to_owned(),
            undo: "cronward mark-done billing@2026-11-21T14Z".to_owned(),
            store: StoreArgs { store: Some("redis://:secret@h/".to_owned()), ..StoreArgs::default() },
        }
    }

    fn told(answer: Intervention, json: bool) -> String {
        let (mut console, out, _) = Console::captured(false);
        deed().tell(answer, OutputArgs { json, no_color: false }, &mut console).unwrap();
        out.text()
    }

    #[test]
    fn what_was_changed_is_told_with_its_undo() {
        assert_eq!(
            told(Intervention::Applied, false),
            "reset billing@2026-11-21T14Z: 3 attempts are forgiven\nto undo: cronward mark-done billing@2026-11-21T14Z\n"
        );
        assert_eq!(
            told(Intervention::Unchanged, false),
            "reset billing@2026-11-21T14Z: nothing to do, nothing happened in it\n"
        );
        assert!(told(Intervention::Unchanged, true).contains("\"changed\": false"));
    }

    #[test]
    fn a_slot_that_is_held_is_refused_with_both_ways_out() {
        let by = Holder { node: node("b"), attempt: 2 };
        let held = Intervention::Held { by, remaining: Duration::from_secs(41) };
        let (mut console, _, _) = Console::captured(false);
        let refusal = deed().tell(held, OutputArgs::default(), &mut console).unwrap_err();
        assert_eq!(
            refusal.to_string(),
            "billing@2026-11-21T14Z is held by node b, attempt 2, for another 41s unless renewed: wait for it, or take the \
             lease away with `cronward unlock billing@2026-11-21T14Z --store 'redis://:***@h/'`"
        );
        assert_eq!(refusal.exit_code(), crate::cli::ExitCode::TryAgain);
    }

    #[test]
    fn without_yes_somebody_has_to_agree() {
        let ask = |answer: Option<&str>| {
            let (mut console, _, err) = Console::captured(true);
            console.answers(answer);
            (deed().confirm(&OperatorArgs::default(), &mut console), err.text())
        };
        for (answer, agreed) in [("y\n", true), ("Yes\n", true), ("n\n", false), ("\n", false), ("", false)] {
            assert_eq!(ask(Some(answer)).0.unwrap(), agreed, "{answer:?}");
        }
        let (_, asked) = ask(Some("n\n"));
        assert_eq!(asked, "reset billing@2026-11-21T14Z: 3 attempts are forgiven. Go on? [y/N] nothing was changed\n");
        let refusal = ask(None).0.unwrap_err();
        assert!(refusal.to_string().ends_with("add --yes"), "{refusal}");
    }
}
