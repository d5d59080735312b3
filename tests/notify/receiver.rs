//! A receiver of webhooks on loopback: keeps what it gets, and may keep those who send waiting.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use axum::Router;
use axum::extract::State;
use axum::http::StatusCode;
use serde_json::Value;

/// What it got, and how it answers.
#[derive(Clone, Debug, Default)]
struct Shared {
    got: Arc<Mutex<Vec<Value>>>,
    hangs: Arc<AtomicBool>,
}

/// See the file.
#[derive(Debug)]
pub(crate) struct Receiver {
    pub(crate) url: String,
    shared: Shared,
    _runtime: tokio::runtime::Runtime,
}

async fn take(State(shared): State<Shared>, body: String) -> StatusCode {
    shared.got.lock().unwrap().push(serde_json::from_str(&body).unwrap());
    if shared.hangs.load(Ordering::Relaxed) {
        std::future::pending::<()>().await;
    }
    StatusCode::NO_CONTENT
}

impl Receiver {
    pub(crate) fn start() -> Self {
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
        let shared = Shared::default();
        let listener = runtime.block_on(tokio::net::TcpListener::bind("127.0.0.1:0")).unwrap();
        let url = format!("http://{}/hook", listener.local_addr().unwrap());
        let app = Router::new().fallback(take).with_state(shared.clone());
        runtime.spawn(async move { axum::serve(listener, app).await });
        Self { url, shared, _runtime: runtime }
    }

    /// From now on it takes what is sent, and answers nothing.
    pub(crate) fn hang(&self, hangs: bool) {
        self.shared.hangs.store(hangs, Ordering::Relaxed);
    }

    /// The bodies so far.
    pub(crate) fn got(&self) -> Vec<Value> {
        self.shared.got.lock().unwrap().clone()
    }

    /// Every event that was told, those of digests one by one: `job kind`.
    pub(crate) fn events(&self) -> Vec<String> {
        let name = |event: &Value| {
            format!("{} {}", event["job"].as_str().unwrap_or("-"), event["type"].as_str().unwrap_or("-"))
        };
        let of_body = |body: Value| match body["data"]["events"].as_array() {
            Some(events) => events.iter().map(name).collect::<Vec<_>>(),
            None => vec![name(&body["data"])],
        };
        self.got().into_iter().flat_map(of_body).collect()
    }
}
