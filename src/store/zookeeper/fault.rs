//! What goes wrong below the trait, and how each is told: ZooKeeper's codes and lost sessions become kinds with a way out.
//! A table; nothing here decides whether to try again.

use zookeeper_client::{Error, MultiWriteError};

use crate::store::ErrorKind;
use crate::store::keyed::one_line;

pub(super) use crate::store::keyed::Fault;

/// An answer that is none.
pub(super) fn odd_answer() -> Fault {
    Fault { refused: false, ..Fault::new(ErrorKind::Unsupported, "what answers there is not ZooKeeper 3.6 or later") }
}

/// How many connections a server takes. Each daemon has two, each `cronward lock` one, or two while it waits.
const ROOM: &str = "room for one more connection (maxClientCnxns, 60 of each address by default)";

impl Fault {
    /// There is no session: nothing was sent.
    pub(super) fn no_session(error: Error) -> Self {
        let message = match &error {
            Error::AuthFailed => return Self::from(error),
            Error::NoHosts => format!("no server accepts a session: is there a majority, and {ROOM}?"),
            // A server that has too many connections of one address closes the next one at once.
            Error::ConnectionLoss => format!("no session, the server closed the connection: has it {ROOM}?"),
            other => format!("no session: {}", one_line(&other.to_string())),
        };
        let kind = if error == Error::Timeout { ErrorKind::Timeout } else { ErrorKind::Unavailable };
        Self { source: Some(error.into()), ..Self::new(kind, message) }
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
            Error::UnmarshalError { .. } | Error::MarshallingError => odd_answer(),
            other => unknown(ErrorKind::Unsupported, &format!("it answers: {}", one_line(&other.to_string()))),
        };
        Self { source: Some(error.into()), ..fault }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::{Applied, Op};

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
