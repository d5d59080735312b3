//! A node that leaves while the store records a verdict for it, in virtual time.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use tokio::sync::{Semaphore, mpsc, watch};

use super::{Command, Health, Identity, Node, Plan, Ports};
use crate::clock::{Clock, RuntimeClock};
use crate::drive::Entropy;
use crate::event::Event;
use crate::exec::{Launcher, Output};
use crate::job::{JobSpec, NodeName, Program};
use crate::observe::Observer;
use crate::slot::{Audit, Period, Slot, Verdict};
use crate::store::layer::{Call, Layer, Layered, Reply};
use crate::store::memory::MemoryStore;
use crate::store::{Op, Store, StoreOptions};

/// Answers no question for a verdict before it is let go.
#[derive(Clone, Debug)]
struct Withheld {
    asked: Arc<Semaphore>,
    let_go: Arc<Semaphore>,
}

#[async_trait]
impl Layer for Withheld {
    async fn around<'a, T: Send + 'a>(&'a self, op: Op, _location: &'a str, call: Call<'a, T>) -> Reply<T> {
        let answer = call().await;
        if op == Op::Close {
            self.asked.add_permits(1);
            let _pass = self.let_go.acquire().await;
        }
        answer
    }
}

/// What a node told, in order.
#[derive(Debug, Default)]
struct Told(Mutex<Vec<String>>);

impl Observer for Told {
    fn event(&self, slot: Option<&Slot>, event: &Event) {
        let line = match event {
            Event::Closed { verdict } => format!("{} {verdict:?}", slot.map(ToString::to_string).unwrap_or_default()),
            Event::Stopped => "stopped".to_owned(),
            _ => return,
        };
        self.0.lock().unwrap().push(line);
    }
}

/// What a node tells from the shutdown on, which comes while its store records the first verdict; the answer comes so long after it.
#[allow(clippy::disallowed_methods, reason = "time is virtual")]
async fn leaving(answer_after: Duration) -> Vec<String> {
    let clock: Arc<dyn Clock> = Arc::new(RuntimeClock::at("2026-11-21T12:00:00Z".parse().unwrap()));
    let name = NodeName::new("n").unwrap();
    let mut job = JobSpec::new("a".parse().unwrap(), "* * * * * *", Program::Direct(vec!["true".to_owned()]));
    job.period = Period::Fixed(Duration::from_secs(1));
    let store = Arc::new(MemoryStore::new(StoreOptions::default(), Arc::clone(&clock)));
    let audit = |verb: &str| Audit {
        verb: verb.to_owned(),
        who: "p".to_owned(),
        host: "h".to_owned(),
        why: String::new(),
        at: clock.now().wall,
    };
    store.pause(&job.name, None, &audit("pause")).await.unwrap();
    let withheld = Withheld { asked: Arc::new(Semaphore::new(0)), let_go: Arc::new(Semaphore::new(0)) };
    let told = Arc::<Told>::default();
    let ports = Ports {
        store: Arc::new(Layered::new(store, withheld.clone())),
        clock: Arc::clone(&clock),
        entropy: Arc::new(Entropy::fixed(1)),
        launcher: Launcher::new(PathBuf::from("/nothing"), Output::Capture),
        observer: told.clone(),
    };
    let identity = Identity { name, instance: String::new(), labels: BTreeMap::new(), started_at: clock.now().wall };
    let node = Node::new(identity, ports, Plan { jobs: vec![Arc::new(job)], ..Plan::default() }).unwrap();
    let (commands, inbox) = mpsc::channel(1);
    let (health, _watched) = watch::channel(Health::default());
    let running = tokio::spawn(node.run(inbox, health));
    withheld.asked.acquire().await.unwrap().forget();
    commands.send(Command::Shutdown(Duration::ZERO)).await.unwrap();
    tokio::time::sleep(answer_after).await;
    withheld.let_go.add_permits(1_000);
    running.await.unwrap().unwrap();
    std::mem::take(&mut *told.0.lock().unwrap())
}

#[tokio::test(start_paused = true)]
async fn a_verdict_that_is_on_its_way_is_told_before_the_node_stops() {
    let verdict = format!("a@2026-11-21T12Z {:?}", Verdict::Skipped);
    assert_eq!(leaving(Duration::from_millis(500)).await, [verdict.as_str(), "stopped"]);
}

#[tokio::test(start_paused = true)]
async fn no_node_waits_for_a_verdict_for_ever() {
    assert_eq!(leaving(Duration::from_secs(60)).await, ["stopped"]);
}
