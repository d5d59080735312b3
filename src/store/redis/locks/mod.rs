//! Locks on Redis: one script call per operation, whose keys share a tag, so that several locks are one step in a cluster too. What
//! each decides stands in its file in `lua/lock/`; here are its arguments.

mod answer;

#[cfg(feature = "fuzzing")]
pub(super) use answer::{acquired, known_locks, names, released, renewed};

use std::time::Duration;

use async_trait::async_trait;
use chrono::{DateTime, Utc};
use futures_util::future::try_join_all;

use super::decode;
use super::keys::LockKeys;
use super::records::cut_json;
use super::script::{self, Args};
use super::store::{RedisStore, ttl, whole_millis};
use crate::error::Reply;
use crate::job::LockName;
use crate::resource::{AcquireRequest, Acquired, Demands, LockExit, LockHold, LockRecord, LockRelease, LockRenewal};
use crate::slot::{Audit, Token};
use crate::store::locks::{LockStore, LockWakeups};
use crate::store::rules::EVICTED;
use crate::store::{Applied, Intervention, Op};

/// Locks that one script reads: bounds how long the server is kept from others.
const LOCKS_AT_ONCE: usize = 16;

/// How often somebody who waits looks again where the user may not subscribe.
const POLL: Duration = Duration::from_secs(1);

/// The largest number that is sent: from 2^53 on Lua rounds.
const LARGEST: u64 = (1 << 53) - 1;

#[async_trait]
impl LockStore for RedisStore {
    async fn acquire(&self, request: &AcquireRequest) -> Reply<Acquired> {
        let was_heard = self.listener.hears_for(request.instance);
        let answer = self.ask_for_locks(request).await?;
        // Whoever left before the process's channel was subscribed to has told nobody.
        let waits = matches!(answer, Acquired::Waiting { .. });
        if waits && !was_heard && self.listener.comes_to_hear_for(request.instance).await {
            return match self.ask_for_locks(request).await {
                // Nothing of it is under way, and it stands where it stood.
                Err(error) if error.applied == Applied::No => Ok(answer),
                again => again,
            };
        }
        Ok(answer)
    }

    async fn renew_lock(&self, hold: &LockHold) -> Reply<LockRenewal> {
        let args = self
            .about_locks(&hold.demands, &hold.places, hold.token, hold.ttl)
            .arg(hold.owner)
            .arg(hold.instance)
            .arg(&hold.node)
            .arg(&hold.label)
            .arg(hold.fence.0.min(LARGEST));
        let about = self.first_lock(&hold.demands);
        self.ask((Op::RenewLock, &about), &script::LOCK_RENEW, &args, answer::renewed).await
    }

    async fn release(&self, exit: &LockExit) -> Reply<LockRelease> {
        let fence = exit.fence.map_or_else(|| "-".to_owned(), |fence| fence.0.min(LARGEST).to_string());
        let args = self
            .about_locks(&exit.demands, &[], exit.token, exit.ttl)
            .arg(exit.owner)
            .arg(fence)
            .arg(u8::from(exit.unsure));
        let about = self.first_lock(&exit.demands);
        let read = |reply: &_| answer::released(reply, &exit.demands);
        self.ask((Op::Release, &about), &script::LOCK_RELEASE, &args, read).await
    }

    async fn locks(&self, names: &[LockName]) -> Reply<(DateTime<Utc>, Vec<LockRecord>)> {
        if !names.is_empty() {
            return self.known_locks(names).await;
        }
        let (now, names) = self.used_locks().await?;
        if names.is_empty() { Ok((now, Vec::new())) } else { self.known_locks(&names).await }
    }

    async fn lock_names(&self) -> Reply<Vec<LockName>> {
        Ok(self.used_locks().await?.1)
    }

    async fn evict(&self, lock: &LockName, token: Token, audit: &Audit) -> Reply<Intervention> {
        let keys = self.keys.lock(lock);
        let about = keys.known.clone();
        let args = self
            .of_locks([self.keys.lock_names(), keys.known, keys.queue, keys.spent, keys.audit], token, EVICTED)
            .arg(lock)
            .arg(0)
            .arg(0)
            .arg(0)
            .arg(cut_json(audit, "at_ms"));
        self.ask((Op::Evict, &about), &script::LOCK_EVICT, &args, decode::intervention).await
    }

    fn listen(&self, instance: Token) -> LockWakeups {
        self.listener.listen(instance)
    }

    fn lock_poll(&self) -> Option<Duration> {
        (!self.listener.is_allowed_to_processes()).then_some(POLL)
    }

    async fn purge_locks(&self) -> Reply<u64> {
        Ok(0)
    }
}

impl RedisStore {
    async fn ask_for_locks(&self, request: &AcquireRequest) -> Reply<Acquired> {
        let args = self
            .about_locks(&request.demands, &[], request.token, request.ttl)
            .arg(request.owner)
            .arg(request.instance)
            .arg(&request.node)
            .arg(&request.label)
            .arg(u8::from(request.queue));
        let about = self.first_lock(&request.demands);
        let read = |reply: &_| answer::acquired(reply, &request.demands);
        self.ask((Op::Acquire, &about), &script::LOCK_ACQUIRE, &args, read).await
    }

    /// What every script that changes locks takes (`lua/lock/queue.lua`).
    fn about_locks(&self, demands: &Demands, places: &[u64], token: Token, span: Duration) -> Args {
        let of_lock = |name: &LockName| {
            let keys = self.keys.lock(name);
            [keys.known, keys.queue, keys.spent]
        };
        let keys = demands.iter().flat_map(|demand| of_lock(demand.lock()));
        let args = self.of_locks(std::iter::once(self.keys.lock_names()).chain(keys), token, span);
        demands.iter().enumerate().fold(args, |args, (index, demand)| {
            let place = places.get(index).copied().unwrap_or(0).min(LARGEST);
            args.arg(demand.lock()).arg(demand.weight()).arg(demand.of()).arg(place)
        })
    }

    fn of_locks(&self, keys: impl IntoIterator<Item = String>, token: Token, span: Duration) -> Args {
        Args::keys(keys)
            .arg(whole_millis(self.options.retention))
            .arg(self.keys.wake_of_processes())
            .arg(token)
            .arg(ttl(span))
    }

    /// What an error names.
    fn first_lock(&self, demands: &Demands) -> String {
        demands.iter().next().map(|demand| self.keys.lock(demand.lock()).known).unwrap_or_default()
    }

    /// The name of every lock that somebody has used, and the clock.
    async fn used_locks(&self) -> Reply<(DateTime<Utc>, Vec<LockName>)> {
        let key = self.keys.lock_names();
        let read = |reply: &_| answer::names(reply, &key);
        self.ask((Op::Locks, &key), &script::LOCK_READ, &Args::keys([key.clone()]), read).await
    }

    async fn known_locks(&self, names: &[LockName]) -> Reply<(DateTime<Utc>, Vec<LockRecord>)> {
        let answers = try_join_all(names.chunks(LOCKS_AT_ONCE).map(async |part| self.locks_part(part).await)).await?;
        let clock = answers.iter().map(|(now, _)| *now).min();
        Ok((clock.unwrap_or_default(), answers.into_iter().flat_map(|(_, records)| records).collect()))
    }

    async fn locks_part(&self, part: &[LockName]) -> Reply<(DateTime<Utc>, Vec<LockRecord>)> {
        let all = self.keys.lock_names();
        // An error about one lock names it.
        let about = if let [only] = part { self.keys.lock(only).known } else { all.clone() };
        let asked: Vec<(LockName, LockKeys)> = part.iter().map(|name| (name.clone(), self.keys.lock(name))).collect();
        let of_locks = asked.iter().flat_map(|(_, keys)| [&keys.known, &keys.queue, &keys.audit]);
        let args = Args::keys(std::iter::once(&all).chain(of_locks).cloned());
        let read = |reply: &_| answer::known_locks(reply, &asked);
        self.ask((Op::Locks, &about), &script::LOCK_READ, &args, read).await
    }
}
