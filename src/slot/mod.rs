//! The words of the protocol: slots and their keys, leases, tokens, fences, and what is recorded of them.

mod key;
mod lease;
mod note;
mod period;
mod record;
mod run;
mod run_record;
mod span;

pub use key::{SlotKey, SlotKeyError};
pub use lease::{Lease, Token, TokenError, Trigger};
pub use note::{Decision, MOST_NOTES, MOST_PAGES, Note, NotePage};
pub use period::{Period, PeriodError};
pub use record::{Audit, DoneMark, Holder, Mark, SlotRecord, SlotState, Verdict, VerdictRecord};
pub use run::{Exit, ExitStatus, LeaseDeadline, OUTPUT_LOST, RunContext};
pub use run_record::{Outcome, OutputTail, RunRecord};
pub use span::{Attempt, Fence, Slot, SlotError};
