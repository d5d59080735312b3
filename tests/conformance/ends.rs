//! The machine of a slot against each store: the end of a run is recorded whatever becomes of its output.

use std::sync::Arc;
use std::time::Duration;

use chrono::{DateTime, Utc};
use cronward::clock::{Clock, ManualClock};
use cronward::job::{JobName, Namespace, NodeName, Policy, RetryPolicy};
use cronward::machine::{Action, Assignment, End, SlotMachine};
use cronward::slot::{Exit, ExitStatus, OutputLoss, OutputTail, RunRecord, Slot, SlotState, Token, Trigger};
use cronward::store::conformance::Setup;
use cronward::store::layer::{Chaos, ChaosFault};
use cronward::store::{Op, Store};

/// What happens to the first end that is sent.
#[derive(Clone, Copy)]
pub(crate) struct EndCase {
    pub(crate) name: &'static str,
    namespace: &'static str,
    fault: ChaosFault,
    loss: OutputLoss,
}

pub(crate) const CASES: [EndCase; 2] = [
    EndCase {
        name: "ends::a_refused_end_is_recorded_without_its_output",
        namespace: "ends-refused",
        fault: ChaosFault::RefuseContent,
        loss: OutputLoss::Refused,
    },
    EndCase {
        name: "ends::an_end_that_a_slow_link_loses_is_recorded_without_its_output",
        namespace: "ends-unanswered",
        fault: ChaosFault::LoseRequest,
        loss: OutputLoss::Unanswered,
    },
];

/// Longer than what is sent again where no answer came.
const OUTPUT: usize = 64 * 1_024;

pub(crate) async fn run(setup: Arc<dyn Setup>, case: EndCase) -> Result<(), String> {
    for (code, state) in [(0, SlotState::Done), (1, SlotState::Retrying)] {
        let namespace = Namespace::new(case.namespace).map_err(|error| error.to_string())?;
        setup.probe(&namespace).await?.wipe().await?;
        let store = setup.connect(&namespace).await?;
        let (now, _) = store.inspect(&[]).await.map_err(|error| error.to_string())?;
        let begin = now.timestamp() - 600;
        let instant = |at: i64| DateTime::from_timestamp(at, 0).unwrap_or_default();
        let job = JobName::new("job").map_err(|error| error.to_string())?;
        let slot = Slot::new(job, instant(begin), instant(begin + 7_200)).map_err(|error| error.to_string())?;
        let chaos = Chaos::scripted();
        chaos.next(if code == 0 { Op::Complete } else { Op::Fail }, case.fault);
        drive(&chaos.over(Arc::clone(&store)), &slot, now, code).await;
        let (now, records) = store.inspect(std::slice::from_ref(&slot)).await.map_err(|error| error.to_string())?;
        let record = &records[0];
        let output = record.runs.first().and_then(|run: &RunRecord| run.output.clone());
        let lost = OutputTail { text: String::new(), dropped_bytes: OUTPUT as u64, loss: Some(case.loss) };
        let found = (record.state(now, 3), record.runs.len(), output);
        if found != (state, 1, Some(lost)) {
            return Err(format!("exit code {code}: {found:?}"));
        }
    }
    Ok(())
}

/// Runs one attempt whose command ends with this code, until its end is recorded.
async fn drive(store: &dyn Store, slot: &Slot, now: DateTime<Utc>, code: i32) {
    let clock = ManualClock::at(now);
    let retry = RetryPolicy { delay: Duration::from_secs(60), ..Policy::default().retry };
    let policy = Policy { retry, ..Policy::default() };
    let assignment = Assignment {
        slot: slot.clone(),
        policy,
        success_codes: vec![0],
        node: NodeName::nearest("a"),
        trigger: Trigger::Schedule,
        scheduled_at: slot.start(),
        past: false,
        audit: None,
        poll: None,
        seed: Token::from_bits(42),
        locks: None,
    };
    let mut machine = SlotMachine::new(assignment, clock.now());
    for _ in 0..100 {
        match machine.poll_action() {
            Some(Action::Claim(request)) => {
                let reply = store.claim(&request).await;
                machine.handle_claim(clock.now(), reply);
            }
            Some(Action::Spawn(_)) => {
                machine.handle_started(clock.now());
                let output = OutputTail { text: "x".repeat(OUTPUT), ..OutputTail::default() };
                machine.handle_exit(clock.now(), Exit { output, ..Exit::of(ExitStatus::Code(code)) });
            }
            Some(Action::Complete { lease, run, done_ttl }) => {
                let reply = store.complete(&lease, &run, done_ttl).await;
                machine.handle_settlement(clock.now(), reply);
            }
            Some(Action::Fail { lease, run, retry_after }) => {
                let reply = store.fail(&lease, &run, retry_after).await;
                let is_recorded = reply.is_ok();
                machine.handle_release(clock.now(), reply);
                if is_recorded {
                    return;
                }
            }
            Some(action) => panic!("{action:?}"),
            None if machine.ended().is_some() => return assert_eq!(machine.ended(), Some(End::Done)),
            None => {
                let at = machine.poll_timeout().expect("a timer");
                clock.advance(at.since(clock.now().mono));
                machine.handle_timeout(clock.now());
            }
        }
    }
    panic!("the end was never recorded");
}
