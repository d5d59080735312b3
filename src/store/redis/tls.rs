//! A connection over TLS to one server. It is made here and not by the client library, which trusts no certificate that is named
//! itself, and hides why the server ended the handshake.

use std::io::{self, ErrorKind as IoErrorKind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use rustls::client::ResolvesClientCert;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::sign::CertifiedKey;
use rustls::{ClientConfig, RootCertStore, SignatureScheme};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

use super::remote::Remote;
use crate::store::tls::{TlsContents, TlsFault, TlsPaths, TlsWords, trusting};

/// The words of a url of Redis.
pub(super) const WORDS: TlsWords = TlsWords {
    ca: "?ca=/path/ca.pem",
    identity: "?cert=/path/cert.pem&key=/path/key.pem",
    plain: "redis:// instead of rediss://, valkey:// instead of valkeys://",
    takes_self_signed: true,
};

/// Refuses files that cannot be used.
pub(super) fn check(paths: &TlsPaths) -> Result<(), String> {
    // The authorities of the system are looked up when they are needed.
    config(paths.read()?, &RootCertStore::empty).map(drop)
}

/// Connects and shakes hands. The files are read anew for each connection, so that a renewed certificate is used.
pub(super) async fn connect(remote: Remote<'_>, paths: &TlsPaths, limit: Duration) -> io::Result<TlsStream<TcpStream>> {
    let contents = paths.read().map_err(|why| invalid(TlsFault::unusable(why)))?;
    let mut config = config(contents, &system_roots).map_err(|why| invalid(TlsFault::unusable(why)))?;
    let question = Arc::new(IdentityRequest {
        resolver: Arc::clone(&config.client_auth_cert_resolver),
        asked: AtomicBool::new(false),
    });
    config.client_auth_cert_resolver = Arc::clone(&question) as _;
    let mut stream = shake_hands(remote, config, limit).await?;
    if question.asked.load(Ordering::Relaxed) {
        await_verdict(&mut stream, question.resolver.has_certs()).await?;
    }
    Ok(stream)
}

/// Whether the port speaks TLS, whatever it thinks of this client.
pub(super) async fn is_spoken_at(remote: Remote<'_>, limit: Duration) -> bool {
    let Ok(config) = builder() else { return false };
    let config = config.with_root_certificates(RootCertStore::empty()).with_no_client_auth();
    let shaking = async {
        let stream = remote.connect().await?;
        TlsConnector::from(Arc::new(config)).connect(server_name(remote.host)?, stream).await
    };
    match tokio::time::timeout(limit, shaking).await {
        Ok(Ok(_)) => true,
        Ok(Err(error)) => {
            let cause = error.get_ref().and_then(|cause| cause.downcast_ref::<rustls::Error>());
            cause.is_some_and(|cause| !matches!(cause, rustls::Error::InvalidMessage(_)))
        }
        Err(_) => false,
    }
}

type Builder = rustls::ConfigBuilder<ClientConfig, rustls::WantsVerifier>;

fn builder() -> Result<Builder, String> {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let builder = ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions();
    builder.map_err(|error| error.to_string())
}

fn config(contents: TlsContents, system: &dyn Fn() -> RootCertStore) -> Result<ClientConfig, String> {
    let builder = match contents.ca {
        Some(named) => builder()?.dangerous().with_custom_certificate_verifier(trusting(named)?),
        None => builder()?.with_root_certificates(system()),
    };
    let Some((cert, key)) = contents.identity else { return Ok(builder.with_no_client_auth()) };
    let chain: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(&cert).collect();
    let (chain, key) = (chain.map_err(|error| error.to_string())?, PrivateKeyDer::from_pem_slice(&key));
    let key = key.map_err(|error| error.to_string())?;
    let unlike = |error| format!("its cert and key cannot be used together: {error}");
    builder.with_client_auth_cert(chain, key).map_err(unlike)
}

/// The authorities that this host trusts. Where there are none, no certificate is trusted, and the advice is to name one.
fn system_roots() -> RootCertStore {
    let mut roots = RootCertStore::empty();
    roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
    roots
}

/// The handshake. A server without TLS often waits for the end of what it takes for a command: where the handshake takes long,
/// the port is asked in plain text what it is.
async fn shake_hands(remote: Remote<'_>, config: ClientConfig, limit: Duration) -> io::Result<TlsStream<TcpStream>> {
    let name = server_name(remote.host)?;
    let stream = remote.connect().await?;
    let shaking = TlsConnector::from(Arc::new(config)).connect(name, stream);
    tokio::pin!(shaking);
    let shaken = match tokio::time::timeout(limit / 2, &mut shaking).await {
        Ok(shaken) => shaken,
        Err(_) => tokio::select! {
            shaken = &mut shaking => shaken,
            () = remote.answers_ping() => return Err(invalid(TlsFault::plain_port(&WORDS))),
        },
    };
    shaken.map_err(|error| TlsFault::of(&error, &WORDS).map_or(error, invalid))
}

/// With TLS 1.3 a server looks at the certificate of the client after the handshake. Waits for the answer to one command,
/// so that a refusal is not taken for a connection that broke.
async fn await_verdict(stream: &mut TlsStream<TcpStream>, has_identity: bool) -> io::Result<()> {
    let answered = async {
        stream.write_all(b"PING\r\n").await?;
        stream.flush().await?;
        while stream.read_u8().await? != b'\n' {}
        Ok(())
    };
    let refused = |error: io::Error| {
        let fault = TlsFault::of(&error, &WORDS).unwrap_or_else(|| {
            if has_identity { TlsFault::identity_refused(&WORDS) } else { TlsFault::no_identity(&WORDS) }
        });
        invalid(fault)
    };
    answered.await.map_err(refused)
}

/// The certificate of this client, with a note of whether the server has asked for one.
#[derive(Debug)]
struct IdentityRequest {
    resolver: Arc<dyn ResolvesClientCert>,
    asked: AtomicBool,
}

impl ResolvesClientCert for IdentityRequest {
    fn resolve(&self, hints: &[&[u8]], schemes: &[SignatureScheme]) -> Option<Arc<CertifiedKey>> {
        self.asked.store(true, Ordering::Relaxed);
        self.resolver.resolve(hints, schemes)
    }

    fn has_certs(&self) -> bool {
        self.resolver.has_certs()
    }
}

fn server_name(host: &str) -> io::Result<ServerName<'static>> {
    let odd = |_| invalid(TlsFault::unusable(format!("{host:?} is no name that a certificate can have")));
    ServerName::try_from(host.to_owned()).map_err(odd)
}

fn invalid(fault: TlsFault) -> io::Error {
    io::Error::new(IoErrorKind::InvalidData, fault)
}
