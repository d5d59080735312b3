//! A store in one Redis server: what every operation needs, and how one is asked. The operations are in `adapter`.

use std::time::Duration;

use redis::{Cmd, Value};

use super::changes::ChangeListener;
use super::decode::Corrupt;
use super::examine;
use super::fault::Asker;
use super::keys::Keys;
use super::link::Endpoint;
use super::link::Link;
use super::route::Route;
use super::script::{Args, Script};
use super::target::{Target, as_redis};
use super::wake::Listener;
use crate::slot::{Lease, Slot};
#[cfg(feature = "redis-cluster")]
use crate::store::ErrorKind;
use crate::store::backend::Files;
use crate::store::{Finding, Op, OpenError, StoreError, StoreOptions, redact};

/// The longest span that is sent, 100 years: what is added to a clock stays a number that Redis takes.
const LONGEST: Duration = Duration::from_secs(100 * 365 * 86_400);

/// A store in one Redis server, shared by every node that reaches it.
#[derive(Debug)]
pub struct RedisStore {
    pub(super) keys: Keys,
    pub(super) listener: Listener,
    pub(super) onlookers: ChangeListener,
    pub(super) options: StoreOptions,
    pub(super) location: String,
    pub(super) name: &'static str,
    pub(super) route: Route,
    /// Where successes are written when replicas are to have them.
    #[cfg(feature = "redis-sentinel")]
    pub(super) replicas: Option<super::replicas::Replicas>,
}

impl RedisStore {
    /// Opens the store at `redis://`, `rediss://` or `redis+unix://`, and with their features `redis+sentinel://`,
    /// `redis+cluster://` and the same with `rediss+` (docs/stores.md has the forms). Only the url is
    /// judged here: no connection is made before the first operation, so a server that is down is that one's error.
    #[allow(clippy::unused_async, reason = "every store is opened by awaiting; others do connect")]
    pub async fn open(url: &str, options: StoreOptions) -> Result<Self, OpenError> {
        // Another part of the process may have chosen first; its choice is as good.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let client = format!("cronward:{}", options.namespace);
        let known = as_redis(url);
        let scheme = known.split_once("://").map_or("", |(scheme, _)| scheme);
        #[cfg_attr(not(feature = "redis-cluster"), expect(unused_mut, reason = "a cluster has names of its own"))]
        let mut keys = Keys::new(&options.namespace);
        #[cfg(feature = "redis-sentinel")]
        let mut replicas = None;
        let (name, route, endpoint) = match scheme {
            #[cfg(feature = "redis-sentinel")]
            "redis+sentinel" | "rediss+sentinel" => {
                let sentinels = super::sentinel::Sentinels::parse(url, &client, Files::Read)?;
                let wait = sentinels.wait;
                let endpoint = Endpoint::Master(std::sync::Arc::new(sentinels));
                replicas =
                    wait.map(|wanted| super::replicas::Replicas::new(wanted, endpoint.clone(), options.op_timeout));
                ("redis-sentinel", Route::One(Box::new(Link::new(endpoint.clone(), options.op_timeout))), endpoint)
            }
            #[cfg(feature = "redis-cluster")]
            "redis+cluster" | "rediss+cluster" => {
                if options.lock_key.is_some() {
                    return Err(OpenError::LockKey { store: "a Redis Cluster, which keeps it on another server" });
                }
                let (cluster, endpoint) =
                    super::cluster::Cluster::parse(url, &client, options.op_timeout, Files::Read)?;
                keys = Keys::in_cluster(&options.namespace);
                ("redis-cluster", Route::Many(cluster), endpoint)
            }
            _ => {
                let endpoint = Endpoint::Fixed(Box::new(Target::parse(url, &client, Files::Read)?));
                ("redis", Route::One(Box::new(Link::new(endpoint.clone(), options.op_timeout))), endpoint)
            }
        };
        let onlookers = ChangeListener::new(endpoint.clone(), &keys, options.op_timeout);
        let listener = Listener::new(endpoint, &keys, options.op_timeout);
        Ok(Self {
            keys,
            listener,
            onlookers,
            location: redact(url),
            name,
            route,
            options,
            #[cfg(feature = "redis-sentinel")]
            replicas,
        })
    }

    /// Runs a script and reads its answer. `about` names the keys in an error.
    pub(super) async fn ask<T>(
        &self,
        asked: (Op, &str),
        script: &Script,
        args: &Args,
        read: impl FnOnce(&Value) -> Result<T, Corrupt> + Send,
    ) -> Result<T, StoreError> {
        let answer = script.run(&self.route, args).await;
        self.read(asked, answer, read)
    }

    /// Writes a success: where replicas are to have it, over the connection that waits for them.
    pub(super) async fn settle<T>(
        &self,
        asked: (Op, &str),
        script: &Script,
        args: &Args,
        read: impl FnOnce(&Value) -> Result<T, Corrupt> + Send,
    ) -> Result<T, StoreError> {
        #[cfg(feature = "redis-sentinel")]
        if let Some(replicas) = &self.replicas {
            let answer = script.run(replicas.route(), args).await;
            let settled = self.read(asked, answer, read)?;
            replicas.confirm(&self.location).await;
            return Ok(settled);
        }
        self.ask(asked, script, args, read).await
    }

    /// All of a hash.
    pub(super) async fn table<T>(
        &self,
        asked: (Op, &str),
        read: impl FnOnce(&Value) -> Result<T, Corrupt> + Send,
    ) -> Result<T, StoreError> {
        self.call(asked, redis::cmd("HGETALL").arg(asked.1), read).await
    }

    /// One plain command about the key that `asked` names.
    pub(super) async fn call<T>(
        &self,
        asked: (Op, &str),
        command: &Cmd,
        read: impl FnOnce(&Value) -> Result<T, Corrupt> + Send,
    ) -> Result<T, StoreError> {
        let answer = self.route.call(Some(asked.1), command).await;
        self.read(asked, answer, read)
    }

    fn read<T>(
        &self,
        (op, about): (Op, &str),
        answer: Result<Value, super::link::LinkError>,
        read: impl FnOnce(&Value) -> Result<T, Corrupt>,
    ) -> Result<T, StoreError> {
        let (op_timeout, finds_masters) = (self.options.op_timeout, self.route.finds_masters());
        let asked = Asker { op, location: &self.location, about, op_timeout, finds_masters };
        let answer = answer.map_err(|error| self.at_server(about, asked.failed(error)))?;
        read(&answer).map_err(|corrupt| asked.unreadable(corrupt))
    }

    /// Of several servers each has users and limits of its own: what one refuses is told with its name.
    fn at_server(&self, about: &str, error: StoreError) -> StoreError {
        match &self.route {
            #[cfg(feature = "redis-cluster")]
            Route::Many(cluster) if matches!(error.kind, ErrorKind::Denied | ErrorKind::Overloaded) => {
                let place = cluster.keeper(about).map(|keeper| format!("{}: ", keeper.in_url())).unwrap_or_default();
                StoreError { message: format!("{place}{}", error.message), ..error }
            }
            _ => {
                let _ = about;
                error
            }
        }
    }

    /// What every script about a slot takes (`lua/slot.lua`), with further keys.
    pub(super) fn about(&self, slot: &Slot, more: impl IntoIterator<Item = String>) -> Args {
        let keys = self.keys.slot(slot);
        let running = self.keys.running(slot.job());
        Args::keys([keys.mark, keys.attempts, keys.log, running].into_iter().chain(more))
            .arg(slot)
            .arg(slot.end().timestamp_millis())
            .arg(whole_millis(self.options.retention))
            .arg(self.keys.wake())
    }

    /// The key of a foreign program that a run excludes.
    pub(super) fn borrowed(&self) -> Option<String> {
        self.options.lock_key.as_ref().map(ToString::to_string)
    }

    /// The same, with whose lease it is.
    pub(super) fn about_lease(&self, lease: &Lease) -> Args {
        self.about(&lease.slot, self.borrowed()).arg(lease.token).arg(&lease.node).arg(lease.attempt)
    }

    /// The same for a lease whose run has ended. What `lua/output.lua` takes comes last.
    pub(super) fn about_ended(&self, lease: &Lease) -> Args {
        let own = [self.keys.latest(lease.slot.job()), self.keys.outputs(&lease.slot)];
        let more = own.into_iter().chain(self.borrowed());
        self.about(&lease.slot, more).arg(lease.token).arg(&lease.node).arg(lease.attempt)
    }
}

/// Whole milliseconds, at least one unless it is zero: a time-out of nothing would delete the key.
pub(super) fn whole_millis(span: Duration) -> u128 {
    let millis = span.min(LONGEST).as_millis();
    if millis == 0 && !span.is_zero() { 1 } else { millis }
}

/// A TTL: at least a millisecond.
pub(super) fn ttl(span: Duration) -> u128 {
    whole_millis(span).max(1)
}

impl RedisStore {
    /// Looks at the server; in a cluster at each master. What could not be asked for is a finding too.
    pub(super) async fn look(&self) -> Vec<Finding> {
        match &self.route {
            Route::One(link) => {
                let looked = examine::look(link, self.name).await;
                looked.unwrap_or_else(|error| vec![examine::no_answer(&error)])
            }
            #[cfg(feature = "redis-cluster")]
            Route::Many(cluster) => cluster.examine(self.name).await,
        }
    }

    /// Looks at one of several servers that do not stand in for each other: it is told of which, also when it cannot be
    /// reached, which the others then hide.
    #[cfg(feature = "redis-redlock")]
    pub(super) async fn examine_as_one_of_many(&self) -> Vec<Finding> {
        let away = |error: &str| {
            let effect = "when as many more go as make it a majority, nothing is claimed";
            Finding::warning("server", error, effect, "start it; or look at its log")
        };
        match &self.route {
            Route::One(link) => examine::at_place(&self.location, examine::look(link, self.name).await, away),
            #[cfg(feature = "redis-cluster")]
            Route::Many(_) => self.look().await,
        }
    }
}
