//! What every operator command does around its one step: who asks for it and why, whether to go on, and telling what was changed
//! and how it is undone.

use nix::unistd::{Uid, User, gethostname};

use crate::admin::AdminSession;
use crate::admin::actions::{Change, LONGEST_REASON, Proposal};
use crate::cli::console::{Console, OutputArgs};
use crate::cli::failure::Failure;
use crate::clock::{Clock, SystemClock};
use crate::slot::Audit;
use crate::store::Intervention;

/// Who intervenes and why.
#[derive(Clone, Debug, Default, clap::Args)]
#[command(next_help_heading = "Operator")]
pub(crate) struct OperatorArgs {
    /// The reason; recorded in the store with the change
    #[arg(long, value_name = "TEXT", default_value = "", hide_default_value = true)]
    pub(crate) reason: String,
    /// Do not ask for confirmation
    #[arg(long, short)]
    pub(crate) yes: bool,
}

impl OperatorArgs {
    /// The entry for the store's record. The store sets the instant by its own clock.
    pub(crate) fn audit(&self, verb: &str) -> Audit {
        Audit {
            verb: verb.to_owned(),
            who: who(),
            host: gethostname().map_or_else(|_| "unknown".to_owned(), |name| name.to_string_lossy().into_owned()),
            why: self.reason.chars().take(LONGEST_REASON).collect(),
            at: SystemClock.now().wall,
        }
    }
}

/// The person, as the machine knows them: whoever called sudo, else the process's user.
fn who() -> String {
    let sudo = std::env::var("SUDO_USER").ok().filter(|name| !name.is_empty() && Uid::effective().is_root());
    sudo.unwrap_or_else(|| {
        let uid = Uid::current();
        let account = User::from_uid(uid).ok().flatten();
        account.map_or_else(|| uid.to_string(), |account| account.name)
    })
}

impl Change {
    /// Asks, unless `--yes` was given. Answers whether to go on; without somebody to ask, says what to add.
    pub(crate) fn confirm(&self, operator: &OperatorArgs, console: &mut Console) -> Result<bool, Failure> {
        if operator.yes {
            return Ok(true);
        }
        let Self { verb, target, effect, .. } = self;
        let Some(agreed) = console.ask(&format!("{verb} {target}: {effect}. Go on? [y/N] "))? else {
            return Err(Failure::Usage(format!("{verb} {target} changes the store and needs confirmation: add --yes")));
        };
        if !agreed {
            console.note("nothing was changed");
        }
        Ok(agreed)
    }

    /// Tells what came of it.
    pub(crate) fn tell(&self, answer: Intervention, output: OutputArgs, console: &mut Console) -> Result<(), Failure> {
        let Self { verb, target, effect, needless, undo, line: _ } = self;
        let changed = match answer {
            Intervention::Applied => true,
            Intervention::Unchanged => false,
            Intervention::Held { by, remaining } => return Err(Failure::Held(self.held(&by, remaining).to_string())),
        };
        if output.json {
            return console.json(&self.view(changed, Vec::new()));
        }
        if changed {
            console.print(&format!("{verb} {target}: {effect}\n"))?;
            console.print(&format!("{undo}\n"))
        } else {
            console.print(&format!("{verb} {target}: nothing to do, {needless}\n"))
        }
    }
}

/// Asks whether to go on, does it, and tells what came of it. Where there is nothing to do, nobody is asked.
pub(super) async fn agree(
    proposal: &Proposal,
    session: &AdminSession,
    operator: &OperatorArgs,
    output: OutputArgs,
    console: &mut Console,
) -> Result<(), Failure> {
    let change = &proposal.change;
    if proposal.is_needless() {
        return change.tell(Intervention::Unchanged, output, console);
    }
    if !change.confirm(operator, console)? {
        return Ok(());
    }
    let answer = proposal.carry_out(&*session.store, &operator.audit(proposal.audited())).await?;
    change.tell(answer, output, console)
}

#[cfg(test)]
mod tests {
    use super::*;

    use std::time::Duration;

    use crate::admin::actions::Undo;
    use crate::admin::command_line::CommandLine;
    use crate::admin::fixture::node;
    use crate::slot::Holder;

    fn change() -> Change {
        Change {
            verb: "reset",
            target: "billing@2026-11-21T14Z".to_owned(),
            effect: "3 attempts no longer count".to_owned(),
            needless: "nothing happened in it".to_owned(),
            undo: Undo::By("cronward mark-done billing@2026-11-21T14Z".to_owned()),
            line: CommandLine { store: Some("redis://:secret@h/".to_owned()), ..CommandLine::default() },
        }
    }

    fn told(answer: Intervention, json: bool) -> String {
        let (mut console, out, _) = Console::captured(false);
        change().tell(answer, OutputArgs { json, no_color: false }, &mut console).unwrap();
        out.text()
    }

    #[test]
    fn what_was_changed_is_told_with_its_undo() {
        assert_eq!(
            told(Intervention::Applied, false),
            "reset billing@2026-11-21T14Z: 3 attempts no longer count\nto undo: cronward mark-done billing@2026-11-21T14Z\n"
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
        let refusal = change().tell(held, OutputArgs::default(), &mut console).unwrap_err();
        assert_eq!(
            refusal.to_string(),
            "billing@2026-11-21T14Z is held by node b, attempt 2, for another 41s unless renewed: wait for it, or release \
             the lease with `cronward unlock billing@2026-11-21T14Z --store 'redis://:***@h/'`"
        );
        assert_eq!(refusal.exit_code(), crate::cli::ExitCode::TryAgain);
    }

    #[test]
    fn without_yes_somebody_has_to_agree() {
        let ask = |answer: Option<&str>| {
            let (mut console, _, err) = Console::captured(true);
            console.answers(answer);
            (change().confirm(&OperatorArgs::default(), &mut console), err.text())
        };
        for (answer, agreed) in [("y\n", true), ("Yes\n", true), ("n\n", false), ("\n", false), ("", false)] {
            assert_eq!(ask(Some(answer)).0.unwrap(), agreed, "{answer:?}");
        }
        let (_, asked) = ask(Some("n\n"));
        assert_eq!(
            asked,
            "reset billing@2026-11-21T14Z: 3 attempts no longer count. Go on? [y/N] nothing was changed\n"
        );
        let refusal = ask(None).0.unwrap_err();
        assert!(refusal.to_string().ends_with("add --yes"), "{refusal}");
    }

    #[test]
    fn an_audit_names_somebody_somewhere_and_cuts_a_long_reason() {
        let args = OperatorArgs { reason: "ä".repeat(600), yes: true };
        let audit = args.audit("reset");
        assert!(!audit.who.is_empty() && !audit.host.is_empty());
        assert_eq!((audit.verb.as_str(), audit.why.chars().count()), ("reset", LONGEST_REASON));
    }
}
