//! The shim's end of the socket to the daemon. Its end of file is the daemon's death.

use std::io::{self, IoSlice, IoSliceMut, Read, Write};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer, SendAncillaryMessage, SendFlags,
};

use crate::exec::messages::{CommandPlan, FRAME, Request, ShimReport};

/// The largest plan: Linux allows no more arguments and environment than this (a quarter of the largest stack limit that
/// anybody sets).
const PLAN_LIMIT: u64 = 64 * 1024 * 1024;

/// What a plan seldom exceeds: read at once.
const PLAN_USUAL: u64 = 64 * 1024;

/// The shim's end.
#[derive(Debug)]
pub(super) struct Control {
    socket: UnixStream,
    /// The beginning of a request that has not come whole yet.
    partial: [u8; FRAME],
    filled: usize,
}

/// What the daemon asked for.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Input {
    /// This.
    Request(Request),
    /// Nothing yet.
    Nothing,
    /// Nothing any more: the daemon is dead, or has let go of the run, or is not understood.
    Closed,
}

impl Control {
    /// Takes the socket off stdin, where `/dev/null` comes in its place, and with it the command's stdin if one was sent.
    pub(super) fn take() -> io::Result<(Self, Option<OwnedFd>)> {
        let socket = UnixStream::from(io::stdin().as_fd().try_clone_to_owned()?);
        let stdin = receive_greeting(&socket)?;
        rustix::stdio::dup2_stdin(std::fs::File::open("/dev/null")?)?;
        Ok((Self { socket, partial: [0; FRAME], filled: 0 }, stdin))
    }

    /// Waits for the plan.
    pub(super) fn plan(&self) -> io::Result<CommandPlan> {
        let mut length = [0; 8];
        (&self.socket).read_exact(&mut length)?;
        let length = u64::from_le_bytes(length);
        let mut bytes = Vec::with_capacity(usize::try_from(length.min(PLAN_USUAL)).unwrap_or(0));
        (&self.socket).take(length.min(PLAN_LIMIT)).read_to_end(&mut bytes)?;
        let whole = bytes.len() as u64 == length;
        whole.then(|| CommandPlan::decode(&bytes)).flatten().ok_or_else(|| io::ErrorKind::InvalidData.into())
    }

    /// Tells the daemon. When it is dead there is nobody to tell: the end of file says so in its own time.
    pub(super) fn report(&mut self, report: &ShimReport) {
        let _ = self.socket.write_all(report.to_string().as_bytes());
    }

    /// Whether there is something to read, the end included.
    pub(super) fn has_request(&self) -> bool {
        let mut news = [PollFd::new(&self.socket, PollFlags::IN)];
        poll(&mut news, Some(&Timespec { tv_sec: 0, tv_nsec: 0 })).is_ok_and(|ready| ready > 0)
    }

    /// Reads one request; to be called when there is something to read.
    pub(super) fn request(&mut self) -> Input {
        let Some(rest) = self.partial.get_mut(self.filled..) else { return Input::Closed };
        match self.socket.read(rest) {
            Ok(0) => return Input::Closed,
            Ok(count) => self.filled += count,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(_) => return Input::Closed,
        }
        if self.filled < FRAME {
            return Input::Nothing;
        }
        self.filled = 0;
        Request::decode(self.partial).map_or(Input::Closed, Input::Request)
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
