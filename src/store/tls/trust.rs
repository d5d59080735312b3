//! Which certificate of a server is trusted: one that a named authority signed, or one that is named itself.
//!
//! `openssl req -x509` makes a certificate that is an authority and signs itself. The library refuses such a certificate for a
//! server, although its file is what a user names as `?ca=`. A certificate that is named byte for byte is therefore accepted,
//! once the library has found it within its dates, and its name right.

use std::sync::Arc;

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::client::{WebPkiServerVerifier, verify_server_name};
use rustls::crypto::CryptoProvider;
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::server::ParsedCertificate;
use rustls::{CertificateError, DigitallySignedStruct, Error, RootCertStore, SignatureScheme};

/// Trusts these certificates, as authorities and as the server's own.
pub(in crate::store) fn trusting(named: Vec<CertificateDer<'static>>) -> Result<Arc<dyn ServerCertVerifier>, String> {
    let mut roots = RootCertStore::empty();
    for certificate in &named {
        roots
            .add(certificate.clone())
            .map_err(|error| format!("a certificate of its ca file cannot be used: {error}"))?;
    }
    let provider =
        CryptoProvider::get_default().cloned().unwrap_or_else(|| Arc::new(rustls::crypto::ring::default_provider()));
    let authorities = WebPkiServerVerifier::builder_with_provider(Arc::new(roots), provider);
    let authorities = authorities.build().map_err(|error| format!("its ca file cannot be used: {error}"))?;
    Ok(Arc::new(NamedCertificates { authorities, named }))
}

#[derive(Debug)]
struct NamedCertificates {
    authorities: Arc<WebPkiServerVerifier>,
    named: Vec<CertificateDer<'static>>,
}

impl ServerCertVerifier for NamedCertificates {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        server_name: &ServerName<'_>,
        ocsp_response: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        match self.authorities.verify_server_cert(end_entity, intermediates, server_name, ocsp_response, now) {
            Err(error) if is_about_issuer(&error) && self.named.iter().any(|named| named == end_entity) => {
                verify_server_name(&ParsedCertificate::try_from(end_entity)?, server_name)?;
                Ok(ServerCertVerified::assertion())
            }
            verdict => verdict,
        }
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.authorities.verify_tls12_signature(message, cert, dss)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.authorities.verify_tls13_signature(message, cert, dss)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.authorities.supported_verify_schemes()
    }
}

/// True where nothing but the issuer is wrong so far: the library looks at the dates first, and at the name last.
fn is_about_issuer(error: &Error) -> bool {
    match error {
        Error::InvalidCertificate(CertificateError::UnknownIssuer) => true,
        // The library has no word of its own for this one.
        Error::InvalidCertificate(CertificateError::Other(other)) => other.to_string().contains("CaUsedAsEndEntity"),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use rcgen::{BasicConstraints, CertificateParams, IsCa, KeyPair};

    use super::*;

    /// As `openssl req -x509` makes it, for the host `h`.
    fn self_signed(is_authority: bool) -> CertificateDer<'static> {
        let mut params = CertificateParams::new(vec!["h".to_owned()]).unwrap();
        params.not_before = rcgen::date_time_ymd(2026, 1, 1);
        params.not_after = rcgen::date_time_ymd(2026, 12, 31);
        if is_authority {
            params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        }
        params.self_signed(&KeyPair::generate().unwrap()).unwrap().der().clone()
    }

    /// What is said of a server that shows `shown`, where `named` is named.
    fn verdict(named: &CertificateDer<'static>, shown: &CertificateDer<'_>, host: &str, year: u64) -> String {
        let verifier = trusting(vec![named.clone()]).unwrap();
        let (host, middle) = (ServerName::try_from(host.to_owned()).unwrap(), (year - 1970) * 31_557_600 + 15_000_000);
        let now = UnixTime::since_unix_epoch(std::time::Duration::from_secs(middle));
        let verdict = verifier.verify_server_cert(shown, &[], &host, &[], now);
        verdict.map_or_else(|error| error.to_string(), |_| "trusted".to_owned())
    }

    #[test]
    fn a_certificate_that_is_named_is_trusted_for_its_own_host_and_its_own_time() {
        for is_authority in [true, false] {
            let named = self_signed(is_authority);
            assert_eq!(verdict(&named, &named, "h", 2026), "trusted");
            assert!(verdict(&named, &named, "other", 2026).contains("not valid for name"));
            assert!(verdict(&named, &named, "h", 2028).contains("expired"));
            assert!(verdict(&named, &named, "h", 2024).contains("not valid yet"));
        }
    }

    #[test]
    fn a_certificate_that_is_not_named_is_not_trusted() {
        for is_authority in [true, false] {
            assert_ne!(verdict(&self_signed(true), &self_signed(is_authority), "h", 2026), "trusted");
        }
    }
}
