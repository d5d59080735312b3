//! A receiver of webhooks on loopback: keeps what it gets, and may keep those who send waiting.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use axum::Router;
use axum::extract::State;
use axum::http::{StatusCode, Uri};
use serde_json::Value;
use tokio::sync::watch;

/// What came: where to, and what.
#[derive(Clone, Debug)]
pub(crate) struct Arrival {
    pub(crate) to: String,
    /// A text where it is no JSON.
    pub(crate) body: Value,
}

/// What it got, and how it answers.
#[derive(Clone, Debug)]
struct Shared {
    got: Arc<Mutex<Vec<Arrival>>>,
    hangs: Arc<AtomicBool>,
    /// How many of what came are answered.
    answers: watch::Sender<usize>,
}

/// See the file.
#[derive(Debug)]
pub(crate) struct Receiver {
    pub(crate) url: String,
    shared: Shared,
    _runtime: tokio::runtime::Runtime,
}

async fn take(State(shared): State<Shared>, to: Uri, body: String) -> StatusCode {
    let body = serde_json::from_str(&body).unwrap_or(Value::String(body));
    let place = {
        let mut got = shared.got.lock().unwrap();
        got.push(Arrival { to: to.to_string(), body });
        got.len()
    };
    if shared.hangs.load(Ordering::Relaxed) {
        std::future::pending::<()>().await;
    }
    shared.answers.subscribe().wait_for(|answered| *answered >= place).await.unwrap();
    StatusCode::NO_CONTENT
}

/// The events that a message tells, those of a digest one by one.
pub(crate) fn events_of(body: &Value) -> Vec<Value> {
    match body["data"]["events"].as_array() {
        Some(events) => events.clone(),
        None => vec![body["data"].clone()],
    }
}

impl Receiver {
    pub(crate) fn start() -> Self {
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
        let shared = Shared { got: Arc::default(), hangs: Arc::default(), answers: watch::Sender::new(usize::MAX) };
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

    /// So many of what comes are answered, the others when this says so.
    pub(crate) fn answer(&self, many: usize) {
        self.shared.answers.send_replace(many);
    }

    /// What came so far.
    pub(crate) fn arrivals(&self) -> Vec<Arrival> {
        self.shared.got.lock().unwrap().clone()
    }

    /// The bodies so far.
    pub(crate) fn got(&self) -> Vec<Value> {
        self.arrivals().into_iter().map(|arrival| arrival.body).collect()
    }

    /// Every event that was told, those of digests one by one: `job kind`.
    pub(crate) fn events(&self) -> Vec<String> {
        let name = |event: &Value| {
            format!("{} {}", event["job"].as_str().unwrap_or("-"), event["type"].as_str().unwrap_or("-"))
        };
        self.got().iter().flat_map(events_of).map(|event| name(&event)).collect()
    }
}
