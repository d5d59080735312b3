//! By which names the port may be called. A page of another site, whose name its owner lets point to this machine (DNS rebinding), sends
//! that name: it is not known here.

use std::net::IpAddr;

use axum::http::header::HOST;
use axum::http::uri::Authority;
use axum::http::{HeaderMap, Uri};
use url::Url;

/// The names.
#[derive(Debug)]
pub(super) struct KnownHosts {
    /// The host of `public_url`.
    public: Option<String>,
}

impl KnownHosts {
    pub(super) fn new(public_url: Option<&str>) -> Self {
        let url = public_url.and_then(|url| Url::parse(url).ok());
        Self { public: url.and_then(|url| url.host_str().map(str::to_ascii_lowercase)) }
    }

    /// Whether a request calls this machine by a name of its own: `localhost`, a loopback address, the address that it was sent to, or
    /// the public one. Any port will do: a tunnel has another. Both the header and a whole url in the first line have to be so.
    pub(super) fn knows(&self, uri: &Uri, headers: &HeaderMap, local: IpAddr) -> bool {
        let mut named = headers.get_all(HOST).iter();
        let (Some(host), None) = (named.next(), named.next()) else { return false };
        let Some(header) = host.to_str().ok().and_then(|host| host.parse::<Authority>().ok()) else { return false };
        [Some(&header), uri.authority()].into_iter().flatten().all(|authority| self.is_own(authority, local))
    }

    fn is_own(&self, authority: &Authority, local: IpAddr) -> bool {
        if authority.as_str().contains('@') {
            return false;
        }
        let host = authority.host().to_ascii_lowercase();
        if host == "localhost" || self.public.as_deref() == Some(&*host) {
            return true;
        }
        // In brackets where it is an IPv6 address.
        let address = host.trim_start_matches('[').trim_end_matches(']').parse::<IpAddr>();
        address.is_ok_and(|address| address == local.to_canonical() || is_usual(address))
    }
}

fn is_usual(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(address) => address == std::net::Ipv4Addr::LOCALHOST,
        IpAddr::V6(address) => address == std::net::Ipv6Addr::LOCALHOST,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn knows(public: Option<&str>, host: &str, uri: &str) -> bool {
        let mut headers = HeaderMap::new();
        headers.insert(HOST, host.parse().unwrap());
        KnownHosts::new(public).knows(&uri.parse().unwrap(), &headers, "192.0.2.7".parse().unwrap())
    }

    #[test]
    fn the_machines_own_names_are_known_with_any_port_and_no_other() {
        for own in ["localhost", "LOCALHOST:9747", "127.0.0.1:1", "[::1]:9747", "192.0.2.7:80", "192.0.2.7"] {
            assert!(knows(None, own, "/"), "{own}");
        }
        for other in [
            "evil.example",
            "localhost.evil.example",
            "127.0.0.2",
            "192.0.2.8",
            "cron.example",
            "a@localhost",
            "",
            "::1",
        ] {
            assert!(!knows(None, other, "/"), "{other}");
        }
        assert!(knows(Some("https://Cron.example/ops/"), "cron.example:443", "/"));
        assert!(!knows(Some("https://cron.example/"), "x.cron.example", "/"));
    }

    #[test]
    fn a_whole_url_in_the_first_line_counts_too_and_a_request_names_one_host() {
        assert!(knows(None, "localhost", "http://localhost:9747/healthz"));
        assert!(!knows(None, "localhost", "http://evil.example/healthz"));
        let mut headers = HeaderMap::new();
        assert!(!KnownHosts::new(None).knows(&Uri::from_static("/"), &headers, "127.0.0.1".parse().unwrap()));
        headers.append(HOST, "localhost".parse().unwrap());
        headers.append(HOST, "evil.example".parse().unwrap());
        assert!(!KnownHosts::new(None).knows(&Uri::from_static("/"), &headers, "127.0.0.1".parse().unwrap()));
    }
}
