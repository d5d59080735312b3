//! A text that is written in pieces and sent so: a page of many jobs is half a mebibyte, and nobody needs that in one piece.

use std::collections::VecDeque;
use std::fmt;
use std::pin::Pin;
use std::task::{Context, Poll};

use axum::body::{Body, Bytes, HttpBody};
use http_body_util::BodyExt;
use hyper::body::{Frame, SizeHint};

/// Bytes of a piece; one that was written at once may be longer.
const PIECE: usize = 16 * 1_024;

/// The pieces so far.
#[derive(Debug, Default)]
pub(super) struct Pieces {
    whole: VecDeque<Bytes>,
    last: String,
    length: u64,
}

impl fmt::Write for Pieces {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        if self.last.len() + text.len() > PIECE {
            self.whole.push_back(std::mem::take(&mut self.last).into());
        }
        if self.last.capacity() == 0 {
            self.last.reserve(PIECE);
        }
        self.last.push_str(text);
        self.length += text.len() as u64;
        Ok(())
    }
}

impl From<Pieces> for Body {
    fn from(mut pieces: Pieces) -> Self {
        pieces.whole.push_back(std::mem::take(&mut pieces.last).into());
        Self::new(pieces.map_err(|never| match never {}))
    }
}

impl HttpBody for Pieces {
    type Data = Bytes;
    type Error = std::convert::Infallible;

    fn poll_frame(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Self::Error>>> {
        let piece = self.whole.pop_front();
        self.length -= piece.as_ref().map_or(0, |piece| piece.len() as u64);
        Poll::Ready(piece.map(|piece| Ok(Frame::data(piece))))
    }

    fn is_end_stream(&self) -> bool {
        self.whole.is_empty()
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.length)
    }
}

#[cfg(test)]
mod tests {
    use std::fmt::Write as _;

    use super::*;

    async fn sent(texts: &[String]) -> Vec<usize> {
        let mut pieces = Pieces::default();
        texts.iter().for_each(|text| pieces.write_str(text).unwrap());
        let (whole, mut body) = (texts.concat(), Body::from(pieces));
        assert_eq!(body.size_hint().exact(), Some(whole.len() as u64));
        let (mut read, mut lengths) = (Vec::new(), Vec::new());
        while let Some(frame) = body.frame().await {
            let piece = frame.unwrap().into_data().unwrap();
            read.extend_from_slice(&piece);
            lengths.push(piece.len());
        }
        assert_eq!(String::from_utf8(read).unwrap(), whole);
        assert_eq!(body.size_hint().exact(), Some(0));
        lengths
    }

    #[tokio::test]
    async fn a_text_is_sent_as_it_was_written_in_pieces_of_a_known_length() {
        assert_eq!(sent(&[]).await, [0]);
        assert_eq!(sent(&["a".to_owned(), "中".to_owned()]).await, [4]);
        let lines: Vec<String> = (0..10_000).map(|line| format!("line {line}\n")).collect();
        let lengths = sent(&lines).await;
        assert!(lengths.len() > 5 && lengths.iter().all(|length| *length <= PIECE), "{lengths:?}");
        assert_eq!(sent(&["x".repeat(2 * PIECE)]).await.iter().sum::<usize>(), 2 * PIECE);
    }
}
