//! The connections that there are: so many at the most, and which of them gives way where all are taken.

use std::collections::BTreeMap;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;

use axum::body::{Body, Bytes, HttpBody};
use axum::http::header::CONTENT_TYPE;
use axum::response::Response;
use hyper::body::{Frame, SizeHint};
use tokio::sync::{Notify, OwnedSemaphorePermit, Semaphore};
use tokio_util::sync::CancellationToken;

/// Bytes of an answer that are handed over to be written at once: of a reader who stands still, so much is kept.
const PIECE: usize = 16 * 1_024;

/// For an answer that was just begun, when another connection needs the place.
const LAST_ANSWER: Duration = Duration::from_secs(2);
/// For the rest of one that was handed over to be written.
const LAST_BYTES: Duration = Duration::from_millis(200);

/// Every connection.
#[derive(Debug)]
pub(super) struct Seats {
    room: Arc<Semaphore>,
    taken: Mutex<Taken>,
    /// One of them can give way.
    can_give_way: Notify,
}

#[derive(Debug, Default)]
struct Taken {
    /// Counts whatever happens: the smaller, the longer ago.
    moment: u64,
    guests: BTreeMap<u64, Guest>,
}

/// One connection.
#[derive(Debug)]
struct Guest {
    doing: Doing,
    /// Since when.
    since: u64,
    end: CancellationToken,
}

/// What a connection does; who gives way first comes first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Doing {
    /// It waits for a request.
    Nothing,
    /// Its answer is being read. Whoever reads none of it holds no place for ever.
    Reading,
    /// Its request is being answered, or it is a stream: those are bounded by themselves, and never give way.
    Working,
}

/// One connection, until it is dropped.
#[derive(Debug)]
pub(super) struct Seat {
    seats: Arc<Seats>,
    id: u64,
    /// Fires when another one needs the place more.
    pub(super) end: CancellationToken,
    _room: OwnedSemaphorePermit,
}

impl Seats {
    pub(super) fn new(most: usize) -> Arc<Self> {
        Arc::new(Self { room: Arc::new(Semaphore::new(most)), taken: Mutex::default(), can_give_way: Notify::new() })
    }

    /// A place for a connection. Where all are taken, the one that has done nothing for the longest time loses its own, or else the one
    /// whose answer has been read for the longest time; while each is busy, the next waits.
    pub(super) async fn take(self: &Arc<Self>) -> Option<Seat> {
        let room = loop {
            let can_give_way = self.can_give_way.notified();
            if let Ok(room) = Arc::clone(&self.room).try_acquire_owned() {
                break room;
            }
            let is_coming = self.drop_one();
            tokio::select! {
                room = Arc::clone(&self.room).acquire_owned() => break room.ok()?,
                // Nobody else has to give way for this one.
                () = can_give_way, if !is_coming => {}
            }
        };
        let end = CancellationToken::new();
        let mut taken = self.lock();
        let id = taken.next();
        taken.guests.insert(id, Guest { doing: Doing::Nothing, since: id, end: end.clone() });
        drop(taken);
        Some(Seat { seats: Arc::clone(self), id, end, _room: room })
    }

    /// Whether one gives way.
    fn drop_one(&self) -> bool {
        let taken = self.lock();
        let can = taken.guests.values().filter(|guest| guest.doing < Doing::Working && !guest.end.is_cancelled());
        can.min_by_key(|guest| (guest.doing, guest.since)).inspect(|guest| guest.end.cancel()).is_some()
    }

    fn set(&self, id: u64, doing: Doing) {
        let mut taken = self.lock();
        let now = taken.next();
        if let Some(guest) = taken.guests.get_mut(&id) {
            (guest.doing, guest.since) = (doing, now);
        }
        drop(taken);
        if doing < Doing::Working {
            self.can_give_way.notify_one();
        }
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Taken> {
        self.taken.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Taken {
    fn next(&mut self) -> u64 {
        self.moment = self.moment.saturating_add(1);
        self.moment
    }
}

impl Seat {
    /// A request came.
    pub(super) fn begin(&self) -> Answering {
        self.seats.set(self.id, Doing::Working);
        Answering { seats: Arc::clone(&self.seats), id: self.id }
    }

    /// How long it may go on when another connection needs its place.
    pub(super) fn farewell(&self) -> Duration {
        let taken = self.seats.lock();
        match taken.guests.get(&self.id) {
            // Its request came in the very moment in which it was chosen.
            Some(guest) if guest.doing == Doing::Working => LAST_ANSWER,
            Some(guest) if guest.doing == Doing::Nothing && guest.since > self.id => LAST_BYTES,
            // Who asked for nothing yet, or is slow to read, has nothing to wait for.
            _ => Duration::ZERO,
        }
    }
}

impl Drop for Seat {
    fn drop(&mut self) {
        self.seats.lock().guests.remove(&self.id);
    }
}

/// The answer to one request, until it is dropped: then its connection does nothing.
#[derive(Debug)]
pub(super) struct Answering {
    seats: Arc<Seats>,
    id: u64,
}

impl Answering {
    /// The answer, which is to be written now.
    pub(super) fn with(self, response: Response) -> Response<AnswerBody> {
        let is_stream = response.headers().get(CONTENT_TYPE).is_some_and(|kind| kind == "text/event-stream");
        if !is_stream {
            self.seats.set(self.id, Doing::Reading);
        }
        response.map(|body| AnswerBody { body, rest: Bytes::new(), _answering: self })
    }
}

impl Drop for Answering {
    fn drop(&mut self) {
        self.seats.set(self.id, Doing::Nothing);
    }
}

/// The body of an answer in pieces, so that the connection is known to be busy until the last of them is taken.
#[derive(Debug)]
pub(super) struct AnswerBody {
    body: Body,
    /// What is left of a frame that was longer than a piece.
    rest: Bytes,
    _answering: Answering,
}

impl HttpBody for AnswerBody {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        let body = self.get_mut();
        if body.rest.is_empty() {
            match Pin::new(&mut body.body).poll_frame(context) {
                Poll::Ready(Some(Ok(frame))) => match frame.into_data() {
                    Ok(data) => body.rest = data,
                    Err(trailers) => return Poll::Ready(Some(Ok(trailers))),
                },
                other => return other,
            }
        }
        let piece = body.rest.split_to(body.rest.len().min(PIECE));
        Poll::Ready(Some(Ok(Frame::data(piece))))
    }

    fn is_end_stream(&self) -> bool {
        self.rest.is_empty() && self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        let rest = self.rest.len() as u64;
        let (inner, mut hint) = (self.body.size_hint(), SizeHint::new());
        hint.set_lower(inner.lower().saturating_add(rest));
        if let Some(upper) = inner.upper() {
            hint.set_upper(upper.saturating_add(rest));
        }
        hint
    }
}

#[cfg(test)]
mod tests {
    use axum::response::IntoResponse;
    use futures_util::FutureExt;
    use http_body_util::BodyExt;

    use super::*;

    /// An answer of that kind, which its reader has not begun to read.
    fn answered(seat: &Seat, kind: &'static str) -> Response<AnswerBody> {
        seat.begin().with(([(CONTENT_TYPE, kind)], "some text").into_response())
    }

    fn waits(seats: &Arc<Seats>) -> bool {
        Box::pin(seats.take()).now_or_never().is_none()
    }

    #[tokio::test]
    async fn of_two_that_are_idle_the_one_that_was_busy_later_stays() {
        let seats = Seats::new(2);
        let (first, second) = (seats.take().await.unwrap(), seats.take().await.unwrap());
        drop(first.begin());
        assert!(waits(&seats));
        assert!(second.end.is_cancelled() && !first.end.is_cancelled());
    }

    #[tokio::test]
    async fn the_one_that_is_idle_for_the_longest_time_gives_way_and_a_busy_one_never() {
        let seats = Seats::new(2);
        let (first, second) = (seats.take().await.unwrap(), seats.take().await.unwrap());
        let of_first = first.begin();
        let mut third = Box::pin(seats.take());
        assert!((&mut third).now_or_never().is_none());
        assert!(second.end.is_cancelled() && !first.end.is_cancelled());
        drop(second);
        let third = third.await.unwrap();
        let _of_third = third.begin();
        let mut fourth = Box::pin(seats.take());
        assert!((&mut fourth).now_or_never().is_none());
        assert!(!first.end.is_cancelled() && !third.end.is_cancelled(), "both are busy: the next waits");
        drop(of_first);
        assert!((&mut fourth).now_or_never().is_none());
        assert!(first.end.is_cancelled(), "as soon as one is not");
        drop(first);
        assert!(fourth.await.is_some());
    }

    #[tokio::test]
    async fn an_answer_that_is_being_read_gives_way_after_all_that_do_nothing() {
        let seats = Seats::new(2);
        let (first, second) = (seats.take().await.unwrap(), seats.take().await.unwrap());
        let being_read = answered(&first, "text/html");
        assert_eq!((first.farewell(), second.farewell()), (Duration::ZERO, Duration::ZERO));
        let working = second.begin();
        assert_eq!(second.farewell(), LAST_ANSWER);
        drop(working);
        assert_eq!(second.farewell(), LAST_BYTES);
        assert!(waits(&seats));
        assert!(second.end.is_cancelled() && !first.end.is_cancelled(), "the idle one, though it was busy later");
        assert!(waits(&seats));
        assert!(first.end.is_cancelled(), "where there is no other");
        drop(being_read);
    }

    #[tokio::test]
    async fn a_stream_keeps_its_place() {
        let seats = Seats::new(1);
        let only = seats.take().await.unwrap();
        let stream = answered(&only, "text/event-stream");
        assert!(waits(&seats));
        assert!(!only.end.is_cancelled());
        drop(stream);
        assert!(waits(&seats));
        assert!(only.end.is_cancelled(), "until it is over");
    }

    #[tokio::test]
    async fn an_answer_is_written_piece_by_piece_and_whole() {
        let seats = Seats::new(1);
        let only = seats.take().await.unwrap();
        let text: Vec<u8> = (0..2 * PIECE + 5).map(|at| u8::try_from(at % 251).unwrap()).collect();
        let response = only.begin().with(text.clone().into_response());
        let mut body = response.into_body();
        let mut read = Vec::new();
        for (length, left) in [(PIECE, PIECE + 5), (PIECE, 5), (5, 0)] {
            let piece = body.frame().await.unwrap().unwrap().into_data().unwrap();
            assert_eq!((piece.len(), body.size_hint().exact()), (length, Some(left as u64)));
            assert_eq!(body.is_end_stream(), left == 0);
            read.extend_from_slice(&piece);
        }
        assert_eq!(read, text);
        assert!(body.frame().await.is_none());
    }
}
