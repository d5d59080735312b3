//! The bodies of requests and answers, which tell a connection's place how far they are.

use std::pin::Pin;
use std::task::{Context, Poll};

use axum::body::{Body, Bytes, HttpBody};
use axum::http::Request;
use axum::http::header::CONTENT_TYPE;
use axum::response::Response;
use hyper::body::{Frame, SizeHint};

use crate::web::seats::{Answering, Arrival, Seat};

/// Bytes of an answer that are handed over to be written at once: of a reader who stands still, so much is kept.
pub(super) const PIECE: usize = 16 * 1_024;

/// The body of a request, until all of it has come.
#[derive(Debug)]
pub(super) struct ArrivingBody<B> {
    body: B,
    /// None once all of it has come.
    arrival: Option<Arrival>,
}

/// The request of a connection, whose body tells when it is whole, and the place of its answer.
pub(super) fn arrive<B: HttpBody>(seat: &Seat, request: Request<B>) -> (Request<ArrivingBody<B>>, Answering) {
    let (arrival, answering) = seat.begin(request.body().is_end_stream());
    (request.map(|body| ArrivingBody { body, arrival }), answering)
}

impl<B: HttpBody + Unpin> HttpBody for ArrivingBody<B> {
    type Data = B::Data;
    type Error = B::Error;

    fn poll_frame(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Result<Frame<B::Data>, B::Error>>> {
        let arriving = self.get_mut();
        let polled = Pin::new(&mut arriving.body).poll_frame(context);
        if matches!(polled, Poll::Ready(None)) || arriving.body.is_end_stream() {
            arriving.arrival = None;
        }
        polled
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

/// The body of an answer in pieces, so that the connection is known to be busy until the last of them is taken.
#[derive(Debug)]
pub(super) struct AnswerBody {
    body: Body,
    /// What is left of a frame that was longer than a piece.
    rest: Bytes,
    answering: Answering,
}

/// The answer to a request, whose body tells how far it is read.
pub(super) fn answer(mut answering: Answering, response: Response) -> Response<AnswerBody> {
    answering.write(response.headers().get(CONTENT_TYPE).is_some_and(|kind| kind == "text/event-stream"));
    response.map(|body| AnswerBody { body, rest: Bytes::new(), answering })
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
                other => {
                    body.answering.polled(false);
                    return other;
                }
            }
        }
        body.answering.polled(true);
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
