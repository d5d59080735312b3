//! What one reader chose: language, zone, theme, how the page renews itself. From the address, then from a cookie, then from what the
//! browser says. A choice in an address is kept in a cookie, which holds no more than that.

use axum::http::header::{ACCEPT_LANGUAGE, COOKIE};
use axum::http::{HeaderMap, Uri};

use crate::web::pages::texts::{CHINESE, ENGLISH, Texts};
use crate::zone::Zone;

/// The choices that are kept, as the address and the cookie name them.
const KEPT: [&str; 4] = ["lang", "zone", "theme", "updates"];
/// A year, in seconds.
const KEPT_FOR: u32 = 31_536_000;
/// Bytes of a value that is looked at.
const LONGEST: usize = 64;

/// Light, dark, or as the system is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Theme {
    #[default]
    System,
    Light,
    Dark,
}

/// How a page renews itself where it can.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Updates {
    #[default]
    Live,
    Polled,
    Off,
}

/// One reader's choices.
#[derive(Clone, Debug)]
pub(super) struct Reader {
    pub(super) t: &'static Texts,
    pub(super) zone: Zone,
    pub(super) theme: Theme,
    pub(super) updates: Updates,
    /// Cookies to be set: name and value, each of which is one of ours.
    pub(super) kept: Vec<(&'static str, String)>,
    /// The address below the base, without the choices.
    pub(super) here: String,
    /// Load again after so many seconds, without a script.
    pub(super) reload: Option<u32>,
}

impl Reader {
    /// Of a request.
    pub(super) fn of(uri: &Uri, headers: &HeaderMap) -> Self {
        let query: Vec<(String, String)> =
            url::form_urlencoded::parse(uri.query().unwrap_or_default().as_bytes()).into_owned().collect();
        let asked = |name: &str| query.iter().find(|(key, _)| key == name).map(|(_, value)| value.as_str());
        let chosen = |name: &'static str| {
            asked(name).map(str::to_owned).or_else(|| cookie(headers, name)).filter(|value| value.len() <= LONGEST)
        };
        let language = chosen("lang").and_then(|code| language(&code)).unwrap_or_else(|| accepted(headers));
        let zone = chosen("zone").and_then(|zone| zone.parse().ok()).unwrap_or(Zone::UTC);
        let theme = chosen("theme").and_then(|theme| Theme::named(&theme)).unwrap_or_default();
        let updates = chosen("updates").and_then(|updates| Updates::named(&updates)).unwrap_or_default();
        let values = [
            if language.tag == "en" { "en" } else { "zh" }.to_owned(),
            zone.name().to_owned(),
            theme.as_str().to_owned(),
            updates.as_str().to_owned(),
        ];
        let kept = KEPT.into_iter().zip(values).filter(|(name, _)| asked(name).is_some()).collect();
        let reload = asked("live").and_then(|seconds| seconds.parse().ok()).map(|seconds: u32| seconds.clamp(5, 3_600));
        Self { t: language, zone, theme, updates, kept, here: here(uri, &query), reload }
    }

    /// The headers that keep the choices of the address.
    pub(super) fn cookies(&self, base: &str) -> Vec<String> {
        let path = if base.is_empty() { "/" } else { base };
        let cookie = |(name, value): &(&str, String)| {
            format!("cronward-{name}={value}; Path={path}; Max-Age={KEPT_FOR}; SameSite=Strict")
        };
        self.kept.iter().map(cookie).collect()
    }
}

impl Theme {
    pub(super) const ALL: [Self; 3] = [Self::System, Self::Light, Self::Dark];

    pub(super) const fn as_str(self) -> &'static str {
        match self {
            Self::System => "system",
            Self::Light => "light",
            Self::Dark => "dark",
        }
    }

    fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|theme| theme.as_str() == name)
    }
}

impl Updates {
    pub(super) const ALL: [Self; 3] = [Self::Live, Self::Polled, Self::Off];

    pub(super) const fn as_str(self) -> &'static str {
        match self {
            Self::Live => "live",
            Self::Polled => "10s",
            Self::Off => "off",
        }
    }

    fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|updates| updates.as_str() == name)
    }
}

/// The language of a code, by its beginning: `zh-Hans-CN` is Chinese.
fn language(code: &str) -> Option<&'static Texts> {
    match code.split('-').next()?.to_ascii_lowercase().as_str() {
        "en" => Some(&ENGLISH),
        "zh" => Some(&CHINESE),
        _ => None,
    }
}

/// The language that a browser asks for first among those there are. Browsers send them best first.
fn accepted(headers: &HeaderMap) -> &'static Texts {
    let header = headers.get(ACCEPT_LANGUAGE).and_then(|value| value.to_str().ok()).unwrap_or_default();
    header.split(',').find_map(|part| language(part.split(';').next().unwrap_or_default().trim())).unwrap_or(&ENGLISH)
}

fn cookie(headers: &HeaderMap, name: &str) -> Option<String> {
    let texts = headers.get_all(COOKIE).iter().filter_map(|value| value.to_str().ok());
    let mut pairs = texts.flat_map(|text| text.split(';')).filter_map(|pair| pair.trim().split_once('='));
    pairs.find_map(|(key, value)| (key.strip_prefix("cronward-") == Some(name)).then(|| value.to_owned()))
}

/// The address as links to the same view have it.
fn here(uri: &Uri, query: &[(String, String)]) -> String {
    let rest = query.iter().filter(|(key, _)| !KEPT.contains(&key.as_str()) && key != "did" && key != "at");
    let rest = url::form_urlencoded::Serializer::new(String::new()).extend_pairs(rest).finish();
    if rest.is_empty() { uri.path().to_owned() } else { format!("{}?{rest}", uri.path()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reader(uri: &str, headers: &[(&str, &str)]) -> Reader {
        let mut map = HeaderMap::new();
        for (name, value) in headers {
            map.append(name.parse::<axum::http::HeaderName>().unwrap(), value.parse().unwrap());
        }
        Reader::of(&uri.parse().unwrap(), &map)
    }

    #[test]
    fn the_address_comes_before_the_cookie_and_that_before_the_browser() {
        assert_eq!(reader("/", &[]).t.tag, "en");
        let browser = [("accept-language", "fr, zh-CN;q=0.9, en;q=0.8")];
        assert_eq!(reader("/", &browser).t.tag, "zh-CN");
        let cookie = [browser[0], ("cookie", "a=b; cronward-lang=en; cronward-zone=Asia/Tokyo")];
        assert_eq!(reader("/", &cookie).t.tag, "en");
        assert_eq!(reader("/", &cookie).zone.name(), "Asia/Tokyo");
        let chosen = reader("/?lang=zh&zone=Europe/Berlin&q=a%20b&theme=dark", &cookie);
        assert_eq!((chosen.t.tag, chosen.zone.name(), chosen.theme), ("zh-CN", "Europe/Berlin", Theme::Dark));
        assert_eq!(chosen.here, "/?q=a+b");
    }

    #[test]
    fn only_what_is_known_is_kept() {
        let odd = reader("/?lang=%0d%0aset-cookie:x&zone=Nowhere;a&theme=loud", &[]);
        assert_eq!((odd.t.tag, &odd.zone, odd.theme), ("en", &Zone::UTC, Theme::System));
        let cookies = odd.cookies("/ops/cron");
        assert_eq!(cookies[0], "cronward-lang=en; Path=/ops/cron; Max-Age=31536000; SameSite=Strict");
        assert!(cookies.iter().all(|cookie| !cookie.contains("Nowhere") && !cookie.contains('\n')), "{cookies:?}");
        assert!(reader("/", &[("cookie", "cronward-lang=zh")]).cookies("").is_empty());
    }
}
