//! What goes wrong below the trait, and how each is told: gRPC's statuses and broken connections become kinds with a way
//! out. A table; nothing here decides whether to try again.

use std::error::Error as _;

use tonic::{Code, Status};

use crate::store::ErrorKind;
use crate::store::keyed::one_line;
use crate::store::tls::{TlsFault, TlsWords};

pub(super) use crate::store::keyed::Fault;

/// An answer that is none.
pub(super) fn odd_answer() -> Fault {
    Fault { refused: false, ..Fault::new(ErrorKind::Unsupported, "what answers there is not etcd's API version 3") }
}

impl Fault {
    /// There is no connection: nothing was sent.
    pub(super) fn not_connected(error: tonic::transport::Error) -> Self {
        let text = causes(&error);
        let (kind, message) = transport(&error, &text).unwrap_or_else(|| {
            let kind = if text.contains("deadline") || text.contains("timed out") || text.contains("timeout") {
                ErrorKind::Timeout
            } else {
                ErrorKind::Unavailable
            };
            (kind, format!("cannot connect: {text}"))
        });
        Self { elsewhere: true, source: Some(error.into()), ..Self::new(kind, message) }
    }

    /// It came before the request itself was sent.
    pub(super) fn before_the_request(self) -> Self {
        Self { refused: true, ..self }
    }
}

/// True when the server did not even look at the request, since the login is too old.
pub(super) fn is_stale_login(status: &Status) -> bool {
    let text = status.message();
    text.contains("invalid auth token") || text.contains("revision of auth store is old")
}

/// True when the lease that the request names is gone.
pub(super) fn is_lease_gone(fault: &Fault) -> bool {
    fault.kind == ErrorKind::Unsupported && fault.message.contains("requested lease not found")
}

impl From<Status> for Fault {
    fn from(status: Status) -> Self {
        let fault = if status.source().is_some() { broken(&status) } else { answered(&status) };
        Self { source: Some(status.into()), ..fault }
    }
}

/// No answer: the connection failed under the call.
fn broken(status: &Status) -> Fault {
    let text = causes(status);
    let (kind, message) = transport(status, &text)
        .unwrap_or_else(|| (ErrorKind::Unavailable, format!("the connection broke before the answer: {text}")));
    Fault { refused: false, elsewhere: true, ..Fault::new(kind, message) }
}

/// The words of a url of etcd.
const WORDS: TlsWords = TlsWords {
    ca: "?ca=/path/ca.pem",
    identity: "?cert=/path/cert.pem&key=/path/key.pem",
    plain: "etcd:// instead of etcds://",
    takes_self_signed: true,
};

fn transport(error: &(dyn std::error::Error + 'static), text: &str) -> Option<(ErrorKind, String)> {
    if let Some(TlsFault { kind, message }) = TlsFault::of(error, &WORDS) {
        return Some((kind, message));
    }
    let lower = text.to_lowercase();
    if lower.contains("frame with invalid size") || lower.contains("protocol error") || lower.contains("preface") {
        let message = "what answers there does not speak etcd's protocol, or wants TLS: write etcds://";
        return Some((ErrorKind::Unsupported, message.to_owned()));
    }
    if lower.contains("reset by peer") || lower.contains("eof") {
        let message = "it closed the connection: etcds:// is for ports that speak TLS, etcd:// for those that do not";
        return Some((ErrorKind::Unavailable, message.to_owned()));
    }
    None
}

/// etcd answered with an error (`rpctypes/error.go`).
fn answered(status: &Status) -> Fault {
    let text = one_line(status.message().trim_start_matches("etcdserver: "));
    let has = |part: &str| status.message().contains(part);
    match status.code() {
        Code::PermissionDenied => {
            Fault::new(ErrorKind::Denied, "the user may not use the keys /cronward/: see docs/stores.md for its role")
        }
        _ if has("user name is empty") => {
            Fault::new(ErrorKind::Denied, "it wants a user: write etcd://user:password@host")
        }
        _ if has("authentication failed") => Fault::new(ErrorKind::Denied, "wrong user or password"),
        _ if has("authentication is not enabled") => {
            Fault::new(ErrorKind::Denied, "it knows no users: leave user and password out of the url")
        }
        Code::Unauthenticated => Fault::new(ErrorKind::Denied, format!("it refuses the login: {text}")),
        _ if has("space exceeded") => Fault::new(
            ErrorKind::Overloaded,
            "its database is full (--quota-backend-bytes): compact, defragment, then disarm the alarm",
        ),
        _ if has("request is too large") => {
            Fault::new(ErrorKind::Content, "the request is larger than it takes (--max-request-bytes)")
        }
        Code::ResourceExhausted if has("message larger than max") => {
            Fault::new(ErrorKind::Content, "the request is larger than its gRPC server takes (--max-request-bytes)")
        }
        Code::ResourceExhausted => Fault::new(ErrorKind::Overloaded, format!("it has no room: {text}")),
        // It looked for a leader before it took the request.
        _ if has("no leader") => Fault {
            elsewhere: true,
            ..Fault::new(ErrorKind::Unavailable, "this member has no leader: is there a majority?")
        },
        _ if has("timed out") => Fault {
            refused: false,
            elsewhere: true,
            ..Fault::new(ErrorKind::Timeout, format!("the cluster did not agree in time: {text}"))
        },
        Code::Unavailable | Code::DeadlineExceeded | Code::Cancelled | Code::Aborted | Code::Internal => {
            Fault { refused: false, elsewhere: true, ..Fault::new(ErrorKind::Unavailable, text) }
        }
        Code::Unimplemented => odd_answer(),
        Code::Unknown => Fault { refused: false, ..Fault::new(ErrorKind::Unsupported, format!("it answers: {text}")) },
        _ => Fault::new(ErrorKind::Unsupported, format!("it answers: {text}")),
    }
}

/// The error and what caused it, on one line.
fn causes(error: &(dyn std::error::Error + 'static)) -> String {
    let mut told = Vec::new();
    let mut next = error.source();
    while let Some(cause) = next {
        let text = cause.to_string();
        if !told.contains(&text) {
            told.push(text);
        }
        next = cause.source();
    }
    if told.is_empty() {
        told.push(error.to_string());
    }
    one_line(&told.join(": "))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::{Applied, Op};

    #[test]
    fn every_known_answer_has_its_kind_and_its_way_out() {
        use ErrorKind::{Content, Denied, Overloaded, Timeout, Unavailable, Unsupported};
        for (code, message, kind, refused, way_out) in [
            (Code::PermissionDenied, "etcdserver: permission denied", Denied, true, "docs/stores.md"),
            (Code::InvalidArgument, "etcdserver: user name is empty", Denied, true, "user:password"),
            (
                Code::InvalidArgument,
                "etcdserver: authentication failed, invalid user ID or password",
                Denied,
                true,
                "wrong",
            ),
            (Code::FailedPrecondition, "etcdserver: authentication is not enabled", Denied, true, "leave"),
            (Code::ResourceExhausted, "etcdserver: mvcc: database space exceeded", Overloaded, true, "compact"),
            (Code::ResourceExhausted, "etcdserver: too many requests", Overloaded, true, "too many requests"),
            (Code::InvalidArgument, "etcdserver: request is too large", Content, true, "--max-request-bytes"),
            (
                Code::ResourceExhausted,
                "grpc: received message larger than max (6291800 vs. 2097152)",
                Content,
                true,
                "--max-request-bytes",
            ),
            (Code::Unavailable, "etcdserver: no leader", Unavailable, true, "majority"),
            (Code::Unavailable, "etcdserver: request timed out", Timeout, false, "agree"),
            (Code::Unavailable, "etcdserver: leader changed", Unavailable, false, "leader changed"),
            (Code::Unimplemented, "unknown service", Unsupported, false, "not etcd's API"),
            (Code::NotFound, "etcdserver: requested lease not found", Unsupported, true, "lease not found"),
        ] {
            let fault = Fault::from(Status::new(code, message));
            assert_eq!((fault.kind, fault.refused), (kind, refused), "{message}: {fault}");
            assert!(fault.message.contains(way_out), "{message}: {fault}");
        }
    }

    #[test]
    fn only_what_was_sent_and_not_refused_may_have_been_applied() {
        let unknown = || Fault::timed_out(std::time::Duration::from_secs(1));
        assert_eq!(unknown().into_error(Op::Claim, true, "etcd://h").applied, Applied::Maybe);
        assert_eq!(unknown().into_error(Op::Claim, false, "etcd://h").applied, Applied::No);
        assert_eq!(Fault::contended().into_error(Op::Claim, true, "etcd://h").applied, Applied::No);
    }

    #[test]
    fn a_stale_login_is_told_from_a_wrong_one() {
        assert!(is_stale_login(&Status::unauthenticated("etcdserver: invalid auth token")));
        assert!(!is_stale_login(&Status::invalid_argument("etcdserver: authentication failed")));
    }
}
