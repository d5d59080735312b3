//! The connections that there are: so many at the most, and which of them gives way where all are taken.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::sync::{Notify, OwnedSemaphorePermit, Semaphore};
use tokio_util::sync::CancellationToken;

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
    /// The head of its request has come, and the body is awaited. A client that sends none holds no place for ever.
    Receiving,
    /// Its answer is being read, or a part of its stream. A client that reads none of it holds no place for ever.
    Reading,
    /// Its request is being answered, or it is a stream that waits for news: those are bounded by themselves, and never give way.
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
    /// whose body has been awaited, or whose answer has been read, for the longest time; while each is busy, the next waits.
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
    /// The head of a request came. The place of its answer, and of its body where that is awaited.
    pub(super) fn begin(&self, is_whole: bool) -> (Option<Arrival>, Answering) {
        self.seats.set(self.id, if is_whole { Doing::Working } else { Doing::Receiving });
        let arrival = (!is_whole).then(|| Arrival { seats: Arc::clone(&self.seats), id: self.id });
        (arrival, Answering { seats: Arc::clone(&self.seats), id: self.id, is_stream: false })
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

/// A body that is awaited. Once this is dropped all of it has come, or is not wanted, and the connection works.
#[derive(Debug)]
pub(super) struct Arrival {
    seats: Arc<Seats>,
    id: u64,
}

impl Drop for Arrival {
    fn drop(&mut self) {
        self.seats.set(self.id, Doing::Working);
    }
}

/// The answer to one request, until it is dropped: then its connection does nothing.
#[derive(Debug)]
pub(super) struct Answering {
    seats: Arc<Seats>,
    id: u64,
    is_stream: bool,
}

impl Answering {
    /// The answer is to be written now.
    pub(super) fn write(&mut self, is_stream: bool) {
        self.is_stream = is_stream;
        if !is_stream {
            self.seats.set(self.id, Doing::Reading);
        }
    }

    /// A stream whose reader stands still is asked for nothing more after what was handed over last: until it is asked again it is one
    /// answer that is being read.
    pub(super) fn polled(&self, has_more: bool) {
        if self.is_stream {
            self.seats.set(self.id, if has_more { Doing::Reading } else { Doing::Working });
        }
    }
}

impl Drop for Answering {
    fn drop(&mut self) {
        self.seats.set(self.id, Doing::Nothing);
    }
}

#[cfg(test)]
mod tests {
    use axum::body::HttpBody;
    use axum::body::{Body, Bytes};
    use axum::http::Request;
    use axum::http::header::CONTENT_TYPE;
    use axum::response::{IntoResponse, Response};
    use futures_util::{FutureExt, StreamExt};
    use http_body_util::BodyExt;

    use super::*;
    use crate::web::bodies::{AnswerBody, PIECE, answer, arrive};

    /// An answer of that kind, which its reader has not begun to read.
    fn answered(seat: &Seat, kind: &'static str) -> Response<AnswerBody> {
        answer(begin(seat), ([(CONTENT_TYPE, kind)], "some text").into_response())
    }

    /// A request without a body.
    fn begin(seat: &Seat) -> Answering {
        seat.begin(true).1
    }

    fn waits(seats: &Arc<Seats>) -> bool {
        Box::pin(seats.take()).now_or_never().is_none()
    }

    #[tokio::test]
    async fn of_two_that_are_idle_the_one_that_was_busy_later_stays() {
        let seats = Seats::new(2);
        let (first, second) = (seats.take().await.unwrap(), seats.take().await.unwrap());
        drop(begin(&first));
        assert!(waits(&seats));
        assert!(second.end.is_cancelled() && !first.end.is_cancelled());
    }

    #[tokio::test]
    async fn the_one_that_is_idle_for_the_longest_time_gives_way_and_a_busy_one_never() {
        let seats = Seats::new(2);
        let (first, second) = (seats.take().await.unwrap(), seats.take().await.unwrap());
        let of_first = begin(&first);
        let mut third = Box::pin(seats.take());
        assert!((&mut third).now_or_never().is_none());
        assert!(second.end.is_cancelled() && !first.end.is_cancelled());
        drop(second);
        let third = third.await.unwrap();
        let _of_third = begin(&third);
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
        let working = begin(&second);
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
    async fn a_request_whose_body_does_not_arrive_gives_way_and_one_that_is_whole_does_not() {
        let seats = Seats::new(2);
        let (first, second) = (seats.take().await.unwrap(), seats.take().await.unwrap());
        let nothing = futures_util::stream::pending::<Result<Bytes, std::convert::Infallible>>();
        let (stalled, _answering) = arrive(&first, Request::new(Body::from_stream(nothing)));
        let (whole, _other) = arrive(&second, Request::new(Body::from("all of it")));
        assert_eq!(whole.into_body().collect().await.unwrap().to_bytes(), "all of it");
        assert!(waits(&seats));
        assert!(first.end.is_cancelled() && !second.end.is_cancelled());
        assert_eq!(first.farewell(), Duration::ZERO);
        drop(stalled);
    }

    #[tokio::test]
    async fn a_stream_whose_reader_takes_nothing_more_gives_way() {
        let seats = Seats::new(1);
        let only = seats.take().await.unwrap();
        let news = futures_util::stream::iter([Ok::<_, std::convert::Infallible>("news")]);
        let stream = Body::from_stream(news.chain(futures_util::stream::pending()));
        let response = ([(CONTENT_TYPE, "text/event-stream")], stream).into_response();
        let mut body = answer(begin(&only), response).into_body();
        assert!(body.frame().await.unwrap().is_ok());
        assert!(body.frame().now_or_never().is_none(), "it waits for news");
        assert!(waits(&seats));
        assert!(!only.end.is_cancelled());
        let mut stalled = answered(&only, "text/event-stream").into_body();
        assert!(stalled.frame().await.unwrap().is_ok());
        // Not asked for more.
        assert!(waits(&seats));
        assert!(only.end.is_cancelled());
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
        let response = answer(begin(&only), text.clone().into_response());
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
