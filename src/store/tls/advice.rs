//! What a failure of TLS means, and what to do about it: one table for the stores of every kind.

use std::error::Error;
use std::fmt::Write as _;
use std::sync::Arc;

use chrono::DateTime;
use rustls::pki_types::UnixTime;
use rustls::{AlertDescription, CertificateError};

use crate::store::ErrorKind;
use crate::text::message;

/// The longest foreign text that becomes part of a message.
const SHOWN: usize = 160;

/// How the url of a store names what TLS needs.
#[derive(Clone, Copy, Debug)]
pub(in crate::store) struct TlsWords {
    /// An authority.
    pub(in crate::store) ca: &'static str,
    /// The certificate of this client with its key.
    pub(in crate::store) identity: &'static str,
    /// A connection without TLS.
    pub(in crate::store) plain: &'static str,
    /// Whether a certificate that is named is trusted as the server's own.
    pub(in crate::store) takes_self_signed: bool,
}

impl TlsWords {
    /// Those of a driver that checks certificates by itself, without a seam for a verifier.
    #[cfg(any(feature = "postgres", feature = "mysql"))]
    pub(in crate::store) const fn of_driver(ca: &'static str, identity: &'static str, plain: &'static str) -> Self {
        Self { ca, identity, plain, takes_self_signed: false }
    }
}

/// A failure with its way out.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub(in crate::store) struct TlsFault {
    pub(in crate::store) kind: ErrorKind,
    pub(in crate::store) message: String,
}

impl TlsFault {
    pub(in crate::store) const fn new(kind: ErrorKind, message: String) -> Self {
        Self { kind, message }
    }

    /// The failure of TLS that an error has as its cause; none where there is none.
    pub(in crate::store) fn of(error: &(dyn Error + 'static), words: &TlsWords) -> Option<Self> {
        find::<rustls::Error>(error).and_then(|error| meaning(error, words))
    }

    /// The fault that an error already carries.
    #[cfg(feature = "redis")]
    pub(in crate::store) fn carried_by<'a>(error: &'a (dyn Error + 'static)) -> Option<&'a Self> {
        find(error)
    }

    /// Files that cannot be used.
    #[cfg(feature = "redis")]
    pub(in crate::store) const fn unusable(why: String) -> Self {
        Self::new(ErrorKind::Unsupported, why)
    }

    /// A server that ends the connection once it has seen the certificate of the client.
    pub(in crate::store) fn identity_refused(words: &TlsWords) -> Self {
        let message = format!(
            "it refuses the certificate of the client: name one that its CA has signed with {}",
            words.identity
        );
        Self::new(ErrorKind::Denied, message)
    }

    /// What happens where a port speaks no TLS.
    pub(in crate::store) fn plain_port(words: &TlsWords) -> Self {
        Self::new(
            ErrorKind::Unsupported,
            format!("this port does not speak TLS: write {}, or name another port", words.plain),
        )
    }

    /// What happens where a port speaks nothing but TLS.
    #[cfg(feature = "redis")]
    pub(in crate::store) fn tls_port(scheme: &str) -> Self {
        Self::new(ErrorKind::Unsupported, format!("this port speaks TLS: write {scheme}, or name another port"))
    }

    /// A server that wants a certificate of its clients and got none.
    pub(in crate::store) fn no_identity(words: &TlsWords) -> Self {
        let message = format!("it wants a certificate of the client: name one with {}", words.identity);
        Self::new(ErrorKind::Denied, message)
    }
}

/// The first error of this type among the causes. An I/O error hides from `source` what it wraps, and so does a shared one.
fn find<'a, T: Error + 'static>(error: &'a (dyn Error + 'static)) -> Option<&'a T> {
    let mut next = Some(error);
    while let Some(error) = next {
        if let Some(found) = error.downcast_ref::<T>() {
            return Some(found);
        }
        next = if let Some(shared) = error.downcast_ref::<Arc<dyn Error + Send + Sync>>() {
            Some(shared.as_ref())
        } else if let Some(wrapped) = error.downcast_ref::<std::io::Error>().and_then(std::io::Error::get_ref) {
            Some(wrapped)
        } else {
            error.source()
        };
    }
    None
}

fn meaning(error: &rustls::Error, words: &TlsWords) -> Option<TlsFault> {
    match error {
        rustls::Error::InvalidCertificate(error) => {
            Some(TlsFault::new(ErrorKind::Unsupported, of_certificate(error, words)))
        }
        rustls::Error::AlertReceived(alert) => of_alert(*alert, words),
        rustls::Error::InvalidMessage(_) => Some(TlsFault::plain_port(words)),
        _ => None,
    }
}

/// What is wrong with the certificate of the server.
fn of_certificate(error: &CertificateError, words: &TlsWords) -> String {
    match error {
        CertificateError::NotValidForNameContext { expected, presented } => {
            let (host, names) = (expected.to_str(), names(presented));
            format!(
                "its certificate is not for {host} but for {names}: write one of these in the url, or issue one for {host}"
            )
        }
        CertificateError::NotValidForName => {
            "its certificate is not for the host in the url: write the name it has, or issue another".to_owned()
        }
        CertificateError::ExpiredContext { not_after, .. } => {
            format!(
                "its certificate expired on {}: renew it at the server, or set the clock of this host",
                day(*not_after)
            )
        }
        CertificateError::Expired => "its certificate has expired: renew it at the server".to_owned(),
        CertificateError::NotValidYetContext { not_before, .. } => {
            format!(
                "its certificate is not valid before {}: set the clock of this host, or issue another",
                day(*not_before)
            )
        }
        CertificateError::Other(other)
            if !words.takes_self_signed && other.to_string().contains("CaUsedAsEndEntity") =>
        {
            format!(
                "its certificate is an authority itself, which cannot be checked here: sign a certificate for the server with it, and name it with {}",
                words.ca
            )
        }
        other => {
            let text = message(&other.to_string(), SHOWN);
            format!("its certificate is not trusted ({text}): name its CA with {}", words.ca)
        }
    }
}

/// The names of a certificate, as people write them.
fn names(presented: &[String]) -> String {
    let mut text = String::new();
    for name in presented {
        // `DnsName("h")`, `IpAddress(127.0.0.1)`
        let bare = name.split_once('(').map_or(name.as_str(), |(_, rest)| rest.trim_end_matches(')'));
        let _ = write!(text, "{}{}", if text.is_empty() { "" } else { ", " }, bare.trim_matches('"'));
    }
    if text.is_empty() { "no host at all".to_owned() } else { message(&text, SHOWN) }
}

fn day(at: UnixTime) -> String {
    let at = i64::try_from(at.as_secs()).ok().and_then(|seconds| DateTime::from_timestamp(seconds, 0));
    at.map_or_else(|| "another day".to_owned(), |at| at.format("%Y-%m-%d").to_string())
}

/// Why the server ended the handshake.
fn of_alert(alert: AlertDescription, words: &TlsWords) -> Option<TlsFault> {
    use AlertDescription::{
        AccessDenied, BadCertificate, CertificateExpired, CertificateRequired, CertificateRevoked, CertificateUnknown,
        DecryptError, HandshakeFailure, UnknownCA, UnsupportedCertificate,
    };
    match alert {
        // TLS 1.2 has no alert of its own for a certificate that is missing.
        CertificateRequired | HandshakeFailure => Some(TlsFault::no_identity(words)),
        BadCertificate
        | UnsupportedCertificate
        | CertificateRevoked
        | CertificateExpired
        | CertificateUnknown
        | UnknownCA
        | AccessDenied
        | DecryptError => Some(TlsFault::identity_refused(words)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use rustls::pki_types::ServerName;
    use rustls::{InvalidMessage, OtherError};

    use super::*;

    const WORDS: TlsWords =
        TlsWords { ca: "?ca=FILE", identity: "?cert=FILE&key=FILE", plain: "plain://", takes_self_signed: false };

    fn advice(error: rustls::Error) -> (ErrorKind, String) {
        let wrapped = std::io::Error::new(std::io::ErrorKind::InvalidData, error);
        let fault = TlsFault::of(&wrapped, &WORDS).unwrap();
        (fault.kind, fault.message)
    }

    fn of_certificate(error: CertificateError) -> String {
        let (kind, message) = advice(rustls::Error::InvalidCertificate(error));
        assert_eq!(kind, ErrorKind::Unsupported);
        message
    }

    #[test]
    fn each_fault_of_a_certificate_has_an_advice_of_its_own() {
        let at = |seconds| UnixTime::since_unix_epoch(std::time::Duration::from_secs(seconds));
        let expected = ServerName::try_from("db.example").unwrap();
        let presented = vec!["DnsName(\"a.example\")".to_owned(), "IpAddress(10.0.0.1)".to_owned()];
        let other = of_certificate(CertificateError::NotValidForNameContext { expected, presented });
        assert!(other.contains("not for db.example but for a.example, 10.0.0.1: write one of these"), "{other}");
        let expired = CertificateError::ExpiredContext { time: at(1_800_000_000), not_after: at(1_790_000_000) };
        assert!(of_certificate(expired).contains("expired on 2026-09-21: renew"));
        let early = CertificateError::NotValidYetContext { time: at(0), not_before: at(1_790_000_000) };
        assert!(of_certificate(early).contains("not valid before 2026-09-21: set the clock"));
        assert!(of_certificate(CertificateError::UnknownIssuer).contains("name its CA with ?ca=FILE"));
        let own = OtherError(Arc::new(std::io::Error::other("CaUsedAsEndEntity")));
        assert!(of_certificate(CertificateError::Other(own)).contains("sign a certificate for the server"));
    }

    #[test]
    fn a_server_that_wants_another_certificate_and_one_without_tls_are_told_apart() {
        for alert in [AlertDescription::CertificateRequired, AlertDescription::HandshakeFailure] {
            let (kind, message) = advice(rustls::Error::AlertReceived(alert));
            assert_eq!(kind, ErrorKind::Denied);
            assert!(
                message.contains("wants a certificate of the client: name one with ?cert=FILE&key=FILE"),
                "{message}"
            );
        }
        let (kind, message) = advice(rustls::Error::AlertReceived(AlertDescription::UnknownCA));
        assert!(kind == ErrorKind::Denied && message.contains("refuses the certificate of the client"), "{message}");
        let (kind, message) = advice(rustls::Error::InvalidMessage(InvalidMessage::InvalidContentType));
        assert!(kind == ErrorKind::Unsupported && message.contains("write plain://"), "{message}");
    }

    #[test]
    fn what_has_nothing_to_do_with_tls_is_left_alone() {
        assert_eq!(TlsFault::of(&std::io::Error::other("reset by peer"), &WORDS), None);
    }
}
