//! What operators may do through the port: the same as with the commands, by the same layer (`admin::actions`). What runs a command is done
//! by this node.
//!
//! Nothing here knows HTTP beyond its problems, and nobody's word is looked at: who may ask was decided before.

use std::collections::BTreeMap;
use std::fmt;
use std::net::IpAddr;
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use chrono::{DateTime, Utc};
use serde_json::Value;
use tokio::sync::{mpsc, oneshot};

use crate::admin::actions::{self, ActionTexts, Proposal, RunPlace, Verb};
use crate::admin::command_line::CommandLine;
use crate::admin::lookup::{self, SlotRef};
use crate::admin::{AdminSession, KnownJob};
use crate::event::Event;
use crate::job::{JobName, JobSpec, NodeName};
use crate::node::{Command, TriggerRefusal, TriggerRequest};
use crate::observe::Observer;
use crate::slot::{Audit, Mark, Slot, SlotRecord};
use crate::store::{Intervention, Store};
use crate::web::detail::ProblemDetail;
use crate::web::problem::Problem;
use crate::web::prospect::{ActionTarget, Doer, Prospect, WantedAction};
use crate::web::refusal::{self, ActionRefusal};

/// The jobs that the node has in its file now.
#[derive(Debug, Default)]
pub struct PlannedJobs(RwLock<Vec<Arc<JobSpec>>>);

impl Observer for PlannedJobs {
    fn event(&self, _slot: Option<&Slot>, _event: &Event) {}

    fn plan(&self, jobs: &[Arc<JobSpec>], _config_hash: &str) {
        *self.0.write().unwrap_or_else(PoisonError::into_inner) = jobs.to_vec();
    }
}

impl PlannedJobs {
    /// All of them.
    pub(crate) fn all(&self) -> Vec<Arc<JobSpec>> {
        self.0.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn find(&self, name: &JobName) -> Option<Arc<JobSpec>> {
        self.0.read().unwrap_or_else(PoisonError::into_inner).iter().find(|spec| spec.name == *name).cloned()
    }
}

/// What it takes to do it.
pub struct Operations {
    pub(crate) store: Arc<dyn Store>,
    pub(crate) jobs: Arc<PlannedJobs>,
    pub(crate) commands: mpsc::Sender<Command>,
    pub(crate) node: NodeName,
    /// Of the node, for the jobs that ask for some.
    pub(crate) labels: BTreeMap<String, String>,
    /// How long the store keeps records.
    pub(crate) retention: Duration,
    /// What told commands name.
    pub(crate) line: CommandLine,
}

impl fmt::Debug for Operations {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Operations").field("node", &self.node).finish_non_exhaustive()
    }
}

/// Who wants it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Actor<'a> {
    pub(super) name: &'a str,
    pub(super) peer: IpAddr,
    pub(super) reason: &'a str,
    pub(super) at: DateTime<Utc>,
}

/// What was done.
#[derive(Debug)]
pub(super) struct Acted {
    pub(super) job: JobName,
    pub(super) slot: Option<Slot>,
    pub(super) changed: bool,
    /// The node has begun it, and goes on.
    pub(super) goes_on: bool,
    /// The change of docs/json.md.
    pub(super) view: Value,
}

impl Operations {
    /// What would be done, for whoever is asked whether to go on.
    pub(super) async fn look(&self, wanted: &WantedAction, t: &ActionTexts) -> Result<Prospect, Problem> {
        let (session, look) = self.seen(wanted, t).await?;
        let refused = self.objection(&session, wanted, &look).await.filter(Problem::is_conflict);
        Ok(Prospect { refused, ..look })
    }

    async fn seen(&self, wanted: &WantedAction, t: &ActionTexts) -> Result<(AdminSession, Prospect), Problem> {
        let name = match &wanted.target {
            ActionTarget::Slot(slot) => &slot.job,
            ActionTarget::Job(job) => job,
        };
        let (specs, listing): (Vec<_>, _) = (self.jobs.find(name).into_iter().collect(), self.line.command("jobs"));
        let begun = AdminSession::planned(Arc::clone(&self.store), self.retention, &specs, listing).await;
        let session = begun.map_err(refusal::of_admin)?;
        let look = match &wanted.target {
            ActionTarget::Slot(slot) => self.look_at_slot(&session, wanted, slot, t).await?,
            ActionTarget::Job(job) => self.look_at_job(&session, wanted, job, t).await?,
        };
        Ok((session, look))
    }

    async fn look_at_job(
        &self,
        session: &AdminSession,
        wanted: &WantedAction,
        job: &JobName,
        t: &ActionTexts,
    ) -> Result<Prospect, Problem> {
        let line = self.line.clone();
        let proposal = match wanted.verb {
            Verb::Pause => {
                let until = wanted.until.as_deref().map(|until| actions::until(until, session.now)).transpose();
                actions::pause(session, job, until.map_err(Problem::bad_request)?, line, t).await
            }
            Verb::Resume => actions::resume(session, job, line, t).await,
            _ => return Err(Problem::not_found()),
        };
        let (proposal, job) = (proposal.map_err(refusal::of_admin)?, job.clone());
        let (needs_reason, doer) = (false, Doer::Store);
        Ok(Prospect {
            job,
            record: None,
            max_attempts: 0,
            idle: None,
            no_start: None,
            paused: false,
            refused: None,
            now: session.now,
            proposal,
            needs_reason,
            doer,
        })
    }

    async fn look_at_slot(
        &self,
        session: &AdminSession,
        wanted: &WantedAction,
        slot: &SlotRef,
        t: &ActionTexts,
    ) -> Result<Prospect, Problem> {
        let (job, record) = lookup::find(session, slot).await.map_err(refusal::of_admin)?;
        let (line, now, is_over) = (self.line.clone(), session.now, record.slot.end() <= session.now);
        let (proposal, doer) = match wanted.verb {
            Verb::Reset => (actions::reset(job, &record, now, line, t), Doer::Store),
            Verb::Retry if !is_over && job.no_start(&record.slot, now).is_none() => {
                (actions::reset(job, &record, now, line, t), Doer::Store)
            }
            Verb::Unlock => (actions::unlock(job, &record, now, line, t), Doer::Store),
            Verb::MarkDone => (actions::mark_done(job, &record, line, t), Doer::Store),
            Verb::Trigger => {
                let doer = Doer::Node { past: wanted.past, resets: None };
                (actions::trigger(&record.slot, now, RunPlace::On(&self.node), line, t), doer)
            }
            Verb::Retry => self.run_again(job, &record, now, t),
            Verb::Pause | Verb::Resume => return Err(Problem::not_found()),
        };
        let runs_past = is_over && matches!(doer, Doer::Node { .. });
        let needs_reason = wanted.verb.needs_reason(runs_past);
        let idle = job.idle_reason(&record, now, session.retention);
        let no_start = job.no_start(&record.slot, now);
        let (job, max_attempts) = (job.entry.name.clone(), job.entry.max_attempts);
        let paused = match session.store.pause_of(&job).await {
            Ok((at, pause)) => pause.is_some_and(|pause| pause.remaining(at).is_some()),
            // What the store does in a step needs no pause to be read.
            Err(error) if matches!(doer, Doer::Node { .. }) => return Err(refusal::of_store(&error)),
            Err(_) => false,
        };
        let (refused, record) = (None, Some(record));
        Ok(Prospect { job, record, max_attempts, idle, no_start, paused, refused, now, proposal, needs_reason, doer })
    }

    /// A slot that no node runs by itself is opened first where its attempts are used up, or where it waits.
    fn run_again(&self, job: &KnownJob, record: &SlotRecord, now: DateTime<Utc>, t: &ActionTexts) -> (Proposal, Doer) {
        let mut proposal = actions::trigger(&record.slot, now, RunPlace::On(&self.node), self.line.clone(), t);
        let opens = record.used() >= job.entry.max_attempts || matches!(record.mark, Mark::Backoff { .. });
        let resets = opens.then(|| actions::reset(job, record, now, self.line.clone(), t));
        if let Some(reset) = &resets {
            proposal.change.effect = (t.trigger.after_reset)(&proposal.change.effect);
            proposal.command = format!("{} && {}", reset.command, proposal.command);
        }
        (proposal, Doer::Node { past: true, resets: resets.map(Box::new) })
    }

    /// Does it, if things are still as `expect` says.
    pub(super) async fn act(
        &self,
        wanted: &WantedAction,
        expect: Option<&str>,
        actor: Actor<'_>,
        t: &ActionTexts,
    ) -> Result<Acted, ActionRefusal> {
        let (session, look) = match self.seen(wanted, t).await {
            Ok(seen) => seen,
            Err(problem) => return Err(self.unseen(wanted, problem, t).await),
        };
        let objection = match expect.filter(|expect| !expect.is_empty()) {
            Some(expect) if look.state() != Some(expect) => Some(refusal::not_as_expected(&look, expect)),
            Some(_) | None if look.needs_reason && actor.reason.trim().is_empty() => Some(refusal::no_reason()),
            Some(_) | None => self.objection(&session, wanted, &look).await,
        };
        if let Some(problem) = objection {
            return Err(ActionRefusal::after(look, problem));
        }
        match self.carry_out(&session, &look, actor).await {
            Ok(changed) => Ok(self.acted(&look, changed)),
            Err(problem) => Err(ActionRefusal::after(look, problem)),
        }
    }

    /// Of what could not be looked at. Whoever typed a time that none can be read from sees the job all the same, to mend it.
    async fn unseen(&self, wanted: &WantedAction, problem: Problem, t: &ActionTexts) -> ActionRefusal {
        let without = WantedAction { until: None, ..wanted.clone() };
        let is_mendable = problem.is_bad_request() && wanted.until.is_some();
        let look = if is_mendable { self.look(&without, t).await.ok() } else { None };
        match look {
            Some(look) => ActionRefusal::after(look, problem),
            None => ActionRefusal::unseen(problem),
        }
    }

    async fn objection(&self, session: &AdminSession, wanted: &WantedAction, look: &Prospect) -> Option<Problem> {
        let record = look.record.as_ref()?;
        match &look.doer {
            Doer::Store if wanted.verb == Verb::Retry => refusal::of_retry(record, look),
            Doer::Store => None,
            Doer::Node { past, resets } => {
                let refused = refusal::of_run(record, look, *past, resets.is_some());
                match refused.or_else(|| look.paused.then(|| refusal::paused(look))) {
                    None => self.not_here(session, record, *past).await,
                    refused => refused,
                }
            }
        }
    }

    /// Why this node cannot run a slot, as far as its file and its labels say: what is asked of it may be refused all the same.
    async fn not_here(&self, session: &AdminSession, record: &SlotRecord, past: bool) -> Option<Problem> {
        let refused = TriggerRefusal::judge(&record.slot, past, (&self.jobs.all(), &self.labels), session.now).err()?;
        Some(self.node_refuses(session, record.slot.job(), refused).await)
    }

    async fn node_refuses(&self, session: &AdminSession, job: &JobName, why: TriggerRefusal) -> Problem {
        let others = if why.is_of_this_node() { self.others(session, job).await } else { None };
        Problem::conflict(ProblemDetail::NodeRefuses { node: self.node.clone(), why, others })
    }

    /// Answers whether anything was changed.
    async fn carry_out(&self, session: &AdminSession, look: &Prospect, actor: Actor<'_>) -> Result<bool, Problem> {
        match (&look.doer, &look.record) {
            (Doer::Node { past, resets }, Some(record)) => {
                if let Some(reset) = resets {
                    self.step(reset, actor).await?;
                }
                let (slot, past, audit) = (record.slot.clone(), *past, self.audit("trigger", actor));
                self.run(session, TriggerRequest { slot, past, audit }).await.map(|()| true)
            }
            _ => self.step(&look.proposal, actor).await,
        }
    }

    async fn step(&self, proposal: &Proposal, actor: Actor<'_>) -> Result<bool, Problem> {
        let answer = proposal.carry_out(&*self.store, &self.audit(proposal.audited(), actor)).await;
        match answer.map_err(|error| refusal::of_store(&error))? {
            Intervention::Applied => Ok(true),
            Intervention::Unchanged => Ok(false),
            Intervention::Held { by, remaining } => {
                Err(Problem::conflict(ProblemDetail::Held(proposal.change.held(&by, remaining))))
            }
        }
    }

    /// Asks this node to run a slot now.
    async fn run(&self, session: &AdminSession, request: TriggerRequest) -> Result<(), Problem> {
        let job = request.slot.job().clone();
        let (reply, answer) = oneshot::channel();
        // Its loop may have ended.
        let _ = self.commands.send(Command::Trigger(request, reply)).await;
        let why = match answer.await {
            Ok(Ok(())) => return Ok(()),
            Ok(Err(refused)) => refused,
            Err(_) => TriggerRefusal::Leaving,
        };
        Err(self.node_refuses(session, &job, why).await)
    }

    /// Which nodes could run the job instead; none where the store does not say.
    async fn others(&self, session: &AdminSession, job: &JobName) -> Option<Vec<NodeName>> {
        let (now, nodes) = session.store.nodes().await.ok()?;
        let spec = self.jobs.find(job);
        let fits = |labels: &BTreeMap<String, String>| spec.as_ref().is_none_or(|spec| spec.fits(labels));
        let able = nodes.iter().filter(|node| node.is_alive(now) && node.plans(job) && !node.report.draining);
        let able = able.filter(|node| node.report.name != self.node && fits(&node.report.labels));
        Some(able.take(5).map(|node| node.report.name.clone()).collect())
    }

    fn audit(&self, verb: &str, actor: Actor<'_>) -> Audit {
        Audit {
            verb: verb.to_owned(),
            who: actor.name.to_owned(),
            host: format!("{}, http from {}", self.node, actor.peer.to_canonical()),
            why: actor.reason.trim().chars().take(actions::LONGEST_REASON).collect(),
            at: actor.at,
        }
    }

    fn acted(&self, look: &Prospect, changed: bool) -> Acted {
        // Texts and truths alone: nothing in it can fail to be written.
        let view = serde_json::to_value(look.proposal.change.view(changed, Vec::new())).unwrap_or_default();
        let slot = look.record.as_ref().map(|record| record.slot.clone());
        let goes_on = matches!(look.doer, Doer::Node { .. });
        Acted { job: look.job.clone(), slot, changed, goes_on, view }
    }
}
