//! A certificate authority made for one test, and a server's certificate for 127.0.0.1 that it signed.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    dead_code,
    unreachable_pub,
    missing_docs,
    reason = "a test says what it expects; no test uses all of it"
)]

use std::path::{Path, PathBuf};

use rcgen::{BasicConstraints, CertificateParams, DnType, IsCa, Issuer, KeyPair};
use tempfile::TempDir;

/// `ca.pem`, `cert.pem` and `key.pem` in a temporary folder.
#[derive(Debug)]
pub struct TlsFiles {
    dir: TempDir,
}

impl TlsFiles {
    /// Lets a server read them that runs as another user.
    pub fn let_others_read(&self) {
        use std::os::unix::fs::PermissionsExt;
        let allow = |path: &Path, mode| std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).unwrap();
        allow(self.dir.path(), 0o755);
        allow(&self.dir.path().join("key.pem"), 0o644);
    }

    /// Makes them anew.
    pub fn make() -> Self {
        Self::for_server(CertificateParams::new(vec!["127.0.0.1".to_owned()]).expect("an address"))
    }

    /// With a certificate for another host.
    pub fn for_host(host: &str) -> Self {
        Self::for_server(CertificateParams::new(vec![host.to_owned()]).expect("a name"))
    }

    /// With a certificate that expired on the last day of 2020.
    pub fn expired() -> Self {
        let mut server = CertificateParams::new(vec!["127.0.0.1".to_owned()]).expect("an address");
        server.not_before = rcgen::date_time_ymd(2020, 1, 1);
        server.not_after = rcgen::date_time_ymd(2020, 12, 31);
        Self::for_server(server)
    }

    /// One certificate that signed itself, as `openssl req -x509` makes it: `ca.pem` is `cert.pem`.
    pub fn self_signed() -> Self {
        let mut params = CertificateParams::new(vec!["127.0.0.1".to_owned()]).expect("an address");
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let key = KeyPair::generate().expect("a key");
        let pem = params.self_signed(&key).expect("a certificate").pem();
        Self::write(&pem, &pem, &key)
    }

    fn for_server(server: CertificateParams) -> Self {
        let mut authority = CertificateParams::new(Vec::new()).expect("no names to refuse");
        // A name of its own: Redis' TLS library takes a certificate of its issuer's name for one that signed itself.
        authority.distinguished_name.push(DnType::CommonName, "cronward's test authority");
        authority.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let ca_key = KeyPair::generate().expect("a key");
        let ca = authority.self_signed(&ca_key).expect("a certificate");
        let key = KeyPair::generate().expect("a key");
        let certificate = server.signed_by(&key, &Issuer::new(authority, ca_key)).expect("a certificate");
        Self::write(&ca.pem(), &certificate.pem(), &key)
    }

    fn write(ca: &str, certificate: &str, key: &KeyPair) -> Self {
        let dir = TempDir::with_prefix("cronward-tls-").expect("a temporary folder");
        for (name, pem) in [("ca.pem", ca), ("cert.pem", certificate), ("key.pem", &key.serialize_pem())] {
            std::fs::write(dir.path().join(name), pem).expect("the folder can be written");
        }
        Self { dir }
    }

    /// `?ca=…`.
    pub fn trusted(&self) -> String {
        format!("?ca={}", self.ca().display())
    }

    /// `cert=…&key=…`.
    pub fn identity(&self) -> String {
        let of = |name: &str| self.dir.path().join(name).display().to_string();
        format!("cert={}&key={}", of("cert.pem"), of("key.pem"))
    }

    /// The folder.
    pub fn dir(&self) -> &Path {
        self.dir.path()
    }

    /// The authority's certificate.
    pub fn ca(&self) -> PathBuf {
        self.dir.path().join("ca.pem")
    }
}
