//! TLS on the port itself (`[http.tls]`): the certificate and its key, read at the start and again at HUP.

use std::path::Path;
use std::sync::{Arc, PoisonError, RwLock};

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, ring, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName, UnixTime};
use rustls::{CertificateError, ClientConfig, DigitallySignedStruct, Error, ServerConfig, SignatureScheme};
use tokio_rustls::TlsAcceptor;

use crate::config::TlsFiles;
use crate::file;

/// Bytes of one file. A chain of certificates has some KiB.
const LARGEST: u64 = 1_024 * 1_024;
/// The one protocol that is spoken here.
const PROTOCOL: &[u8] = b"http/1.1";

/// The certificate that the port shows, and its key.
#[derive(Debug)]
pub struct Certificate {
    files: TlsFiles,
    served: RwLock<Arc<ServerConfig>>,
}

impl Certificate {
    /// Reads both files.
    ///
    /// # Errors
    /// One cannot be used, or they do not belong together: which, and why.
    pub fn open(files: &TlsFiles) -> Result<Self, String> {
        Ok(Self { files: files.clone(), served: RwLock::new(read(files)?) })
    }

    /// Reads both files anew, for the connections from now on.
    ///
    /// # Errors
    /// As for [`Certificate::open`]. The old ones stay.
    pub fn reread(&self) -> Result<(), String> {
        let served = read(&self.files)?;
        *self.served.write().unwrap_or_else(PoisonError::into_inner) = served;
        Ok(())
    }

    pub(super) fn acceptor(&self) -> TlsAcceptor {
        let served = self.served.read().unwrap_or_else(PoisonError::into_inner);
        TlsAcceptor::from(Arc::clone(&*served))
    }
}

/// For a client on the machine of the server: it believes the very certificate that is in the file, whoever signed it and whatever names
/// it has, and no other.
///
/// # Errors
/// The file cannot be used: why.
pub fn client_of(cert_file: &Path) -> Result<ClientConfig, String> {
    let provider = Arc::new(ring::default_provider());
    let known = certificates(cert_file)?.into_iter().next();
    let known = known.ok_or_else(|| format!("cert_file {} has no certificate", cert_file.display()))?;
    let versions = ClientConfig::builder_with_provider(Arc::clone(&provider)).with_safe_default_protocol_versions();
    let believing = versions.map_err(|error| error.to_string())?.dangerous();
    let verifier = Arc::new(KnownCertificate { certificate: known, provider });
    Ok(believing.with_custom_certificate_verifier(verifier).with_no_client_auth())
}

fn read(files: &TlsFiles) -> Result<Arc<ServerConfig>, String> {
    let (certificate, key) = (&files.cert_file, &files.key_file);
    let chain = certificates(certificate)?;
    let wrong = |what: &str| format!("[http.tls] key_file {}: {what}", key.display());
    let text = file::open(key).and_then(|open| file::read(open, LARGEST)).map_err(|what| wrong(&what))?;
    let found = PrivateKeyDer::from_pem_slice(&text);
    // What the parser says could show a part of the key.
    let private = found.map_err(|_| wrong("has no private key: name a PEM file with BEGIN PRIVATE KEY"))?;
    let versions = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .map_err(|error| error.to_string())?;
    let served = versions.with_no_client_auth().with_single_cert(chain, private).map_err(|error| match error {
        Error::InconsistentKeys(_) => wrong(&format!("is not the key of the certificate in {}", certificate.display())),
        other => format!("[http.tls] cert_file {}, key_file {}: {other}", certificate.display(), key.display()),
    });
    let mut served = served?;
    served.alpn_protocols = vec![PROTOCOL.to_vec()];
    Ok(Arc::new(served))
}

fn certificates(path: &Path) -> Result<Vec<CertificateDer<'static>>, String> {
    let wrong = |what: &str| format!("[http.tls] cert_file {}: {what}", path.display());
    let text = file::open(path).and_then(|open| file::read(open, LARGEST)).map_err(|what| wrong(&what))?;
    let found: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(&text).collect();
    match found {
        Ok(chain) if !chain.is_empty() => Ok(chain),
        Ok(_) => Err(wrong("has no certificate: name a PEM file with BEGIN CERTIFICATE")),
        Err(error) => Err(wrong(&format!("is no PEM file: {error}"))),
    }
}

/// Believes one certificate.
#[derive(Debug)]
struct KnownCertificate {
    certificate: CertificateDer<'static>,
    provider: Arc<CryptoProvider>,
}

impl ServerCertVerifier for KnownCertificate {
    fn verify_server_cert(
        &self,
        shown: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        if *shown == self.certificate {
            return Ok(ServerCertVerified::assertion());
        }
        Err(CertificateError::ApplicationVerificationFailure.into())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        verify_tls12_signature(message, cert, signed, &self.provider.signature_verification_algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        verify_tls13_signature(message, cert, signed, &self.provider.signature_verification_algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.provider.signature_verification_algorithms.supported_schemes()
    }
}
