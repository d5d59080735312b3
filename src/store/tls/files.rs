//! The files that a url names for TLS: `?ca=`, `?cert=` and `?key=`.

use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};

/// The paths of a url.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(in crate::store) struct TlsPaths {
    ca: Option<String>,
    cert: Option<String>,
    key: Option<String>,
}

/// What the files hold, in PEM form.
#[derive(Clone, Default)]
pub(in crate::store) struct TlsContents {
    /// The certificates that are trusted; none for those of the system.
    pub(in crate::store) ca: Option<Vec<CertificateDer<'static>>>,
    /// The certificate of this client and its key.
    pub(in crate::store) identity: Option<(Vec<u8>, Vec<u8>)>,
}

impl std::fmt::Debug for TlsContents {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("TlsContents").field("has_identity", &self.identity.is_some()).finish_non_exhaustive()
    }
}

impl TlsPaths {
    /// The parameters of a url.
    #[cfg(feature = "redis")]
    pub(in crate::store) const PARAMETERS: [&str; 3] = ["ca", "cert", "key"];

    /// Takes one parameter. False for a parameter of another name.
    pub(in crate::store) fn take(&mut self, name: &str, path: &str) -> bool {
        let place = match name {
            "ca" => &mut self.ca,
            "cert" => &mut self.cert,
            "key" => &mut self.key,
            _ => return false,
        };
        *place = Some(path.to_owned());
        true
    }

    /// Refuses a certificate without its key, and a key without its certificate.
    pub(in crate::store) fn check(&self) -> Result<(), String> {
        if self.cert.is_some() == self.key.is_some() {
            return Ok(());
        }
        Err("a certificate needs its key: write both, ?cert=/path/cert.pem&key=/path/key.pem".to_owned())
    }

    /// Reads the files.
    pub(in crate::store) fn read(&self) -> Result<TlsContents, String> {
        let ca = self.ca.as_deref().map(|path| certificates(path, &read(path)?)).transpose()?;
        let (Some(cert), Some(key)) = (&self.cert, &self.key) else { return Ok(TlsContents { ca, identity: None }) };
        let (cert_pem, key_pem) = (read(cert)?, read(key)?);
        certificates(cert, &cert_pem)?;
        PrivateKeyDer::from_pem_slice(&key_pem)
            .map_err(|_| format!("{key} holds no private key in PEM form without a passphrase"))?;
        Ok(TlsContents { ca, identity: Some((cert_pem, key_pem)) })
    }
}

/// A file with more than this is none of certificates.
const LARGEST: u64 = 1024 * 1024;

fn read(path: &str) -> Result<Vec<u8>, String> {
    let content = crate::file::open(path.as_ref()).and_then(|file| crate::file::read(file, LARGEST));
    content.map_err(|why| format!("{path} {why}"))
}

/// At least one certificate.
fn certificates(path: &str, pem: &[u8]) -> Result<Vec<CertificateDer<'static>>, String> {
    let found: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(pem).collect();
    match found {
        Ok(found) if !found.is_empty() => Ok(found),
        _ => Err(format!("{path} holds no certificate in PEM form")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn paths(pairs: &[(&str, &str)]) -> TlsPaths {
        let mut paths = TlsPaths::default();
        assert!(pairs.iter().all(|(name, path)| paths.take(name, path)));
        paths
    }

    #[test]
    fn a_certificate_and_its_key_are_named_together() {
        assert!(paths(&[("ca", "/a"), ("cert", "/c"), ("key", "/k")]).check().is_ok());
        for alone in ["cert", "key"] {
            assert!(paths(&[(alone, "/x")]).check().unwrap_err().contains("write both"));
        }
        assert!(!TlsPaths::default().take("crt", "/x"));
    }

    #[test]
    fn a_file_that_cannot_be_used_is_named_with_the_reason() {
        let dir = tempfile::tempdir().unwrap();
        let text = dir.path().join("text.pem").display().to_string();
        std::fs::write(&text, "no certificate").unwrap();
        assert!(
            paths(&[("ca", "/nowhere/ca.pem")])
                .read()
                .unwrap_err()
                .contains("/nowhere/ca.pem cannot be read: there is no such file")
        );
        assert!(paths(&[("ca", &text)]).read().unwrap_err().contains("holds no certificate"));
        let signed = rcgen::generate_simple_self_signed(["h".to_owned()]).unwrap();
        let cert = dir.path().join("cert.pem").display().to_string();
        std::fs::write(&cert, signed.cert.pem()).unwrap();
        assert!(paths(&[("cert", &cert), ("key", &text)]).read().unwrap_err().contains("no private key"));
    }
}
