//! TLS: with the CA of the server, without, with a certificate of one's own; and what is said of each mistake.

use cronward::store::{Applied, ErrorKind, Store};

use crate::redis::{granted, open, request, slot_of};
use crate::redis_server::RedisServer;
use crate::tls_files::TlsFiles;

struct TlsServer {
    server: RedisServer,
    port: u16,
    files: TlsFiles,
}

impl TlsServer {
    fn url(&self, parameters: &str) -> String {
        format!("rediss://127.0.0.1:{}{parameters}", self.port)
    }

    fn ca(&self) -> String {
        format!("?ca={}", self.files.ca().display())
    }
}

fn start() -> TlsServer {
    start_with(TlsFiles::make(), &[])
}

fn start_with(files: TlsFiles, config: &[(&str, &str)]) -> TlsServer {
    let (server, port) = RedisServer::start_with_tls_and(files.dir(), config);
    TlsServer { server, port, files }
}

/// As a Redis with TLS is by default.
fn start_wanting_certificates() -> TlsServer {
    start_with(TlsFiles::make(), &[("tls-auth-clients", "yes")])
}

/// What the first call through this url is refused with, before anything was done.
async fn refusal(url: &str) -> (ErrorKind, String) {
    let error = open(url).await.claim(&request(&slot_of("a"), 1)).await.unwrap_err();
    assert_eq!(error.applied, Applied::No, "{error}");
    assert!(!error.message.contains('\n'), "{error}");
    (error.kind, error.message)
}

#[tokio::test]
async fn a_server_whose_ca_the_url_names_is_trusted() {
    let tls = start();
    let store = open(&tls.url(&tls.ca())).await;
    granted(&store, &request(&slot_of("a"), 1)).await;
    let mut hints = store.subscribe();
    tokio::time::timeout(crate::redis::LIMIT, hints.recv()).await.expect("wake-ups go over TLS as well").unwrap();
}

#[tokio::test]
async fn a_user_and_a_database_work_over_tls() {
    let tls = start();
    tls.server.command(&["ACL", "SETUSER", "u", "on", ">p", "~*", "&*", "+@all"]);
    let url = tls.url(&format!("/2{}", tls.ca())).replace("rediss://", "rediss://u:p@");
    granted(&open(&url).await, &request(&slot_of("a"), 1)).await;
    assert_eq!(tls.server.number(&["DBSIZE"]), 0);
}

#[tokio::test]
async fn a_server_with_an_unknown_ca_is_refused_and_the_way_out_is_told() {
    let tls = start();
    let (kind, message) = refusal(&tls.url("")).await;
    assert!(kind == ErrorKind::Unsupported && message.contains("name its CA with ?ca="), "{message}");
}

#[tokio::test]
async fn a_certificate_that_signed_itself_is_trusted_where_the_url_names_it() {
    let tls = start_with(TlsFiles::self_signed(), &[]);
    granted(&open(&tls.url(&tls.ca())).await, &request(&slot_of("a"), 1)).await;
    let other = TlsFiles::self_signed();
    let (kind, message) = refusal(&tls.url(&other.trusted())).await;
    assert!(kind == ErrorKind::Unsupported && message.contains("not trusted"), "{message}");
}

#[tokio::test]
async fn a_server_that_wants_a_certificate_gets_the_one_that_the_url_names() {
    let tls = start_wanting_certificates();
    let store = open(&tls.url(&format!("{}&{}", tls.ca(), tls.files.identity()))).await;
    granted(&store, &request(&slot_of("a"), 1)).await;
    let mut hints = store.subscribe();
    tokio::time::timeout(crate::redis::LIMIT, hints.recv()).await.expect("wake-ups show it as well").unwrap();
}

#[tokio::test]
async fn a_server_that_wants_a_certificate_and_gets_none_or_a_strange_one_says_which() {
    let tls = start_wanting_certificates();
    let (kind, message) = refusal(&tls.url(&tls.ca())).await;
    assert!(kind == ErrorKind::Denied, "{message}");
    assert!(message.contains("it wants a certificate of the client: name one with ?cert="), "{message}");
    let stranger = TlsFiles::for_host("stranger.example");
    let (kind, message) = refusal(&tls.url(&format!("{}&{}", tls.ca(), stranger.identity()))).await;
    assert!(kind == ErrorKind::Denied, "{message}");
    assert!(message.contains("it refuses the certificate of the client"), "{message}");
}

#[tokio::test]
async fn a_certificate_for_another_host_is_refused_with_the_names_that_it_has() {
    let tls = start_with(TlsFiles::for_host("redis.example"), &[]);
    let (kind, message) = refusal(&tls.url(&tls.ca())).await;
    assert!(kind == ErrorKind::Unsupported, "{message}");
    assert!(message.contains("not for 127.0.0.1 but for redis.example"), "{message}");
}

#[tokio::test]
async fn a_certificate_that_has_expired_is_refused_with_the_day() {
    let tls = start_with(TlsFiles::expired(), &[]);
    let (kind, message) = refusal(&tls.url(&tls.ca())).await;
    assert!(kind == ErrorKind::Unsupported && message.contains("expired on 2020-12-31: renew it"), "{message}");
}

#[tokio::test]
async fn a_port_that_does_not_speak_tls_is_told_and_one_that_does_as_well() {
    let tls = start();
    let plain = tls.url(&tls.ca()).replace(&tls.port.to_string(), &tls.server.port().to_string());
    let (kind, message) = refusal(&plain).await;
    assert!(kind == ErrorKind::Unsupported, "{message}");
    assert!(message.contains("does not speak TLS: write redis:// instead of rediss://"), "{message}");
    let (kind, message) = refusal(&tls.url("").replace("rediss://", "redis://")).await;
    assert!(kind == ErrorKind::Unsupported, "{message}");
    assert!(message.contains("speaks TLS: write rediss:// instead of redis://"), "{message}");
}
