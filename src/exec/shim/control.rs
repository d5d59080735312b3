//! The shim's end of the socket to the daemon. Its end of file is the daemon's death.

use std::io::{self, IoSlice, IoSliceMut, Read, Write};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer, SendAncillaryMessage, SendFlags,
};

use crate::exec::plan::Plan;
use crate::exec::report::Report;

/// The largest plan: Linux allows no more arguments and environment than this (a quarter of the largest stack limit that
/// anybody sets).
const PLAN_LIMIT: u64 = 64 * 1024 * 1024;

/// What a plan seldom exceeds: read at once.
const PLAN_USUAL: u64 = 64 * 1024;

/// The shim's end.
#[derive(Debug)]
pub(super) struct Control {
    socket: UnixStream,
}

/// What the daemon asked for.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Request {
    /// These signals, in order.
    Signals(Vec<i32>),
    /// Nothing any more: the daemon is dead, or has let go of the run.
    Closed,
}

impl Control {
    /// Takes the socket off stdin, where `/dev/null` comes in its place, and with it the command's stdin if one was sent.
    pub(super) fn take() -> io::Result<(Self, Option<OwnedFd>)> {
        let socket = UnixStream::from(io::stdin().as_fd().try_clone_to_owned()?);
        let stdin = receive_greeting(&socket)?;
        rustix::stdio::dup2_stdin(std::fs::File::open("/dev/null")?)?;
        Ok((Self { socket }, stdin))
    }

    /// Waits for the plan.
    pub(super) fn plan(&self) -> io::Result<Plan> {
        let mut length = [0; 8];
        (&self.socket).read_exact(&mut length)?;
        let length = u64::from_le_bytes(length);
        let mut bytes = Vec::with_capacity(usize::try_from(length.min(PLAN_USUAL)).unwrap_or(0));
        (&self.socket).take(length.min(PLAN_LIMIT)).read_to_end(&mut bytes)?;
        let whole = bytes.len() as u64 == length;
        whole.then(|| Plan::decode(&bytes)).flatten().ok_or_else(|| io::ErrorKind::InvalidData.into())
    }

    /// Tells the daemon. When it is dead there is nobody to tell: the end of file says so in its own time.
    pub(super) fn report(&mut self, report: &Report) {
        let _ = self.socket.write_all(report.to_string().as_bytes());
    }

    /// Whether there is something to read, the end included.
    pub(super) fn has_request(&self) -> bool {
        let mut news = [PollFd::new(&self.socket, PollFlags::IN)];
        poll(&mut news, Some(&Timespec { tv_sec: 0, tv_nsec: 0 })).is_ok_and(|ready| ready > 0)
    }

    /// Reads what was asked for; to be called when there is something to read.
    pub(super) fn requests(&mut self) -> Request {
        let mut numbers = [0; 64];
        match self.socket.read(&mut numbers) {
            Ok(0) => Request::Closed,
            Ok(count) => Request::Signals(numbers.iter().take(count).map(|number| i32::from(*number)).collect()),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => Request::Signals(Vec::new()),
            Err(_) => Request::Closed,
        }
    }
}

impl AsFd for Control {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

/// The daemon's first byte, and with it the command's stdin, if it is to have one.
pub(in crate::exec) fn send_greeting(socket: &UnixStream, stdin: Option<BorrowedFd<'_>>) -> io::Result<()> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut ancillary = SendAncillaryBuffer::new(&mut space);
    let descriptors: Vec<_> = stdin.into_iter().collect();
    if !descriptors.is_empty() {
        ancillary.push(SendAncillaryMessage::ScmRights(&descriptors));
    }
    rustix::net::sendmsg(socket, &[IoSlice::new(b"\n")], &mut ancillary, SendFlags::NOSIGNAL)?;
    Ok(())
}

fn receive_greeting(socket: &UnixStream) -> io::Result<Option<OwnedFd>> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut ancillary = RecvAncillaryBuffer::new(&mut space);
    let mut byte = [0];
    let into = &mut [IoSliceMut::new(&mut byte)];
    let received = rustix::net::recvmsg(socket, into, &mut ancillary, RecvFlags::CMSG_CLOEXEC)?;
    if received.bytes == 0 {
        return Err(io::ErrorKind::UnexpectedEof.into());
    }
    Ok(ancillary.drain().find_map(|message| match message {
        RecvAncillaryMessage::ScmRights(mut descriptors) => descriptors.next(),
        _ => None,
    }))
}
