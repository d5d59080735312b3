//! What goes wrong below the trait, and how each is told: ZooKeeper's codes and lost sessions become kinds with a way out.
//! A table; nothing here decides whether to try again.

use std::time::Duration;

use zookeeper_client::{Error, MultiWriteError};

use crate::store::keyed::Trouble;
use crate::store::{Applied, ErrorKind, Op, StoreError};
use crate::text::message;

/// The longest name that becomes part of a message; those of cronward's own are shorter.
const LONGEST_NAME: usize = 300;

/// The longest foreign text that becomes part of a message.
const SHOWN: usize = 160;

/// Trouble below the trait. It knows neither the operation nor what that had sent before.
#[derive(Clone, Debug)]
pub(in crate::store) struct Fault {
    kind: ErrorKind,
    message: String,
    /// The server, or the lack of a session, tells that nothing of the request was done.
    refused: bool,
    source: Option<Error>,
}

impl Fault {
    fn new(kind: ErrorKind, message: impl Into<String>) -> Self {
        Self { kind, message: message.into(), refused: true, source: None }
    }

    /// Something foreign at a node.
    pub(super) fn foreign(path: &str, why: &str) -> Self {
        Self::new(
            ErrorKind::Corrupt,
            format!("{} holds what cronward did not write: {}", message(path, LONGEST_NAME), one_line(why)),
        )
    }

    /// An answer that is none.
    pub(super) fn odd_answer() -> Self {
        Self { refused: false, ..Self::new(ErrorKind::Unsupported, "what answers there is not ZooKeeper 3.6 or later") }
    }

    /// Others change the same slot, again and again.
    pub(super) fn contended() -> Self {
        Self::new(ErrorKind::Overloaded, "others changed the slot each time before this could")
    }

    /// There is no session: nothing was sent.
    pub(super) fn no_session(error: Error) -> Self {
        let message = match &error {
            Error::AuthFailed => return Self::from(error),
            Error::NoHosts => "no server accepts a session: is there a majority?".to_owned(),
            other => format!("no session: {}", one_line(&other.to_string())),
        };
        let kind = if error == Error::Timeout { ErrorKind::Timeout } else { ErrorKind::Unavailable };
        Self { source: Some(error), ..Self::new(kind, message) }
    }
}

impl Trouble for Fault {
    fn timed_out(limit: Duration) -> Self {
        let message = format!("no answer within {} ms", limit.as_millis());
        Self { refused: false, ..Self::new(ErrorKind::Timeout, message) }
    }

    fn into_error(self, op: Op, sent: bool, location: &str) -> StoreError {
        let applied = if sent && !self.refused { Applied::Maybe } else { Applied::No };
        let error = StoreError::new(self.kind, applied, op, location, self.message);
        match self.source {
            Some(source) => error.caused_by(source),
            None => error,
        }
    }
}

impl std::fmt::Display for Fault {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.message)
    }
}

/// True when something that was read has changed, or a folder is not there yet: nothing was written.
pub(super) fn is_overtaken(error: &Error) -> bool {
    matches!(error, Error::BadVersion | Error::NodeExists | Error::NoNode | Error::NotEmpty)
}

/// What a write of several nodes failed with.
pub(super) fn cause(error: MultiWriteError) -> Error {
    match error {
        MultiWriteError::RequestFailed { source } | MultiWriteError::OperationFailed { source, .. } => source,
    }
}

impl From<Error> for Fault {
    fn from(error: Error) -> Self {
        let unknown = |kind, message: &str| Self { refused: false, ..Self::new(kind, message) };
        let fault = match &error {
            Error::NoAuth | Error::InvalidAcl => {
                Self::new(ErrorKind::Denied, "the user may not use the nodes below cronward: see docs/stores.md")
            }
            Error::AuthFailed => {
                Self::new(ErrorKind::Denied, "it refuses the user: write zookeeper://user:password@host")
            }
            Error::NotReadOnly => {
                Self::new(ErrorKind::ReadOnly, "this server is cut off from the others and only reads")
            }
            Error::Throttled => Self::new(ErrorKind::Overloaded, "it has no room for more requests"),
            Error::QuotaExceeded => Self::new(ErrorKind::Overloaded, "the quota of the path is used up (setquota)"),
            Error::Timeout => unknown(ErrorKind::Timeout, "it did not answer in time"),
            Error::ConnectionLoss | Error::SessionMoved => {
                unknown(ErrorKind::Unavailable, "the connection broke before the answer")
            }
            // What the system told of the socket.
            Error::Custom(error) => {
                let told = format!("the connection broke before the answer: {}", one_line(&error.to_string()));
                unknown(ErrorKind::Unavailable, &told)
            }
            Error::SessionExpired | Error::ClientClosed => {
                unknown(ErrorKind::Unavailable, "the session ended before the answer; the next call begins a new one")
            }
            Error::Unimplemented => Self::new(ErrorKind::Unsupported, "it is older than ZooKeeper 3.6"),
            Error::UnmarshalError { .. } | Error::MarshallingError => Self::odd_answer(),
            other => unknown(ErrorKind::Unsupported, &format!("it answers: {}", one_line(&other.to_string()))),
        };
        Self { source: Some(error), ..fault }
    }
}

fn one_line(text: &str) -> String {
    message(text.trim(), SHOWN)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_session_that_ends_leaves_open_whether_it_was_applied() {
        for error in [Error::SessionExpired, Error::ConnectionLoss, Error::Timeout] {
            let told = Fault::from(error.clone()).into_error(Op::Claim, true, "zookeeper://h");
            assert_eq!(told.applied, Applied::Maybe, "{error}");
            assert!(told.is_transient(), "{told}");
            assert_eq!(Fault::no_session(error).into_error(Op::Claim, true, "zookeeper://h").applied, Applied::No);
        }
    }

    #[test]
    fn a_refusal_was_not_applied_and_says_what_to_do() {
        for (error, kind, way_out) in [
            (Error::NoAuth, ErrorKind::Denied, "docs/stores.md"),
            (Error::NotReadOnly, ErrorKind::ReadOnly, "cut off"),
            (Error::QuotaExceeded, ErrorKind::Overloaded, "setquota"),
            (Error::Unimplemented, ErrorKind::Unsupported, "3.6"),
        ] {
            let told = Fault::from(error).into_error(Op::Claim, true, "zookeeper://h");
            assert_eq!((told.kind, told.applied), (kind, Applied::No), "{told}");
            assert!(told.message.contains(way_out), "{told}");
        }
    }
}
