//! One master of the quorum: the scripts that only a quorum needs, with their arguments, and their answers, read. A script whose
//! answer is counted also tells for how long the server has kept its data, and the longest lease that it knows of.
//!
//! Reading is as total as `decode`: whatever a server answers becomes a value or a [`Corrupt`].

use std::sync::LazyLock;
use std::time::Duration;

use redis::Value;

use crate::error::Reply;
use crate::job::{MAX_ATTEMPTS_LIMIT, NodeName};
use crate::reply::{ClaimRequest, Renewal};
use crate::slot::{Attempt, DoneMark, Lease, RunRecord, Slot, Verdict, VerdictRecord};
use crate::store::backend::Opened as _;
use crate::store::redis::RedisStore;
use crate::store::redis::adapter::asked_by;
use crate::store::redis::decode::{self, Corrupt, Fields, instant, integer, json, list, millis};
use crate::store::redis::script::{Args, Script};
use crate::store::redis::store::ttl;
use crate::store::redlock::claim::{Found, Grant, Look, Own};
use crate::store::redlock::lease::{Ack, MasterRenewal, Said};
use crate::store::{Op, Trial};

/// `age.lua`, and the part as the body of one function. `lease` is where its arguments have the lease's TTL.
macro_rules! counted {
    ($lease:literal, $part:literal) => {
        LazyLock::new(|| {
            Script::new(concat!(
                "local LEASE = tonumber(ARGV[",
                $lease,
                "])\n",
                include_str!("../lua/prelude.lua"),
                include_str!("lua/age.lua"),
                "local function operation()\n",
                include_str!("../lua/slot.lua"),
                include_str!("../lua/borrowed.lua"),
                include_str!($part),
                "end\nlocal age, longest = age_ms(), longest_ms(LEASE)\nreturn { age, longest, operation() }\n"
            ))
        })
    };
}

macro_rules! plain {
    ($($part:literal),+) => {
        LazyLock::new(|| {
            Script::new(concat!(
                include_str!("../lua/prelude.lua"),
                include_str!("../lua/slot.lua"),
                include_str!("../lua/borrowed.lua"),
                $(include_str!($part)),+
            ))
        })
    };
}

static RESERVE: LazyLock<Script> = counted!("#ARGV - 5", "lua/reserve.lua");
static GRANT: LazyLock<Script> = counted!("#ARGV - 6", "lua/grant.lua");
static RENEW: LazyLock<Script> = counted!("8", "../lua/renew.lua");
static BURN: LazyLock<Script> = plain!("lua/burn.lua");
static UNDO: LazyLock<Script> = plain!("lua/undo.lua");
static HEAL: LazyLock<Script> = plain!("../lua/latest.lua", "lua/heal.lua");
static VERDICT: LazyLock<Script> = plain!("../lua/latest.lua", "lua/verdict.lua");

/// Since when a server remembers; one key for all namespaces, in none of theirs.
const MEMORY: &str = "cronward::since";

impl RedisStore {
    /// What tells whether this master counts: the job's longest lease, and since when it remembers.
    fn memory(&self, slot: &Slot) -> [String; 2] {
        [self.keys.longest(slot.job()), MEMORY.to_owned()]
    }

    /// Asks this master to reserve the slot for a short while.
    pub(super) async fn reserve(&self, request: &ClaimRequest, reserved: Duration) -> Reply<Look> {
        let slot = &request.slot;
        let more = std::iter::once(self.keys.pause(slot.job())).chain(self.memory(slot));
        let args = self
            .about(slot, more)
            .arg(request.token)
            .arg(&request.node)
            .arg(ttl(reserved))
            .arg(ttl(request.lease_ttl))
            .arg(request.max_attempts)
            .arg(slot.start().timestamp_millis())
            .arg(MAX_ATTEMPTS_LIMIT)
            .arg(u8::from(request.past))
            .arg(u8::from(request.exclusive));
        self.ask((Op::Claim, &self.keys.mark(slot)), &RESERVE, &args, look).await
    }

    /// Writes the lease under its number.
    pub(super) async fn grant(&self, request: &ClaimRequest, grant: Grant) -> Reply<Ack> {
        let slot = &request.slot;
        let args = self
            .about(slot, self.memory(slot))
            .arg(request.token)
            .arg(&request.node)
            .arg(grant.attempt)
            .arg(ttl(request.lease_ttl))
            .arg(request.trigger.as_str())
            .arg(grant.at.timestamp_millis())
            .arg(grant.forgiven)
            .arg(asked_by(request))
            .arg(u8::from(request.past))
            .arg(u8::from(request.exclusive));
        self.ask((Op::Claim, &self.keys.mark(slot)), &GRANT, &args, ack).await
    }

    /// Sees that no later claim is given this number.
    pub(super) async fn burn(&self, slot: &Slot, attempt: Attempt) -> Reply<()> {
        let args = self.about(slot, []).arg(attempt);
        self.ask((Op::Claim, &self.keys.mark(slot)), &BURN, &args, done).await
    }

    /// Takes back what the claim has here under this number.
    pub(super) async fn undo(&self, request: &ClaimRequest, attempt: Attempt) -> Reply<()> {
        let slot = &request.slot;
        let args = self.about(slot, []).arg(asked_by(request)).arg(request.token).arg(attempt);
        self.ask((Op::Claim, &self.keys.mark(slot)), &UNDO, &args, done).await
    }

    /// Renews, and tells for how long this master has kept its data.
    pub(super) async fn renew_counted(&self, lease: &Lease) -> Reply<MasterRenewal> {
        let args = self
            .about(&lease.slot, self.memory(&lease.slot))
            .arg(lease.token)
            .arg(&lease.node)
            .arg(lease.attempt)
            .arg(ttl(lease.ttl))
            .arg(lease.trigger.as_str())
            .arg(lease.claimed_at.timestamp_millis().max(0));
        self.ask((Op::Renew, &self.keys.mark(&lease.slot)), &RENEW, &args, renewal).await
    }

    /// Removes what a trial wrote here, the job's longest lease with it.
    pub(super) async fn forget_all(&self, trial: &Trial) -> Reply<()> {
        // How long its leases may last counts as long as a slot of it may be held.
        let Some(job) = trial.job.as_ref().filter(|_| !trial.slots.is_empty()) else { return self.forget(trial).await };
        let key = self.keys.longest(job);
        let command = redis::cmd("DEL").arg(&key).take();
        let longest = self.call((Op::Purge, &key), &command, |_| Ok(())).await;
        self.forget(trial).await.and(longest)
    }

    /// Brings a done marker here, with the record of its run where that is known.
    pub(super) async fn heal(&self, slot: &Slot, success: &Success) -> Reply<()> {
        let Success { mark, run, ttl: lasts } = success;
        let token = run.as_ref().map_or_else(|| "-".to_owned(), |run| run.token.to_string());
        let record = run.as_ref().and_then(|run| serde_json::to_string(run).ok()).unwrap_or_default();
        let args: Args = self
            .about(slot, [self.keys.latest(slot.job())])
            .arg(slot.start().timestamp_millis())
            .arg(token)
            .arg(&mark.by.node)
            .arg(mark.by.attempt)
            .arg(mark.at.timestamp_millis())
            .arg(ttl(*lasts))
            .arg(record);
        self.ask((Op::Complete, &self.keys.mark(slot)), &HEAL, &args, done).await
    }

    /// Records the verdict, unless one is recorded; answers what is, and whether it was.
    pub(super) async fn conclude(&self, slot: &Slot, verdict: Verdict, by: &NodeName) -> Reply<(bool, VerdictRecord)> {
        let args = self.about(slot, [self.keys.latest(slot.job())]).arg(verdict.as_str()).arg(by);
        let keys = self.keys.slot(slot);
        let read = |reply: &_| conclusion(reply, &keys.log);
        self.ask((Op::Close, &keys.mark), &VERDICT, &args, read).await
    }
}

/// A success as it is brought to a master that does not know of it.
#[derive(Clone, Debug)]
pub(super) struct Success {
    pub(super) mark: DoneMark,
    pub(super) run: Option<RunRecord>,
    pub(super) ttl: Duration,
}

/// The answer of a counted script: the server's age, the job's longest lease that it knows of, and what it did.
fn counted(reply: &Value) -> Result<(Duration, Duration, &Value), Corrupt> {
    match list(reply)? {
        [age, longest, answer] => Ok((millis(integer(age)?), millis(integer(longest)?), answer)),
        _ => Err(Corrupt::reply("it has another form")),
    }
}

/// The answer of `reserve.lua`.
pub(super) fn look(reply: &Value) -> Result<Look, Corrupt> {
    let (age, longest, answer) = counted(reply)?;
    let mut fields = Fields::of(answer)?;
    let now = fields.instant()?;
    let (counter, forgiven) = (fields.number()?, fields.number()?);
    let latest = fields.integer()?;
    let latest = if latest > 0 { Some(instant(latest)?) } else { None };
    let found = match fields.text()? {
        "reserved" => Found::Reserved { own: own(&mut fields)? },
        "done" => Found::Done(fields.done()?),
        "early" => Found::Early,
        "closed" => Found::Closed,
        "held" => held(&mut fields)?,
        "exhausted" => Found::Exhausted,
        "backoff" => Found::Backoff { remaining: fields.span()? },
        "spent" => Found::Spent,
        "paused" => {
            let left = fields.integer()?;
            Found::Paused { remaining: (left >= 0).then(|| millis(left)) }
        }
        "blocked" => {
            let (key, mark) = (fields.key()?, fields.mark()?);
            let token = mark.token.ok_or_else(|| Corrupt::reply("a lease has no token"))?;
            Found::Blocked { key, token, by: mark.by, remaining: fields.span()? }
        }
        _ => return Err(Corrupt::reply("a word is not known")),
    };
    Ok(Look { age, longest, now, counter, forgiven, latest, found })
}

fn own(fields: &mut Fields<'_>) -> Result<Option<Own>, Corrupt> {
    let attempt: Attempt = fields.number()?;
    let at = fields.instant()?;
    Ok((attempt > 0).then_some(Own { attempt, at }))
}

fn held(fields: &mut Fields<'_>) -> Result<Found, Corrupt> {
    let mark = fields.mark()?;
    let token = mark.token.ok_or_else(|| Corrupt::reply("a lease has no token"))?;
    Ok(Found::Held { token, by: mark.by, remaining: fields.span()? })
}

/// The answer of `grant.lua`.
pub(super) fn ack(reply: &Value) -> Result<Ack, Corrupt> {
    let (age, _, answer) = counted(reply)?;
    let mut fields = Fields::of(answer)?;
    let said = match fields.word {
        "granted" => Said::Granted { at: fields.instant()? },
        "done" => Said::Done(fields.done()?),
        "held" => Said::Held { by: fields.mark()?.by, remaining: fields.span()? },
        "taken" => Said::Taken,
        "closed" => Said::Closed,
        _ => return fields.unknown(),
    };
    Ok(Ack { age, said })
}

/// The answer of `renew.lua`.
pub(super) fn renewal(reply: &Value) -> Result<MasterRenewal, Corrupt> {
    let (age, longest, answer) = counted(reply)?;
    let said: Renewal = decode::renewal(answer)?;
    Ok(MasterRenewal { age, longest, said })
}

/// The answer of `verdict.lua`: what is recorded there now, and whether it was recorded before.
pub(super) fn conclusion(reply: &Value, log: &str) -> Result<(bool, VerdictRecord), Corrupt> {
    let mut fields = Fields::of(reply)?;
    let record = json::<VerdictRecord>(fields.text()?, log, "verdict")?;
    Ok((fields.word == "already", record))
}

/// The answer of a script that only does something.
pub(super) fn done(reply: &Value) -> Result<(), Corrupt> {
    Fields::of(reply).map(drop)
}
