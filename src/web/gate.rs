//! Who asks: by a token, by a login, by what a proxy says that is believed, or anybody where nothing is said of that.

use std::net::IpAddr;
use std::path::PathBuf;
use std::sync::{Arc, PoisonError, RwLock};

use axum::http::header::{AUTHORIZATION, COOKIE};
use axum::http::{HeaderMap, StatusCode};

use crate::clock::Now;
use crate::config::{HttpConfig, ProxyConfig, Role, RoleSource};
use crate::web::detail::ProblemDetail;
use crate::web::problem::Problem;
use crate::web::throttle::{Throttle, WINDOW};
use crate::web::tokens::{Bearer, Tokens, Way};

/// The longest name of a user that a proxy may tell.
const LONGEST: usize = 128;

/// Decides who asks.
#[derive(Debug)]
pub struct Gate {
    tokens_file: Option<PathBuf>,
    tokens: RwLock<Option<Arc<Tokens>>>,
    proxy: Option<ProxyConfig>,
    throttle: Throttle,
    /// Whether the world reaches the port through TLS.
    tls: bool,
}

impl Gate {
    /// With the tokens of the file that is named.
    ///
    /// # Errors
    /// The file cannot be used: it, the line, what to do.
    pub fn open(http: &HttpConfig) -> Result<Self, String> {
        let tokens = http.tokens_file.as_deref().map(Tokens::read).transpose().map_err(|fault| fault.to_string())?;
        if tokens.as_ref().is_some_and(Tokens::is_open) {
            tracing::warn!(
                file = ?http.tokens_file,
                "every user of this machine can read the tokens: nobody can log in with a page until chmod o-r"
            );
        }
        Ok(Self {
            tokens_file: http.tokens_file.clone(),
            tokens: RwLock::new(tokens.map(Arc::new)),
            proxy: http.proxy.clone(),
            throttle: Throttle::default(),
            tls: http.is_behind_tls(),
        })
    }

    /// Reads the tokens anew, and answers how many there are; none where no file is named.
    ///
    /// # Errors
    /// As for [`Gate::open`]. The old ones stay.
    pub fn reread(&self) -> Result<Option<usize>, String> {
        let Some(path) = &self.tokens_file else { return Ok(None) };
        let tokens = Arc::new(Tokens::read(path).map_err(|fault| fault.to_string())?);
        let count = tokens.count();
        *self.tokens.write().unwrap_or_else(PoisonError::into_inner) = Some(tokens);
        Ok(Some(count))
    }

    /// Removes what only the proxy may say from the requests of others.
    pub(super) fn clean(&self, peer: IpAddr, headers: &mut HeaderMap) {
        let Some(proxy) = self.proxy.as_ref().filter(|proxy| !believes(proxy, peer)) else { return };
        headers.remove(&proxy.user_header);
        if let RoleSource::Named(header) | RoleSource::Groups(header, _) = &proxy.roles {
            headers.remove(header);
        }
    }

    /// Who asks. `headers` are cleaned.
    pub(super) fn bearer(&self, peer: IpAddr, headers: &HeaderMap, now: Now) -> Result<Bearer, Problem> {
        let proxy = self.proxy.as_ref().filter(|proxy| believes(proxy, peer));
        if let Some(proxy) = proxy.filter(|proxy| headers.contains_key(&proxy.user_header)) {
            return told(proxy, headers);
        }
        match (self.tokens(), headers.contains_key(AUTHORIZATION)) {
            (Some(tokens), true) => self.by_token(&tokens, peer, headers, now),
            (Some(tokens), false) => {
                let cookie = cookie(headers, self.cookie_name());
                cookie.and_then(|cookie| tokens.by_cookie(cookie, now.wall)).ok_or_else(Problem::unauthorized)
            }
            (None, _) if self.proxy.is_none() => {
                Ok(Bearer { name: "anybody".to_owned(), role: Role::Viewer, way: Way::Anybody })
            }
            (None, _) if proxy.is_some() => Err(Problem::no_proxy_user()),
            (None, _) => Err(Problem::not_the_proxy()),
        }
    }

    fn tokens(&self) -> Option<Arc<Tokens>> {
        self.tokens.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Whether somebody can log in here.
    pub(super) const fn has_login(&self) -> bool {
        self.tokens_file.is_some()
    }

    /// The header that logs somebody in who has this token.
    pub(super) fn log_in(&self, peer: IpAddr, token: &str, now: Now) -> Result<String, Problem> {
        let tokens = self.tokens().ok_or_else(Problem::not_found)?;
        if tokens.is_open() {
            return Err(Problem::forbidden(ProblemDetail::OpenTokens));
        }
        let Some((value, ends)) = tokens.log_in(token.trim(), now.wall) else { return Err(self.wrong(peer, now)) };
        let seconds = (ends - now.wall).num_seconds().max(0);
        Ok(self.set_cookie(&value, seconds))
    }

    /// The header that logs out.
    pub(super) fn log_out(&self) -> String {
        self.set_cookie("", 0)
    }

    fn set_cookie(&self, value: &str, seconds: i64) -> String {
        let (name, secure) = (self.cookie_name(), if self.tls { "; Secure" } else { "" });
        format!("{name}={value}; Max-Age={seconds}; Path=/; HttpOnly; SameSite=Strict{secure}")
    }

    /// A browser takes one with this beginning from this very host alone, and through TLS alone.
    const fn cookie_name(&self) -> &'static str {
        if self.tls { "__Host-cronward" } else { "cronward" }
    }

    fn by_token(&self, tokens: &Tokens, peer: IpAddr, headers: &HeaderMap, now: Now) -> Result<Bearer, Problem> {
        let text = single(headers, AUTHORIZATION.as_str()).and_then(|text| text.split_once(' '));
        let token = text.filter(|(scheme, _)| scheme.eq_ignore_ascii_case("bearer")).map(|(_, token)| token.trim());
        if let Some(bearer) = token.and_then(|token| tokens.find(token, now.wall)) {
            return Ok(bearer);
        }
        Err(self.wrong(peer, now))
    }

    /// The answer to a wrong token: one for the first ten of a minute, another for the others.
    fn wrong(&self, peer: IpAddr, now: Now) -> Problem {
        if self.throttle.count(peer, now.mono) {
            tracing::warn!(%peer, "a token was refused");
            return Problem::unauthorized();
        }
        let detail = ProblemDetail::WrongTokens;
        Problem::new(StatusCode::TOO_MANY_REQUESTS, "too-many-requests", detail).retry_after(WINDOW.as_secs())
    }
}

/// By the address that the connection comes from: what a header says of that, anybody can write.
fn believes(proxy: &ProxyConfig, peer: IpAddr) -> bool {
    proxy.from.iter().any(|network| network.contains(peer))
}

/// A header that is there once: of two nobody knows which is meant.
pub(super) fn single<'a>(headers: &'a HeaderMap, name: &str) -> Option<&'a str> {
    let mut values = headers.get_all(name).iter();
    match (values.next(), values.next()) {
        (Some(value), None) => value.to_str().ok(),
        _ => None,
    }
}

/// The same of a header that a proxy writes, which may name people in any script.
fn named<'a>(headers: &'a HeaderMap, name: &str) -> Option<&'a str> {
    let mut values = headers.get_all(name).iter();
    let text = match (values.next(), values.next()) {
        (Some(value), None) => std::str::from_utf8(value.as_bytes()).ok()?.trim(),
        _ => return None,
    };
    (!text.chars().any(|c| c == '\t' || crate::text::is_harmful(c))).then_some(text)
}

/// The value of the one cookie of this name: of two nobody knows which is meant.
fn cookie<'a>(headers: &'a HeaderMap, name: &str) -> Option<&'a str> {
    let sent = headers.get_all(COOKIE).iter().filter_map(|value| value.to_str().ok());
    let pairs = sent.flat_map(|value| value.split(';')).filter_map(|pair| pair.trim().split_once('='));
    let mut named = pairs.filter(|(known, _)| *known == name).map(|(_, value)| value);
    match (named.next(), named.next()) {
        (Some(value), None) => Some(value),
        _ => None,
    }
}

/// Who asks, as the proxy tells it.
fn told(proxy: &ProxyConfig, headers: &HeaderMap) -> Result<Bearer, Problem> {
    let name = named(headers, &proxy.user_header).unwrap_or("");
    if name.is_empty() || name.len() > LONGEST {
        return Err(Problem::no_proxy_user());
    }
    let role = match &proxy.roles {
        RoleSource::Nowhere => Some(Role::Viewer),
        RoleSource::Named(header) => single(headers, header).and_then(|role| Role::named(role.trim())),
        RoleSource::Groups(header, roles) => {
            let groups = named(headers, header).unwrap_or("").split(',').map(str::trim);
            groups.filter_map(|group| roles.get(group).copied()).max()
        }
    };
    let role = role.ok_or_else(|| Problem::forbidden(ProblemDetail::NoRole))?;
    Ok(Bearer { name: name.to_owned(), role, way: Way::Proxy })
}

#[cfg(test)]
mod tests {
    use axum::http::{HeaderName, HeaderValue};

    use super::*;
    use crate::clock::{Clock, ManualClock};

    const PROXY: &str = "10.0.0.5";

    fn gate(roles: RoleSource) -> Gate {
        let from = vec!["10.0.0.5/32".parse().unwrap()];
        let proxy = Some(ProxyConfig { user_header: "x-forwarded-user".to_owned(), roles, from });
        Gate::open(&HttpConfig { proxy, ..HttpConfig::default() }).unwrap()
    }

    /// Who a request with these headers is, from this peer, after cleaning; else the status.
    fn asks(gate: &Gate, peer: &str, headers: &[(&'static str, &str)]) -> Result<(String, Role), u16> {
        let mut map = HeaderMap::new();
        map.extend(
            headers.iter().map(|(name, value)| (HeaderName::from_static(name), value.parse::<HeaderValue>().unwrap())),
        );
        let now = ManualClock::at("2026-11-21T15:00:00Z".parse().unwrap()).now();
        gate.clean(peer.parse().unwrap(), &mut map);
        let bearer = gate.bearer(peer.parse().unwrap(), &map, now).map(|bearer| (bearer.name, bearer.role));
        bearer.map_err(|problem| axum::response::IntoResponse::into_response(problem).status().as_u16())
    }

    #[test]
    fn a_proxy_is_believed_by_its_address_alone() {
        let gate = gate(RoleSource::Named("x-role".to_owned()));
        let said = [("x-forwarded-user", "ana"), ("x-role", "operator")];
        assert_eq!(asks(&gate, PROXY, &said), Ok(("ana".to_owned(), Role::Operator)));
        assert_eq!(asks(&gate, "10.0.0.6", &said), Err(401));
        let forged = [("x-forwarded-for", PROXY), ("x-forwarded-user", "ana"), ("x-role", "operator")];
        assert_eq!(asks(&gate, "10.0.0.6", &forged), Err(401));
        assert_eq!(asks(&gate, "127.0.0.1", &forged), Err(401), "not even this machine");
        let mut headers = HeaderMap::new();
        headers.extend(
            said.iter().map(|(name, value)| (HeaderName::from_static(name), value.parse::<HeaderValue>().unwrap())),
        );
        gate.clean("10.0.0.6".parse().unwrap(), &mut headers);
        assert!(headers.is_empty(), "removed from others: {headers:?}");
    }

    #[test]
    fn a_role_is_that_of_the_header_or_of_the_best_group_and_never_more() {
        let named = gate(RoleSource::Named("x-role".to_owned()));
        for wrong in [&[][..], &[("x-role", "admin")], &[("x-role", "viewer"), ("x-role", "operator")]] {
            let said = [&[("x-forwarded-user", "ana")], wrong].concat();
            assert_eq!(asks(&named, PROXY, &said), Err(403), "{wrong:?}");
        }
        let roles = [("staff".to_owned(), Role::Viewer), ("cron-admins".to_owned(), Role::Operator)].into();
        let groups = gate(RoleSource::Groups("x-groups".to_owned(), roles));
        let of = |list| asks(&groups, PROXY, &[("x-forwarded-user", "ana"), ("x-groups", list)]).map(|(_, role)| role);
        assert_eq!(of("a, staff"), Ok(Role::Viewer));
        assert_eq!(of("staff,cron-admins"), Ok(Role::Operator));
        assert_eq!(of("cron"), Err(403));
        assert_eq!(
            asks(&gate(RoleSource::Nowhere), PROXY, &[("x-forwarded-user", "ana")]),
            Ok(("ana".to_owned(), Role::Viewer))
        );
        let of = |user| asks(&gate(RoleSource::Nowhere), PROXY, &[("x-forwarded-user", user)]).map(|(name, _)| name);
        assert_eq!(of("张三"), Ok("张三".to_owned()));
        for user in ["", " ", "a\tb", &"x".repeat(129)] {
            assert_eq!(asks(&gate(RoleSource::Nowhere), PROXY, &[("x-forwarded-user", user)]), Err(401), "{user:?}");
        }
    }
}
