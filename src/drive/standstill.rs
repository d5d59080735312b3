//! A node that stood still (SIGSTOP, a suspend) finds everything due at once. What its command came to meanwhile is read before anything
//! is said of the lease: the command may have ended long before that ran out.

use std::time::Duration;

use crate::clock::{Clock, Mono};
use crate::drive::timers;
use crate::drive::work::Started;
use crate::machine::TrustWindow;
use crate::slot::Exit;

/// So much later than asked a timer goes off where the node stood still.
const STANDSTILL: Duration = Duration::from_secs(1);

/// How long the report of an end is waited for that the keeper of the command has made: it has to be read, and the keeper reaped.
const READING: Duration = Duration::from_millis(250);

/// The end of a command, where its node stood still until long after something was `due`, and cannot trust its lease any more: until
/// then a renewal has precedence.
pub(super) async fn end_meanwhile(
    running: &mut Option<Box<dyn Started>>,
    clock: &dyn Clock,
    due: Option<Mono>,
    trust: Option<TrustWindow>,
) -> Option<Exit> {
    let now = clock.now().mono;
    let stood_still = due.is_some_and(|due| now.since(due) > STANDSTILL);
    if !stood_still || trust.is_none_or(|trust| trust.holds(now)) {
        return None;
    }
    let running = running.as_mut()?;
    tokio::select! {
        biased;
        exit = running.wait() => Some(exit),
        () = timers::until(clock, Some(now + READING)) => None,
    }
}

#[cfg(test)]
mod tests {
    use async_trait::async_trait;
    use futures_util::future::BoxFuture;

    use super::*;
    use crate::clock::RuntimeClock;
    use crate::slot::ExitStatus;

    /// A command whose end is reported after so long.
    struct Ending(Duration);

    #[async_trait]
    impl Started for Ending {
        fn begun(&self) -> BoxFuture<'static, ()> {
            Box::pin(std::future::ready(()))
        }

        fn terminate(&self) {}

        fn kill(&self) {}

        #[allow(clippy::disallowed_methods, reason = "time is virtual")]
        async fn wait(&mut self) -> Exit {
            tokio::time::sleep(self.0).await;
            Exit::of(ExitStatus::Code(0))
        }
    }

    #[tokio::test(start_paused = true)]
    async fn an_end_is_read_first_where_the_node_stood_still_and_its_lease_is_over() {
        let clock = RuntimeClock::at("2026-11-21T14:00:00Z".parse().unwrap());
        tokio::time::advance(Duration::from_secs(60)).await;
        let (ms, s) = (Duration::from_millis, Duration::from_secs);
        for (overdue, lease_left, ends_in, is_read) in [
            (s(8), s(0), ms(50), true),
            (s(8), s(0), ms(300), false),
            (ms(900), s(0), ms(50), false),
            (s(8), s(2), ms(50), false),
        ] {
            let now = clock.now().mono;
            let trust = TrustWindow::granted(now.minus(s(3)) + lease_left, s(3));
            let mut running: Option<Box<dyn Started>> = Some(Box::new(Ending(ends_in)));
            let exit = end_meanwhile(&mut running, &clock, Some(now.minus(overdue)), Some(trust)).await;
            assert_eq!(exit.is_some(), is_read, "{overdue:?} {lease_left:?} {ends_in:?}");
        }
        let none = end_meanwhile(&mut None, &clock, Some(Mono::default()), None).await;
        assert_eq!(none, None);
    }
}
