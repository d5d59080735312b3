//! The command line of `cronward exec`.

use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

use chrono_tz::Tz;
use clap::ValueEnum;

use crate::cli::store_args::StoreArgs;
use crate::cli::values;
use crate::drive::Wait;
use crate::job::{JobName, KillMode, LockKey, MAX_ATTEMPTS_LIMIT, NodeName, OnLost};
use crate::slot::{Period, SlotKey};

/// Guard one command: of all the machines that start it, one runs it in each slot
///
/// Put it in front of the command in every machine's crontab. One machine runs the command and ends with its exit code. The
/// others wait until the slot is done, its attempts are used up, or it is over, and end with 0 without a word; should the machine that
/// runs it die or fail, one of them takes over. A slot that is skipped, because the job is paused or another slot of it still
/// runs, is one line on stderr. A job of that name in the file lends its limits; flags win over it.
///
/// Stdin, stdout and stderr are the command's; what it writes is passed on through pipes, byte for byte. A terminal is not passed in
/// as stdin: the command is not in its foreground and would be stopped for reading. Ctrl-Z is refused, because a guard that
/// stands still cannot renew its lease.
///
/// Within a run of the same job and slot it starts its command at once, under the lease that is held. That run's limits hold
/// then: of its own flags --timeout and --report count, --key has to be that run's, and no other limit is looked at.
#[derive(Debug, clap::Args)]
#[command(
    before_help = "Example: cronward exec --store redis://127.0.0.1/ --job billing -- /usr/local/bin/bill --all",
    after_help = "Exit codes: the command's own, or 128 + the signal that ended it; 64 usage, 69 store refuses, 74 output lost, 75 store unavailable, \
                  76 lease lost and the command killed, 78 configuration, 124 timeout, 126 cannot run, 127 not found."
)]
pub(crate) struct ExecArgs {
    /// The job's name: the same on every machine
    #[arg(long, value_name = "JOB")]
    pub(crate) job: JobName,
    /// What one slot spans: hour, minute or day; or the key of one slot, like 2026-11-21T14Z [default: the file's, or hour]
    #[arg(long, value_name = "PERIOD|KEY")]
    pub(crate) slot: Option<SlotArg>,
    /// The time zone in which hours and days begin [default: the file's, or UTC]
    #[arg(long, value_name = "ZONE", value_parser = values::zone)]
    pub(crate) timezone: Option<Tz>,
    /// Attempts in all, over all machines [default: the file's, or 3]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=i64::from(MAX_ATTEMPTS_LIMIT)))]
    pub(crate) max_attempts: Option<u32>,
    /// How long a lease lasts unless renewed [default: the file's, or 60s]
    #[arg(long, value_name = "SPAN", value_parser = values::span)]
    pub(crate) lease_ttl: Option<Duration>,
    /// How long the done marker lasts, at least until the slot's end [default: the file's, or 2h]
    #[arg(long, value_name = "SPAN", value_parser = values::span)]
    pub(crate) done_ttl: Option<Duration>,
    /// Stop the command after this [default: the file's, or never]
    #[arg(long, value_name = "SPAN", value_parser = values::span)]
    pub(crate) timeout: Option<Duration>,
    /// The wait that everybody keeps after a failure [default: none, the crontab is the clock]
    #[arg(long, value_name = "SPAN", value_parser = values::span)]
    pub(crate) retry_delay: Option<Duration>,
    /// Hold this key in Redis during the run, too: the lock of an old script (SET KEY value NX EX) that runs elsewhere still
    #[arg(long, value_name = "KEY")]
    pub(crate) key: Option<LockKey>,
    /// Wait this long at most, also for a pause or another slot, and for another attempt after a failure of its own
    #[arg(long, value_name = "SPAN", value_parser = values::span)]
    pub(crate) wait: Option<Duration>,
    /// Leave at once where the slot cannot be started now, without taking over from a machine that dies or fails
    #[arg(long, conflicts_with = "wait")]
    pub(crate) no_wait: bool,
    /// Wait at most this long for the store to record how the command ended [default: the lease TTL]
    #[arg(long, value_name = "SPAN", value_parser = values::span)]
    pub(crate) record_timeout: Option<Duration>,
    /// What becomes of the command when its lease is lost [default: the file's, or continue]
    #[arg(long, value_name = "WHAT")]
    pub(crate) on_lost: Option<OnLostWord>,
    /// How much of what the command started is stopped with it [default: the file's, or group]
    #[arg(long, value_name = "WHAT")]
    pub(crate) kill_mode: Option<KillModeWord>,
    /// Exit with this code where the command was not started
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub(crate) skip_exit_code: u8,
    /// Write what happened to this file, as JSON
    #[arg(long, value_name = "FILE")]
    pub(crate) report: Option<PathBuf>,
    /// This machine's name [default: the file's, or the host's]
    #[arg(long, value_name = "NAME")]
    pub(crate) node: Option<NodeName>,
    #[command(flatten)]
    pub(crate) store: StoreArgs,
    /// The command and its arguments, after `--`; no shell, no placeholders
    #[arg(value_name = "CMD", required = true, last = true)]
    pub(crate) command: Vec<String>,
}

impl ExecArgs {
    /// What keeps it.
    pub(super) fn waits(&self) -> Wait {
        match self.wait {
            _ if self.no_wait => Wait::No,
            Some(span) => Wait::For(span),
            None => Wait::TakeOver,
        }
    }
}

/// Which slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SlotArg {
    /// The one of now, of this length.
    Span(Period),
    /// This one.
    Key(SlotKey),
}

impl FromStr for SlotArg {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "hour" => Ok(Self::Span(Period::Hour)),
            "minute" => Ok(Self::Span(Period::Minute)),
            "day" => Ok(Self::Span(Period::Day)),
            _ => text
                .parse()
                .map(Self::Key)
                .map_err(|_| format!("{text:?} is no slot: write hour, minute or day, or a key like 2026-11-21T14Z")),
        }
    }
}

/// What becomes of a command whose lease is lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum OnLostWord {
    /// It goes on: a repeated run is better than none
    Continue,
    /// It is stopped before another machine can start
    Kill,
}

impl From<OnLostWord> for OnLost {
    fn from(word: OnLostWord) -> Self {
        match word {
            OnLostWord::Continue => Self::Continue,
            OnLostWord::Kill => Self::Kill,
        }
    }
}

/// How much of what a command started is stopped with it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum KillModeWord {
    /// Everything: nothing outlives the run
    Group,
    /// A daemon that the command leaves behind lives on
    Process,
}

impl From<KillModeWord> for KillMode {
    fn from(word: KillModeWord) -> Self {
        match word {
            KillModeWord::Group => Self::Group,
            KillModeWord::Process => Self::Process,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slot_is_a_period_or_a_key() {
        assert_eq!("day".parse(), Ok(SlotArg::Span(Period::Day)));
        assert_eq!("2026-11-21T14Z".parse(), Ok(SlotArg::Key("2026-11-21T14Z".parse().unwrap())));
        for text in ["", "tick", "5s", "week", "Hour"] {
            assert!(text.parse::<SlotArg>().unwrap_err().contains("hour, minute or day"), "{text}");
        }
    }
}
