//! TLS: with the CA of the server, without, and with a certificate of one's own.

use cronward::store::{Applied, ErrorKind, Store, Wake};

use crate::etcd::{LIMIT, granted, open, request, slot_of};
use crate::etcd_server::EtcdServer;
use crate::tls_files::TlsFiles;

fn start(asks_for_certificates: bool) -> (EtcdServer, TlsFiles) {
    let files = TlsFiles::make();
    (EtcdServer::start_with_tls(files.dir(), asks_for_certificates), files)
}

fn url(server: &EtcdServer, parameters: &str) -> String {
    format!("etcds://127.0.0.1:{}{parameters}", server.tls_port())
}

#[tokio::test]
async fn a_server_whose_ca_the_url_names_is_trusted() {
    let (server, files) = start(false);
    let store = open(&url(&server, &format!("?ca={}", files.ca().display()))).await;
    granted(&store, &request(&slot_of("a"), 1)).await;
    let mut hints = store.subscribe();
    let hint = tokio::time::timeout(LIMIT, hints.recv()).await.expect("wake-ups go over TLS as well").unwrap();
    assert_eq!(hint, Wake::Resync);
}

#[tokio::test]
async fn a_server_with_an_unknown_ca_is_refused_and_the_way_out_is_told() {
    let (server, _files) = start(false);
    let error = open(&url(&server, "")).await.claim(&request(&slot_of("a"), 1)).await.unwrap_err();
    assert_eq!((error.kind, error.applied), (ErrorKind::Unsupported, Applied::No), "{error}");
    assert!(error.message.contains("?ca="), "{error}");
}

#[tokio::test]
async fn a_certificate_that_signed_itself_is_trusted_where_the_url_names_it() {
    let files = TlsFiles::self_signed();
    let server = EtcdServer::start_with_tls(files.dir(), false);
    granted(&open(&url(&server, &files.trusted())).await, &request(&slot_of("a"), 1)).await;
}

#[tokio::test]
async fn a_port_without_tls_is_told() {
    let (server, files) = start(false);
    let plain = url(&server, &format!("?ca={}", files.ca().display()))
        .replace(&server.tls_port().to_string(), &server.port().to_string());
    let error = open(&plain).await.claim(&request(&slot_of("a"), 1)).await.unwrap_err();
    assert_eq!((error.kind, error.applied), (ErrorKind::Unavailable, Applied::No), "{error}");
    assert!(error.message.contains("etcd://"), "{error}");
}

#[tokio::test]
async fn a_server_that_wants_a_certificate_gets_the_one_that_the_url_names() {
    let (server, files) = start(true);
    let of = |name: &str| files.dir().join(name).display().to_string();
    let (ca, cert, key) = (of("ca.pem"), of("cert.pem"), of("key.pem"));
    let store = open(&url(&server, &format!("?ca={ca}&cert={cert}&key={key}"))).await;
    granted(&store, &request(&slot_of("a"), 1)).await;
    let error = open(&url(&server, &format!("?ca={ca}"))).await.claim(&request(&slot_of("a"), 2)).await.unwrap_err();
    // With TLS 1.3 the refusal may be overtaken by the end of the connection.
    let told = error.kind == ErrorKind::Denied && error.message.contains("?cert=");
    assert!(told || error.kind == ErrorKind::Unavailable, "{error}");
    assert_eq!(error.applied, Applied::No, "{error}");
}
