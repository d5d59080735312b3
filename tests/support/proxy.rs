//! A TCP proxy that spoils a connection on purpose: it loses requests or replies, holds them up, cuts them short, or
//! closes. TCP never loses bytes in the middle of a stream, so a connection that has swallowed something passes nothing
//! more: when told to pass again, it is closed.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    dead_code,
    unreachable_pub,
    missing_docs,
    reason = "a test says what it expects; no test uses all of it"
)]

use std::collections::VecDeque;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicU16, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Notify;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tokio_util::task::AbortOnDropHandle;

/// What is done with what passes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// Everything passes.
    Pass,
    /// Requests are swallowed: the server never sees them.
    LoseRequests,
    /// Replies are swallowed: the server has done what was asked.
    LoseReplies,
    /// From the first request on that has these words in it, replies are swallowed, to that connection.
    LoseRepliesTo(&'static str),
    /// Of the replies on a connection that have these words in them, each n-th is swallowed, and the connection lives on.
    LoseSome(&'static str, usize),
    /// The first request that has these words in it waits, with all behind it, until another mode is set ([`Proxy::held`]).
    HoldRequest(&'static str),
    /// Both are, and nothing closes: a link that is silently gone.
    BlackHole,
    /// Each piece is late by so much, in each direction, as on a long line: pieces do not wait for each other.
    Delay(Duration),
    /// After so many bytes of the next reply the connection is closed.
    CutReply(usize),
    /// After so many pieces of replies have passed the connection is closed.
    CutAfter(usize),
    /// Closed at once, also new connections.
    Refuse,
}

#[derive(Clone)]
struct Link {
    mode: Arc<Mutex<Mode>>,
    close: CancellationToken,
    changed: Arc<Notify>,
    held: Arc<Notify>,
    /// Replies so far that [`Mode::LoseSome`] was asked about.
    told: Arc<AtomicUsize>,
}

/// A running proxy; it ends when dropped.
pub struct Proxy {
    address: SocketAddr,
    target: Arc<AtomicU16>,
    fresh: Arc<Mutex<Mode>>,
    links: Arc<Mutex<Vec<Link>>>,
    held: Arc<Notify>,
    _task: AbortOnDropHandle<()>,
}

impl Proxy {
    /// A proxy on a free port of 127.0.0.1 before the server at `target`'s port.
    pub async fn before(target: u16) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let address = listener.local_addr().expect("its address");
        let fresh = Arc::new(Mutex::new(Mode::Pass));
        let links = Arc::new(Mutex::new(Vec::new()));
        let target = Arc::new(AtomicU16::new(target));
        let held = Arc::new(Notify::new());
        let own = (Arc::clone(&fresh), Arc::clone(&links), Arc::clone(&held));
        let task = tokio::spawn(accept(listener, Arc::clone(&target), own));
        Self { address, target, fresh, links, held, _task: AbortOnDropHandle::new(task) }
    }

    /// Its port.
    pub fn port(&self) -> u16 {
        self.address.port()
    }

    /// Another server takes the place of the one behind it: what stands is closed, new connections go there.
    pub fn aim(&self, target: u16) {
        self.target.store(target, Ordering::Relaxed);
        self.cut();
    }

    /// From now on, for connections that stand and for new ones.
    pub fn set(&self, mode: Mode) {
        *self.fresh.lock().unwrap() = mode;
        self.set_standing(mode);
    }

    /// From now on, only for connections that stand.
    pub fn set_standing(&self, mode: Mode) {
        for link in self.links.lock().unwrap().iter() {
            *link.mode.lock().unwrap() = mode;
            link.changed.notify_waiters();
            if mode == Mode::Refuse {
                link.close.cancel();
            }
        }
    }

    /// Returns once a request waits by [`Mode::HoldRequest`].
    pub async fn held(&self) {
        self.held.notified().await;
    }

    /// From now on, only for new connections.
    pub fn set_new(&self, mode: Mode) {
        *self.fresh.lock().unwrap() = mode;
    }

    /// Closes every connection that stands.
    pub fn cut(&self) {
        for link in self.links.lock().unwrap().drain(..) {
            link.close.cancel();
        }
    }

    /// Connections accepted so far and not closed by [`Self::cut`].
    pub fn connections(&self) -> usize {
        self.links.lock().unwrap().len()
    }
}

type Own = (Arc<Mutex<Mode>>, Arc<Mutex<Vec<Link>>>, Arc<Notify>);

async fn accept(listener: TcpListener, target: Arc<AtomicU16>, (fresh, links, held): Own) {
    loop {
        let Ok((client, _)) = listener.accept().await else { return };
        let mode = *fresh.lock().unwrap();
        if mode == Mode::Refuse {
            continue;
        }
        let Ok(server) = TcpStream::connect(("127.0.0.1", target.load(Ordering::Relaxed))).await else { continue };
        let link = Link {
            mode: Arc::new(Mutex::new(mode)),
            close: CancellationToken::new(),
            changed: Arc::default(),
            held: Arc::clone(&held),
            told: Arc::default(),
        };
        links.lock().unwrap().push(link.clone());
        let (from_client, to_client) = client.into_split();
        let (from_server, to_server) = server.into_split();
        tokio::spawn(pump(from_client, to_server, link.clone(), true));
        tokio::spawn(pump(from_server, to_client, link, false));
    }
}

/// Passes one direction on until either side, or the proxy, closes; then both directions end.
#[allow(clippy::disallowed_methods, reason = "the delay that a test asked for")]
async fn pump(mut from: OwnedReadHalf, mut to: OwnedWriteHalf, link: Link, requests: bool) {
    let mut buffer = vec![0; 64 * 1024];
    let mut swallowed = false;
    let mut late = VecDeque::new();
    loop {
        let read = tokio::select! {
            read = from.read(&mut buffer) => read.unwrap_or(0),
            () = link.close.cancelled() => return,
            () = first_due(&late) => {
                if !pass_late(&mut to, &mut late, 1).await {
                    link.close.cancel();
                    return;
                }
                continue;
            }
        };
        let mode = *link.mode.lock().unwrap();
        if let Mode::Delay(delay) = mode
            && read > 0
            && !swallowed
        {
            late.push_back((Instant::now() + delay, buffer[..read].to_vec()));
            continue;
        }
        let all = late.len();
        if !pass_late(&mut to, &mut late, all).await
            || read == 0
            || !spoil(&mut to, &buffer[..read], &link, requests, &mut swallowed).await
        {
            link.close.cancel();
            return;
        }
    }
}

/// When the first piece that is late is due; never, if none is.
#[allow(clippy::disallowed_methods, reason = "the delay that a test asked for")]
async fn first_due(late: &VecDeque<(Instant, Vec<u8>)>) {
    match late.front() {
        Some((due, _)) => tokio::time::sleep_until(*due).await,
        None => std::future::pending().await,
    }
}

/// Passes so many late pieces on, each when it is due.
async fn pass_late(to: &mut OwnedWriteHalf, late: &mut VecDeque<(Instant, Vec<u8>)>, pieces: usize) -> bool {
    for _ in 0..pieces {
        first_due(late).await;
        let Some((_, piece)) = late.pop_front() else { return true };
        if to.write_all(&piece).await.is_err() {
            return false;
        }
    }
    true
}

/// Passes one piece on as the mode says. False when the connection ends.
async fn spoil(to: &mut OwnedWriteHalf, piece: &[u8], link: &Link, requests: bool, swallowed: &mut bool) -> bool {
    let is_in = |words: &str| piece.windows(words.len()).any(|part| part == words.as_bytes());
    let has = |words: &str| requests && is_in(words);
    if let Mode::HoldRequest(words) = *link.mode.lock().unwrap()
        && has(words)
    {
        link.held.notify_one();
    }
    loop {
        let changed = link.changed.notified();
        if !matches!(*link.mode.lock().unwrap(), Mode::HoldRequest(words) if has(words)) {
            break;
        }
        changed.await;
    }
    let mode = *link.mode.lock().unwrap();
    if let Mode::LoseSome(words, each) = mode
        && !requests
        && is_in(words)
        && (link.told.fetch_add(1, Ordering::Relaxed) + 1).is_multiple_of(each)
    {
        return true;
    }
    if let Mode::LoseRepliesTo(words) = mode
        && has(words)
    {
        *link.mode.lock().unwrap() = Mode::LoseReplies;
    }
    let swallow = match mode {
        Mode::BlackHole => true,
        Mode::LoseRequests => requests,
        Mode::LoseReplies => !requests,
        Mode::Pass
        | Mode::LoseRepliesTo(_)
        | Mode::LoseSome(..)
        | Mode::HoldRequest(_)
        | Mode::Delay(_)
        | Mode::CutReply(_)
        | Mode::CutAfter(_)
        | Mode::Refuse => false,
    };
    if swallow {
        *swallowed = true;
        return true;
    }
    if *swallowed || mode == Mode::Refuse {
        return false;
    }
    match mode {
        Mode::CutReply(bytes) if !requests => {
            let _ = to.write_all(&piece[..bytes.min(piece.len())]).await;
            return false;
        }
        Mode::CutAfter(0) if !requests => return false,
        Mode::CutAfter(left) if !requests => *link.mode.lock().unwrap() = Mode::CutAfter(left - 1),
        _ => {}
    }
    to.write_all(piece).await.is_ok()
}
