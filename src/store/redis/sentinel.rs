//! Which server is the master, as the sentinels say. Each of them is asked in a task of its own: at once when a failover
//! ends (`+switch-master`) or a connection fails, and every second in any case, since a message may be lost. Of several
//! answers the one of the highest epoch counts; [`SentinelReplies`] has the rule.
//!
//! The sentinel that leads a failover goes on naming the old master until every replica follows the new one, and that with the
//! new epoch; for it alone the failover is in progress. It is then asked for the address in the other way, which tells the
//! new one.
//!
//! Nothing is ever pinned to an address. Calls that are under way go to where they were sent; the next one goes to the
//! master that is known by then.

use std::collections::BTreeMap;
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
use crate::store::backend::Files;
use crate::store::tls::TlsFault;

/// How often a sentinel is asked though nothing has happened.
const ASK_EVERY: Duration = Duration::from_secs(1);
/// The wait before a sentinel that cannot be reached is tried again.
const TRY_AGAIN: Duration = Duration::from_millis(250);
/// The longest wait for a sentinel's answer.
const PATIENCE: Duration = Duration::from_secs(2);

/// More replicas than this nobody has: a larger number is a slip.
const MOST_REPLICAS: u32 = 100;

/// The master as it is known now.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Master {
    address: Address,
    /// Counts changes of the address: 0 is the first that was known, and also what a connection that waits for it expects.
    version: u64,
}

/// What the tasks share.
#[derive(Debug)]
struct Knowledge {
    name: String,
    master: watch::Sender<Option<Master>>,
    /// Somebody doubts what is known.
    doubt: Notify,
    told: Mutex<SentinelReplies>,
}

/// The sentinels of one master.
#[derive(Debug)]
pub(super) struct Sentinels {
    listed: Vec<Target>,
    data: Target,
    /// How many replicas a success is to reach; none to ask of it.
    pub(super) wait: Option<u32>,
    known: Arc<Knowledge>,
    tasks: Mutex<Vec<AbortOnDropHandle<()>>>,
}

impl Sentinels {
    /// Reads `redis+sentinel://[user:password@]h1,h2,h3/mymaster[?db=…&sentinel_user=…&sentinel_pass=…&wait=N]`. `client` is what
    /// the connections call themselves.
    pub(super) fn parse(url: &str, client: &str, files: Files) -> Result<Self, OpenError> {
        let members = Members::parse(url, 26_379, &["db", "sentinel_user", "sentinel_pass", "wait"])?;
        if members.path.is_empty() || members.path.contains('/') {
            return Err(members
                .refuse("it does not name the master that the sentinels watch: write /mymaster after the sentinels"));
        }
        let data = members.data(members.parameter("db").unwrap_or(""), client, files)?;
        let user = match (members.parameter("sentinel_user"), members.parameter("sentinel_pass")) {
            (None, None) => None,
            (user, Some(password)) => Some(format!("{}:{password}", user.unwrap_or(""))),
            (Some(_), None) => return Err(members.refuse("sentinel_user has no sentinel_pass")),
        };
        let wait = match members.parameter("wait").map(str::parse::<u32>) {
            None | Some(Ok(0)) => None,
            Some(Ok(replicas)) if replicas <= MOST_REPLICAS => Some(replicas),
            Some(_) => return Err(members.refuse("wait is no number of replicas: write wait=1")),
        };
        let listed = members.hosts.iter().map(|host| members.listed(host, user.as_deref(), client, files));
        let known = Knowledge {
            name: members.path.to_owned(),
            master: watch::Sender::new(None),
            doubt: Notify::new(),
            told: Mutex::new(SentinelReplies::by(members.hosts.len())),
        };
        let listed = listed.collect::<Result<_, _>>()?;
        Ok(Self { listed, data, wait, known: Arc::new(known), tasks: Mutex::default() })
    }

    /// The master. Waits until one is known, no longer than half of `limit`.
    pub(super) async fn master(&self, limit: Duration) -> Result<Target, RedisError> {
        self.start();
        let mut known = self.known.master.subscribe();
        let found = tokio::time::timeout(limit / 2, known.wait_for(Option::is_some)).await;
        match found.ok().and_then(Result::ok).and_then(|master| master.clone()) {
            Some(master) => Ok(self.data.at(&master.address.host, master.address.port)),
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
        let asked = self.listed.iter().enumerate();
        let asked = asked.map(|(index, at)| SentinelQuery { index, at: at.clone(), known: Arc::clone(&self.known) });
        *tasks = asked.map(|sentinel| AbortOnDropHandle::new(runtime.spawn(sentinel.ask_for_ever()))).collect();
    }
}

impl Knowledge {
    fn lock(&self) -> std::sync::MutexGuard<'_, SentinelReplies> {
        self.told.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What follows from what was told so far. Where nothing does, what was known stays.
    fn learn(&self, note: impl FnOnce(&mut SentinelReplies)) {
        let mut told = self.lock();
        note(&mut told);
        self.master.send_if_modified(|known| {
            let current = known.as_ref().map(|master| &master.address);
            let Some((address, epoch)) = told.master(current).filter(|(address, _)| Some(address) != current) else {
                return false;
            };
            let version = known.as_ref().map_or(0, |master| master.version + 1);
            tracing::debug!(name = self.name, host = address.host, port = address.port, epoch, "the master");
            *known = Some(Master { address, version });
            true
        });
    }

    fn unknown(&self) -> String {
        format!("no sentinel reports the address of the master {:?}: {}", self.name, self.lock().why_not())
    }
}

fn failure(error: &RedisError) -> SentinelFailure {
    match error.code() {
        Some("NOAUTH" | "WRONGPASS") => {
            SentinelFailure::Refused("they want a password: write ?sentinel_pass=…".to_owned())
        }
        Some(code) => SentinelFailure::Refused(format!("{code} {}", error.detail().unwrap_or(""))),
        None if TlsFault::carried_by(error).is_some() => SentinelFailure::Refused(error.to_string()),
        None => SentinelFailure::Silent(error.to_string()),
    }
}

/// One sentinel, and who is told what it says.
struct SentinelQuery {
    index: usize,
    at: Target,
    known: Arc<Knowledge>,
}

impl SentinelQuery {
    /// Asks until the task is stopped.
    #[allow(clippy::disallowed_methods, reason = "the wait before a sentinel is tried again; the file owns it")]
    async fn ask_for_ever(self) {
        loop {
            if let Err(error) = self.ask().await {
                tracing::debug!(%error, "a sentinel does not answer");
                self.known.learn(|told| told.failure(self.index, failure(&error)));
            }
            tokio::time::sleep(TRY_AGAIN).await;
        }
    }

    /// Asks over one pair of connections until one of them breaks.
    async fn ask(&self) -> Result<(), RedisError> {
        let mut connection = within(connect(&self.at)).await?;
        self.question(&mut connection).await?;
        let (_sink, mut switches) = within(listen(&self.at)).await?;
        loop {
            tokio::select! {
                message = switches.next() => {
                    let Some(message) = message else { return Ok(()) };
                    let text = String::from_utf8_lossy(message.get_payload_bytes()).into_owned();
                    if text.split(' ').next() != Some(&self.known.name) {
                        continue;
                    }
                }
                () = self.known.doubt.notified() => {}
                _ = tokio::time::timeout(ASK_EVERY, std::future::pending::<()>()) => {}
            }
            self.question(&mut connection).await?;
        }
    }

    async fn question(&self, connection: &mut MultiplexedConnection) -> Result<(), RedisError> {
        let name = &self.known.name;
        let answer = sentinel(connection, "MASTER", name).await?;
        let Some(named) = named(&answer) else { return Ok(()) };
        let (address, epoch) = if named.in_failover {
            let current = sentinel(connection, "GET-MASTER-ADDR-BY-NAME", name).await;
            named.leading(current.ok().as_ref().and_then(address_of))
        } else {
            (named.address, named.epoch)
        };
        self.known.learn(|told| told.answer(self.index, address, epoch));
        Ok(())
    }
}

async fn connect(sentinel: &Target) -> Result<MultiplexedConnection, RedisError> {
    let config = AsyncConnectionConfig::new().set_response_timeout(Some(PATIENCE));
    sentinel.connect(config, PATIENCE).await
}

async fn listen(sentinel: &Target) -> Result<(PubSubSink, PubSubStream), RedisError> {
    let (mut sink, messages) = sentinel.subscriber(PATIENCE).await?.split();
    sink.subscribe("+switch-master").await?;
    Ok((sink, messages))
}

async fn sentinel(connection: &mut MultiplexedConnection, verb: &str, name: &str) -> Result<Value, RedisError> {
    let question = redis::cmd("SENTINEL").arg(verb).arg(name).take();
    within(async { connection.send_packed_command(&question).await?.extract_error() }).await
}

async fn within<T>(work: impl Future<Output = Result<T, RedisError>>) -> Result<T, RedisError> {
    let late = || RedisError::from(std::io::Error::from(std::io::ErrorKind::TimedOut));
    tokio::time::timeout(PATIENCE, work).await.unwrap_or_else(|_| Err(late()))
}

/// What an answer to `SENTINEL MASTER` says.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Named {
    address: Address,
    pub(super) epoch: i64,
    /// This sentinel leads a failover that is not over.
    in_failover: bool,
}

impl Named {
    /// What the sentinel that leads a failover says, with the address that it tells in the other way. Where it may not be
    /// asked for that, its word counts for less than that of the others.
    pub(super) fn leading(self, current: Option<Address>) -> (Address, i64) {
        match current {
            Some(current) => (current, self.epoch),
            None => (self.address, self.epoch.saturating_sub(1)),
        }
    }
}

fn text(value: &Value) -> Option<String> {
    match value {
        Value::BulkString(bytes) => String::from_utf8(bytes.clone()).ok(),
        Value::SimpleString(text) => Some(text.clone()),
        _ => None,
    }
}

/// The answer to `SENTINEL MASTER`; none while it cannot be read.
pub(super) fn named(answer: &Value) -> Option<Named> {
    let Value::Array(items) = answer else { return None };
    let field = |name: &str| {
        items.chunks_exact(2).find_map(|pair| match pair {
            [key, value] if text(key).as_deref() == Some(name) => text(value),
            _ => None,
        })
    };
    let address = Address { host: field("ip")?, port: field("port")?.parse().ok()? };
    let in_failover = field("flags").is_some_and(|flags| flags.split(',').any(|flag| flag == "failover_in_progress"));
    Some(Named { address, epoch: field("config-epoch")?.parse().ok()?, in_failover })
}

/// The answer to `SENTINEL GET-MASTER-ADDR-BY-NAME`.
pub(super) fn address_of(answer: &Value) -> Option<Address> {
    let Value::Array(items) = answer else { return None };
    let [host, port] = items.as_slice() else { return None };
    Some(Address { host: text(host)?, port: text(port)?.parse().ok()? })
}

/// A sentinel that could not be asked so often in a row, which is a quarter of a minute at least, is gone: what it said last is
/// no more than that.
const GONE: u32 = 60;

/// What is known of one sentinel.
#[derive(Clone, Debug, Default)]
struct SentinelReply {
    answer: Option<(Address, i64)>,
    /// Why it has not answered since.
    failure: Option<SentinelFailure>,
    failures: u32,
}

/// Why there is no answer, as a fragment.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum SentinelFailure {
    /// It cannot be reached, or stopped answering.
    Silent(String),
    /// It said so itself.
    Refused(String),
}

/// What each sentinel said last, and which server that makes the master. Pure.
///
/// The highest epoch counts: a sentinel that is cut off from the others goes on naming the old master. Of one epoch whatever
/// most of them name, and what is known already where they are even: an address that is announced anew reaches one after the
/// other. Only the last answer of each counts, so that sentinels which are set up afresh, and whose epochs begin at 0 again,
/// are believed.
#[derive(Clone, Debug)]
pub(super) struct SentinelReplies(Vec<SentinelReply>);

impl SentinelReplies {
    pub(super) fn by(sentinels: usize) -> Self {
        Self(vec![SentinelReply::default(); sentinels])
    }

    /// A sentinel names the master.
    pub(super) fn answer(&mut self, sentinel: usize, address: Address, epoch: i64) {
        if let Some(reply) = self.0.get_mut(sentinel) {
            *reply = SentinelReply { answer: Some((address, epoch)), ..SentinelReply::default() };
        }
    }

    /// A sentinel refuses to answer, or cannot be asked. What it refused is kept until it answers: a time-out that follows
    /// tells nothing of what is to be mended.
    pub(super) fn failure(&mut self, sentinel: usize, failure: SentinelFailure) {
        let Some(reply) = self.0.get_mut(sentinel) else { return };
        let told = reply
            .failure
            .take()
            .filter(|told| matches!((told, &failure), (SentinelFailure::Refused(_), SentinelFailure::Silent(_))));
        reply.failure = told.or(Some(failure));
        reply.failures = reply.failures.saturating_add(1);
        if reply.failures >= GONE {
            reply.answer = None;
        }
    }

    /// Why one of them does not answer: what was refused before what is silent.
    pub(super) fn why_not(&self) -> &str {
        match self.0.iter().filter_map(|reply| reply.failure.as_ref()).max() {
            Some(SentinelFailure::Refused(why) | SentinelFailure::Silent(why)) => why,
            None => "none can be reached",
        }
    }

    /// The master and its epoch, where any of them has named one.
    pub(super) fn master(&self, known: Option<&Address>) -> Option<(Address, i64)> {
        let answers = || self.0.iter().filter_map(|reply| reply.answer.as_ref());
        let epoch = answers().map(|(_, epoch)| *epoch).max()?;
        let mut votes: BTreeMap<&Address, usize> = BTreeMap::new();
        for (address, _) in answers().filter(|(_, of)| *of == epoch) {
            *votes.entry(address).or_default() += 1;
        }
        let most = votes.into_iter().max_by_key(|(address, votes)| (*votes, Some(*address) == known));
        most.map(|(address, _)| (address.clone(), epoch))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_url_with_servers_and_a_master_is_read() {
        for url in ["redis+sentinel://a,b:1/m?wait=1", "rediss+sentinel://u:p@a/m?db=2&sentinel_user=s&sentinel_pass=p"]
        {
            assert!(Sentinels::parse(url, "test", Files::Read).is_ok(), "{url}");
        }
        for url in [
            "redis+sentinel://a,b",
            "redis+sentinel:///m",
            "redis+sentinel://a/m/0",
            "redis+sentinel://a/m?sentinel_user=u",
            "redis+sentinel://a/m?wait=all",
            "redis+sentinel://a/m?wait=101",
        ] {
            assert!(Sentinels::parse(url, "test", Files::Read).is_err(), "{url}");
        }
    }

    #[test]
    fn the_first_master_is_no_change_and_the_next_one_is() {
        let sentinels = Sentinels::parse("redis+sentinel://a/m", "test", Files::Read).unwrap();
        let expected = sentinels.version();
        let is_named = |port, epoch| {
            let address = Address { host: "10.0.0.1".to_owned(), port };
            sentinels.known.learn(|told| told.answer(0, address, epoch));
        };
        is_named(6_379, 1);
        assert_eq!(sentinels.version(), expected, "the connection that waited for it is dropped");
        is_named(6_380, 2);
        assert_ne!(sentinels.version(), expected);
    }

    #[test]
    fn an_answer_of_another_form_is_none() {
        let bulk = |text: &str| Value::BulkString(text.as_bytes().to_vec());
        let answer = ["name", "m", "ip", "10.0.0.1", "port", "6380", "config-epoch", "7", "flags", "master"].map(bulk);
        let address = || Address { host: "10.0.0.1".to_owned(), port: 6_380 };
        let leads = |in_failover| Some(Named { address: address(), epoch: 7, in_failover });
        assert_eq!(named(&Value::Array(answer.to_vec())), leads(false));
        let leading = [&answer[..9], &[bulk("master,o_down,failover_in_progress")]].concat();
        assert_eq!(named(&Value::Array(leading)), leads(true));
        for other in [Value::Nil, Value::Array(vec![]), Value::Array(answer[..7].to_vec()), Value::Int(1)] {
            assert_eq!(named(&other), None);
            assert_eq!(address_of(&other), None);
        }
        assert_eq!(address_of(&Value::Array(vec![bulk("10.0.0.1"), bulk("6380")])), Some(address()));
    }

    fn address(port: u16) -> Address {
        Address { host: "h".to_owned(), port }
    }

    /// The master after these answers, one after the other: who said it, the port, the epoch.
    fn after(said: &[(usize, u16, i64)]) -> (u16, i64) {
        let (mut told, mut known) = (SentinelReplies::by(3), None);
        for (sentinel, port, epoch) in said {
            told.answer(*sentinel, address(*port), *epoch);
            known = told.master(known.as_ref().map(|(address, _)| address));
        }
        known.map(|(address, epoch)| (address.port, epoch)).unwrap()
    }

    #[test]
    fn a_sentinel_that_was_cut_off_does_not_bring_back_the_old_master() {
        assert_eq!(after(&[(0, 1, 3), (1, 2, 4), (0, 1, 3)]), (2, 4));
        assert_eq!(after(&[(0, 1, 3), (1, 2, 4), (0, 1, 3), (2, 2, 5)]), (2, 5));
    }

    #[test]
    fn of_one_epoch_most_of_them_are_right_and_nothing_flaps_where_they_are_even() {
        assert_eq!(after(&[(0, 1, 4), (1, 2, 4)]), (1, 4));
        assert_eq!(after(&[(0, 1, 4), (1, 2, 4), (2, 2, 4)]), (2, 4));
        assert_eq!(after(&[(0, 1, 4), (1, 2, 4), (2, 2, 4), (0, 1, 4)]), (2, 4));
        assert_eq!(after(&[(0, 1, 4), (0, 2, 4)]), (2, 4), "the same one announces another address");
    }

    #[test]
    fn sentinels_that_are_set_up_afresh_are_believed() {
        let before = [(0, 1, 7), (1, 1, 7), (2, 1, 7)];
        assert_eq!(after(&[&before[..], &[(0, 2, 0), (1, 2, 0)]].concat()), (1, 7));
        assert_eq!(after(&[&before[..], &[(0, 2, 0), (1, 2, 0), (2, 2, 0)]].concat()), (2, 0));
    }

    #[test]
    fn a_sentinel_that_is_gone_for_good_keeps_nobody_at_the_old_master() {
        let mut told = SentinelReplies::by(2);
        told.answer(0, address(1), 7);
        told.answer(1, address(2), 0);
        (1..GONE).for_each(|_| told.failure(0, silent()));
        assert_eq!(told.master(None), Some((address(1), 7)));
        told.failure(0, silent());
        assert_eq!(told.master(None), Some((address(2), 0)));
    }

    fn silent() -> SentinelFailure {
        SentinelFailure::Silent("timed out".to_owned())
    }

    #[test]
    fn a_refusal_is_told_until_its_sentinel_answers_whatever_fails_meanwhile() {
        let mut told = SentinelReplies::by(2);
        assert_eq!(told.why_not(), "none can be reached");
        told.failure(0, silent());
        assert_eq!(told.why_not(), "timed out");
        told.failure(0, SentinelFailure::Refused("wrong password".to_owned()));
        told.failure(0, silent());
        told.failure(1, silent());
        assert_eq!(told.why_not(), "wrong password");
        told.answer(0, address(1), 1);
        assert_eq!(told.why_not(), "timed out");
    }
}
