//! The headers that every answer has: what a browser may do with it. Nothing may be framed, sniffed, embedded elsewhere or kept, and no
//! other origin is allowed anything: there is no CORS header at all.

use axum::http::header::{CACHE_CONTROL, CONTENT_SECURITY_POLICY, HeaderName};
use axum::http::{HeaderMap, HeaderValue};

/// What a page may do; what a command wrote is served under a stricter one.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; form-action 'self'; base-uri 'none'; object-src 'none'; frame-ancestors 'none'";

const ALWAYS: [(&str, &str); 5] = [
    ("x-content-type-options", "nosniff"),
    // Names of slots are in addresses.
    ("referrer-policy", "no-referrer"),
    ("cross-origin-opener-policy", "same-origin"),
    ("cross-origin-resource-policy", "same-origin"),
    (
        "permissions-policy",
        "clipboard-write=(self), accelerometer=(), autoplay=(), camera=(), clipboard-read=(), display-capture=(), fullscreen=(), geolocation=(), gyroscope=(), magnetometer=(), microphone=(), midi=(), payment=(), usb=()",
    ),
];

/// A year. Only where the world reaches the port through TLS: a browser remembers it.
const HSTS: (&str, &str) = ("strict-transport-security", "max-age=31536000; includeSubDomains");

/// Adds them. What an answer says itself of where it may be kept stays.
pub(super) fn secure(headers: &mut HeaderMap, tls: bool) {
    for (name, value) in ALWAYS.into_iter().chain(tls.then_some(HSTS)) {
        headers.insert(HeaderName::from_static(name), HeaderValue::from_static(value));
    }
    headers.entry(CONTENT_SECURITY_POLICY).or_insert(HeaderValue::from_static(POLICY));
    headers.entry(CACHE_CONTROL).or_insert(HeaderValue::from_static("no-store"));
}
