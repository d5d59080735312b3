//! The contract on Redis: one script call per operation. What each decides stands in its file in `lua/`; here are only
//! its arguments and how its answer is read.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use chrono::{DateTime, Utc};
use futures_util::future::try_join_all;

use super::decode::Taking;
use super::keys::output_field;
use super::records::{cut_json, open_json};
use super::script::{self, Args, Script};
use super::store::{RedisStore, ttl, whole_millis};
use super::{decode, records};
use crate::error::Reply;
use crate::job::{JobName, MAX_ATTEMPTS_LIMIT, NodeName};
use crate::message::{Delivery, DeliveryReply, MessageKey, Telling, Topic, UntoldMessage};
use crate::slot::{
    Attempt, Audit, JobLatest, Lease, MOST_PAGES, NotePage, OutputTail, RunRecord, Slot, SlotRecord, Token,
};
use crate::store::contract::OUTPUT_BYTES;
use crate::store::messages::{self, MessageRuled as _};
use crate::store::{
    Applied, Capability, Changes, Claim, ClaimRequest, Closing, ErrorKind, HeartbeatReply, Intervention, JobEntry,
    LockStore, NodeEntry, NodeReport, Op, Pause, Reach, Release, Renewal, Settlement, Store, StoreClock, StoreError,
    Wakeups,
};

/// Slots that one `inspect` script reads: bounds how long the server is kept from others.
const SLOTS_AT_ONCE: usize = 200;

/// Jobs that one `register` script is sent: a connection keeps the room of the longest command that it ever sent.
const JOBS_AT_ONCE: usize = 100;

/// Such scripts on their way at once; of more jobs each has more.
const MOST_REGISTERS: usize = 16;

/// How often a verb is sent that is answered with the name of a foreign key: once without, once with it, and once more should
/// the slot have been claimed with another in between.
const KEYS_ASKED_FOR: usize = 3;

/// How often somebody who waits looks again where the user may not subscribe.
const POLL: Duration = Duration::from_secs(5);

/// What it can do where the user may subscribe.
pub(in crate::store) const CAPABILITY: Capability = Capability {
    name: "redis",
    reach: Reach::Network,
    clock: StoreClock::Server,
    push: true,
    poll: POLL,
    durable: false,
    expires_records: true,
    locks: true,
    tells_changes: true,
    output_bytes: OUTPUT_BYTES,
    messages: true,
};

#[async_trait]
impl Store for RedisStore {
    fn capability(&self) -> Capability {
        let (push, tells_changes) = (self.listener.is_allowed(), self.onlookers.is_allowed());
        Capability { name: self.name, push, tells_changes, ..CAPABILITY }
    }

    fn location(&self) -> &str {
        &self.location
    }

    async fn claim(&self, request: &ClaimRequest) -> Reply<Claim> {
        let slot = &request.slot;
        let args = self
            .about(slot, std::iter::once(self.keys.pause(slot.job())).chain(self.borrowed()))
            .arg(request.token)
            .arg(&request.node)
            .arg(ttl(request.lease_ttl))
            .arg(request.max_attempts)
            .arg(request.trigger.as_str())
            .arg(slot.start().timestamp_millis())
            .arg(MAX_ATTEMPTS_LIMIT)
            .arg(u8::from(request.past))
            .arg(asked_by(request))
            .arg(u8::from(request.exclusive));
        self.ask((Op::Claim, &self.keys.mark(slot)), &script::CLAIM, &args, decode::claim).await
    }

    async fn renew(&self, lease: &Lease) -> Reply<Renewal> {
        let args = self.about_lease(lease).arg(ttl(lease.ttl)).arg(lease.trigger.as_str()).arg(claimed_ms(lease));
        self.ask((Op::Renew, &self.keys.mark(&lease.slot)), &script::RENEW, &args, decode::renewal).await
    }

    async fn complete(&self, lease: &Lease, run: &RunRecord, done_ttl: Duration) -> Reply<Settlement> {
        let run = run.bounded(CAPABILITY.output_bytes);
        let args = self.about_ended(lease).arg(ttl(done_ttl)).arg(own_json(lease, &run)).arg(claimed_ms(lease));
        let args = with_output(args, lease, &run);
        self.settle((Op::Complete, &self.keys.mark(&lease.slot)), &script::COMPLETE, &args, decode::settlement).await
    }

    async fn fail(&self, lease: &Lease, run: &RunRecord, retry_after: Duration) -> Reply<Release> {
        let run = run.bounded(CAPABILITY.output_bytes);
        let args = self
            .about_ended(lease)
            .arg(whole_millis(retry_after))
            .arg(0)
            .arg(own_json(lease, &run))
            .arg(claimed_ms(lease));
        let args = with_output(args, lease, &run);
        self.ask((Op::Fail, &self.keys.mark(&lease.slot)), &script::RELEASE, &args, decode::release).await
    }

    async fn give_back(&self, lease: &Lease, run: &RunRecord) -> Reply<Release> {
        let run = run.bounded(CAPABILITY.output_bytes);
        let args = self.about_ended(lease).arg(0).arg(1).arg(own_json(lease, &run)).arg(claimed_ms(lease));
        let args = with_output(args, lease, &run);
        self.ask((Op::GiveBack, &self.keys.mark(&lease.slot)), &script::RELEASE, &args, decode::release).await
    }

    async fn inspect(&self, slots: &[Slot]) -> Reply<(DateTime<Utc>, Vec<SlotRecord>)> {
        // An empty question still asks for the clock.
        let parts = self.parts(slots).into_iter().chain(slots.is_empty().then_some(slots));
        let answers = try_join_all(parts.map(async |part| self.inspect_part(part).await)).await?;
        let clock = answers.iter().map(|(now, _)| *now).min();
        Ok((clock.unwrap_or_default(), answers.into_iter().flat_map(|(_, records)| records).collect()))
    }

    async fn output(&self, slot: &Slot, attempt: Attempt, token: Token) -> Reply<Option<OutputTail>> {
        let (key, field) = (self.keys.outputs(slot), output_field(attempt, token));
        let command = redis::cmd("HGET").arg(&key).arg(&field).take();
        self.call((Op::Output, &key), &command, |reply| records::output(reply, &key, &field)).await
    }

    async fn close(&self, slot: &Slot, max_attempts: u32, by: &NodeName) -> Reply<Closing> {
        let args = self
            .about(slot, [self.keys.latest(slot.job()), self.keys.pause(slot.job())])
            .arg(max_attempts)
            .arg(by)
            .arg(slot.start().timestamp_millis());
        let keys = self.keys.slot(slot);
        let read = |reply: &_| decode::closing(reply, &keys.log);
        self.ask((Op::Close, &keys.mark), &script::CLOSE, &args, read).await
    }

    async fn reset(&self, slot: &Slot, audit: &Audit) -> Reply<Intervention> {
        self.take(Op::Reset, &script::RESET, slot, audit).await
    }

    async fn unlock(&self, slot: &Slot, audit: &Audit) -> Reply<Intervention> {
        self.take(Op::Unlock, &script::UNLOCK, slot, audit).await
    }

    async fn mark_done(&self, slot: &Slot, audit: &Audit, done_ttl: Duration) -> Reply<Intervention> {
        let by = NodeName::nearest(&audit.who);
        let args = self
            .about(slot, [self.keys.latest(slot.job())])
            .arg(cut_json(audit, "at_ms"))
            .arg(by)
            .arg(ttl(done_ttl))
            .arg(slot.start().timestamp_millis());
        self.ask((Op::MarkDone, &self.keys.mark(slot)), &script::MARK_DONE, &args, decode::intervention).await
    }

    async fn pause(&self, job: &JobName, until: Option<DateTime<Utc>>, audit: &Audit) -> Reply<Intervention> {
        let (pauses, pause) = (self.keys.pauses(), self.keys.pause(job));
        let until = until.map_or_else(|| "null".to_owned(), |until| until.timestamp_millis().to_string());
        // The list first: a job may stand there without a pause, but no pause without its job.
        let list = redis::cmd("HSET").arg(&pauses).arg(job.as_str()).arg(1).take();
        self.call((Op::Pause, &pauses), &list, |_| Ok(())).await?;
        let args = Args::keys([pause.clone()]).arg(job).arg(self.keys.wake()).arg(until).arg(cut_json(audit, "at_ms"));
        self.ask((Op::Pause, &pause), &script::PAUSE, &args, decode::intervention).await
    }

    async fn resume(&self, job: &JobName, audit: &Audit) -> Reply<Intervention> {
        let pause = self.keys.pause(job);
        let args = Args::keys([pause.clone()]).arg(job).arg(self.keys.wake()).arg(cut_json(audit, "at_ms"));
        self.ask((Op::Resume, &pause), &script::RESUME, &args, decode::intervention).await
    }

    async fn pauses(&self) -> Reply<Vec<(JobName, Pause)>> {
        let key = self.keys.pauses();
        let jobs = self.table((Op::Pauses, &key), |reply| records::paused_jobs(reply, &key)).await?;
        let pauses = try_join_all(jobs.into_iter().map(async |job| self.own_pause(job).await)).await?;
        Ok(pauses.into_iter().flatten().collect())
    }

    async fn pause_of(&self, job: &JobName) -> Reply<(DateTime<Utc>, Option<Pause>)> {
        let key = self.keys.pause(job);
        let read = |reply: &_| records::pause_at(reply, &key);
        self.ask((Op::Pauses, &key), &script::PAUSE_OF, &Args::keys([key.clone()]), read).await
    }

    async fn register(&self, jobs: &[JobEntry]) -> Reply<Vec<JobEntry>> {
        let key = self.keys.jobs();
        let at_once = jobs.len().div_ceil(MOST_REGISTERS).max(JOBS_AT_ONCE);
        let registers = jobs.chunks(at_once).map(async |part| {
            let about = |args: Args, job: &JobEntry| {
                args.arg(&job.name).arg(cut_json(job, "first_seen_ms")).arg(job.first_seen.timestamp_millis())
            };
            let args = part.iter().fold(Args::keys([key.clone()]), about);
            self.ask((Op::Register, &key), &script::REGISTER, &args, decode::registered).await
        });
        try_join_all(registers).await?;
        self.table((Op::Register, &key), |reply| records::jobs(reply, &key)).await
    }

    async fn jobs(&self) -> Reply<Vec<JobEntry>> {
        let key = self.keys.jobs();
        self.table((Op::Jobs, &key), |reply| records::jobs(reply, &key)).await
    }

    async fn heartbeat(&self, report: &NodeReport) -> Reply<HeartbeatReply> {
        let key = self.keys.nodes();
        let args = Args::keys([key.clone()])
            .arg(&report.name)
            .arg(open_json(report, "seen_ms"))
            .arg(whole_millis(self.options.retention));
        self.route.look_again();
        self.ask((Op::Heartbeat, &key), &script::HEARTBEAT, &args, records::heartbeat).await
    }

    async fn nodes(&self) -> Reply<(DateTime<Utc>, Vec<NodeEntry>)> {
        let key = self.keys.nodes();
        let read = |reply: &_| records::nodes(reply, &key, self.options.retention);
        self.ask((Op::Nodes, &key), &script::NODES, &Args::keys([key.clone()]), read).await
    }

    async fn purge(&self) -> Reply<u64> {
        Ok(0)
    }

    async fn note(&self, pages: &[(Slot, NotePage)]) -> Reply<()> {
        self.note_pages(pages).await
    }

    async fn notes(&self, slot: &Slot) -> Reply<Vec<NotePage>> {
        let key = self.keys.notes(slot);
        self.table((Op::Notes, &key), |reply| records::notes(reply, &key)).await
    }

    async fn latest(&self, jobs: &[JobName]) -> Reply<Vec<JobLatest>> {
        // All of them are sent before the first is answered, each to the server that keeps it.
        try_join_all(jobs.iter().map(async |job| self.latest_of(job).await)).await
    }

    async fn tell(&self, message: &MessageKey, by: &NodeName, token: Token, lease: Duration) -> Reply<Telling> {
        messages::tell(self, message, by, token, lease).await
    }

    async fn told(&self, message: &MessageKey, token: Token, delivery: &Delivery) -> Reply<DeliveryReply> {
        messages::told(self, message, token, delivery).await
    }

    async fn untold(&self, topics: &[Topic]) -> Reply<(DateTime<Utc>, Vec<UntoldMessage>)> {
        self.untold_known(topics).await
    }

    fn subscribe(&self) -> Wakeups {
        self.listener.subscribe()
    }

    fn changes(&self) -> Changes {
        self.onlookers.subscribe()
    }

    fn lock_store(self: Arc<Self>) -> Option<Arc<dyn LockStore>> {
        Some(self)
    }
}

impl RedisStore {
    /// Takes a slot from whoever had it. Whoever asks knows the slot alone: which foreign key was held with it is answered by
    /// the script, which is then sent with that key among its own.
    async fn take(&self, op: Op, script: &Script, slot: &Slot, audit: &Audit) -> Reply<Intervention> {
        let mark = self.keys.mark(slot);
        let latest = (op == Op::Reset).then(|| self.keys.latest(slot.job()));
        let mut borrowed = None;
        for _ in 0..KEYS_ASKED_FOR {
            let more = latest.clone().into_iter().chain(borrowed.clone());
            let args = self.about(slot, more).arg(cut_json(audit, "at_ms"));
            let answer = self.ask((op, &mark), script, &args, decode::taking).await;
            match answer.map_err(|error| refused_beside(error, borrowed.as_deref()))? {
                Taking::Over(answer) => return Ok(answer),
                Taking::Borrowed(key) => borrowed = Some(key),
            }
        }
        let message = "others claim the slot with one external lock after the other: try again";
        Err(StoreError::new(ErrorKind::Unavailable, Applied::No, op, &self.location, message))
    }

    /// What one `inspect` script reads: a bounded number, and where servers share the keys, of one job.
    fn parts<'a>(&self, slots: &'a [Slot]) -> Vec<&'a [Slot]> {
        if !self.route.is_shared() {
            return slots.chunks(SLOTS_AT_ONCE).collect();
        }
        let of_one_job = slots.chunk_by(|a, b| a.job() == b.job());
        of_one_job.flat_map(|slots| slots.chunks(SLOTS_AT_ONCE)).collect()
    }

    async fn inspect_part(&self, part: &[Slot]) -> Reply<(DateTime<Utc>, Vec<SlotRecord>)> {
        let asked: Vec<_> = part.iter().map(|slot| (slot.clone(), self.keys.slot(slot))).collect();
        let keys = asked.iter().flat_map(|(_, keys)| [&keys.mark, &keys.attempts, &keys.log]);
        let args = Args::keys(keys.cloned());
        let about = asked.first().map_or("", |(_, keys)| keys.mark.as_str());
        let read = |reply: &_| records::slots(reply, &asked);
        self.ask((Op::Inspect, about), &script::INSPECT, &args, read).await
    }

    async fn latest_of(&self, job: &JobName) -> Reply<JobLatest> {
        let key = self.keys.latest(job);
        self.call((Op::Latest, &key), redis::cmd("GET").arg(&key), |reply| records::latest(reply, &key)).await
    }

    async fn own_pause(&self, job: JobName) -> Reply<Option<(JobName, Pause)>> {
        let key = self.keys.pause(&job);
        let pause =
            self.call((Op::Pauses, &key), redis::cmd("GET").arg(&key), |reply| records::pause(reply, &key)).await?;
        Ok(pause.map(|pause| (job, pause)))
    }
}

/// A user with the documented rights may use cronward's own keys only.
fn refused_beside(error: StoreError, borrowed: Option<&str>) -> StoreError {
    match borrowed {
        Some(key) if error.kind == ErrorKind::Denied => {
            let message = format!("the lease is held together with the external lock {key:?}: {}", error.message);
            StoreError { message, ..error }
        }
        _ => error,
    }
}

/// The person who asks, as JSON that is left open before the time; empty for a request of a schedule.
pub(super) fn asked_by(request: &ClaimRequest) -> String {
    request.audit.as_ref().map(|audit| cut_json(audit, "at_ms")).unwrap_or_default()
}

/// When the lease was granted, as the scripts and records count.
fn claimed_ms(lease: &Lease) -> i64 {
    lease.claimed_at.timestamp_millis().max(0)
}

/// The run's record as it is stored, without an output that is kept: the lease says whose it is, whatever the record itself says.
fn own_json(lease: &Lease, run: &RunRecord) -> String {
    let own = RunRecord { attempt: lease.attempt, token: lease.token, output: run.lost_output(), ..run.clone() };
    serde_json::to_string(&own).unwrap_or_default()
}

/// What `lua/output.lua` takes: the run's field, its output, and how long that was before anything of it was dropped.
fn with_output(args: Args, lease: &Lease, run: &RunRecord) -> Args {
    let output = run.output.as_ref().filter(|output| !output.text.is_empty());
    let whole = |output: &OutputTail| output.dropped_bytes.saturating_add(output.text.len() as u64);
    args.arg(output_field(lease.attempt, lease.token))
        .arg(output.and_then(|output| serde_json::to_string(output).ok()).unwrap_or_default())
        .arg(output.map_or(0, whole))
}

impl RedisStore {
    /// Keeps pages; those of one part are kept in one step.
    async fn note_pages(&self, pages: &[(Slot, NotePage)]) -> Reply<()> {
        // Where servers share the keys, those of one job are with one of them.
        let of_one_job = pages.chunk_by(|(a, _), (b, _)| !self.route.is_shared() || a.job() == b.job());
        let parts = of_one_job.flat_map(|pages| pages.chunks(SLOTS_AT_ONCE));
        try_join_all(parts.map(async |part| self.note_part(part).await)).await.map(drop)
    }

    async fn note_part(&self, part: &[(Slot, NotePage)]) -> Reply<()> {
        let keys: Vec<String> = part.iter().map(|(slot, _)| self.keys.notes(slot)).collect();
        let about = keys.first().cloned().unwrap_or_default();
        let mut args = Args::keys(keys).arg(whole_millis(self.options.retention)).arg(MOST_PAGES);
        for (slot, page) in part {
            let text = serde_json::to_string(page).unwrap_or_default();
            args = args.arg(slot.end().timestamp_millis()).arg(&page.id).arg(text);
        }
        self.ask((Op::Note, &about), &script::NOTE, &args, |_| Ok(())).await
    }
}
