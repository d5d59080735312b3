//! Locks as the nodes of a world ask for them: each request is written down, and what a node sends, starts and tells is held against what it
//! has heard. What that means between nodes is judged in `lock_laws`.

use cronward::clock::Mono;
use cronward::event::{Event as Told, LeaveAnswer, LockLeave};
use cronward::resource::AcquireRequest;
use cronward::slot::{Attempt, RunContext, Slot, Token};

use crate::checks::Check;
use crate::lock_needs::LockNeed;
use crate::message::{Answer, Ask, Process, Request};
use crate::nature::Nature;

impl Nature {
    /// An attempt asks for its locks, for the first time or again.
    pub(super) fn needs_locks(&mut self, by: Process, slot: &Slot, attempt: Attempt, request: &AcquireRequest) {
        if self.needs.contains_key(&request.token) {
            return;
        }
        let need = LockNeed::new(by, attempt, request.demands.clone(), request.ttl);
        self.needs.insert(request.token, need);
        self.story(slot).into_iter().for_each(|story| story.lock_requests.push(request.token));
    }

    /// Its command is over, or will not be started.
    pub(super) fn needs_no_locks(&mut self, token: Token) {
        let now = self.now;
        self.needs.get_mut(&token).into_iter().for_each(|need| _ = need.over.get_or_insert(now));
    }

    /// A node hears an answer about its locks.
    pub(super) fn hears_of_locks(&mut self, token: Token, sent: Mono, answer: &Answer) {
        self.needs.get_mut(&token).into_iter().for_each(|need| need.hear(sent, answer));
    }

    /// Nothing is asked for that nobody needs.
    pub(super) fn look_at_sent_locks(&mut self, request: &Request) {
        let (node, now) = (request.from.node + 1, self.now);
        match &request.ask {
            Ask::Acquire(AcquireRequest { token, .. }) => self.look_at_asking(node, *token, "asks for"),
            Ask::RenewLock(hold) => self.look_at_asking(node, hold.token, "renews"),
            Ask::Fail { lease, .. } if self.run_of(&lease.slot, lease.token).is_none() => {
                let story = self.id(&lease.slot).and_then(|id| self.stories.get(&id));
                let never = story.is_some_and(|story| story.not_started.is_none());
                let asked = story.is_some_and(|story| !story.lock_requests.is_empty());
                if never && asked {
                    let text = format!(
                        "n{node} says at {now:?} that attempt {} of {} failed, which waited for its locks",
                        lease.attempt, lease.slot
                    );
                    self.break_off(Check::Waited, text);
                }
            }
            _ => {}
        }
    }

    fn look_at_asking(&mut self, node: usize, token: Token, does: &str) {
        // In the very step in which it is left, the beat may be due that was to keep it.
        let over = self.needs.get(&token).and_then(|need| Some((need.over?, &need.demands)));
        if let Some((_, demands)) = over.filter(|(over, _)| *over < self.now) {
            let text = format!("n{node} {does} {demands}, which it does not need any more");
            self.break_off(Check::Afterwards, text);
        }
    }

    /// A command is going to be started: its node believes, and may believe, that it holds what its job names.
    pub(super) fn look_at_locks_of_start(
        &mut self,
        by: Process,
        now: Mono,
        context: &RunContext,
        asked: Option<Token>,
    ) {
        let slot = &context.slot;
        let Some(demands) = self.scenario.job(slot.job()).and_then(|(_, job)| job.spec.policy.locks.clone()) else {
            return;
        };
        let need = asked.and_then(|token| self.needs.get(&token));
        let held = need.filter(|need| need.is_trusted(now) && need.demands == demands);
        let same = held.is_some_and(|need| context.locks.as_ref().map(|locks| locks.fence) == need.fence);
        if !same {
            let text = format!("n{} starts {slot} and does not know that it holds {demands}", by.node + 1);
            self.break_off(Check::Unlocked, text);
        }
    }

    /// What is told of locks is what was heard of them.
    pub(super) fn look_at_told_locks(&mut self, by: Process, slot: &Slot, told: &Told) {
        let now = self.now;
        let named = self.scenario.job(slot.job()).is_some_and(|(_, job)| job.spec.policy.locks.is_some());
        let Some(id) = self.id(slot).filter(|_| named) else { return };
        let Some(story) = self.stories.get_mut(&id) else { return };
        let needs = &self.needs;
        let any = |attempt: Attempt, is: &dyn Fn(&LockNeed) -> bool| {
            let own = story.lock_requests.iter().filter_map(|token| needs.get(token));
            own.filter(|need| need.by == by && need.attempt == attempt).any(is)
        };
        let is_true = match told {
            Told::LockWaiting(wait) => any(wait.attempt, &|need| need.waited),
            Told::LockHeld(grant) => any(grant.attempt, &|need| need.fence == Some(grant.fence)),
            Told::LockLost(loss) if !loss.in_doubt => any(loss.attempt, &|need| need.lost),
            Told::LockLost(loss) => any(loss.attempt, &|need| need.fence.is_some()),
            Told::LockLeft(leave) => any(leave.attempt, &|need| has_left(need, leave)),
            Told::RunStarted { attempt, .. } => any(*attempt, &|need| need.is_told),
            _ => true,
        };
        match told {
            Told::LockHeld(grant) => {
                for token in &story.lock_requests {
                    let own = self.needs.get_mut(token).filter(|need| need.by == by && need.attempt == grant.attempt);
                    own.into_iter().for_each(|need| need.is_told |= need.fence == Some(grant.fence));
                }
                if grant.again {
                    story.lock_alarms.push((by, grant.attempt));
                }
            }
            Told::LockWaiting(_) => self.summary.classes.queued += 1,
            Told::LockLost(loss) if !loss.unstarted => {
                self.summary.classes.locks_lost += 1;
                story.lock_alarms.push((by, loss.attempt));
            }
            Told::LockLeft(leave) if leave.answer == LeaveAnswer::Overtaken => {
                story.lock_alarms.push((by, leave.attempt));
            }
            Told::Unstarted { .. } => {
                self.summary.classes.in_vain += 1;
                story.in_vain.push((by, now));
            }
            _ => {}
        }
        if !is_true {
            let text = format!("n{} tells of {slot} what it does not know: {told:?}", by.node + 1);
            self.break_off(Check::Untold, text);
        }
    }
}

/// Whether a release came to what is told of it. One that nothing was written for needs none.
fn has_left(need: &LockNeed, leave: &LockLeave) -> bool {
    match leave.answer {
        LeaveAnswer::Untold => true,
        LeaveAnswer::Released => need.left.is_empty() || need.left.contains(&LeaveAnswer::Released),
        answer => need.left.contains(&answer),
    }
}
