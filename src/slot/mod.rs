//! The words of the protocol: slots and their keys, leases, tokens, fences, and what is recorded of them.

mod key;
mod lease;
mod period;
mod record;
mod run;
mod span;

pub use key::{SlotKey, SlotKeyError};
pub use lease::{Attempt, Fence, Lease, Token, TokenError};
pub use period::{Period, PeriodError};
pub use record::{
    Audit, DoneMark, Holder, Mark, Outcome, OutputTail, RunRecord, SlotRecord, SlotState, Trigger, Verdict,
    VerdictRecord,
};
pub use run::{Exit, ExitStatus, RunContext};
pub use span::{Slot, SlotError};
