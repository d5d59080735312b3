//! What surrounds each page: where one is, who one is, and whether the cluster is well.

use chrono::{DateTime, SecondsFormat, Utc};
use serde_json::json;

use crate::admin::words::zone_name;
use crate::board::Snapshot;
use crate::config::Role;
use crate::observe::view::{NodeState, NodeView};
use crate::web::pages::assets::{self, Names};
use crate::web::pages::moment::Teller;
use crate::web::pages::reader::{Reader, Theme, Updates};
use crate::web::pages::state::Shown;
use crate::web::pages::texts::Texts;
use crate::zone::Zone;

/// Zones that are offered besides UTC and the reader's own.
const ZONES: [&str; 6] =
    ["Europe/Berlin", "Europe/London", "America/New_York", "America/Los_Angeles", "Asia/Shanghai", "Asia/Tokyo"];
/// Digits of a file's hash that are shown.
const DIGITS: usize = 6;
/// Where changes are told.
const STREAM: &str = "/api/v1/events";

/// Whose page it is, as the page shows it.
#[derive(Clone, Debug, Default)]
pub(super) struct Who {
    pub(super) name: String,
    /// In the page's language.
    pub(super) role: &'static str,
    /// Came in by a token or a proxy, not as anybody.
    pub(super) named: bool,
    pub(super) acts: bool,
    /// What a form has to carry; none where nobody logged in by the form.
    pub(super) form_token: Option<String>,
}

/// What every page is made with.
#[derive(Clone, Debug)]
pub(super) struct Setting {
    pub(super) base: String,
    pub(super) namespace: String,
    pub(super) has_login: bool,
    pub(super) draining: bool,
    pub(super) who: Option<Who>,
    /// This node's clock, for where the store's is not known.
    pub(super) clock: DateTime<Utc>,
}

/// How the cluster is, in a line.
pub(super) struct Pulse {
    pub(super) store: String,
    pub(super) store_well: bool,
    pub(super) nodes: Option<String>,
    pub(super) nodes_well: bool,
    pub(super) files: Option<String>,
    pub(super) files_well: bool,
    pub(super) age: String,
}

/// A bar across the page.
pub(super) struct Strip {
    pub(super) kind: &'static str,
    pub(super) lines: Vec<String>,
}

/// What surrounds a page.
pub(super) struct Frame {
    pub(super) t: &'static Texts,
    pub(super) base: String,
    pub(super) namespace: String,
    pub(super) title: String,
    pub(super) current: &'static str,
    pub(super) theme: &'static str,
    pub(super) updates: &'static str,
    pub(super) reload: Option<u32>,
    pub(super) assets: Names,
    pub(super) now: String,
    pub(super) read: String,
    /// Where the page is told what changes since it was made; empty where nothing does.
    pub(super) live: String,
    pub(super) words: String,
    pub(super) pulse: Option<Pulse>,
    pub(super) strips: Vec<Strip>,
    pub(super) who: Option<Who>,
    pub(super) has_login: bool,
    pub(super) has_api: bool,
    pub(super) version: &'static str,
    pub(super) zones: Vec<(String, String, bool)>,
    here: String,
}

impl Frame {
    /// Around what the store said; `shown` is none on pages that need nothing of it.
    pub(super) fn of(
        setting: &Setting,
        reader: &Reader,
        shown: Option<&Snapshot>,
        current: &'static str,
        title: impl Into<String>,
    ) -> Self {
        let tell = teller(setting, reader, shown);
        let iso = |at: DateTime<Utc>| at.to_rfc3339_opts(SecondsFormat::AutoSi, true);
        let title = title.into();
        let waits = shown.map_or(0, |shown| shown.concerns.len());
        let title = if waits > 0 && current == "hours" { format!("({waits}) {title}") } else { title };
        Self {
            t: reader.t,
            base: setting.base.clone(),
            namespace: setting.namespace.clone(),
            title,
            current,
            theme: reader.theme.as_str(),
            updates: reader.updates.as_str(),
            reload: reader.reload,
            assets: assets::names(),
            now: iso(tell.now),
            read: shown.and_then(|shown| shown.read_at).map(iso).unwrap_or_default(),
            live: shown.map(|shown| format!("{STREAM}?after={}", shown.version)).unwrap_or_default(),
            words: words(reader.t),
            pulse: shown.map(|shown| pulse(shown, &tell)),
            strips: strips(setting, shown, &tell),
            who: setting.who.clone(),
            has_login: setting.has_login,
            has_api: true,
            version: env!("CARGO_PKG_VERSION"),
            zones: zones(reader),
            here: reader.here.clone(),
        }
    }

    /// Lets the reader choose a zone by this name, too: a job's own.
    pub(super) fn offer(&mut self, zone: &str) {
        let zone = Zone::named(zone).ok();
        if let Some(zone) = zone.filter(|zone| self.zones.iter().all(|(name, ..)| *name != zone.name())) {
            self.zones.insert(1, (zone.name().to_owned(), zone_name(&zone), false));
        }
    }

    pub(super) fn links(&self) -> [(&'static str, &'static str, &'static str); 6] {
        let t = &self.t.frame;
        [
            ("hours", "/", t.hours),
            ("nodes", "/nodes", t.nodes),
            ("store", "/store", t.store),
            ("locks", "/locks", t.locks),
            ("activity", "/activity", t.activity),
            ("help", "/help", t.help),
        ]
    }

    /// What a form has to carry.
    pub(super) fn form_token(&self) -> Option<&str> {
        self.who.as_ref()?.form_token.as_deref()
    }

    pub(super) fn switch_language(&self) -> String {
        let sign = if self.here.contains('?') { '&' } else { '?' };
        format!("{}{}{sign}lang={}", self.base, self.here, self.t.other.0)
    }

    /// This page's address without its query.
    pub(super) fn path(&self) -> &str {
        self.here.split('?').next().unwrap_or_default()
    }

    /// What the query says besides the choices of the form.
    pub(super) fn rest(&self) -> Vec<(String, String)> {
        let query = self.here.split_once('?').map_or("", |(_, query)| query);
        url::form_urlencoded::parse(query.as_bytes()).into_owned().collect()
    }

    pub(super) fn themes(&self) -> impl Iterator<Item = (&'static str, &'static str)> {
        Theme::ALL.map(Theme::as_str).into_iter().zip(self.t.frame.themes)
    }

    pub(super) fn refreshes(&self) -> impl Iterator<Item = (&'static str, &'static str)> {
        Updates::ALL.map(Updates::as_str).into_iter().zip(self.t.frame.refreshes)
    }

    /// Each state: its key, its word, what it means.
    pub(super) fn states(&self) -> impl Iterator<Item = (&'static str, &'static str, &'static str)> {
        let words = &self.t.words;
        Shown::ALL.into_iter().map(|state| (state.key(), (words.state)(state), (words.meaning)(state)))
    }
}

/// How times are told on a page.
pub(super) fn teller(setting: &Setting, reader: &Reader, shown: Option<&Snapshot>) -> Teller {
    let now = shown.filter(|shown| shown.is_read()).map_or(setting.clock, |shown| shown.store_time);
    Teller { zone: reader.zone.clone(), now, t: reader.t }
}

/// The role in the page's language.
pub(super) const fn role(t: &Texts, role: Role) -> &'static str {
    match role {
        Role::Viewer => t.frame.viewer,
        Role::Operator => t.frame.operator,
    }
}

fn zones(reader: &Reader) -> Vec<(String, String, bool)> {
    let mut zones = vec![Zone::UTC];
    zones.extend(Some(reader.zone.clone()).filter(|zone| *zone != Zone::UTC));
    zones.extend(ZONES.into_iter().filter_map(|zone| Zone::named(zone).ok()).filter(|zone| *zone != reader.zone));
    zones.iter().map(|zone| (zone.name().to_owned(), zone_name(zone), *zone == reader.zone)).collect()
}

fn pulse(shown: &Snapshot, tell: &Teller) -> Pulse {
    let t = &tell.t.frame;
    let store_well = shown.store.away_since.is_none() && shown.takes_changes();
    let latency = shown.store.latency_ms.map(|millis| format!("{millis} ms")).unwrap_or_default();
    let alive: Vec<&NodeView> = shown.nodes.iter().filter(|node| !node.state.is_gone()).collect();
    let lost = shown.nodes.iter().filter(|node| node.state == NodeState::Lost).count();
    let hash = alive.first().map(|node| node.config_hash.as_str()).unwrap_or_default();
    let same = alive.iter().all(|node| node.config_hash == hash);
    Pulse {
        store: match (store_well, shown.store.refuses, shown.unusable()) {
            (true, ..) => (t.store_well)(&latency).trim().to_owned(),
            (false, true, _) => t.store_refuses.to_owned(),
            (false, false, None) => t.store_away.to_owned(),
            (false, false, Some(_)) => t.store_unusable.to_owned(),
        },
        store_well,
        // Of what was not read none is known, not even that there is none.
        nodes: shown.is_read().then(|| (t.nodes_alive)(alive.len(), alive.len() + lost)),
        nodes_well: lost == 0 && !alive.is_empty(),
        files: match (same, hash.get(..DIGITS)) {
            (true, hash) => hash.map(t.files_same),
            (false, _) => Some(t.files_differ.to_owned()),
        },
        files_well: same,
        age: shown.age().map_or_else(|| t.reading.to_owned(), |age| (t.data_age)(&tell.span(age))),
    }
}

fn strips(setting: &Setting, shown: Option<&Snapshot>, tell: &Teller) -> Vec<Strip> {
    let t = &tell.t.frame;
    let mut strips = Vec::new();
    if setting.draining {
        strips.push(Strip { kind: "note", lines: vec![t.draining.to_owned()] });
    }
    let Some(shown) = shown else { return strips };
    let acts = setting.who.as_ref().is_some_and(|who| who.acts);
    let off = acts.then(|| tell.t.act.off_away.to_owned());
    let Some(error) = shown.store.error.as_ref() else {
        strips.extend(shown.unusable().map(|(since, error)| {
            let lines = [(t.unusable_since)(&tell.exact(since)), (t.away_why)(error)].into_iter().chain(off).collect();
            Strip { kind: "alarm", lines }
        }));
        return strips;
    };
    let since = shown.store.away_since.filter(|_| shown.is_read());
    let away = (t.away_since, t.away_since_unknown);
    let (told, unknown) = if shown.store.refuses { (t.refuses_since, t.refuses_since_unknown) } else { away };
    let head = since.map_or_else(|| unknown.to_owned(), |since| told(&tell.exact(since)));
    let advice = shown.store.refuses.then(|| t.refuses_do.to_owned());
    strips.push(Strip {
        kind: "away",
        lines: [head, (t.away_why)(error)].into_iter().chain(advice).chain(off).collect(),
    });
    strips
}

/// What the script says, in the page's language.
fn words(t: &Texts) -> String {
    let states: serde_json::Map<String, serde_json::Value> =
        Shown::ALL.into_iter().map(|state| (state.key().to_owned(), (t.words.state)(state).into())).collect();
    let attempted: Vec<&str> = Shown::ALL.into_iter().filter(|state| state.shows(2)).map(Shown::key).collect();
    let many = (t.home.cell_attempts)("{}", 0).replacen('0', "{}", 1);
    let one = (t.home.cell_attempts)("{}", 1).replacen('1', "{}", 1);
    let count = (t.home.cell_count)("{}", 0, 0).replace('0', "{}");
    let unread = (t.home.unread)(0).replacen('0', "{}", 1);
    json!({
        "units": t.time.units, "ago": t.time.ago, "ahead": t.time.ahead, "age": t.live.data_age,
        "live": t.live.live, "polling": t.live.polling, "off": t.live.off, "lost": t.live.lost,
        "moved": t.live.moved, "zone": t.live.browser_zone, "copied": t.slot.copied,
        "attempts": many, "attempt": one, "count": count, "unread": unread, "states": states, "attempted": attempted,
    })
    .to_string()
}
