//! Which server is the master, as the sentinels say. Each of them is asked in a task of its own: at once when a failover
//! ends (`+switch-master`) or a connection fails, and every second in any case, since a message may be lost. Of several
//! answers the one of the highest epoch counts: a sentinel that is cut off from the others goes on naming the old master.
//!
//! Nothing is ever pinned to an address. Calls that are under way go to where they were sent; the next one goes to the
//! master that is known by then.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use futures_util::StreamExt;
use redis::aio::{MultiplexedConnection, PubSubSink, PubSubStream};
use redis::{AsyncConnectionConfig, RedisError, Value};
use tokio::sync::{Notify, watch};
use tokio_util::task::AbortOnDropHandle;

use super::members::{Address, Members};
use super::target::Target;
use crate::store::OpenError;

/// How often a sentinel is asked though nothing has happened.
const ASK_EVERY: Duration = Duration::from_secs(1);
/// The wait before a sentinel that cannot be reached is tried again.
const TRY_AGAIN: Duration = Duration::from_millis(250);
/// The longest wait for a sentinel's answer.
const PATIENCE: Duration = Duration::from_secs(2);

/// The master as it is known now.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Master {
    address: Address,
    epoch: i64,
    /// Counts changes of the address.
    version: u64,
}

/// What the tasks share.
#[derive(Debug)]
struct Knowledge {
    name: String,
    master: watch::Sender<Option<Master>>,
    /// Somebody doubts what is known.
    doubt: Notify,
    /// What a sentinel refused last, as a fragment.
    refusal: Mutex<Option<String>>,
}

/// The sentinels of one master.
#[derive(Debug)]
pub(super) struct Sentinels {
    listed: Vec<Target>,
    data: Target,
    known: Arc<Knowledge>,
    tasks: Mutex<Vec<AbortOnDropHandle<()>>>,
}

impl Sentinels {
    /// Reads `redis+sentinel://[user:password@]h1,h2,h3/mymaster[?db=…&sentinel_user=…&sentinel_pass=…]`. `client` is what the
    /// connections call themselves.
    pub(super) fn parse(url: &str, client: &str) -> Result<Self, OpenError> {
        let members = Members::parse(url, 26_379, &["db", "sentinel_user", "sentinel_pass"])?;
        if members.path.is_empty() || members.path.contains('/') {
            return Err(members.refuse("it must name the master that the sentinels watch: …/mymaster"));
        }
        let data = members.data(members.parameter("db").unwrap_or(""), client)?;
        let user = match (members.parameter("sentinel_user"), members.parameter("sentinel_pass")) {
            (None, None) => None,
            (user, Some(password)) => Some(format!("{}:{password}", user.unwrap_or(""))),
            (Some(_), None) => return Err(members.refuse("sentinel_user has no sentinel_pass")),
        };
        let listed = members.hosts.iter().map(|host| members.listed(host, user.as_deref(), client));
        let known = Knowledge {
            name: members.path.to_owned(),
            master: watch::Sender::new(None),
            doubt: Notify::new(),
            refusal: Mutex::default(),
        };
        let listed = listed.collect::<Result<_, _>>()?;
        Ok(Self { listed, data, known: Arc::new(known), tasks: Mutex::default() })
    }

    /// The master. Waits until one is known, no longer than half of `limit`.
    pub(super) async fn master(&self, limit: Duration) -> Result<Target, RedisError> {
        self.start();
        let mut known = self.known.master.subscribe();
        let found = tokio::time::timeout(limit / 2, known.wait_for(Option::is_some)).await;
        match found.ok().and_then(Result::ok).and_then(|master| master.clone()) {
            Some(master) => self.data.at(&master.address),
            None => Err(RedisError::from(std::io::Error::other(self.known.unknown()))),
        }
    }

    pub(super) fn version(&self) -> u64 {
        self.known.master.borrow().as_ref().map_or(0, |master| master.version)
    }

    pub(super) async fn moved(&self, version: u64) {
        let mut known = self.known.master.subscribe();
        let other = |master: &Option<Master>| master.as_ref().is_some_and(|master| master.version != version);
        // The sender lives as long as this does.
        let _ = known.wait_for(other).await;
    }

    pub(super) fn ask_again(&self) {
        self.known.doubt.notify_waiters();
    }

    /// Begins to ask, from the first call within a runtime on.
    fn start(&self) {
        let mut tasks = self.tasks.lock().unwrap_or_else(PoisonError::into_inner);
        if tasks.iter().any(|task| !task.is_finished()) {
            return;
        }
        let Ok(runtime) = tokio::runtime::Handle::try_current() else { return };
        let ask = |sentinel: &Target| runtime.spawn(ask_for_ever(sentinel.clone(), Arc::clone(&self.known)));
        *tasks = self.listed.iter().map(|sentinel| AbortOnDropHandle::new(ask(sentinel))).collect();
    }
}

impl Knowledge {
    /// The highest epoch counts; within it the last answer, since an address may be announced anew.
    fn learn(&self, address: Address, epoch: i64) {
        self.master.send_if_modified(|known| match known {
            Some(master) if master.epoch > epoch || (master.epoch == epoch && master.address == address) => false,
            Some(master) if master.address == address => {
                master.epoch = epoch;
                false
            }
            _ => {
                let version = known.as_ref().map_or(1, |master| master.version + 1);
                tracing::debug!(name = self.name, host = address.host, port = address.port, epoch, "the master");
                *known = Some(Master { address, epoch, version });
                true
            }
        });
    }

    fn unknown(&self) -> String {
        let refusal = self.refusal.lock().unwrap_or_else(PoisonError::into_inner);
        let why = refusal.as_deref().unwrap_or("none can be reached");
        format!("no sentinel tells where the master {:?} is: {why}", self.name)
    }

    fn refused(&self, error: &RedisError) {
        let why = match error.code() {
            Some("NOAUTH" | "WRONGPASS") => "they want a password: write ?sentinel_pass=…".to_owned(),
            Some(code) => format!("{code} {}", error.detail().unwrap_or("")),
            None => error.to_string(),
        };
        *self.refusal.lock().unwrap_or_else(PoisonError::into_inner) = Some(why);
    }
}

/// Asks one sentinel until the task is stopped.
#[allow(clippy::disallowed_methods, reason = "the wait before a sentinel is tried again; the file owns it")]
async fn ask_for_ever(sentinel: Target, known: Arc<Knowledge>) {
    loop {
        if let Err(error) = ask(&sentinel, &known).await {
            tracing::debug!(%error, "a sentinel does not answer");
            known.refused(&error);
        }
        tokio::time::sleep(TRY_AGAIN).await;
    }
}

/// Asks over one pair of connections until one of them breaks.
async fn ask(sentinel: &Target, known: &Knowledge) -> Result<(), RedisError> {
    let mut connection = within(connect(sentinel)).await?;
    question(&mut connection, known).await?;
    let (_sink, mut switches) = within(listen(sentinel)).await?;
    loop {
        tokio::select! {
            message = switches.next() => {
                let Some(message) = message else { return Ok(()) };
                let text = String::from_utf8_lossy(message.get_payload_bytes()).into_owned();
                if text.split(' ').next() != Some(&known.name) {
                    continue;
                }
            }
            () = known.doubt.notified() => {}
            _ = tokio::time::timeout(ASK_EVERY, std::future::pending::<()>()) => {}
        }
        question(&mut connection, known).await?;
    }
}

async fn connect(sentinel: &Target) -> Result<MultiplexedConnection, RedisError> {
    let config = AsyncConnectionConfig::new().set_response_timeout(Some(PATIENCE));
    sentinel.listener.get_multiplexed_async_connection_with_config(&config).await
}

async fn listen(sentinel: &Target) -> Result<(PubSubSink, PubSubStream), RedisError> {
    let (mut sink, messages) = sentinel.listener.get_async_pubsub().await?.split();
    sink.subscribe("+switch-master").await?;
    Ok((sink, messages))
}

async fn question(connection: &mut MultiplexedConnection, known: &Knowledge) -> Result<(), RedisError> {
    let question = redis::cmd("SENTINEL").arg("MASTER").arg(&known.name).take();
    let answer = within(async { connection.send_packed_command(&question).await?.extract_error() }).await?;
    if let Some((address, epoch)) = master_of(&answer) {
        known.learn(address, epoch);
    }
    Ok(())
}

async fn within<T>(work: impl Future<Output = Result<T, RedisError>>) -> Result<T, RedisError> {
    let late = || RedisError::from(std::io::Error::from(std::io::ErrorKind::TimedOut));
    tokio::time::timeout(PATIENCE, work).await.unwrap_or_else(|_| Err(late()))
}

/// The address and the epoch in an answer to `SENTINEL MASTER`; none while they cannot be read.
fn master_of(answer: &Value) -> Option<(Address, i64)> {
    let Value::Array(items) = answer else { return None };
    let text = |value: &Value| match value {
        Value::BulkString(bytes) => String::from_utf8(bytes.clone()).ok(),
        Value::SimpleString(text) => Some(text.clone()),
        _ => None,
    };
    let field = |name: &str| {
        items.chunks_exact(2).find_map(|pair| match pair {
            [key, value] if text(key).as_deref() == Some(name) => text(value),
            _ => None,
        })
    };
    let address = Address { host: field("ip")?, port: field("port")?.parse().ok()? };
    Some((address, field("config-epoch")?.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn known() -> Knowledge {
        Knowledge {
            name: "m".to_owned(),
            master: watch::Sender::new(None),
            doubt: Notify::new(),
            refusal: Mutex::default(),
        }
    }

    fn address(port: u16) -> Address {
        Address { host: "h".to_owned(), port }
    }

    #[test]
    fn a_sentinel_that_was_cut_off_does_not_bring_back_the_old_master() {
        let known = known();
        known.learn(address(1), 3);
        known.learn(address(2), 4);
        known.learn(address(1), 3);
        let master = known.master.borrow().clone().unwrap();
        assert_eq!((master.address, master.version), (address(2), 2));
        known.learn(address(2), 5);
        assert_eq!(known.master.borrow().as_ref().map(|master| (master.epoch, master.version)), Some((5, 2)));
    }

    #[test]
    fn only_a_url_with_servers_and_a_master_is_read() {
        for url in ["redis+sentinel://a,b:1/m", "rediss+sentinel://u:p@a/m?db=2&sentinel_user=s&sentinel_pass=p"] {
            assert!(Sentinels::parse(url, "test").is_ok(), "{url}");
        }
        for url in [
            "redis+sentinel://a,b",
            "redis+sentinel:///m",
            "redis+sentinel://a/m/0",
            "redis+sentinel://a/m?sentinel_user=u",
        ] {
            assert!(Sentinels::parse(url, "test").is_err(), "{url}");
        }
    }

    #[test]
    fn an_answer_of_another_form_is_none() {
        let bulk = |text: &str| Value::BulkString(text.as_bytes().to_vec());
        let answer = ["name", "m", "ip", "10.0.0.1", "port", "6380", "config-epoch", "7"].map(bulk);
        let address = Address { host: "10.0.0.1".to_owned(), port: 6_380 };
        assert_eq!(master_of(&Value::Array(answer.to_vec())), Some((address, 7)));
        for other in [Value::Nil, Value::Array(vec![]), Value::Array(answer[..7].to_vec()), Value::Int(1)] {
            assert_eq!(master_of(&other), None);
        }
    }
}
