//! The specification behind a network that loses requests, delivers them twice and out of turn, with a caller that asks
//! again: every case must still hold. Lost replies are the suite's own cases, since a repetition may be answered otherwise.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use cronward::clock::SystemClock;
use cronward::job::Namespace;
use cronward::store::conformance::{MemorySetup, Probe, Setup};
use cronward::store::layer::{Call, Chaos, Layer, Layered, Odds, Reply};
use cronward::store::{Op, Store};

const ODDS: Odds = Odds { lose_request: 150, lose_reply: 0, duplicate: 300, delay: 300 };

struct Stormy {
    calm: MemorySetup,
    /// How many connections each namespace has had.
    connections: Mutex<BTreeMap<Namespace, u64>>,
}

pub(super) async fn start() -> Result<Arc<dyn Setup>, String> {
    Ok(Arc::new(Stormy { calm: MemorySetup::new(Arc::new(SystemClock)), connections: Mutex::default() }))
}

impl Stormy {
    /// The same for the same connection of the same case, whatever runs beside it.
    fn seed(&self, namespace: &Namespace) -> u64 {
        let mut connections = self.connections.lock().unwrap();
        let count = connections.entry(namespace.clone()).or_default();
        *count += 1;
        namespace.as_str().bytes().fold(*count, |seed, byte| seed.wrapping_mul(257).wrapping_add(u64::from(byte)))
    }
}

#[async_trait]
impl Setup for Stormy {
    async fn connect(&self, namespace: &Namespace) -> Result<Arc<dyn Store>, String> {
        let seed = self.seed(namespace);
        let stormy = Chaos::seeded(seed, ODDS).over(self.calm.connect(namespace).await?);
        Ok(Arc::new(Layered::new(Arc::new(stormy), Insist)))
    }

    async fn probe(&self, namespace: &Namespace) -> Result<Box<dyn Probe>, String> {
        self.calm.probe(namespace).await
    }
}

/// Asks again, as the guard would. Nothing below the guard does so in earnest.
#[derive(Debug)]
struct Insist;

#[async_trait]
impl Layer for Insist {
    async fn around<'a, T: Send + 'a>(&'a self, _op: Op, _location: &'a str, call: Call<'a, T>) -> Reply<T> {
        for _ in 0..50 {
            if let Ok(answer) = call().await {
                return Ok(answer);
            }
        }
        call().await
    }
}
