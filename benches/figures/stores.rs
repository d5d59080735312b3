//! A guarded cycle on every store that is built in, side by side: real servers on this machine, turn by turn; and what one
//! cycle sends to them.

use std::any::Any;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use cronward::store::{Store, StoreOptions};

use crate::proxy::{Mode, Proxy};
use crate::redis_server::RedisServer;
use crate::sample::median;
use crate::table::Table;
use crate::{block_on, work};

/// Rounds of each, in turn: what else the machine does then falls on all of them.
const ROUNDS: usize = 5;
/// How long one round of one store lasts.
const ROUND: Duration = Duration::from_secs(1);
/// How many cycles at once.
const SHAPES: [usize; 2] = [1, 16];
/// Added to each direction of a link: much more than a call takes.
const DELAY: Duration = Duration::from_millis(40);
/// No cycle fails because a disk is slow: what is measured is how many there are.
const PATIENCE: Duration = Duration::from_secs(30);

/// Cycles of which the servers count what arrives.
const COUNTED: u64 = 100;

/// How what a cycle sends is found out.
enum Sent {
    /// Every call goes to the servers at these ports of the url: what a slow link to all of them adds to a cycle.
    Over(Vec<u16>),
    /// The url names others, who tell of the servers: these count the scripts and waits that they were sent.
    To(Vec<RedisServer>),
    /// There is no network.
    Nothing,
}

/// A store, with what it runs on.
struct Contender {
    name: &'static str,
    url: String,
    sent: Sent,
    /// Slots that were used.
    used: Arc<AtomicUsize>,
    _servers: Box<dyn Any>,
}

impl Contender {
    fn new(name: &'static str, url: String, sent: Sent, servers: impl Any) -> Self {
        Self { name, url, sent, used: Arc::default(), _servers: Box::new(servers) }
    }
}

pub(crate) fn measure(table: &mut Table) {
    block_on(async {
        let contenders = contenders().await;
        let mut stores = Vec::new();
        for contender in &contenders {
            stores.push(open(&contender.url).await);
        }
        let mut rates = vec![[const { Vec::new() }; SHAPES.len()]; contenders.len()];
        for _ in 0..ROUNDS {
            for (shape, at_once) in SHAPES.into_iter().enumerate() {
                for ((contender, store), rates) in contenders.iter().zip(&mut stores).zip(&mut rates) {
                    if contender.url == "memory" {
                        // Gigabytes of slots otherwise: it keeps all of them.
                        *store = open(&contender.url).await;
                    }
                    rates[shape].push(rate(store, &contender.used, at_once).await);
                }
            }
        }
        for (contender, own) in contenders.iter().zip(&rates) {
            let shown = |shape: usize| {
                let rate = median(own[shape].iter().copied());
                // The first is Redis.
                let share = median(own[shape].iter().zip(&rates[0][shape]).map(|(own, redis)| own / redis));
                format!("{rate:.0} at {} at once ({share:.2} of Redis)", SHAPES[shape])
            };
            let figure = format!("cycles per second: {}", contender.name);
            table.told(&figure, format!("{}, {}", shown(0), shown(1)));
        }
        for contender in &contenders {
            let figure = format!("store calls of a cycle: {}", contender.name);
            table.told(&figure, format!("2, {}", sent(contender).await));
        }
    });
}

/// Every store of this build. One more store is one more line.
async fn contenders() -> Vec<Contender> {
    let redis = RedisServer::start();
    let mut all = vec![Contender::new("redis", redis.url(), Sent::Over(vec![redis.port()]), redis)];
    #[cfg(feature = "redis-sentinel")]
    {
        for (name, query) in [("redis+sentinel", ""), ("redis+sentinel, ?wait=1", "?wait=1")] {
            let group = crate::redis_group::SentinelGroup::start();
            let url = format!("{}{query}", group.url());
            all.push(Contender::new(name, url, Sent::To(vec![group.master]), (group.replica, group.sentinels)));
        }
    }
    #[cfg(feature = "redis-cluster")]
    {
        let group = crate::redis_group::ClusterGroup::start();
        let url = group.url();
        all.push(Contender::new("redis+cluster, 3 masters", url, Sent::To(group.servers), ()));
    }
    #[cfg(feature = "redis-redlock")]
    for (name, count) in [("redlock-3", 3), ("redlock-5", 5)] {
        let masters: Vec<RedisServer> = (0..count).map(|_| RedisServer::start()).collect();
        // New masters would grant nothing for one lease.
        masters.iter().for_each(RedisServer::make_old);
        let ports: Vec<u16> = masters.iter().map(RedisServer::port).collect();
        let hosts: Vec<String> = ports.iter().map(|port| format!("127.0.0.1:{port}")).collect();
        all.push(Contender::new(name, format!("redlock://{}", hosts.join(",")), Sent::Over(ports), masters));
    }
    #[cfg(feature = "postgres")]
    {
        let server = crate::postgres_server::PostgresServer::start();
        server.database("bench").await;
        all.push(Contender::new("postgres", server.url("bench"), Sent::Over(vec![server.port()]), server));
    }
    #[cfg(feature = "mysql")]
    {
        let server = crate::mariadb_server::MariadbServer::start();
        server.database("bench").await;
        all.push(Contender::new("mariadb", server.url("bench"), Sent::Over(vec![server.port()]), server));
    }
    #[cfg(feature = "etcd")]
    {
        let server = crate::etcd_server::EtcdServer::start();
        all.push(Contender::new("etcd, 1 member", server.url(), Sent::Over(vec![server.port()]), server));
    }
    #[cfg(feature = "zookeeper")]
    {
        let server = crate::zookeeper_server::ZookeeperServer::start();
        all.push(Contender::new("zookeeper, 1 member", server.url(), Sent::Over(vec![server.port()]), server));
    }
    #[cfg(feature = "sqlite")]
    {
        let folder = tempfile::tempdir().unwrap();
        let url = format!("sqlite:{}", folder.path().join("bench.sqlite").display());
        all.push(Contender::new("sqlite", url, Sent::Nothing, folder));
    }
    all.push(Contender::new("memory, in this process", "memory".to_owned(), Sent::Nothing, ()));
    all
}

async fn open(url: &str) -> Arc<dyn Store> {
    let options = StoreOptions::default().with_op_timeout(PATIENCE);
    let store = cronward::store::open(url, options).await.unwrap();
    // It connects, and makes its tables.
    store.inspect(&[]).await.unwrap();
    store
}

/// Cycles per second with so many under way at any time.
async fn rate(store: &Arc<dyn Store>, used: &Arc<AtomicUsize>, at_once: usize) -> f64 {
    work::guard(&**store, used.fetch_add(1, Ordering::Relaxed)).await;
    let over = Arc::new(AtomicBool::new(false));
    let done = Arc::new(AtomicUsize::new(0));
    let (took, ()) = work::timed(async {
        let tasks: Vec<_> = (0..at_once)
            .map(|_| {
                let (store, used) = (Arc::clone(store), Arc::clone(used));
                let (over, done) = (Arc::clone(&over), Arc::clone(&done));
                tokio::spawn(async move {
                    while !over.load(Ordering::Relaxed) {
                        work::guard(&*store, used.fetch_add(1, Ordering::Relaxed)).await;
                        done.fetch_add(1, Ordering::Relaxed);
                        // The store in memory never waits; without a pause nobody would see that the time is over.
                        tokio::task::yield_now().await;
                    }
                })
            })
            .collect();
        tokio::time::sleep(ROUND).await;
        over.store(true, Ordering::Relaxed);
        for task in tasks {
            task.await.unwrap();
        }
    })
    .await;
    done.load(Ordering::Relaxed) as f64 / took.as_secs_f64()
}

/// What one cycle sends, in words.
async fn sent(contender: &Contender) -> String {
    match &contender.sent {
        Sent::Over(ports) => {
            let trips = round_trips(contender, ports).await;
            let each =
                if ports.len() > 1 { format!(", each to {} masters at once", ports.len()) } else { String::new() };
            format!("{trips} round trips{each}")
        }
        Sent::To(servers) => format!("{:.2} commands, as the servers count them", commands(contender, servers).await),
        Sent::Nothing => "no network".to_owned(),
    }
}

/// Round trips of one cycle: what slow links to all servers add to it, in the shortest of several.
async fn round_trips(contender: &Contender, ports: &[u16]) -> u128 {
    let (mut proxies, mut url) = (Vec::new(), contender.url.clone());
    for port in ports {
        let proxy = Proxy::before(*port).await;
        url = url.replace(&format!(":{port}"), &format!(":{}", proxy.port()));
        proxies.push(proxy);
    }
    let store = open(&url).await;
    let next = || contender.used.fetch_add(1, Ordering::Relaxed);
    // The connection has seen each statement once.
    work::guard(&*store, next()).await;
    proxies.iter().for_each(|proxy| proxy.set(Mode::Delay(DELAY)));
    let mut shortest = Duration::MAX;
    for _ in 0..5 {
        let (took, ()) = work::timed(work::guard(&*store, next())).await;
        shortest = shortest.min(took);
    }
    shortest.as_millis() / (2 * DELAY).as_millis()
}

/// What the servers were sent for one cycle, on average. What a script calls inside is none of these, and neither is what
/// servers send to each other.
async fn commands(contender: &Contender, servers: &[RedisServer]) -> f64 {
    let counted = || -> u64 {
        let of =
            |server: &RedisServer| ["evalsha", "eval", "wait"].map(|command| server.calls(command)).iter().sum::<u64>();
        servers.iter().map(of).sum()
    };
    let store = open(&contender.url).await;
    let next = || contender.used.fetch_add(1, Ordering::Relaxed);
    // The servers have seen each script once.
    work::guard(&*store, next()).await;
    let before = counted();
    for _ in 0..COUNTED {
        work::guard(&*store, next()).await;
    }
    (counted() - before) as f64 / COUNTED as f64
}
