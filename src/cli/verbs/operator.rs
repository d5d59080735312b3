//! Who intervenes and why. Reads this process's user and host; asks nobody.

use nix::unistd::{Uid, User, gethostname};

use crate::clock::{Clock, SystemClock};
use crate::slot::Audit;

/// Who intervenes and why.
#[derive(Clone, Debug, Default, clap::Args)]
#[command(next_help_heading = "Operator")]
pub(crate) struct OperatorArgs {
    /// Why, for whoever looks at it later; kept in the store
    #[arg(long, value_name = "TEXT", default_value = "", hide_default_value = true)]
    pub(crate) reason: String,
    /// Do not ask
    #[arg(long, short)]
    pub(crate) yes: bool,
}

/// A longer reason is cut: it is kept with the slot, and shown in one line.
const LONGEST_REASON: usize = 500;

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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_audit_names_somebody_somewhere_and_cuts_a_long_reason() {
        let args = OperatorArgs { reason: "ä".repeat(600), yes: true };
        let audit = args.audit("reset");
        assert!(!audit.who.is_empty() && !audit.host.is_empty());
        assert_eq!((audit.verb.as_str(), audit.why.chars().count()), ("reset", LONGEST_REASON));
    }
}
