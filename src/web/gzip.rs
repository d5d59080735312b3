//! Texts made smaller for who can read that: a page of a thousand jobs is a twentieth of its size. Only what is whole and of some length;
//! never a stream, which would wait until there is enough of it.

use std::io::Write;

use axum::body::{Body, Bytes, HttpBody};
use axum::http::header::{ACCEPT_ENCODING, CONTENT_ENCODING, CONTENT_LENGTH, CONTENT_TYPE, ETAG, VARY};
use axum::http::{HeaderMap, HeaderValue};
use axum::response::Response;
use flate2::Compression;
use flate2::write::GzEncoder;
use http_body_util::BodyExt;

/// Bytes of a text that is worth it.
const LEAST: u64 = 1_024;

/// What is text here.
const TEXTS: [&str; 6] =
    ["text/html", "text/plain", "text/css", "text/javascript", "application/json", "image/svg+xml"];

/// Whether who asks can read it.
pub(super) fn is_read(headers: &HeaderMap) -> bool {
    let accepted = headers.get_all(ACCEPT_ENCODING).iter().filter_map(|value| value.to_str().ok());
    accepted.flat_map(|value| value.split(',')).any(|coding| {
        let (name, weight) = coding.split_once(';').unwrap_or((coding, ""));
        let refused = weight.split_once('=').and_then(|(_, weight)| weight.trim().parse::<f32>().ok()) == Some(0.0);
        name.trim().eq_ignore_ascii_case("gzip") && !refused
    })
}

/// The same answer, smaller where `read` says so and it is worth it.
pub(super) async fn packed(mut response: Response, read: bool) -> Response {
    if !is_text(response.headers()) || response.headers().contains_key(CONTENT_ENCODING) {
        return response;
    }
    response.headers_mut().append(VARY, HeaderValue::from_static("Accept-Encoding"));
    // A stream does not know its length.
    let length = response.body().size_hint().exact().unwrap_or(0);
    if !read || length < LEAST {
        return response;
    }
    let (mut head, body) = response.into_parts();
    let Some(small) = pack(body, length).await else { return Response::from_parts(head, Body::empty()) };
    head.headers.insert(CONTENT_ENCODING, HeaderValue::from_static("gzip"));
    head.headers.insert(CONTENT_LENGTH, small.len().into());
    let weak = head.headers.get(ETAG).and_then(|tag| tag.to_str().ok()).filter(|tag| !tag.starts_with("W/"));
    // Other bytes, and the same to say.
    if let Some(weak) = weak.and_then(|tag| HeaderValue::try_from(format!("W/{tag}")).ok()) {
        head.headers.insert(ETAG, weak);
    }
    Response::from_parts(head, Body::from(small))
}

fn is_text(headers: &HeaderMap) -> bool {
    let kind = headers.get(CONTENT_TYPE).and_then(|kind| kind.to_str().ok()).unwrap_or_default();
    let kind = kind.split(';').next().unwrap_or_default().trim();
    TEXTS.contains(&kind)
}

/// Piece by piece; none where the text broke off.
async fn pack(mut text: Body, length: u64) -> Option<Bytes> {
    let expected = usize::try_from(length / 8).unwrap_or_default();
    let mut encoder = GzEncoder::new(Vec::with_capacity(expected), Compression::fast());
    while let Some(frame) = text.frame().await {
        if let Some(piece) = frame.ok()?.data_ref() {
            encoder.write_all(piece).ok()?;
        }
    }
    encoder.finish().ok().map(Bytes::from)
}

#[cfg(test)]
mod tests {
    use std::io::Read;

    use axum::response::IntoResponse;
    use flate2::read::GzDecoder;

    use super::*;

    fn reads(accepted: &str) -> bool {
        let mut headers = HeaderMap::new();
        headers.insert(ACCEPT_ENCODING, accepted.parse().unwrap());
        is_read(&headers)
    }

    async fn answer(kind: &'static str, body: Body, read: bool) -> (HeaderMap, Vec<u8>) {
        let response = packed(([(CONTENT_TYPE, kind), (ETAG, "\"a\"")], body).into_response(), read).await;
        let (head, body) = response.into_parts();
        (head.headers, body.collect().await.unwrap().to_bytes().to_vec())
    }

    #[test]
    fn who_does_not_ask_for_it_or_refuses_it_is_not_sent_it() {
        assert!(reads("gzip") && reads("br, GZIP;q=0.5") && reads("deflate,gzip"));
        assert!(!reads("br") && !reads("gzip;q=0") && !reads("identity") && !reads("x-gzip2"));
    }

    #[tokio::test]
    async fn a_long_text_is_sent_small_and_reads_as_it_was() {
        let text = "billing done ".repeat(1_000);
        let (headers, small) = answer("application/json", Body::from(text.clone()), true).await;
        assert_eq!(headers[CONTENT_ENCODING], "gzip");
        assert_eq!(headers[ETAG], "W/\"a\"");
        assert_eq!(headers[CONTENT_LENGTH], small.len().to_string());
        assert!(small.len() < text.len() / 20, "{}", small.len());
        let mut read = String::new();
        GzDecoder::new(&*small).read_to_string(&mut read).unwrap();
        assert_eq!(read, text);
    }

    #[tokio::test]
    async fn what_is_short_or_no_text_or_a_stream_stays_as_it_is() {
        let long = || Body::from("x".repeat(10_000));
        for (kind, body, read) in [
            ("application/json", Body::from("x".repeat(1_023)), true),
            ("application/json", long(), false),
            ("image/png", long(), true),
            ("text/event-stream", long(), true),
        ] {
            assert!(!answer(kind, body, read).await.0.contains_key(CONTENT_ENCODING), "{kind}");
        }
        let parts = futures_util::stream::iter((0..100).map(|_| Ok::<_, std::io::Error>(Bytes::from(vec![b'x'; 100]))));
        assert_eq!(answer("text/plain", Body::from_stream(parts), true).await.1.len(), 10_000);
        assert_eq!(answer("text/html", long(), false).await.0[VARY], "Accept-Encoding");
    }
}
