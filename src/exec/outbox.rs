//! What the daemon has still to tell a shim: the plan, then requests. A shim that stands still reads nothing, and nobody waits for
//! it: who writes here can be told something else meanwhile, and of a deadline that moves on only the newest is kept.

use tokio::io::{AsyncWrite, AsyncWriteExt};

use crate::exec::messages::Request;
use crate::slot::LeaseDeadline;

/// Bytes that are to be written in their order, and the newest deadline.
#[derive(Debug)]
pub(super) struct Outbox {
    bytes: Vec<u8>,
    lease: Option<LeaseDeadline>,
    /// Nobody reads any more.
    closed: bool,
}

impl Outbox {
    /// That begins with this plan.
    pub(super) const fn new(plan: Vec<u8>) -> Self {
        Self { bytes: plan, lease: None, closed: false }
    }

    /// A deadline waits until all else is written, and takes the place of one that waits.
    pub(super) fn put(&mut self, request: Request) {
        match request {
            Request::Lease(lease) => self.lease = Some(lease),
            request => self.bytes.extend_from_slice(&request.encode()),
        }
    }

    /// Whether there is something to write, and somebody who reads.
    pub(super) const fn is_waiting(&self) -> bool {
        !self.closed && (!self.bytes.is_empty() || self.lease.is_some())
    }

    /// Writes some of it. Cancel-safe: what is not written stays here.
    pub(super) async fn write(&mut self, writer: &mut (impl AsyncWrite + Unpin)) {
        if self.bytes.is_empty()
            && let Some(lease) = self.lease.take()
        {
            self.bytes.extend_from_slice(&Request::Lease(lease).encode());
        }
        match writer.write(&self.bytes).await {
            Ok(count) if count > 0 => drop(self.bytes.drain(..count)),
            // A shim that has died is met again as the end of its reports.
            Ok(_) | Err(_) => self.closed = true,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    use std::time::Duration;

    use rustix::process::Signal;
    use tokio::io::AsyncReadExt;

    use crate::clock::Mono;
    use crate::exec::messages::FRAME;

    fn lease(at: u64) -> Request {
        let at = Mono::from_nanos(at);
        Request::Lease(LeaseDeadline { stop_at: at, kill_at: at })
    }

    #[tokio::test(start_paused = true)]
    async fn what_nobody_reads_holds_nobody_up_and_of_the_deadlines_the_newest_is_kept() {
        let (mut reader, mut writer) = tokio::io::duplex(FRAME);
        let mut outbox = Outbox::new(b"plan".to_vec());
        for at in 1..100 {
            outbox.put(lease(at));
            let _ = tokio::time::timeout(Duration::from_millis(1), outbox.write(&mut writer)).await;
        }
        for request in [Request::Signal(Signal::USR1), Request::Kill, lease(100)] {
            outbox.put(request);
        }
        let reading = tokio::spawn(async move {
            let mut read = Vec::new();
            reader.read_to_end(&mut read).await.unwrap();
            read
        });
        while outbox.is_waiting() {
            outbox.write(&mut writer).await;
        }
        drop(writer);
        let read = reading.await.unwrap();
        let (plan, frames) = read.split_at(4);
        let frames: Vec<_> = frames.chunks(FRAME).map(|frame| Request::decode(frame.try_into().unwrap())).collect();
        // The second followed the plan, and was on its way when the third came.
        let wanted = [lease(2), Request::Signal(Signal::USR1), Request::Kill, lease(100)].map(Some);
        assert_eq!((plan, frames), (&b"plan"[..], wanted.to_vec()));
    }

    #[tokio::test]
    async fn what_nobody_will_read_is_not_tried_again() {
        let (reader, mut writer) = tokio::io::duplex(FRAME);
        drop(reader);
        let mut outbox = Outbox::new(b"plan".to_vec());
        outbox.write(&mut writer).await;
        outbox.put(Request::Kill);
        assert!(!outbox.is_waiting());
    }
}
