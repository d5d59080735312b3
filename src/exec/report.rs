//! What the shim tells the daemon: lines of text, readable with strace. Words only.

use std::fmt;

use crate::clock::Mono;
use crate::exec::refusal::Refusal;

/// One report.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Report {
    /// The command runs as this process, which is also its group. First, unless it was refused.
    Started(i32),
    /// It was not started. Nothing follows.
    Refused(Refusal),
    /// The command itself exited with this code, at this instant.
    Exited(i32, Mono),
    /// This signal ended the command itself, at this instant.
    Signalled(i32, Mono),
    /// Its lease was not renewed by `stop_at`: at this instant it was sent TERM, or refused before it was started.
    Lapsed(Mono),
    /// Nothing of it is left, or nothing that can be killed. The last one.
    Swept {
        /// Processes that outlived the command and were stopped.
        left: usize,
        /// Processes that KILL did not stop.
        survivors: usize,
    },
}

impl fmt::Display for Report {
    /// One line, with its end.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Started(pid) => writeln!(f, "started {pid}"),
            Self::Refused(Refusal { code, message }) => {
                writeln!(f, "refused {code} {}", message.replace(['\n', '\r'], " "))
            }
            Self::Exited(code, at) => writeln!(f, "exited {code} {}", at.nanos()),
            Self::Signalled(signal, at) => writeln!(f, "signalled {signal} {}", at.nanos()),
            Self::Lapsed(at) => writeln!(f, "lapsed {}", at.nanos()),
            Self::Swept { left, survivors } => writeln!(f, "swept {left} {survivors}"),
        }
    }
}

impl Report {
    /// Reads a line without its end; none when it is no report.
    pub(super) fn parse(line: &str) -> Option<Self> {
        let (word, rest) = line.split_once(' ')?;
        Some(match word {
            "started" => Self::Started(rest.parse().ok()?),
            "refused" => {
                let (code, message) = rest.split_once(' ')?;
                Self::Refused(Refusal { code: code.parse().ok()?, message: message.to_owned() })
            }
            "exited" => {
                let (code, at) = rest.split_once(' ')?;
                Self::Exited(code.parse().ok()?, instant(at)?)
            }
            "signalled" => {
                let (signal, at) = rest.split_once(' ')?;
                Self::Signalled(signal.parse().ok()?, instant(at)?)
            }
            "lapsed" => Self::Lapsed(instant(rest)?),
            "swept" => {
                let (left, survivors) = rest.split_once(' ')?;
                Self::Swept { left: left.parse().ok()?, survivors: survivors.parse().ok()? }
            }
            _ => return None,
        })
    }
}

/// Nanoseconds of the clock that both ends read.
fn instant(text: &str) -> Option<Mono> {
    Some(Mono::from_nanos(text.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_report_reads_back_as_written() {
        for report in [
            Report::Started(4_194_304),
            Report::Refused(Refusal::not_found("\"x\" was not found in PATH")),
            Report::Exited(255, Mono::from_nanos(7_000_000_001)),
            Report::Signalled(64, Mono::default()),
            Report::Lapsed(Mono::from_nanos(u64::MAX)),
            Report::Swept { left: 2, survivors: 1 },
        ] {
            assert_eq!(Report::parse(report.to_string().trim_end_matches('\n')), Some(report));
        }
    }

    #[test]
    fn a_report_is_one_line_whatever_its_message() {
        let line = Report::Refused(Refusal::cannot_run("a\nswept 0 0\r\n")).to_string();
        assert_eq!(line, "refused 126 a swept 0 0  \n");
    }

    #[test]
    fn what_is_no_report_is_none() {
        for line in
            ["", "started", "started x", "refused 1", "exited 1", "exited 1 -1", "swept 1", "swept -1 0", "began 1"]
        {
            assert_eq!(Report::parse(line), None, "{line}");
        }
    }
}
