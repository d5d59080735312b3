//! The pages over a cluster made by hand: what each says, in both languages, and that nothing of a user's text is more than text.

use std::sync::Arc;

use askama::Template;
use axum::http::HeaderMap;
use chrono::TimeDelta;

use crate::admin::actions::{HeldSlot, NotBegun};
use crate::admin::fixture::{self, at};
use crate::admin::lookup::SlotRef;
use crate::admin::why::tests::{about, page as notes};
use crate::admin::why::{self, Facts};
use crate::admin::{Catalog, PauseEndError, UnknownTarget};
use crate::board::{BoardRow, CellState, Concern, ConcernKind, Fault, Filter, HourCell, Snapshot, StoreStanding};
use crate::job::{JobName, JobSpec, LockName, Program};
use crate::node::TriggerRefusal;
use crate::observe::view::{
    JobView, LockEntryView, LockView, NoStart, NodeView, PauseView, SlotView, SuccessView, TickView,
};
use crate::resource::OwnerId;
use crate::schedule::Timetable;
use crate::slot::{Decision, Holder, Mark, Outcome, Slot, SlotKey, SlotRecord, SlotState, Verdict};
use crate::store::{Capability, JobEntry, JobOrigin, KeptPart, NodeEntry, Reach, StoreClock};
use crate::web::activity::Happened;
use crate::web::detail::ProblemDetail;
use crate::web::pages::cluster::{ActivityPage, LocksPage, NodesPage, StorePage};
use crate::web::pages::frame::{Frame, Setting, Who, teller};
use crate::web::pages::home::Home;
use crate::web::pages::job::{JobMaterial, JobPage};
use crate::web::pages::listing::Listing;
use crate::web::pages::now;
use crate::web::pages::plain::{ActPage, HelpPage, LoginPage, ProblemPage};
use crate::web::pages::reader::Reader;
use crate::web::pages::slot::{RunPage, SlotMaterial, SlotPage, sentence};
use crate::web::pages::state::{JudgedSlot, Shown};
use crate::web::pages::views::what;

const NOW: &str = "2026-11-21T14:12:00Z";

fn name(text: &str) -> JobName {
    JobName::new(text).unwrap()
}

fn cell(state: CellState, attempts: u16) -> HourCell {
    let due = u16::from(!matches!(state, CellState::NotDue | CellState::Unknown));
    HourCell { state, attempts, done: u16::from(state == CellState::Done), due, unread: 0 }
}

/// A row whose last cells are these.
fn row(job: &str, current: Option<SlotRecord>, cells: &[HourCell]) -> Arc<BoardRow> {
    let mut hours = vec![cell(CellState::Done, 1); 24 - cells.len()];
    hours.extend(cells);
    let entry = fixture::entry(job);
    let spec = JobSpec {
        description: Some(format!("what {job} does")),
        owner: Some("team-billing".to_owned()),
        runbook: Some("https://runbooks.example/billing".to_owned()),
        tags: vec!["erp".to_owned(), "nightly".to_owned()],
        ..JobSpec::new(name(job), "0 * * * *", Program::Direct(vec!["/bin/true".to_owned()]))
    };
    let view = JobView {
        current: current.map(|record| Arc::new(SlotView::of(&record, at(NOW), 3))),
        ..JobView::of(&entry, Some(at("2026-11-21T15:00:00Z")))
    };
    Arc::new(BoardRow { view, spec: Some(Arc::new(spec)), cells: hours, late: false })
}

fn paused(row: &BoardRow) -> Arc<BoardRow> {
    let mut row = row.clone();
    row.view.paused = PauseView::of(&fixture::pause(), at(NOW));
    Arc::new(row)
}

pub(in crate::web) fn snapshot() -> Snapshot {
    use CellState::{Done, Failed, Missed, NotDue, NotRead, Pending, Retrying, Running, Skipped, Unknown};
    let one = |state| cell(state, 1);
    let sub = |done| HourCell { state: Done, attempts: 1, done, due: 60, unread: 0 };
    let rows = vec![
        row("billing", Some(fixture::failed()), &[cell(Done, 2), one(Done), one(Done), cell(Failed, 3)]),
        row("cache-warm", Some(fixture::done()), &[sub(60), sub(60), sub(58), HourCell { state: Running, ..sub(11) }]),
        row("export-ledger", Some(fixture::running()), &[one(Done), one(Done), one(Missed), cell(Running, 2)]),
        paused(&row("mail-digest", Some(fixture::done()), &[one(Skipped), one(Skipped), one(Skipped), one(Skipped)])),
        row("new-job", None, &[one(Unknown), one(Unknown), one(NotDue), one(NotRead)]),
        row("retry-me", Some(fixture::waiting()), &[one(Done), one(Done), one(Done), one(Retrying)]),
        row("sweep", Some(fixture::untouched()), &[one(Done), one(Missed), one(Done), one(Pending)]),
        row("weekly-report", Some(fixture::done()), &[one(NotDue); 24]),
    ];
    let fault = Fault {
        attempts: 3,
        max_attempts: 3,
        node: Some(fixture::node("c")),
        outcome: Some(Outcome::Failure),
        exit_code: Some(1),
        signal: None,
        ended: Some(at("2026-11-21T14:01:53Z")),
        last_line: Some("<img src=x onerror=alert(1)> No space left on device".to_owned()),
    };
    let failing = ConcernKind::Failing {
        job: name("billing"),
        slot: "2026-11-21T14Z".parse().unwrap(),
        verdict: Verdict::Failed,
        slots: 1,
        fault: Some(fault),
        trying: false,
        too_late: false,
    };
    let missed = ConcernKind::Failing {
        job: name("sweep"),
        slot: "2026-11-21T12Z".parse().unwrap(),
        verdict: Verdict::Missed,
        slots: 1,
        fault: None,
        trying: false,
        too_late: false,
    };
    let files = ConcernKind::FilesDiffer { node: fixture::node("b"), jobs: vec![name("billing"), name("mail-digest")] };
    let since = |text: &str, what| Concern { since: at(text), what };
    let nodes: Vec<NodeEntry> = ["a", "b", "c"].map(|node| entry(node, if node == "b" { "2" } else { "1" })).to_vec();
    Snapshot {
        version: "boot-1".to_owned(),
        store_time: at(NOW),
        read_at: Some(at("2026-11-21T14:11:59Z")),
        store: StoreStanding {
            location: "redis://store.example:6379".to_owned(),
            kind: "redis",
            latency_ms: Some(1),
            tells: true,
            ..StoreStanding::default()
        },
        hours: (0..24).map(|hour| at("2026-11-20T15:00:00Z") + TimeDelta::hours(hour)).collect(),
        filled: 24,
        rows,
        nodes: NodeView::all(&nodes, at(NOW)).into(),
        concerns: Arc::new(vec![
            since("2026-11-21T14:01:53Z", failing),
            since("2026-11-21T13:00:00Z", missed),
            since("2026-11-21T14:00:00Z", files),
        ]),
        warnings: Vec::new(),
    }
}

fn entry(node: &str, hash: &str) -> NodeEntry {
    let mut report = fixture::report(node, at("2026-11-20T09:00:00Z"));
    report.job_hashes = [(name("billing"), hash.to_owned())].into();
    report.config_hash = format!("7f3c91{hash}aa");
    report.running = vec!["export-ledger@2026-11-21T14Z".to_owned()];
    NodeEntry { report, seen: at("2026-11-21T14:11:55Z") }
}

/// A reader of this address.
fn reader(query: &str) -> Reader {
    Reader::of(&format!("/{query}").parse().unwrap(), &HeaderMap::new())
}

fn setting(acts: bool) -> Setting {
    let who = Who { name: "ana".to_owned(), role: "operator", named: true, acts, form_token: None };
    Setting {
        base: "/ops/cron".to_owned(),
        namespace: "prod".to_owned(),
        has_login: true,
        draining: false,
        who: Some(who),
        clock: at(NOW),
    }
}

fn home(shown: &Snapshot, query: &str, acts: bool) -> String {
    let (setting, reader) = (setting(acts), reader(query));
    let frame = Frame::of(&setting, &reader, Some(shown), "hours", reader.t.home.title);
    let listing = Listing::of(query.trim_start_matches('?'));
    Home::of(frame, shown, &listing, acts, &teller(&setting, &reader, Some(shown))).render().unwrap()
}

/// A slot as a look into the store finds it.
fn judged(record: &SlotRecord, now: &str, enabled: bool) -> JudgedSlot {
    let entry = JobEntry { enabled, ..fixture::entry(record.slot.job().as_str()) };
    let catalog = Catalog::unite(None, vec![entry]).unwrap();
    let known = catalog.find(record.slot.job()).unwrap();
    JudgedSlot::of(known, record, at(now), fixture::KEPT)
}

/// The slot of three attempts, with output that would do harm.
fn slot(query: &str) -> String {
    let (shown, setting, reader) = (snapshot(), setting(true), reader(query));
    let mut record = fixture::failed();
    record.runs[2].message = Some("stopped <script>alert(1)</script>".to_owned());
    record.runs[2].output.as_mut().unwrap().text =
        "<script>alert(1)</script>\n\u{1b}[2J<img src=x onerror=alert(1)>\nNo space left on device\n".to_owned();
    let facts = about(record, "2026-11-21T12:12:00Z", vec![notes("a", &[Decision::Claimed { attempt: 1 }])]);
    let material = SlotMaterial {
        facts: &facts,
        slot: judged(&facts.record, "2026-11-21T12:12:00Z", true),
        spec: None,
        previous: Some("2026-11-21T11Z".to_owned()),
        following: None,
        did: None,
        acts: vec!["reset", "mark-done"],
        acts_off: false,
        kept: vec![("cronward:prod:{billing@2026-11-21T12Z}:log".to_owned(), KeptPart::Log)],
        client_command: [
            "redis-cli",
            "-u",
            "redis://h:6379/0?a=1&b=2",
            "GET",
            "cronward:prod:{billing@2026-11-21T12Z}",
        ]
        .map(str::to_owned)
        .to_vec(),
    };
    let frame = Frame::of(&setting, &reader, Some(&shown), "hours", "billing@2026-11-21T12Z");
    let tell = teller(&setting, &reader, Some(&Snapshot { store_time: facts.now, ..shown }));
    SlotPage::of(frame, material, &tell).render().unwrap()
}

fn text_of(html: &str) -> String {
    let mut text = String::new();
    let mut inside = false;
    for c in html.chars() {
        match c {
            '<' => inside = true,
            '>' => {
                inside = false;
                text.push(' ');
            }
            c if !inside => text.push(c),
            _ => {}
        }
    }
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// The words of a text that are not Chinese, but for these.
fn english_words<'a>(text: &'a str, names: &[&str]) -> Vec<&'a str> {
    let words = text
        .split(|c: char| !(c.is_ascii_alphabetic() || c == '_' || c == '-'))
        .map(|word| word.trim_start_matches('-'));
    words.filter(|word| word.len() > 2 && !names.contains(word)).collect()
}

/// What a page says by itself: without what surrounds it, and without lines of commands.
pub(in crate::web) fn said_by(page: &str) -> String {
    let main = page.split_once("<main id=\"main\">").and_then(|(_, rest)| rest.split_once("</main>"));
    let (main, _) = main.unwrap_or_else(|| panic!("{page}"));
    let mut parts = main.split("<code");
    let first = parts.next().unwrap_or_default().to_owned();
    text_of(&parts.fold(first, |said, part| said + part.split_once("</code>").unwrap().1))
}

/// Holds that a page has no English sentence but in names, and in words of commands and of the interface. Answers what it says.
pub(in crate::web) fn is_chinese(page: &str, names: &[&str]) -> String {
    let said = said_by(page);
    let usual =
        ["cronward", "config", "jobs", "toml", "reset", "unlock", "mark-done", "trigger", "past", "UTC", "billing"];
    let left = english_words(&said, &[&usual, names].concat());
    assert!(left.is_empty() && said.chars().any(is_han), "{left:?} in {said}");
    said
}

fn is_han(c: char) -> bool {
    ('\u{4e00}'..='\u{9fff}').contains(&c)
}

#[test]
fn what_needs_somebody_comes_first_with_its_hour_its_reason_and_the_one_action() {
    let page = text_of(&home(&snapshot(), "", true));
    let place = |text: &str| page.find(text).unwrap_or_else(|| panic!("{text}: {page}"));
    assert!(place("Needs you 3") < place("failed: 3 of 3 attempts used, exit 1 on c, nobody tries again"));
    assert!(place("No space left on device") < place("since 14:01:53 UTC · 10 min ago"));
    assert!(place("Run again…") < place("missed: no run succeeded before the slot ended"));
    assert!(place("Node b has a different file: billing, mail-digest") < place("Filter"));
    assert!(page.contains("6 of 8 jobs are well"), "{page}");
}

#[test]
fn the_same_is_said_in_chinese() {
    let page = home(&snapshot(), "?lang=zh", true);
    assert!(page.contains("<html lang=\"zh-CN\""), "{page}");
    let page = text_of(&page);
    for text in [
        "需要处理 3",
        "失败：3 次尝试已用 3 次，退出码 1",
        "节点 b 配置与其他节点不同：billing",
        "8 个任务中 6 个正常",
        "运行中，2 次尝试",
    ] {
        assert!(page.contains(text), "{text}: {page}");
    }
}

#[test]
fn who_may_not_act_sees_no_action() {
    for acts in [false, true] {
        assert_eq!(home(&snapshot(), "", acts).contains("Run again"), acts);
    }
    let away =
        Snapshot { store: StoreStanding { error: Some("refused".to_owned()), ..snapshot().store }, ..snapshot() };
    assert!(!home(&away, "", true).contains("Run again"), "nor while the store is away");
}

#[test]
fn every_cell_has_its_word_and_its_number_beside_its_colour() {
    let page = home(&snapshot(), "", false);
    for cell in [
        "<td class=\"c\" data-s=\"failed\" data-n=\"3\"><i>failed, 3 attempts</i></td>",
        "<td class=\"c\" data-s=\"done\" data-n=\"2\"><i>done, 2 attempts</i></td>",
        "<td class=\"c\" data-s=\"done\"><i>done</i></td>",
        "<td class=\"c\" data-s=\"done\" data-c=\"58\"><i>done, 58 of 60 done</i></td>",
        "<td class=\"c\" data-s=\"none\"><i>not due</i></td>",
        "<td class=\"c\" data-s=\"loading\"><i>loading</i></td>",
    ] {
        assert!(page.contains(cell), "{cell}: {page}");
    }
    for now in ["running on b since", "12:00 UTC missed", "paused", "11 of 60 done since 14:00 UTC"] {
        assert!(text_of(&page).contains(now), "{now}: {}", text_of(&page));
    }
}

#[test]
fn a_slot_that_was_missed_after_attempts_is_not_shown_as_if_nothing_had_run() {
    let (over, tried) = ("2026-11-21T13:10:00Z", SlotRecord { mark: Mark::Free, ..fixture::waiting() });
    let shown = snapshot();
    let mut of = (*row("billing", None, &[cell(CellState::Missed, 1)])).clone();
    of.view.current = Some(Arc::new(SlotView::of(&tried, at(over), 3)));
    let ConcernKind::Failing { fault, .. } = &shown.concerns[0].what else { panic!("{:?}", shown.concerns) };
    let missed = ConcernKind::Failing {
        job: name("billing"),
        slot: "2026-11-21T12Z".parse().unwrap(),
        verdict: Verdict::Missed,
        slots: 1,
        fault: fault.clone().map(|fault| Fault { attempts: 1, ..fault }),
        trying: false,
        too_late: false,
    };
    let concerns = Arc::new(vec![Concern { since: at(over), what: missed }]);
    let shown = Snapshot { rows: vec![Arc::new(of)], concerns, ..shown };
    let page = home(&shown, "", true);
    assert!(page.contains("data-s=\"missed\" data-n=\"1\"><i>missed, 1 attempt</i>"), "{page}");
    let page = text_of(&page);
    let whole = "missed: attempt 1 of 3 did not succeed, no retry before the slot ended";
    assert!(page.contains(&format!("{whole}, exit 1 on c")), "{page}");
    assert!(page.contains("12:00 UTC missed, attempt 1 of 3 did not succeed"), "{page}");
    let chinese = "错过：共 3 次尝试，第 1 次未成功，时间槽结束前没有重试";
    let page = text_of(&home(&shown, "?lang=zh", true));
    assert!(page.contains(&format!("{chinese}，退出码 1")), "{page}");
    assert!(page.contains("12:00 UTC 错过，共 3 次尝试，第 1 次未成功"), "{page}");
    for (lang, said) in [("", whole), ("?lang=zh", chinese)] {
        let tell = teller(&setting(true), &reader(lang), Some(&shown));
        assert_eq!(sentence(&judged(&tried, over, true), &tell), said);
        assert_ne!(sentence(&judged(&fixture::untouched(), over, true), &tell), said);
    }
}

#[test]
fn what_was_not_read_is_said_to_be_read_and_is_none_that_is_not_due() {
    let unread = |done, due, unread| HourCell { state: CellState::NotRead, attempts: 0, done, due, unread };
    let rows = vec![
        row("a-minute", Some(fixture::done()), &[unread(2, 2, 52)]),
        row("b-hour", None, &[unread(0, 0, 1)]),
        row("c-idle", None, &[cell(CellState::NotDue, 0)]),
    ];
    let shown = Snapshot { rows, concerns: Arc::default(), read_at: None, ..snapshot() };
    for (lang, said) in [
        (
            "",
            [
                "2 of 2 done since 14:00 UTC, 52 not read yet",
                "<i>loading, 2 of 2 done, 52 not read yet</i>",
                "<i>loading</i>",
                "</span>reading the store<",
                "<td class=\"t\">not due<",
            ],
        ),
        (
            "?lang=zh",
            [
                "自 14:00 UTC 起 2 次中完成 2 次，52 次尚未读取",
                "2 次中完成 2 次，52 次尚未读取</i>",
                "<i>读取中</i>",
                "</span>正在读取存储<",
                "<td class=\"t\">无调度<",
            ],
        ),
    ] {
        let page = home(&shown, lang, false);
        for said in said {
            assert!(page.contains(said), "{said}: {page}");
        }
    }
}

#[test]
fn what_a_disabled_job_did_not_run_is_disabled_and_not_missed_nor_pending() {
    let shown = snapshot();
    let mut off = (*row("sweep", Some(fixture::untouched()), &[cell(CellState::Disabled, 0)])).clone();
    off.view.enabled = false;
    let rows = vec![Arc::new(off)];
    let page = home(&Snapshot { rows, concerns: Arc::default(), ..shown }, "", false);
    assert!(page.contains("<td class=\"c\" data-s=\"disabled\"><i>disabled</i></td>"), "{page}");
    assert!(page.contains("data-s=\"disabled\"></span>disabled in the file"), "{page}");
    assert!(!text_of(&page).contains("missed 1") && !text_of(&page).contains("Run again"), "{page}");
    for (state, now) in [(SlotState::Pending, "2026-11-21T12:30:00Z"), (SlotState::Missed, "2026-11-21T18:00:00Z")] {
        let shown = |enabled| judged(&fixture::untouched(), now, enabled).shown();
        assert_eq!((shown(false), shown(true)), (Shown::Disabled, Shown::from(state)));
    }
    for ran in [fixture::failed(), fixture::done(), fixture::running()] {
        let slot = judged(&ran, NOW, false);
        assert_eq!(slot.shown(), Shown::from(slot.view.state), "what somebody ran is as it came out");
    }
}

#[test]
fn each_example_beside_the_end_of_a_pause_is_taken() {
    for lang in ["en", "zh"] {
        let hint = reader(&format!("?lang={lang}")).t.act.until_hint;
        let words = hint.split(|at: char| at == ' ' || at == ',' || at == ';' || !at.is_ascii());
        let examples: Vec<&str> = words.filter(|word| word.starts_with(|first: char| first.is_ascii_digit())).collect();
        assert_eq!(examples.len(), 3, "{hint}");
        for example in examples {
            assert!(crate::admin::actions::until(example, at(NOW)).is_ok(), "{lang}: {example}");
        }
    }
}

#[test]
fn who_looks_at_more_hours_shows_nobody_else_more() {
    let shown = snapshot();
    let more: Vec<_> = (0..168).map(|hour| at("2026-11-14T15:00:00Z") + TimeDelta::hours(hour)).collect();
    let wide = |row: &Arc<BoardRow>| {
        let cells = vec![cell(CellState::Missed, 0); 144].into_iter().chain(row.cells.iter().copied()).collect();
        Arc::new(BoardRow { cells, ..(**row).clone() })
    };
    let wide = Snapshot { hours: more, filled: 30, rows: shown.rows.iter().map(wide).collect(), ..shown.clone() };
    assert_eq!(home(&wide, "", true), home(&shown, "", true));
    let asked = home(&wide, "?hours=168", true);
    assert_eq!(asked.matches("data-hour=\"").count(), 168);
    assert!(asked.contains("Read 30 of 168 hours"), "{asked}");
}

#[test]
fn a_slot_that_nobody_has_claimed_is_due_from_its_tick_on_and_not_from_its_start() {
    use CellState::{Done, NotDue, Pending};
    let (setting, reader, shown) = (setting(false), reader(""), snapshot());
    let tell = teller(&setting, &reader, Some(&shown));
    let now = |start: &str, end: &str, cells: &[CellState]| {
        let slot = SlotRecord::untouched(Slot::parse("sweep", start, end).unwrap());
        let cells: Vec<_> = cells.iter().map(|state| cell(*state, 0)).collect();
        now::of(&row("sweep", Some(slot), &cells), &tell)
    };
    let is = |key, text: &str| (key, text.to_owned());
    let (not_due, due) = (is(None, "not due"), is(Some("pending"), "due, not claimed yet"));
    assert_eq!(now("2026-11-21T14Z", "2026-11-21T15Z", &[Done, NotDue]), not_due, "its tick is to come");
    assert_eq!(now("2026-11-21T14Z", "2026-11-21T15Z", &[Done, Pending]), due, "its tick has come");
    assert_eq!(now("2026-11-21T00Z", "2026-11-22T00Z", &[Pending, NotDue]), due, "its tick was in an hour before");
    assert_eq!(now("2026-11-21T15Z", "2026-11-21T16Z", &[Done, NotDue]), not_due, "it has not begun");
}

#[test]
fn no_run_is_announced_that_a_pause_or_missing_labels_keep() {
    let (setting, reader, shown) = (setting(false), reader(""), snapshot());
    let tell = teller(&setting, &reader, Some(&shown));
    let busy = HourCell { due: 60, ..cell(CellState::Pending, 0) };
    let mut lone = (*row("sweep", Some(fixture::untouched()), &[busy])).clone();
    lone.view.no_start = Some(NoStart::NoNode);
    let why = "no live node that has the job in its file has the labels of its only_on";
    assert_eq!(now::of(&lone, &tell).1, why);
    let only = |row: Arc<BoardRow>| {
        text_of(&home(&Snapshot { rows: vec![row], concerns: Arc::default(), ..snapshot() }, "", false))
    };
    let plain = row("mail-digest", Some(fixture::done()), &[]);
    assert!(only(Arc::clone(&plain)).contains("15:00 UTC"));
    assert!(!only(paused(&plain)).contains("15:00 UTC"));
    for (record, begins) in [
        (fixture::untouched(), "pending: no node starts it by itself: paused"),
        (fixture::waiting(), "not done: 1 of 3 attempts used, no node tries again by itself: paused"),
    ] {
        let mut slot = judged(&record, "2026-11-21T12:30:00Z", true);
        slot.paused = true;
        assert_eq!(sentence(&slot, &tell).trim_end_matches('.'), begins);
    }
}

#[test]
fn nothing_that_a_user_wrote_is_more_than_text() {
    for page in [home(&snapshot(), "?q=%3Cscript%3E%22%27", true), slot("")] {
        for harm in ["<img src=x", "<script>alert", "\u{1b}", "value=\"<script", "style="] {
            assert!(!page.contains(harm), "{harm}: {page}");
        }
        assert_eq!(page.matches("<script").count(), 1, "the one of the page");
    }
    assert!(slot("").contains("&#60;script&#62;alert(1)&#60;/script&#62;\n\\x1b[2J&#60;img src=x"), "{}", slot(""));
}

#[test]
fn each_link_is_below_the_base() {
    for page in [home(&snapshot(), "", true), slot("")] {
        for part in page.split("href=\"").chain(page.split("action=\"")).chain(page.split("src=\"")).skip(1) {
            let address = part.split('"').next().unwrap_or_default();
            let own = address.starts_with("/ops/cron/")
                || address.starts_with("https://runbooks")
                || address.starts_with('#');
            assert!(
                own || !part.contains('"') || address.starts_with('<') || address.is_empty() || address == "/ops/cron",
                "{address}"
            );
        }
    }
}

#[test]
fn each_link_has_words_where_no_node_is_known_as_well() {
    let shown = snapshot();
    for page in [home(&shown, "", true), home(&Snapshot { nodes: Arc::default(), ..shown }, "", true)] {
        for link in page.split("<a ").skip(1).filter_map(|part| part.split("</a>").next()) {
            assert_ne!(link.split_once('>').map(|(_, shown)| text_of(shown)), Some(String::new()), "<a {link}");
        }
    }
}

#[test]
fn a_node_that_leaves_says_so_on_its_pages_and_one_that_stays_does_not() {
    for (lang, told) in [("en", "This node is leaving."), ("zh", "本节点正在退出")] {
        let query = format!("?lang={lang}");
        let strip = |draining: bool| {
            let setting = Setting { draining, ..setting(false) };
            let frame = Frame::of(&setting, &reader(&query), None, "help", "Help");
            text_of(&HelpPage { frame }.render().unwrap())
        };
        assert!(strip(true).contains(told), "{}", strip(true));
        assert!(!strip(false).contains(told), "{lang}");
    }
}

#[test]
fn every_empty_and_every_broken_state_says_so() {
    let shown = snapshot();
    let text = |shown: &Snapshot, query: &str| text_of(&home(shown, query, false));
    let calm = Snapshot { concerns: Arc::default(), ..shown.clone() };
    assert!(
        text(&calm, "").contains("Nothing needs you. Looked at 14:11:59 UTC; 8 jobs, no failure known."),
        "{}",
        text(&calm, "")
    );
    let empty = Snapshot { rows: Vec::new(), concerns: Arc::default(), ..shown.clone() };
    assert!(text(&empty, "").contains("[jobs.hello]") && text(&empty, "").contains("cronward exec --job hello"));
    assert!(text(&shown, "?q=nothing").contains("No job matches nothing. Show all jobs"));
    assert!(text(&shown, "?q=colour:red").contains("colour"), "{}", text(&shown, "?q=colour:red"));
    let filling = Snapshot { filled: 9, ..shown.clone() };
    assert!(text(&filling, "").contains("Read 9 of 24 hours, newest first."));
    let unread = Snapshot { read_at: None, rows: Vec::new(), concerns: Arc::default(), ..shown.clone() };
    assert!(text(&unread, "").contains("reading the store") && !text(&unread, "").contains("Nothing needs you"));
    assert!(!text(&unread, "").contains("all 0") && !text(&unread, "").contains("nodes 0/0"), "{}", text(&unread, ""));
    let store = StoreStanding {
        away_since: Some(at("2026-11-21T14:02:11Z")),
        error: Some("connection refused".to_owned()),
        ..shown.store.clone()
    };
    let away = Snapshot { store, ..shown };
    let page = text(&away, "");
    assert!(page.contains("The store has been unreachable since 14:02:11 UTC"), "{page}");
    assert!(page.contains("Last error: connection refused") && page.contains("store unreachable"), "{page}");
    assert!(!page.contains("cronward doctor"), "{page}");
    let refuses = StoreStanding { refuses: true, error: Some("WRONGPASS".to_owned()), ..away.store.clone() };
    let concern = Concern { since: at(NOW), what: ConcernKind::StoreRefuses { error: "WRONGPASS".to_owned() } };
    let refused = Snapshot { store: refuses, concerns: Arc::new(vec![concern]), ..away };
    let page = text(&refused, "");
    for told in [
        "The store has refused this node since 14:02:11 UTC",
        "Last error: WRONGPASS",
        "`cronward doctor` on this node says what to change",
        "store refuses this node",
        "the store refuses this node, and `cronward doctor` says what to change: WRONGPASS",
    ] {
        assert!(page.contains(told), "{told}: {page}");
    }
    assert!(!page.contains("unreachable"), "{page}");
    let unread = Snapshot { read_at: None, ..refused };
    assert!(text(&unread, "").contains("The store refuses this node. Nothing is known yet."));
}

#[test]
fn a_store_that_is_full_is_told_on_each_page_and_nothing_is_offered_that_it_would_not_take() {
    let shown = snapshot();
    let acts = "/retry\">";
    assert!(home(&shown, "", true).contains(acts) && !text_of(&home(&shown, "", true)).contains("Actions are off"));
    let full = ConcernKind::StoreUnusable { error: "it is out of memory".to_owned() };
    let mut concerns = vec![Concern { since: at("2026-11-21T14:02:11Z"), what: full }];
    concerns.extend(shown.concerns.iter().cloned());
    let full = Snapshot { concerns: Arc::new(concerns), ..shown };
    let page = home(&full, "", true);
    assert!(!full.takes_changes() && !page.contains(acts), "{page}");
    let told = text_of(&page);
    for said in [
        "This node has not been able to use the store since 14:02:11 UTC, though the store answers.",
        "Last error: it is out of memory",
        "Actions are off while the store cannot be used.",
        "store cannot be used",
    ] {
        assert!(told.contains(said), "{said}: {told}");
    }
    assert!(!told.contains("unreachable"), "{told}");
    let viewer = text_of(&home(&full, "?lang=zh", false));
    assert!(viewer.contains("自 14:02:11 UTC 起本节点无法使用存储，但存储有响应。"), "{viewer}");
    assert!(!viewer.contains("无法执行操作"), "{viewer}");
}

#[test]
fn no_attempt_is_promised_where_no_node_makes_one() {
    let (setting, now) = (setting(false), "2026-11-21T12:30:00Z");
    let waiting = SlotRecord { mark: crate::slot::Mark::Free, ..fixture::waiting() };
    for (query, retrying, pending) in [
        (
            "",
            "not done: 1 of 3 attempts used, no node tries again by itself: ",
            "pending: no node starts it by itself: ",
        ),
        ("?lang=zh", "未完成：已使用 1/3 次尝试，没有节点会自动重试：", "待执行：没有节点会自动启动："),
    ] {
        let reader = reader(query);
        let tell = teller(&setting, &reader, Some(&Snapshot { store_time: at(now), ..snapshot() }));
        let mut slot = judged(&waiting, now, true);
        assert!(!sentence(&slot, &tell).starts_with(retrying), "{}", sentence(&slot, &tell));
        slot.no_start = Some(NoStart::TooLate);
        assert!(sentence(&slot, &tell).starts_with(retrying), "{}", sentence(&slot, &tell));
        let mut slot = judged(&fixture::untouched(), now, true);
        slot.no_start = Some(NoStart::TooLate);
        assert!(sentence(&slot, &tell).starts_with(pending), "{}", sentence(&slot, &tell));
    }
}

#[test]
fn a_slot_in_which_nothing_happened_is_not_missed_where_nobody_was_to_run_it() {
    let record = |start: &str, end: &str| SlotRecord::untouched(Slot::parse("billing", start, end).unwrap());
    // Known since the start of November 1; records are kept for a week.
    let (older, last) = (record("2026-10-31T23Z", "2026-11-01T00Z"), record("2026-11-21T11Z", "2026-11-21T12Z"));
    let old = record("2026-11-14T11Z", "2026-11-14T12Z");
    let between = record("2026-11-21T11:30Z", "2026-11-21T11:45Z");
    for (slot, now, shown, english, chinese) in [
        (&last, "2026-11-21T12:00:00Z", Shown::Missed, "missed: the slot ended", "错过："),
        (&last, "2026-11-21T11:00:00Z", Shown::Pending, "pending: due", "待执行："),
        (
            &last,
            "2026-11-21T10:30:00Z",
            Shown::NotDue,
            "not due: scheduled for 11:00 UTC, in 30 min",
            "未到时间：调度时间为 11:00 UTC",
        ),
        (
            &between,
            "2026-11-21T12:00:00Z",
            Shown::NotDue,
            "not due: the schedule has no time in this slot",
            "未到时间：",
        ),
        (&older, "2026-11-01T01:00:00Z", Shown::Unknown, "unknown: no node had the job", "未知：该时间槽内没有节点"),
        (&old, "2026-11-21T12:00:00Z", Shown::Missed, "missed: the slot ended", "错过："),
        (&old, "2026-11-21T12:00:01Z", Shown::Unknown, "unknown: the slot is older than", "未知：该时间槽早于"),
    ] {
        let slot = judged(slot, now, true);
        assert_eq!(slot.shown(), shown, "{now}");
        for (query, said) in [("", english), ("?lang=zh", chinese)] {
            let (setting, reader) = (setting(false), reader(query));
            let tell = teller(&setting, &reader, Some(&Snapshot { store_time: at(now), ..snapshot() }));
            let told = sentence(&slot, &tell);
            assert!(told.starts_with(said), "{said}: {told}");
        }
    }
}

#[test]
fn a_slot_says_its_state_its_reason_and_what_mends_it() {
    let page = text_of(&slot(""));
    for text in [
        "failed: 3 of 3 attempts used, nobody tries again",
        "cronward reset billing@2026-11-21T12Z",
        "Attempt 3 · c · timeout",
        "Attempt 1 · a · exit 1",
        "4096 bytes came before and were not kept",
        "unlock alice (ops-1) node b is\\ngone",
        "cronward logs billing@2026-11-21T12Z",
        "{billing@2026-11-21T12Z}:log each attempt, verdict, audit",
        "redis-cli -u &#39;redis://h:6379/0?a=1&#38;b=2&#39; GET &#39;cronward:prod:{billing@2026-11-21T12Z}&#39;",
    ] {
        assert!(page.contains(text), "{text}: {page}");
    }
}

/// A store as a Redis is.
fn redis() -> Capability {
    let least = Capability::new("redis", Reach::Network, StoreClock::Server);
    Capability { push: true, expires_records: true, locks: true, tells_changes: true, messages: true, ..least }
}

#[test]
fn the_page_of_the_store_says_what_it_can_do_in_the_readers_language() {
    let page = |query: &str, capability: &Capability| {
        let (shown, setting, reader) = (snapshot(), setting(false), reader(query));
        let frame = Frame::of(&setting, &reader, Some(&shown), "store", "store");
        let tell = teller(&setting, &reader, Some(&shown));
        text_of(&StorePage::of(frame, &shown, capability, None, false, &tell).render().unwrap())
    };
    let all = "Capabilities for nodes over the network · the server's clock · wakes waiting nodes · may lose what it acknowledged · keeps locks";
    assert!(page("", &redis()).replace("&#39;", "'").contains(all), "{}", page("", &redis()));
    let file = Capability { durable: true, ..Capability::new("sqlite", Reach::Host, StoreClock::Host) };
    let said = page("?lang=zh", &file);
    let all =
        "能力 仅供同一主机上的进程使用 · 以主机时钟为准 · 等待的节点每 1 秒 查询一次 · 已确认的写入不会丢失 · 不支持锁";
    assert!(said.contains(all), "{said}");
}

#[test]
fn the_hours_are_labelled_in_the_readers_zone() {
    let page = text_of(&home(&snapshot(), "?zone=Asia/Kolkata", false));
    assert!(page.contains("hours in Kolkata (:30)"), "{page}");
    assert!(page.contains("since 19:31:53 Kolkata"), "{page}");
    let page = text_of(&home(&snapshot(), "?zone=Asia/Shanghai", false));
    assert!(page.contains("hours in Shanghai") && page.contains("since 22:01:53 Shanghai"), "{page}");
}

#[test]
fn a_job_that_is_late_says_for_how_long_nothing_succeeded_and_leads_to_its_page() {
    let late = ConcernKind::Late {
        job: name("sweep"),
        last_success: Some(at("2026-11-21T08:00:00Z")),
        alert_after: std::time::Duration::from_secs(2 * 3_600),
    };
    let concern = Concern { since: at("2026-11-21T10:00:00Z"), what: late };
    let shown = Snapshot { concerns: Arc::new(vec![concern]), ..snapshot() };
    let page = home(&shown, "", true);
    let text = text_of(&page);
    assert!(text.contains("warning sweep late: no success for more than 2 h · since 10:00 UTC · 4 h ago"), "{text}");
    assert!(page.contains("href=\"/ops/cron/jobs/sweep\""), "{page}");
    let page = text_of(&home(&shown, "?lang=zh", true));
    assert!(page.contains("延迟：超过 2 小时没有成功"), "{page}");
}

/// The job of the slots above: the newest failed, one is missed, one is done.
fn job(query: &str, acts: bool) -> String {
    job_under(None, query, acts)
}

/// The same job under a pause.
fn job_under(pause: Option<PauseView>, query: &str, acts: bool) -> String {
    let (mut shown, setting, reader) = (snapshot(), setting(acts), reader(query));
    let mut billing = (*shown.rows[0]).clone();
    let mut spec = (*billing.spec.unwrap()).clone();
    spec.policy.timeout = Some(std::time::Duration::from_secs(1));
    billing.view.timezone = "America/Sao_Paulo".to_owned();
    billing.view.paused = pause;
    spec.command.program = Program::Direct(vec!["/opt/bill".to_owned(), "--password=hunter2".to_owned()]);
    billing.spec = Some(Arc::new(spec));
    billing.view.latest.success =
        Some(SuccessView { slot: "2026-11-21T10Z".to_owned(), at: at("2026-11-21T10:00:02Z") });
    shown.rows[0] = Arc::new(billing.clone());
    let hour = |record: SlotRecord, start: &str, end: &str| {
        judged(&SlotRecord { slot: Slot::parse("billing", start, end).unwrap(), ..record }, NOW, true)
    };
    let missed = hour(fixture::untouched(), "2026-11-21T11Z", "2026-11-21T12Z");
    let done = hour(fixture::done(), "2026-11-21T10Z", "2026-11-21T11Z");
    let slots = vec![judged(&fixture::failed(), NOW, true), missed, done];
    let timetable = Timetable::parse(name("billing"), "0 * * * *", "America/Sao_Paulo", "hour").unwrap();
    let tick = |at_: &str, notes: &[&str]| {
        let slot = timetable.slot_at(at(at_)).unwrap();
        TickView::of(&slot, at(at_), at_.to_owned(), notes.iter().map(|note| (*note).to_owned()).collect())
    };
    let ticks = vec![tick("2026-11-21T15:00:00Z", &[]), tick("2026-11-23T06:00:00Z", &["the hour is skipped here"])];
    let material = JobMaterial {
        row: &billing,
        timetable: &timetable,
        slots,
        unreadable: vec!["s: inspect: billing: another type".to_owned()],
        ticks,
        hour: None,
        older: Some("/jobs/billing?before=2026-11-21T10Z".to_owned()),
        did: Some("Recorded: resume.".to_owned()),
        acts,
    };
    let frame = Frame::of(&setting, &reader, Some(&shown), "hours", "billing");
    JobPage::of(frame, &shown, material, &teller(&setting, &reader, Some(&shown))).render().unwrap()
}

#[test]
fn a_job_says_when_it_runs_whose_it_is_what_it_came_to_lately_and_what_comes() {
    let page = job("", true);
    let text = text_of(&page);
    for said in [
        "billing nobody tries again what billing does",
        "Recorded: resume.",
        "Nodes with a different definition: b",
        "Run now… Pause…",
        "Schedule 0 * * * * · ",
        "Time zone Sao Paulo Slot hour",
        "Owner team-billing Tags erp, nightly Attempts per slot 3 Timeout 1 s",
        "Defined in jobs.toml, [jobs.billing], /opt/bill Known from jobs.toml",
        "Last success 10:00:02 UTC",
        "Runbook https://runbooks.example/billing",
        "Last 3 slots median 1.5 s, 95 % within 1.5 s",
        "2026-11-21T12Z failed, 3 attempts 1.5 s a, b, c",
        "2026-11-21T11Z missed – –",
        "2026-11-21T10Z done 1.5 s a",
        "Older slots",
        "Next scheduled times 15:00 UTC in 48 min Mon 06:00 UTC in 39 h the hour is skipped here",
    ] {
        assert!(text.contains(said), "{said}: {text}");
    }
    let offered = page.matches("<option value=\"America/Sao_Paulo\"").count();
    assert_eq!(offered, 1, "the job's zone can be chosen: {page}");
    assert!(!page.contains("hunter2"), "arguments are not for all who look: {text}");
    for part in [
        "<a href=\"/ops/cron/jobs/billing/2026-11-21T12Z\">2026-11-21T12Z</a>",
        "<a href=\"/ops/cron/jobs/billing?before=2026-11-21T10Z\">",
        "<a class=\"button\" href=\"/ops/cron/jobs/billing/trigger\">",
        "<a href=\"https://runbooks.example/billing\" rel=\"noreferrer noopener\">",
        "aria-label=\"How long the last 3 slots ran, oldest on the left\"",
        "<title>2026-11-21T12Z: failed, 1.5 s</title>",
        "<rect data-s=\"missed\" class=\"hollow\"",
        "<line class=\"limit\" x1=\"0\" x2=\"600\" y1=\"43\" y2=\"43\"><title>Timeout 1.0 s</title>",
    ] {
        assert!(page.contains(part), "{part}: {page}");
    }
    assert!(page.find("2026-11-21T10Z: done").unwrap() < page.find("2026-11-21T12Z: failed").unwrap());
    assert!(!text_of(&job("", false)).contains("Run now…"), "who may not act sees no action");
    let local = text_of(&job("?zone=Asia/Kolkata", false));
    assert!(local.contains("2026-11-21T12Z 17:30 Kolkata failed"), "{local}");
}

#[test]
fn the_page_of_a_job_counts_its_current_slot_among_those_that_failed_in_a_row() {
    // Three attempts of the slot of 12:00 have failed; its verdict comes when it is over.
    assert!(text_of(&job("", true)).contains("Failing since 2026-11-21T12Z (1 slot)"), "{}", text_of(&job("", true)));
}

#[test]
fn a_paused_job_names_the_person_the_reason_the_end_and_the_times_that_the_pause_covers() {
    let pause = |until: Option<&str>| PauseView {
        since: at("2026-11-21T13:00:00Z"),
        until: until.map(at),
        who: "ana".to_owned(),
        host: "ops-1".to_owned(),
        why: "database move".to_owned(),
    };
    let text = text_of(&job_under(Some(pause(Some("2026-11-22T00:00:00Z"))), "", true));
    for said in [
        "Paused by ana on ops-1 at 13:00 UTC · database move · paused until Sun 00:00 UTC",
        "15:00 UTC in 48 min paused",
        "the hour is skipped here",
    ] {
        assert!(text.contains(said), "{said}: {text}");
    }
    assert!(!text.contains("the hour is skipped here paused"), "the pause has ended by then: {text}");
    let open = text_of(&job_under(Some(pause(None)), "", true));
    assert!(open.contains("the hour is skipped here paused"), "{open}");
}

#[test]
fn the_attempts_of_a_slot_lie_on_the_lanes_of_their_nodes_as_they_came() {
    let page = slot("");
    let lanes: Vec<&str> = page.split("<li><span>").skip(1).collect();
    let names: Vec<&str> = lanes.iter().filter_map(|lane| lane.split('<').next()).collect();
    assert_eq!(names, ["a", "b", "c"]);
    assert!(page.contains("3 attempts on their nodes, from left to right"), "{page}");
    // From 12:00:00.020 to 12:02:01.520: a failed at once, b began a minute later and is not heard of, c ran out of time at last.
    let bars: Vec<Vec<&str>> = lanes.iter().map(|lane| lane.split("<rect ").skip(1).collect()).collect();
    assert!(bars.iter().all(|bars| bars.len() == 1), "{bars:?}");
    for (lane, state, from, to) in [(0, "failed", 0, 20), (1, "missed", 480, 500), (2, "failed", 980, 1_000)] {
        let bar = bars[lane][0];
        let number = |name: &str| -> u32 {
            let text = bar.split(&format!(" {name}=\"")).nth(1).unwrap();
            text.split('"').next().unwrap().parse().unwrap()
        };
        assert!(bar.contains(&format!("data-s=\"{state}")), "{bar}");
        assert!(number("x") >= from && number("x") + number("width") <= to, "{bar}");
    }
    for title in ["1: exit 1, 12:00 UTC to 12:00:01 UTC", "2: crashed, 12:01 UTC", "3: timeout, 12:02 UTC to"] {
        assert!(page.contains(&format!("<title>{title}")), "{title}: {page}");
    }
}

/// A lock of two places that two hold, and for which two wait.
fn lock() -> LockView {
    let entry = |place: u64, node: &str, label: &str, holds: bool, age_s: f64| LockEntryView {
        place,
        token: fixture::token(1),
        owner: OwnerId::of_text(label),
        node: fixture::node(node),
        label: label.to_owned(),
        demand: "gpu:1/2".to_owned(),
        weight: 1,
        of: Some(2),
        holds,
        ahead: 0,
        waits_for: None,
        deadlocked: node == "c",
        fence: None,
        asked: None,
        since: None,
        age_s,
        remaining_s: 30.0,
    };
    let queue = vec![
        entry(1, "a", "train@2026-11-21T14Z", true, 75.0),
        entry(2, "b", "<b>\u{1b}[2J", true, 9.5),
        entry(3, "c", "eval@2026-11-21T14Z", false, 3.0),
        entry(4, "a", "", false, 1.0),
    ];
    let lock = LockName::new("gpu").unwrap();
    LockView { lock, held: 2, limit: Some(2), waiting: 2, oldest_wait_s: Some(3.0), queue, audit: Vec::new() }
}

#[test]
fn a_lock_says_who_holds_it_and_who_waits_in_the_order_of_the_queue() {
    let (shown, setting, reader) = (snapshot(), setting(false), reader(""));
    let tell = teller(&setting, &reader, Some(&shown));
    let of = |locks: Option<&[LockView]>| {
        let frame = Frame::of(&setting, &reader, Some(&shown), "locks", "Locks");
        LocksPage::of(frame, locks, &tell).render().unwrap()
    };
    let page = of(Some(&[lock(), LockView { queue: lock().queue[..1].to_vec(), limit: None, held: 1, ..lock() }]));
    let text = text_of(&page);
    for said in [
        "Lock Held Held by Waiting gpu 2/2 \
         a · train@2026-11-21T14Z · gpu:1/2 · 75 s b · &#60;b&#62;\\x1b[2J · gpu:1/2 · 9.5 s \
         c · eval@2026-11-21T14Z · gpu:1/2 · 3.0 s · deadlock: each waits for another of these a · gpu:1/2 · 1.0 s",
        "gpu 1/unlimited a · train@2026-11-21T14Z · gpu:1/2 · 75 s –",
    ] {
        assert!(text.contains(said), "{said}: {text}");
    }
    assert!(text_of(&of(Some(&[]))).contains("No lock is held or waited for."));
    assert!(text_of(&of(None)).contains("This store keeps no locks."));
}

#[test]
fn a_node_whose_heartbeat_is_overdue_is_late_on_its_page_and_not_alive() {
    let mut node = entry("a", "1");
    node.seen = at(NOW) - TimeDelta::seconds(12);
    let shown = Snapshot { nodes: NodeView::all(&[node], at(NOW)).into(), ..snapshot() };
    for (lang, said) in [("", "late: the heartbeat is overdue 12 s ago"), ("?lang=zh", "迟到：心跳逾期 12 秒前")]
    {
        let (setting, reader) = (setting(false), reader(lang));
        let frame = Frame::of(&setting, &reader, Some(&shown), "nodes", "Nodes");
        let page = text_of(&NodesPage::of(frame, &shown, &teller(&setting, &reader, Some(&shown))).render().unwrap());
        assert!(page.contains(said), "{said}: {page}");
    }
}

#[test]
fn the_nodes_are_told_with_their_state_their_clock_their_file_and_what_they_run() {
    let (mut shown, setting, reader) = (snapshot(), setting(false), reader(""));
    let mut nodes: Vec<NodeEntry> = ["a", "b", "c", "d", "e"].map(|node| entry(node, "1")).to_vec();
    nodes[0].report.labels = [("gpu".to_owned(), "yes".to_owned())].into();
    nodes[1].report.job_hashes = [(name("billing"), "2".to_owned())].into();
    nodes[1].report.clock_offset_ms = -2_500;
    nodes[2].report.draining = true;
    nodes[2].report.running = Vec::new();
    nodes[3].report.stopped = true;
    (nodes[3].seen, nodes[4].seen) = (at("2026-11-21T13:00:00Z"), at("2026-11-21T14:10:00Z"));
    shown.nodes = NodeView::all(&nodes, at(NOW)).into();
    let tell = teller(&setting, &reader, Some(&shown));
    let of = |shown: &Snapshot| {
        let frame = Frame::of(&setting, &reader, Some(shown), "nodes", "Nodes");
        NodesPage::of(frame, shown, &tell).render().unwrap()
    };
    let page = of(&shown);
    let text = text_of(&page);
    for said in [
        "a alive 5 s ago 2026-11-20 09:00 UTC 0.1.0 +0.000 s 7f3c911a – export-ledger@2026-11-21T14Z gpu=yes",
        "b alive 5 s ago 2026-11-20 09:00 UTC 0.1.0 -2.500 s 7f3c911a Differs in: billing",
        "c draining: begins no more runs 5 s ago 2026-11-20 09:00 UTC 0.1.0 +0.000 s 7f3c911a – – –",
        "d stopped cleanly 72 min ago",
        "e lost: no heartbeat 2 min ago",
        // The lost one counts, the stopped one does not.
        "nodes 3/4",
    ] {
        assert!(text.contains(said), "{said}: {text}");
    }
    for part in [
        "<td data-h=\"Clock offset\" class=\"warn\">-2.500 s</td>",
        "<td data-h=\"Clock offset\">+0.000 s</td>",
        "<a href=\"/ops/cron/jobs/export-ledger/2026-11-21T14Z\">export-ledger@2026-11-21T14Z</a>",
        "<span class=\"g\" data-s=\"failed\"></span>lost",
    ] {
        assert!(page.contains(part), "{part}: {page}");
    }
    shown.nodes = Arc::default();
    assert!(text_of(&of(&shown)).contains("No heartbeat in what the store keeps. Start a node with: cronward run"));
}

/// Every page, for a person to look at and for the checker of HTML: `CRONWARD_PAGES=FOLDER`.
#[test]
fn every_page_can_be_written() {
    let shown = snapshot();
    let mut pages = Vec::new();
    for language in ["en", "zh"] {
        let query = format!("?lang={language}");
        let (setting, reader) = (setting(true), reader(&query));
        let tell = teller(&setting, &reader, Some(&shown));
        let frame = |current| Frame::of(&setting, &reader, Some(&shown), current, "page");
        let view = SlotView::of(&fixture::failed(), at(NOW), 3);
        let run = RunPage::of(frame("hours"), &view, 3, &tell).unwrap();
        let act = ActPage {
            frame: frame("hours"),
            back: "/jobs/billing/2026-11-21T12Z".to_owned(),
            heading: (reader.t.act.heading)("unlock", "billing@2026-11-21T12Z"),
            glyph: "failed",
            sentence: Some("failed".to_owned()),
            changed: true,
            objection: Some("billing@2026-11-21T12Z is done, not failed".to_owned()),
            blocked: None,
            undo_words: None,
            until: String::new(),
            action: "/jobs/billing/2026-11-21T12Z/unlock".to_owned(),
            effect: "3 attempts no longer count".to_owned(),
            undo: Some("cronward unlock".to_owned()),
            command: Some("cronward reset billing@2026-11-21T12Z".to_owned()),
            token: Some("t".to_owned()),
            expect: Some("failed".to_owned()),
            past: true,
            has_until: true,
            confirm: Some((reader.t.act.confirm)("billing")),
            required: true,
            reason: String::new(),
            audited: (reader.t.act.audited)("ana"),
            submit: (reader.t.act.label)("unlock").to_owned(),
        };
        let problem = ProblemPage {
            frame: frame(""),
            heading: (reader.t.other_pages.problem)(404),
            status: 404,
            advice: (reader.t.other_pages.problem_do)(404),
            detail: ProblemPage::detail("no job <b>: denied by <b>".to_owned(), Some("denied by <b>")),
            login: true,
        };
        let all = [
            ("home", home(&shown, &query, true)),
            ("slot", slot(&query)),
            ("run", run.render().unwrap()),
            ("act", act.render().unwrap()),
            ("problem", problem.render().unwrap()),
            ("help", HelpPage { frame: frame("help") }.render().unwrap()),
            ("login", LoginPage { frame: frame("login"), wrong: true, next: Some("/".to_owned()) }.render().unwrap()),
            ("nodes", NodesPage::of(frame("nodes"), &shown, &tell).render().unwrap()),
            ("store", StorePage::of(frame("store"), &shown, &redis(), None, true, &tell).render().unwrap()),
            ("locks", LocksPage::of(frame("locks"), Some(&[]), &tell).render().unwrap()),
            ("activity", ActivityPage::of(frame("activity"), "a", Vec::new(), &tell).render().unwrap()),
        ];
        pages.extend(all.map(|(page, html)| (format!("{page}-{language}.html"), html)));
    }
    for (page, html) in &pages {
        assert!(html.starts_with("<!doctype html>\n<html lang="), "{page}: {html}");
        let quotes = html.contains("no job &#60;b&#62;: <span lang=\"en\">denied by &#60;b&#62;</span></p>");
        assert_eq!(quotes, page.starts_with("problem"), "{page}: {html}");
    }
    if let Some(folder) = std::env::var_os("CRONWARD_PAGES") {
        for (page, html) in &pages {
            std::fs::write(std::path::Path::new(&folder).join(page), html).unwrap();
        }
    }
}

#[test]
fn the_page_of_a_thousand_jobs_is_small_and_has_two_hundred() {
    let mut shown = snapshot();
    shown.rows = (0..1_000).map(|job| row(&format!("job-{job:04}"), Some(fixture::done()), &[])).collect();
    let page = home(&shown, "", false);
    assert_eq!(page.matches("<tr id=\"job-").count(), 200);
    assert!(page.contains("page 1 of 5") && page.len() < 450_000, "{}", page.len());
    assert_eq!(home(&shown, "?page=5", false).matches("<tr id=\"job-").count(), 200);
}

/// Slots of each state, with what is known of them.
fn known() -> Vec<Facts> {
    let (noon, over) = ("2026-11-21T12:12:00Z", "2026-11-21T15:00:00Z");
    let tried = |decision: Decision| vec![notes("a", std::slice::from_ref(&decision)), notes("b", &[decision])];
    let queued = Decision::LockWaiting {
        attempt: 2,
        locks: "erp".to_owned(),
        ahead: 1,
        by: fixture::node("c"),
        label: "mail".to_owned(),
        since: Some(at("2026-11-21T12:00:00Z")),
    };
    let kept = [
        Decision::StoreAway { message: "down".to_owned() },
        Decision::Blocked { by: None },
        Decision::Paused,
        Decision::TooLate,
        Decision::Shed,
        Decision::Early,
        Decision::Closed,
        Decision::NotSelected { wanted: "gpu".to_owned() },
    ];
    let mut known: Vec<Facts> = kept
        .into_iter()
        .flat_map(|decision| [noon, over].map(|now| about(fixture::untouched(), now, tried(decision.clone()))))
        .collect();
    for now in [noon, over] {
        for record in [fixture::untouched(), fixture::running(), fixture::waiting(), fixture::done(), fixture::failed()]
        {
            let of = |origin| {
                let facts = about(record.clone(), now, vec![notes("b", std::slice::from_ref(&queued))]);
                Facts { job: JobEntry { origin, ..facts.job.clone() }, ..facts }
            };
            let [file, crontab, service] = [JobOrigin::File, JobOrigin::Crontab, JobOrigin::Service].map(of);
            let paused = Facts { pause: Some(fixture::pause()), ..of(JobOrigin::File) };
            let orphaned = Facts { orphaned: true, pages: Vec::new(), ..of(JobOrigin::File) };
            let alone = Facts { alive: Vec::new(), pages: Vec::new(), ..of(JobOrigin::File) };
            let strange = Facts { known_since: None, pages: Vec::new(), ..of(JobOrigin::File) };
            let new = Facts { known_since: Some(at(over)), pages: Vec::new(), ..of(JobOrigin::File) };
            let last = |until| Some((at("2026-11-21T11:00:00Z"), until));
            let down = Facts { silence: last(None), pages: Vec::new(), ..of(JobOrigin::File) };
            let again = Facts { silence: last(Some(at(over))), pages: Vec::new(), ..of(JobOrigin::File) };
            known.extend([down, again]);
            let idle = Facts { tick: None, pages: Vec::new(), ..of(JobOrigin::File) };
            known.extend([file, crontab, service, paused, orphaned, alone, strange, new, idle]);
        }
    }
    known
}

#[test]
fn why_a_slot_is_as_it_is_is_said_in_chinese_too() {
    // Names, what people wrote, and words that are the same in each language.
    let names = [
        "crontab",
        "only_on",
        "gpu",
        "erp",
        "mail",
        "alice",
        "ops-",
        "node",
        "gone",
        "down",
        "cronward",
        "mark-done",
        "billing",
    ];
    let mut told = std::collections::BTreeSet::new();
    for facts in known() {
        let said = why::explain_in(&facts, &reader("?lang=zh").t.reasons);
        told.insert(said.sentence.clone());
        let fix = said.fix.clone().filter(|fix| !fix.starts_with("cronward ")).unwrap_or_default();
        let words = format!("{} {fix}", said.sentence);
        let left = english_words(&words, &names);
        assert!(left.is_empty(), "{left:?} in {}", said.sentence);
        assert_eq!(said.fix.is_some(), why::explain(&facts).fix.is_some());
    }
    assert!(told.len() >= 30, "{told:#?}");
    let page = slot("?lang=zh");
    assert!(page.contains(":log</code><span class=\"quiet\">每次尝试、结论、运维操作</span>"), "{page}");
    let page = text_of(&page);
    assert!(page.contains("时间槽失败：3 次尝试已全部用尽；节点 c 上的第 3 次尝试结束："), "{page}");
}

#[test]
fn each_time_in_why_and_in_the_decisions_is_in_the_readers_zone_and_says_so() {
    let mut times = 0;
    for facts in known() {
        let shanghai = Facts { zone: "Asia/Shanghai".parse().ok(), ..facts };
        let mut told: Vec<String> = why::timeline(&shanghai).into_iter().map(|decision| decision.text).collect();
        for query in ["", "?lang=zh"] {
            told.push(why::explain_in(&shanghai, &reader(query).t.reasons).sentence);
        }
        for text in told {
            for (place, _) in text.match_indices(':').filter(|(place, _)| text.get(place + 3..place + 4) == Some(":")) {
                times += 1;
                assert_eq!(text.get(place + 6..place + 15), Some(" Shanghai"), "{text}");
            }
            assert!(!text.contains("12:00:00") && !text.contains("15:00:00"), "in UTC: {text}");
        }
    }
    assert!(times >= 30, "{times}");
}

/// The alert of the page of the hours for this filter.
fn alert(filter: &str, lang: &str) -> String {
    let query = url::form_urlencoded::Serializer::new(String::new())
        .append_pair("q", filter)
        .append_pair("lang", lang)
        .finish();
    let page = home(&snapshot(), &format!("?{query}"), false);
    let (_, rest) = page.split_once("<p class=\"alarm\" role=\"alert\">").unwrap_or_else(|| panic!("{page}"));
    rest.split_once("</p>").unwrap().0.replace("&#34;", "\"")
}

#[test]
fn a_filter_that_cannot_be_read_is_told_in_the_readers_language() {
    let names = ["colour", "red", "job", "owner", "tag", "node", "state"];
    let states = Shown::ALL.map(Shown::word);
    let others = ["failing", "late", "paused", "disabled", "orphaned"];
    for (filter, english, chinese) in [
        ("colour:red", "\"colour\" is nothing to filter by", "不能按 \"colour\" 筛选"),
        ("state:red", "write one of pending, running,", "请使用 pending、running、"),
        ("owner:", "nothing stands behind owner:", "owner: 之后没有内容"),
        ("\"a", "has no end", "引号没有结束"),
        (&*"a".repeat(513), "512 bytes and 16 terms", "512 字节"),
    ] {
        let told = [alert(filter, "en"), alert(filter, "zh")];
        assert!(told[0].contains(english) && told[1].contains(chinese), "{told:?}");
        let left = english_words(&told[1], &[&names[..], &states, &others].concat());
        assert!(left.is_empty(), "{left:?} in {}", told[1]);
        assert_eq!(Filter::parse(filter).unwrap_err().to_string(), told[0], "as the interface says it");
    }
}

/// One problem of each kind, with what of it is the same in each language.
fn problems() -> Vec<(ProblemDetail, &'static [&'static str])> {
    use ProblemDetail as Detail;
    let slot = || Slot::parse("billing", "2026-11-21T14Z", "2026-11-21T15Z").unwrap();
    let (job, at_store) = (|| name("billing"), || Some("memory".to_owned()));
    let key = || "2026-11-21T14Z".parse::<SlotKey>().unwrap();
    let text = str::to_owned;
    let slot_ref = |text: &str| Detail::SlotRef(text.parse::<SlotRef>().unwrap_err());
    let by = Holder { node: fixture::node("b"), attempt: 2 };
    let refused = |why, others| Detail::NodeRefuses { node: fixture::node("a"), why, others };
    let maybe = |maybe| Detail::StoreRefuses { error: text("denied"), maybe };
    let states = &["pending", "running", "retrying", "done", "failed", "missed", "skipped", "all", "state", "red"];
    vec![
        (Detail::NotFound, &[]),
        (Detail::StoreUnusable { error: text("full"), maybe: false }, &["full"]),
        (Detail::StoreUnusable { error: text("full"), maybe: true }, &["full"]),
        (Detail::StoreCorrupt { error: text("billing: no record") }, &["no", "record", "cronward"]),
        (Detail::NoJob(job()), &[]),
        (Detail::Unknown(UnknownTarget::OnlyJob { job: job(), location: at_store() }), &["memory", "config"]),
        (Detail::Unknown(UnknownTarget::OnlyJob { job: job(), location: None }), &["config"]),
        (Detail::Unknown(UnknownTarget::MisspeltJob { job: job(), nearest: name("mail") }), &["mail"]),
        (
            Detail::Unknown(UnknownTarget::Job { job: job(), location: at_store(), listing: text("cronward jobs") }),
            &["memory", "cronward", "jobs"],
        ),
        (Detail::Unknown(UnknownTarget::FirstSlot(job())), &[]),
        (Detail::Unknown(UnknownTarget::Slot { job: job(), key: key(), within: Some(slot()) }), &[]),
        (Detail::Unknown(UnknownTarget::Slot { job: job(), key: key(), within: None }), &[]),
        (Detail::Unknown(UnknownTarget::OldSlot { job: job(), steps: 9, found: 2, newest: slot() }), &[]),
        (Detail::JobName(JobName::new("Billing").unwrap_err()), &["Billing", "a-z"]),
        (slot_ref("Billing@-1"), &["Billing", "a-z"]),
        (slot_ref("billing@noon"), &["noon"]),
        (slot_ref("billing@2026-11-21T14:00Z"), &[]),
        (slot_ref("billing@-0"), &[]),
        (Detail::NoAttempt(slot()), &[]),
        (Detail::NoLocks, &[]),
        (Detail::StoreAway { maybe: false }, &[]),
        (Detail::StoreAway { maybe: true }, &[]),
        (maybe(false), &["denied"]),
        (maybe(true), &["denied"]),
        (Detail::PlannerStands, &["plan"]),
        (Detail::StoreRefusesReads, &["cronward", "doctor"]),
        (Detail::NotReady(text("store, plan, draining")), &["store", "plan", "draining"]),
        (Detail::Internal(text("odd")), &["odd"]),
        (Detail::AnswerUnwritten, &[]),
        (Detail::FiguresUnwritten, &[]),
        (Detail::PageUnwritten, &[]),
        (Detail::Late, &[]),
        (Detail::LongAddress, &[]),
        (Detail::UnknownHost, &["http", "public_url"]),
        (Detail::LargeBody, &["KiB"]),
        (Detail::BrokenBody, &[]),
        (Detail::WrongMethod, &[]),
        (Detail::ForNobody, &[]),
        (Detail::NoToken, &["Authorization", "Bearer"]),
        (Detail::WrongTokens, &[]),
        (Detail::OpenTokens, &["chmod", "o-r"]),
        (Detail::NoProxyUser, &[]),
        (Detail::NotTheProxy, &["http", "auth", "proxy", "from"]),
        (Detail::NoRole, &["viewer", "operator"]),
        (Detail::SmallRole, &[]),
        (Detail::TokenForActions, &["http", "auth", "tokens_file"]),
        (Detail::ReadOnly, &["http", "read_only", "false"]),
        (Detail::NoForm, &["Content-Type", "application", "x-www-form-urlencoded"]),
        (Detail::NoJson, &["Content-Type", "application", "json", "JSON"]),
        (Detail::NoOwnHeader, &["X-Cronward"]),
        (Detail::UnknownOrigin, &[]),
        (Detail::OtherOrigin, &[]),
        (Detail::OtherLogin, &[]),
        (Detail::Examining, &[]),
        (Detail::ManyStreams, &["api", "jobs"]),
        (Detail::Query(text("odd")), &["odd"]),
        (Detail::NoObject, &["JSON"]),
        (Detail::Body(text("odd")), &["odd"]),
        (Detail::Filter(Filter::parse("-").unwrap_err()), &[]),
        (Detail::PageRange, &["page", "per_page"]),
        (Detail::LimitRange, &["limit"]),
        (Detail::CountRange, &["count"]),
        (Detail::NoSlotBefore, &["before"]),
        (Detail::Unreadable("before", text("odd")), &["before"]),
        (Detail::Unreadable("since", text("odd")), &["since"]),
        (Detail::State(text("red")), states),
        (Detail::LongSince, &["since"]),
        (Detail::ManySlots, &["since"]),
        (Detail::GoWhere, &[]),
        (Detail::NoReason, &[]),
        (Detail::NotConfirmed, &[]),
        (Detail::PauseEnd(PauseEndError::Unreadable(text("soon"))), &["soon"]),
        (Detail::PauseEnd(PauseEndError::Passed { end: at(NOW), now: at(NOW) }), &[]),
        (Detail::PauseEnd(PauseEndError::TooLate), &[]),
        (Detail::NotAsExpected { target: text("billing"), is: Some("failed"), expected: text("done") }, &[]),
        (Detail::NotAsExpected { target: text("billing"), is: Some("failed"), expected: text("red") }, &["red"]),
        (Detail::NotAsExpected { target: text("billing"), is: None, expected: text("done") }, &[]),
        (
            Detail::Held(HeldSlot {
                target: slot().to_string(),
                by,
                remaining: std::time::Duration::from_secs(41),
                unlock: text("cronward unlock billing"),
            }),
            &["cronward", "unlock"],
        ),
        (Detail::NotBegun(NotBegun(slot())), &["UTC"]),
        (Detail::Paused(job()), &[]),
        (Detail::Done(slot()), &[]),
        (Detail::NoAttemptsLeft(slot()), &[]),
        (Detail::Ended(slot()), &["past"]),
        (Detail::JustFailed(slot()), &[]),
        (refused(TriggerRefusal::Leaving, Some(Vec::new())), &[]),
        (refused(TriggerRefusal::NotInFile, Some(vec![fixture::node("c"), fixture::node("d")])), &[]),
        (refused(TriggerRefusal::OtherNodes, None), &["only_on"]),
        (refused(TriggerRefusal::NoSuchSlot, None), &[]),
        (refused(TriggerRefusal::Early, None), &[]),
        (refused(TriggerRefusal::Over, None), &[]),
        (refused(TriggerRefusal::Driven, None), &[]),
    ]
}

#[test]
fn what_a_problem_quotes_is_marked_as_english() {
    let mut marked = 0;
    for (problem, _) in problems() {
        let Some(quoted) = problem.quoted() else { continue };
        for query in ["?lang=en", "?lang=zh"] {
            let said = (reader(query).t.said)(&problem);
            let (before, part, after) = ProblemPage::detail(said.clone(), Some(quoted));
            // Some Chinese sentences say it in their own words.
            assert_eq!(part.is_some(), said.contains(quoted), "{said}");
            assert_eq!(before + part.as_deref().unwrap_or_default() + &after, said);
            marked += usize::from(part.is_some());
        }
    }
    assert!(marked >= 10, "{marked}");
    let page = ProblemPage::detail("存储拒绝：denied".to_owned(), Some("denied"));
    assert_eq!(page, ("存储拒绝：".to_owned(), Some("denied".to_owned()), String::new()));
}

#[test]
fn no_kind_of_problem_is_left_out() {
    let tried: std::collections::HashSet<_> =
        problems().iter().map(|(problem, _)| std::mem::discriminant(problem)).collect();
    let kinds = include_str!("../detail.rs").matches("#[error(").count();
    assert_eq!(tried.len(), kinds);
}

#[test]
fn each_problem_is_told_in_chinese_too() {
    let [english, chinese] = ["?lang=en", "?lang=zh"].map(|query| reader(query).t.said);
    for (problem, names) in problems() {
        let told = chinese(&problem);
        let left = english_words(&told, &[names, &["billing", "UTC"]].concat());
        assert!(left.is_empty() && told.chars().any(is_han), "{left:?} in {told}");
        let said = english(&problem);
        assert!(!said.chars().any(is_han) && said == problem.to_string(), "{said}");
    }
}

#[test]
fn what_happened_on_a_node_is_told_with_how_a_run_or_a_slot_ended() {
    let told = |word, detail: &str, result| {
        let happened = Happened { at: at(NOW), slot: None, word, detail: detail.to_owned(), result };
        ["?lang=en", "?lang=zh"].map(|query| what(&happened, &reader(query).t.words))
    };
    assert_eq!(
        told("run_ended", "#1", Some(("lost_lease", Some(143)))),
        ["run ended #1 lost lease (143)", "运行结束 #1 租约丢失 (143)"]
    );
    assert_eq!(told("run_ended", "#2", Some(("success", None))), ["run ended #2 success", "运行结束 #2 成功"]);
    let verdicts = [
        (Verdict::Done, "done", "已完成"),
        (Verdict::Failed, "failed", "失败"),
        (Verdict::Missed, "missed", "错过"),
        (Verdict::Skipped, "skipped", "已跳过"),
    ];
    for (verdict, english, chinese) in verdicts {
        let lines = told("closed", "", Some((verdict.as_str(), None)));
        assert_eq!(lines, [format!("closed {english}"), format!("时间槽结束 {chinese}")]);
    }
    assert_eq!(told("started", "7", None), ["started 7", "节点启动，任务数 7"]);
}
