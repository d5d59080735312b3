//! Reads `[http]`, `[http.tls]`, `[http.auth]` and `[http.auth.proxy]`. The tokens themselves are in a file of their own, which the daemon alone reads.

use std::collections::BTreeMap;
use std::path::PathBuf;

use toml::de::DeValue;
use url::Url;

use crate::config::http::{HttpConfig, ProxyConfig, Role, RoleSource, TlsFiles, listen_hint, parse_listen};
use crate::config::network::Network;
use crate::config::reader::{Section, put, put_some};
use crate::config::sections::{HOMES, HTTP};
use crate::job::JobSelection;

const AUTH: &[&str] = &["tokens_file", "proxy"];
const TLS: &[&str] = &["cert_file", "key_file"];
const PROXY: &[&str] = &["user_header", "role_header", "groups_header", "groups", "from"];

/// Reads `[http]`; none where the file has no such section.
pub(super) fn http(section: &Section<'_>) -> Option<HttpConfig> {
    if !section.is_there() {
        return None;
    }
    section.only(HTTP, HOMES);
    let mut http = HttpConfig::default();
    put(&mut http.read_only, section.boolean("read_only"));
    put(&mut http.base_path, base_path(section));
    put_some(&mut http.public_url, public_url(section));
    put(&mut http.behind_tls_proxy, section.boolean("behind_tls_proxy"));
    let tls = section.child("tls");
    put_some(&mut http.tls, tls_files(&tls));
    put(&mut http.metrics_open, section.boolean("metrics_open"));
    put(&mut http.metrics_jobs, metrics_jobs(section));
    let auth = section.child("auth");
    auth.only(AUTH, HOMES);
    put_some(&mut http.tokens_file, auth.text("tokens_file", "\"/etc/cronward/tokens\"").map(PathBuf::from));
    let wanted = auth.child("proxy");
    put_some(&mut http.proxy, proxy(&wanted));
    // Auth that was meant and cannot be read is told as that, not as auth that is missing.
    let meant = (auth.is_there() && !http.has_auth()) || (tls.is_there() && http.tls.is_none());
    listen(section, &mut http, meant);
    http.into()
}

/// Every user of the machine reaches a loopback address.
pub(super) fn check(section: &Section<'_>, http: &HttpConfig) {
    let is_usable = section.ctx.errors() == 0;
    let public = http.public_url.as_ref().and_then(|url| Url::parse(url).ok());
    let path = public.as_ref().map(|url| url.path().trim_end_matches('/'));
    if let Some(path) = path.filter(|path| *path != http.base_path.trim_end_matches('/')) {
        let (shown, base) = (if path.is_empty() { "/" } else { path }, &http.base_path);
        let message = format!(
            "public_url has the path {shown}, and pages are served below {base}: links in messages or on the pages lead nowhere"
        );
        let span = section.entry("public_url").map_or(section.span.clone(), |entry| entry.span());
        section.ctx.warn(
            "dead-links",
            span,
            message,
            format!("let both end alike: base_path = {shown:?}, or public_url = \"https://…{base}\""),
        );
    }
    if is_usable && !http.read_only && !http.may_have_operators() {
        let message = "read_only = false has no effect: no token and no group has the role operator";
        let span = section.entry("read_only").map_or(section.span.clone(), |entry| entry.span());
        let hint =
            "name a tokens_file in [http.auth], or give a group of the proxy the role operator, or leave read_only out";
        section.ctx.warn("no-operator", span, message.to_owned(), hint);
    }
    if is_usable && !http.has_auth() && http.listen.ip().is_loopback() {
        let message = "without [http.auth] every user of this machine may look at everything on the port";
        section.ctx.note(
            "open-to-users",
            section.span.clone(),
            message.to_owned(),
            "name a tokens_file if that is not meant",
        );
    }
}

fn listen(section: &Section<'_>, http: &mut HttpConfig, auth_is_wrong: bool) {
    let Some(entry) = section.entry("listen") else { return };
    if let DeValue::Integer(port) = entry.value() {
        return entry.refuse("bad-address", "is a port without an address", listen_hint(port.as_str()));
    }
    let Some(text) = entry.text("\"127.0.0.1:9747\"") else { return };
    let Some(address) = parse_listen(&text) else {
        let shown: String = text.chars().take(60).collect();
        return entry.refuse("bad-address", &format!("cannot be {shown:?}"), listen_hint(&text));
    };
    http.listen = address;
    if let Some(objection) = http.objection().filter(|_| !auth_is_wrong) {
        entry.refuse(objection.code, &objection.what, objection.hint);
    }
}

fn tls_files(section: &Section<'_>) -> Option<TlsFiles> {
    if !section.is_there() {
        return None;
    }
    section.only(TLS, HOMES);
    let path = |key| section.text(key, "\"/etc/cronward/tls.pem\"").map(PathBuf::from);
    for key in TLS.iter().filter(|key| section.entry(key).is_none()) {
        let hint = "write both: cert_file = \"/etc/cronward/tls.pem\" and key_file = \"/etc/cronward/tls.key\"";
        section.ctx.error("missing-key", section.span.clone(), format!("[http.tls] has no {key}"), hint);
    }
    Some(TlsFiles { cert_file: path("cert_file")?, key_file: path("key_file")? })
}

fn metrics_jobs(section: &Section<'_>) -> Option<JobSelection> {
    let entry = section.entry("metrics_jobs")?;
    Some(JobSelection::of(&entry.filled_text("\"all\"")?))
}

fn base_path(section: &Section<'_>) -> Option<String> {
    let entry = section.entry("base_path")?;
    let text = entry.text("\"/cronward\"")?;
    let allowed = |c: char| c.is_ascii_alphanumeric() || matches!(c, '/' | '-' | '_' | '.' | '~');
    let bad_segment = text.split('/').any(|segment| matches!(segment, "." | "..")) || text.contains("//");
    if !text.starts_with('/') || bad_segment || !text.chars().all(allowed) {
        let shown: String = text.chars().take(60).collect();
        entry.refuse("bad-path", &format!("cannot be {shown:?}"), "write a path like \"/\" or \"/cronward\"");
        return None;
    }
    let trimmed = text.trim_end_matches('/');
    Some(if trimmed.is_empty() { "/".to_owned() } else { trimmed.to_owned() })
}

fn public_url(section: &Section<'_>) -> Option<String> {
    let entry = section.entry("public_url")?;
    let text = entry.filled_text("\"https://cron.example/\"")?;
    let usable = |url: &Url| {
        matches!(url.scheme(), "http" | "https")
            && url.host().is_some()
            && (url.username().is_empty() && url.password().is_none())
            && (url.query().is_none() && url.fragment().is_none())
    };
    match Url::parse(&text).ok().filter(usable) {
        Some(url) => Some(url.to_string()),
        None => {
            let hint = "write where people reach it: \"https://cron.example/\"";
            entry.refuse("bad-url", "is no address of a page", hint);
            None
        }
    }
}

fn proxy(section: &Section<'_>) -> Option<ProxyConfig> {
    if !section.is_there() {
        return None;
    }
    section.only(PROXY, HOMES);
    let user_header =
        section.entry("user_header").map_or(Some("x-forwarded-user".to_owned()), |_| header(section, "user_header"));
    let roles = roles(section);
    let Some(from) = section.texts("from", "[\"10.0.0.5/32\"]") else {
        if section.entry("from").is_none() {
            let hint = "write the proxy's own address: from = [\"10.0.0.5/32\"]";
            section.ctx.error(
                "missing-from",
                section.span.clone(),
                "[http.auth.proxy] names no address to believe".to_owned(),
                hint,
            );
        }
        return None;
    };
    let networks: Vec<Result<Network, String>> = from.iter().map(|text| text.parse()).collect();
    let entry = section.entry("from")?;
    if let Some(hint) = networks.iter().find_map(|network| network.as_ref().err()) {
        entry.refuse("bad-network", "has what is no range of addresses", hint.clone());
        return None;
    }
    let from: Vec<Network> = networks.into_iter().flatten().collect();
    if from.is_empty() {
        entry.refuse("empty", "is empty", "write the proxy's own address: from = [\"10.0.0.5/32\"]");
        return None;
    }
    Some(ProxyConfig { user_header: user_header?, roles: roles?, from })
}

fn roles(section: &Section<'_>) -> Option<RoleSource> {
    let groups = section.text_map("groups", "{ cron-admins = \"operator\" }");
    match (section.entry("role_header"), section.entry("groups")) {
        (Some(_), Some(groups)) => {
            groups.refuse("both-roles", "is given besides role_header", "keep one of them");
            None
        }
        (Some(_), None) => header(section, "role_header").map(RoleSource::Named),
        (None, Some(entry)) => {
            let header = section
                .entry("groups_header")
                .map_or(Some("x-forwarded-groups".to_owned()), |_| header(section, "groups_header"));
            let roles: Option<BTreeMap<String, Role>> =
                groups?.into_iter().map(|(group, role)| Some((group, Role::named(&role)?))).collect();
            if roles.is_none() {
                entry.refuse("bad-word", "gives a group a role that is none", "write \"viewer\" or \"operator\"");
            }
            Some(RoleSource::Groups(header?, roles?))
        }
        (None, None) => Some(RoleSource::Nowhere),
    }
}

/// The name of a header, in lower case.
fn header(section: &Section<'_>, key: &str) -> Option<String> {
    let entry = section.entry(key)?;
    let text = entry.filled_text("\"X-Forwarded-User\"")?;
    let is_name = text.len() <= 64 && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-');
    // What every request has cannot say who asks.
    let usual = ["authorization", "host", "cookie", "accept", "connection", "content-length", "x-forwarded-for"];
    let lower = text.to_ascii_lowercase();
    if !is_name || usual.contains(&lower.as_str()) {
        let shown: String = text.chars().take(60).collect();
        entry.refuse(
            "bad-header",
            &format!("cannot be {shown:?}"),
            "name a header that the proxy sets: \"X-Forwarded-User\"",
        );
        return None;
    }
    Some(lower)
}
