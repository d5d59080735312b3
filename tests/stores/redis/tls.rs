//! TLS: with the CA of the server, and without.

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
    let files = TlsFiles::make();
    let (server, port) = RedisServer::start_with_tls(files.dir());
    TlsServer { server, port, files }
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
    let error = open(&tls.url("")).await.claim(&request(&slot_of("a"), 1)).await.unwrap_err();
    assert_eq!((error.kind, error.applied), (ErrorKind::Unsupported, Applied::No), "{error}");
    assert!(error.message.contains("?ca="), "{error}");
}
