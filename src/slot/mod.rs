//! The words of the protocol: slots and their keys, leases, tokens, fences, and what is recorded of them.

mod key;
mod latest;
mod lease;
mod note;
mod output;
mod overlap;
mod record;
mod run;
mod span;

pub use key::{SlotKey, SlotKeyError};
pub use latest::{Failing, JobLatest, LastEnd, LastSuccess};
pub use lease::{Lease, Token, TokenError, Trigger};
pub use note::{Decision, MOST_NOTES, MOST_PAGES, Note, NotePage};
pub use output::{OutputLoss, OutputTail};
#[doc(hidden)]
pub use overlap::Overlap;
pub use record::{Audit, DoneMark, Holder, Mark, SlotRecord, SlotState, Verdict, VerdictRecord};
pub use run::{Exit, ExitStatus, LeaseDeadline, NOT_STARTED, OUTPUT_LOST, Standstill};
pub use run::{Outcome, RunContext, RunLocks, RunRecord};
pub(crate) use span::divides_day;
pub use span::{Attempt, Fence, LengthError, Period, PeriodError, Slot, SlotError};
