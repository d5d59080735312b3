//! A port that speaks TLS itself: its certificate, who believes it, and its renewal.

use std::fs::File;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::process::Stdio;
use std::sync::Arc;

use rustix::process::Signal;
use rustls::crypto::ring::default_provider;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, ClientConnection, RootCertStore, StreamOwned};

use crate::process::Killed;
use crate::program::Place;
use crate::support::ports::free_port;
use crate::support::tls_files::TlsFiles;
use crate::wait;

const TLS: &str = "[http.tls]\ncert_file = \"cert.pem\"\nkey_file = \"key.pem\"\n";

/// A folder with the certificate's files, and a file that serves with them.
fn place(files: &TlsFiles, port: u16) -> Place {
    let quiet = "[jobs.quiet]\nschedule = \"0 0 1 1 *\"\ncommand = [\"true\"]\nslot = \"day\"\n";
    let store = "[store]\nurl = \"sqlite:a.sqlite\"\nop_timeout = \"10s\"\n";
    let place = Place::with_jobs(&format!("{store}[http]\nlisten = \"127.0.0.1:{port}\"\n{TLS}{quiet}"));
    renew(&place, files);
    place
}

fn renew(place: &Place, files: &TlsFiles) {
    for name in ["cert.pem", "key.pem"] {
        std::fs::copy(files.dir().join(name), place.path().join(name)).unwrap();
    }
}

fn log_of(place: &Place) -> String {
    std::fs::read_to_string(place.path().join("log")).unwrap_or_default()
}

fn start(place: &Place) -> Killed {
    let log = File::create(place.path().join("log")).unwrap();
    let mut command = place.command(&["run", "--log-format", "json"]);
    Killed(command.stdout(Stdio::null()).stderr(log).spawn().unwrap())
}

/// What a client is answered that believes this authority alone.
fn ask(port: u16, files: &TlsFiles) -> Result<String, std::io::Error> {
    let mut roots = RootCertStore::empty();
    roots.add(CertificateDer::from_pem_file(files.ca()).unwrap()).unwrap();
    let versions =
        ClientConfig::builder_with_provider(Arc::new(default_provider())).with_safe_default_protocol_versions();
    let client = Arc::new(versions.unwrap().with_root_certificates(roots).with_no_client_auth());
    let address = SocketAddr::from(([127, 0, 0, 1], port));
    let session = ClientConnection::new(client, ServerName::from(address.ip())).unwrap();
    let stream = TcpStream::connect(address)?;
    stream.set_read_timeout(Some(wait::LIMIT))?;
    let mut stream = StreamOwned::new(session, stream);
    stream.write_all(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")?;
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer)?;
    Ok(String::from_utf8(answer).unwrap())
}

#[test]
fn a_port_with_a_certificate_speaks_tls_alone_and_takes_a_renewed_one_at_hup() {
    let (first, second) = (TlsFiles::make(), TlsFiles::make());
    let port = free_port();
    let place = place(&first, port);
    let daemon = start(&place);
    let answer =
        wait::until("it is alive", || ask(port, &first).ok().filter(|answer| answer.starts_with("HTTP/1.1 200 ")));
    assert!(answer.contains("strict-transport-security: max-age=31536000"), "{answer}");
    assert!(ask(port, &second).is_err(), "of another authority");
    assert_eq!(place.run(&["healthcheck"]).code, 0);

    let mut plain = TcpStream::connect(("127.0.0.1", port)).unwrap();
    plain.set_read_timeout(Some(wait::LIMIT)).unwrap();
    plain.write_all(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n").unwrap();
    let mut said = Vec::new();
    let _ = plain.read_to_end(&mut said);
    assert!(!String::from_utf8_lossy(&said).contains("HTTP/1.1"), "nothing is answered in the clear");

    // The file is new, and the daemon has not been told.
    renew(&place, &second);
    let stale = place.run(&["healthcheck"]);
    assert!(stale.code == 1 && stale.stderr.contains("it shows another certificate than"), "{stale:?}");
    daemon.signal(Signal::HUP);
    wait::until_true("the new one is shown", || ask(port, &second).is_ok());
    assert_eq!(place.run(&["healthcheck"]).code, 0);

    // A key of another certificate: the daemon goes on with what it has.
    std::fs::copy(first.dir().join("key.pem"), place.path().join("key.pem")).unwrap();
    daemon.signal(Signal::HUP);
    wait::until_true("that is told", || log_of(&place).contains("the certificate stays as it was"));
    assert!(log_of(&place).contains("is not the key of the certificate in"), "{}", log_of(&place));
    assert!(ask(port, &second).is_ok());
    daemon.leave();
}

#[test]
fn a_certificate_that_cannot_be_used_is_refused_before_anything_starts() {
    let (files, other) = (TlsFiles::make(), TlsFiles::make());
    let refused = |change: &dyn Fn(&Place)| {
        let place = place(&files, 0);
        change(&place);
        let ended = place.run(&["run"]);
        assert_eq!(ended.code, 78, "{ended:?}");
        assert!(!place.path().join("a.sqlite").exists(), "nothing was started");
        ended.stderr
    };
    let copy = |place: &Place, from: &str, to: &str| {
        std::fs::copy(other.dir().join(from), place.path().join(to)).unwrap();
    };
    let mixed = refused(&|place| copy(place, "key.pem", "key.pem"));
    assert!(mixed.contains("key_file key.pem: is not the key of the certificate in cert.pem"), "{mixed}");
    let absent = refused(&|place| std::fs::remove_file(place.path().join("cert.pem")).unwrap());
    assert!(absent.contains("cert_file cert.pem: cannot be read: there is no such file"), "{absent}");
    let swapped = refused(&|place| copy(place, "cert.pem", "key.pem"));
    assert!(swapped.contains("key_file key.pem: has no private key"), "{swapped}");
    let empty = refused(&|place| place.write("cert.pem", "nothing\n"));
    assert!(empty.contains("cert_file cert.pem: has no certificate"), "{empty}");
    let half = refused(&|place| {
        let jobs = std::fs::read_to_string(place.path().join("jobs.toml")).unwrap();
        place.write("jobs.toml", &jobs.replace("key_file = \"key.pem\"\n", ""));
    });
    assert!(half.contains("[http.tls] has no key_file") && half.contains("write both"), "{half}");
}

#[test]
fn tokens_may_cross_the_network_where_the_port_speaks_tls() {
    let files = TlsFiles::make();
    let open = |tls: bool| {
        let place = place(&files, 0);
        place.write("tokens", "# nobody\n");
        let jobs = std::fs::read_to_string(place.path().join("jobs.toml")).unwrap();
        let jobs =
            jobs.replace("127.0.0.1:0", "0.0.0.0:0").replace("[jobs.", "[http.auth]\ntokens_file = \"tokens\"\n[jobs.");
        place.write("jobs.toml", &if tls { jobs } else { jobs.replace(TLS, "") });
        place.run(&["check"])
    };
    let (plain, spoken) = (open(false), open(true));
    assert!(
        plain.code != 0 && plain.stdout.contains("plain-token") | plain.stderr.contains("plain-token"),
        "{plain:?}"
    );
    assert_eq!(spoken.code, 0, "{spoken:?}");
}
