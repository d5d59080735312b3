//! What stands in front of a Redis, or takes something away from it.

use cronward::store::{Applied, Store};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;

use crate::redis::{granted, open, request, slot_of, store};
use crate::redis_server::RedisServer;

#[tokio::test]
async fn a_server_without_the_command_client_is_used_without_it() {
    let server = RedisServer::start_with(&[("rename-command", "CLIENT hidden")]);
    granted(&store(&server).await, &request(&slot_of("a"), 1)).await;
}

#[tokio::test]
async fn a_url_of_valkey_leads_to_a_server_of_its_protocol() {
    let server = RedisServer::start();
    granted(&open(&server.url().replace("redis://", "valkey://")).await, &request(&slot_of("a"), 1)).await;
}

/// As twemproxy: it answers PING, and closes the connection at a command that it does not know.
async fn proxy() -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            let mut request = [0; 512];
            let length = stream.read(&mut request).await.unwrap_or(0);
            if String::from_utf8_lossy(&request[..length]).contains("PING") {
                let _ = stream.write_all(b"+PONG\r\n").await;
            }
        }
    });
    port
}

#[tokio::test]
async fn a_proxy_that_closes_the_connection_at_a_command_is_named() {
    let url = format!("redis://127.0.0.1:{}", proxy().await);
    let error = open(&url).await.claim(&request(&slot_of("a"), 1)).await.unwrap_err();
    assert_eq!(error.applied, Applied::No, "{error}");
    assert!(error.message.contains("proxies are not supported, name the servers themselves"), "{error}");
}
