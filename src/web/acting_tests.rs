//! Requests that change something, without a socket: who may, what is done, and what a page of another site cannot do.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use axum::body::Body;
use axum::http::{HeaderMap, Request};
use http_body_util::BodyExt;
use serde_json::{Value, json};
use tokio::sync::{mpsc, watch};

use crate::admin::command_line::CommandLine;
use crate::admin::fixture::Scene;
use crate::board::Board;
use crate::clock::Clock;
use crate::config::{HttpConfig, ProxyConfig, Role, RoleSource};
use crate::job::{JobSpec, Program};
use crate::node::{Command, Health, TriggerRefusal, TriggerRequest};
use crate::observe::Observer;
use crate::observe::view::DoctorView;
use crate::slot::{Slot, SlotRecord, SlotState};
use crate::store::{Finding, JobEntry, JobOrigin};
use crate::web::door::{Door, Ends};
use crate::web::operations::{Operations, PlannedJobs};
use crate::web::pages::is_chinese;
use crate::web::routes::{Need, TABLE, WRITES};
use crate::web::{Activity, Examination, Gate, Mint, Site, Sources};

/// What is found of the store.
#[derive(Debug)]
struct Found(Vec<Finding>);

#[async_trait]
impl Examination for Found {
    async fn examine(&self) -> Result<DoctorView, String> {
        Ok(DoctorView::new("memory".to_owned(), "memory", self.0.clone()))
    }
}

/// A port over a store in memory, with an hourly job and a node that is told what to run.
struct Port {
    door: Door,
    scene: Scene,
    gate: Arc<Gate>,
    commands: mpsc::Receiver<Command>,
    tokens: PathBuf,
    viewer: Mint,
    operator: Mint,
    _folder: tempfile::TempDir,
}

struct Answer {
    status: u16,
    headers: HeaderMap,
    body: String,
}

impl Answer {
    fn header(&self, name: &str) -> &str {
        self.headers.get(name).map_or("", |value| value.to_str().unwrap())
    }

    fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap_or_else(|_| panic!("{} {:?}", self.status, self.body))
    }

    fn word(&self) -> String {
        self.json()["type"].as_str().unwrap().to_owned()
    }

    fn detail(&self) -> String {
        self.json()["detail"].as_str().unwrap().to_owned()
    }

    /// The cookie that it sets, as it is sent back.
    fn cookie(&self) -> String {
        self.header("set-cookie").split(';').next().unwrap().to_owned()
    }
}

impl Port {
    async fn new() -> Self {
        Self::with(|_| ()).await
    }

    async fn with(change: impl FnOnce(&mut HttpConfig)) -> Self {
        Self::over(change, Vec::new()).await
    }

    /// Over a store of which this is found.
    async fn over(change: impl FnOnce(&mut HttpConfig), found: Vec<Finding>) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let mint = |bits, role, name| Mint::new([bits; 32], role, name, None).unwrap();
        let (viewer, operator) = (mint(1, Role::Viewer, "vic"), mint(2, Role::Operator, "ana"));
        let tokens = folder.path().join("tokens");
        write_private(&tokens, &format!("{}\n{}\n", viewer.line, operator.line));
        let mut http = HttpConfig { tokens_file: Some(tokens.clone()), read_only: false, ..HttpConfig::default() };
        change(&mut http);
        let scene = Scene::at("2026-11-21T14:10:00Z");
        scene.register("billing", "0 * * * *").await;
        let jobs = Arc::new(PlannedJobs::default());
        let spec = JobSpec::new("billing".parse().unwrap(), "0 * * * *", Program::Direct(vec!["true".to_owned()]));
        jobs.plan(&[Arc::new(spec)], "c0ffee");
        let (sender, commands) = mpsc::channel(8);
        let line = CommandLine { config: Some("jobs.toml".to_owned()), ..CommandLine::default() };
        let (store, node) = (Arc::clone(&scene.store), "a".parse().unwrap());
        let labels = std::collections::BTreeMap::new();
        let operations =
            Operations { store, jobs, commands: sender, node, labels, retention: crate::admin::fixture::KEPT, line };
        let gate = Arc::new(Gate::open(&http).unwrap());
        let sources = Sources {
            clock: Arc::new(scene.clock.clone()),
            health: watch::channel(Health::default()).1,
            namespace: "prod".to_owned(),
            board: Board::standing(crate::web::pages::shown()),
            store: Arc::clone(&scene.store),
            scheme: "memory".to_owned(),
            activity: Arc::new(Activity::new(Arc::new(scene.clock.clone()))),
            node: crate::admin::fixture::node("a"),
            operations: Some(Arc::new(operations)),
            examination: Some(Arc::new(Found(found))),
            expositions: Vec::new(),
        };
        let door = Door::of(Arc::new(Site::new(http, Arc::clone(&gate), sources)));
        Self { door, scene, gate, commands, tokens, viewer, operator, _folder: folder }
    }

    async fn send(&self, method: &str, path: &str, headers: &[(&str, &str)], body: &str) -> Answer {
        let request = Request::builder().method(method).uri(path).header("host", "localhost:9747");
        let request = headers.iter().fold(request, |request, (name, value)| request.header(*name, *value));
        let peer = SocketAddr::new("10.0.0.5".parse().unwrap(), 50_000);
        let ends = Ends { peer, local: "127.0.0.1".parse().unwrap() };
        let answered = self.door.answer(ends, request.body(Body::from(body.to_owned())).unwrap()).await;
        let (head, body) = answered.into_parts();
        let body = body.collect().await.unwrap().to_bytes();
        Answer { status: head.status.as_u16(), headers: head.headers, body: String::from_utf8(body.to_vec()).unwrap() }
    }

    /// As a program of an operator asks.
    async fn ask(&self, path: &str, body: &Value) -> Answer {
        let token = format!("Bearer {}", self.operator.token);
        let headers = [("authorization", &*token), ("content-type", "application/json"), ("x-cronward", "1")];
        self.send("POST", &format!("/api/v1{path}"), &headers, &body.to_string()).await
    }

    async fn log_in(&self, token: &str, next: &str) -> Answer {
        let next = url::form_urlencoded::byte_serialize(next.as_bytes()).collect::<String>();
        let headers = [("content-type", FORM), ("sec-fetch-site", "same-origin")];
        self.send("POST", "/login", &headers, &format!("token={token}&next={next}")).await
    }

    /// A form of a page, with this cookie.
    async fn form(&self, path: &str, cookie: &str, body: &str) -> Answer {
        let headers = [("content-type", FORM), ("sec-fetch-site", "same-origin"), ("cookie", cookie)];
        self.send("POST", path, &headers, body).await
    }

    /// A page in Chinese, or with `body` the answer to its form.
    async fn chinese(&self, path: &str, cookie: &str, body: Option<&str>) -> Answer {
        let cookie = format!("{cookie}; cronward-lang=zh");
        let headers =
            [("accept", "text/html"), ("cookie", &*cookie), ("content-type", FORM), ("sec-fetch-site", "same-origin")];
        self.send(if body.is_some() { "POST" } else { "GET" }, path, &headers, body.unwrap_or_default()).await
    }

    /// The operator's cookie, and what its forms carry.
    async fn logged_in(&self) -> (String, String) {
        let cookie = self.log_in(&self.operator.token, "").await.cookie();
        let form_token = self.form_token(&cookie);
        (cookie, form_token)
    }

    fn form_token(&self, cookie: &str) -> String {
        let headers = HeaderMap::from_iter([(axum::http::header::COOKIE, cookie.parse().unwrap())]);
        let bearer = self.gate.bearer("10.0.0.5".parse().unwrap(), &headers, self.scene.clock.now()).unwrap();
        bearer.form_token().unwrap().to_owned()
    }

    async fn record(&self, key: &str, end: &str) -> SlotRecord {
        let slot = Slot::parse("billing", key, end).unwrap();
        self.scene.store.inspect(&[slot]).await.unwrap().1.pop().unwrap()
    }

    async fn current(&self) -> SlotRecord {
        self.record("2026-11-21T14Z", "2026-11-21T15Z").await
    }

    /// Answers the next command as a node would, and tells what was asked.
    fn node_answers(&mut self, reply: Result<(), TriggerRefusal>) -> tokio::task::JoinHandle<TriggerRequest> {
        let mut commands = std::mem::replace(&mut self.commands, mpsc::channel(1).1);
        tokio::spawn(async move {
            let Some(Command::Trigger(request, answer)) = commands.recv().await else { panic!("no trigger") };
            answer.send(reply).unwrap();
            request
        })
    }
}

const FORM: &str = "application/x-www-form-urlencoded";
const SLOT: &str = "/slots/billing/2026-11-21T14Z";

fn write_private(path: &std::path::Path, text: &str) {
    use std::os::unix::fs::PermissionsExt;
    std::fs::write(path, text).unwrap();
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o600)).unwrap();
}

/// A path of the table with something in each of its places.
fn filled(path: &str) -> String {
    path.replace("{job}", "billing").replace("{slot}", "2026-11-21T14Z").replace("{action}", "mark-done")
}

#[tokio::test]
async fn every_action_is_for_operators_where_the_file_allows_it_and_for_nobody_else() {
    let (port, closed) = (Port::new().await, Port::with(|http| http.read_only = true).await);
    let open = Port::with(|http| http.tokens_file = None).await;
    for route in WRITES.iter().filter(|route| route.need != Need::Nothing) {
        assert_eq!(route.need, Need::Role(Role::Operator), "{}", route.path);
        let kind = if route.path.starts_with("/api/") { "application/json" } else { FORM };
        let common = [("content-type", kind), ("x-cronward", "1"), ("sec-fetch-site", "same-origin")];
        let path = filled(route.path);
        assert_eq!(port.send("POST", &path, &common, "").await.status, 401, "{path}");
        let as_viewer = format!("Bearer {}", port.viewer.token);
        let viewer = port.send("POST", &path, &[&common[..], &[("authorization", &as_viewer)]].concat(), "").await;
        assert_eq!((viewer.status, viewer.word().as_str()), (403, "forbidden"), "{path}");
        let anybody = open.send("POST", &path, &common, "").await;
        assert_eq!(anybody.status, 403, "{path}");
        assert!(anybody.detail().contains("actions need a token"), "{}", anybody.body);
        let as_operator = format!("Bearer {}", closed.operator.token);
        let operator =
            closed.send("POST", &path, &[&common[..], &[("authorization", &as_operator)]].concat(), "").await;
        assert_eq!((operator.status, operator.word().as_str()), (403, "read-only"), "{path}");
    }
    for port in [port, closed, open] {
        assert!(port.current().await.audit.is_empty(), "nothing was done");
    }
}

#[tokio::test]
async fn a_reset_over_http_is_the_commands_and_is_recorded_with_who_asked_from_where() {
    let mut port = Port::new().await;
    for _ in 0..3 {
        port.scene.fail("billing", "b").await;
    }
    let done = port.ask(&format!("{SLOT}/reset"), &json!({"reason": "disk is free", "expect": "failed"})).await;
    let undo = "cannot be undone; to keep nodes from running the slot: cronward mark-done billing@2026-11-21T14Z --config jobs.toml";
    let wanted =
        json!({"verb": "reset", "target": "billing@2026-11-21T14Z", "changed": true, "undo": undo, "requests": []});
    assert_eq!((done.status, done.json()), (200, wanted));
    let audit = port.current().await.audit.pop().unwrap();
    assert_eq!((&*audit.verb, &*audit.who, &*audit.host), ("reset", "ana", "a, http from 10.0.0.5"));
    assert_eq!(audit.why, "disk is free");
}

#[tokio::test]
async fn a_slot_that_is_not_as_expected_is_left_alone_and_shown_as_it_is() {
    let mut port = Port::new().await;
    port.scene.fail("billing", "b").await;
    let refused = port.ask(&format!("{SLOT}/reset"), &json!({"expect": "failed"})).await;
    assert_eq!((refused.status, &*refused.word()), (409, "conflict"));
    assert_eq!(refused.detail(), "billing@2026-11-21T14Z is retrying, not failed");
    assert_eq!(refused.json()["slot"]["state"], "retrying");
    assert_eq!(port.current().await.used(), 1);
}

#[tokio::test]
async fn what_may_overlap_or_is_said_to_be_done_needs_a_reason() {
    let mut port = Port::new().await;
    let lease = port.scene.claim("billing", "b").await;
    for body in [json!({}), json!({"reason": " "})] {
        let refused = port.ask(&format!("{SLOT}/unlock"), &body).await;
        assert_eq!((refused.status, &*refused.word()), (400, "bad-request"));
    }
    let held = port.ask(&format!("{SLOT}/mark-done"), &json!({"reason": "by hand"})).await;
    assert_eq!(held.status, 409);
    assert!(held.detail().contains("is held by node b, attempt 1"), "{}", held.body);
    let done = port.ask(&format!("{SLOT}/unlock"), &json!({"reason": "b is gone", "expect": "running"})).await;
    assert_eq!((done.status, &done.json()["changed"]), (200, &json!(true)));
    assert!(matches!(port.scene.store.renew(&lease).await.unwrap(), crate::store::Renewal::Lost { .. }));
    let again = port.ask(&format!("{SLOT}/unlock"), &json!({"reason": "b is gone"})).await;
    assert_eq!((again.status, &again.json()["changed"]), (200, &json!(false)));
    let past = port.ask("/slots/billing/2026-11-21T13Z/trigger", &json!({"past": true})).await;
    assert_eq!((past.status, &*past.word()), (400, "bad-request"));
}

#[tokio::test]
async fn a_job_is_paused_until_a_time_and_resumed() {
    let port = Port::new().await;
    let done = port.ask("/jobs/billing/pause", &json!({"until": "2h", "reason": "upgrade"})).await;
    assert_eq!((done.status, &done.json()["undo"]), (200, &json!("cronward resume billing --config jobs.toml")));
    let pause = port.scene.store.pauses().await.unwrap().pop().unwrap().1;
    assert_eq!(
        (pause.until.unwrap().to_rfc3339(), pause.audit.who),
        ("2026-11-21T16:10:00+00:00".to_owned(), "ana".to_owned())
    );
    let (cookie, _) = port.logged_in().await;
    let accepts = [("accept", "text/html"), ("cookie", &*cookie)];
    let form = port.send("GET", "/jobs/billing/2026-11-21T14Z/mark-done", &accepts, "").await.body;
    assert!(form.contains("no node starts it by itself: paused"), "{form}");
    let refused = port.ask("/jobs/billing/trigger", &json!({})).await;
    assert_eq!((refused.status, refused.detail()), (409, "billing is paused: resume the job first".to_owned()));
    let over = port.ask("/jobs/billing/pause", &json!({"until": "2026-11-21T14:00:00Z"})).await;
    assert!(over.status == 400 && over.detail().contains("has passed"), "{}", over.body);
    assert_eq!(port.ask("/jobs/billing/pause", &json!({"until": "soon"})).await.status, 400);
    assert_eq!(port.ask("/jobs/billing/resume", &json!({})).await.json()["changed"], json!(true));
    assert_eq!(port.ask("/jobs/billing/resume", &json!({})).await.json()["changed"], json!(false));
}

#[tokio::test]
async fn a_trigger_is_run_by_the_node_that_was_asked_and_carries_who_asked() {
    let mut port = Port::new().await;
    let node = port.node_answers(Ok(()));
    let begun = port.ask("/jobs/billing/trigger", &json!({"reason": "the customer asks"})).await;
    assert_eq!((begun.status, &begun.json()["verb"]), (202, &json!("trigger")));
    let request = node.await.unwrap();
    assert_eq!((request.slot.to_string(), request.past), ("billing@2026-11-21T14Z".to_owned(), false));
    assert_eq!((&*request.audit.who, &*request.audit.why), ("ana", "the customer asks"));
}

#[tokio::test]
async fn a_trigger_of_a_slot_that_cannot_run_reaches_no_node_and_says_why() {
    let mut port = Port::new().await;
    let refused = async |port: &Port, path: &str, body: Value| {
        let refused = port.ask(path, &body).await;
        assert_eq!(refused.status, 409, "{}", refused.body);
        refused.detail()
    };
    let trigger = format!("{SLOT}/trigger");
    let over = refused(&port, "/slots/billing/2026-11-21T13Z/trigger", json!({"reason": "x"})).await;
    assert!(over.contains("has ended"), "{over}");
    let early = refused(&port, "/slots/billing/2026-11-21T15Z/trigger", json!({})).await;
    assert!(early.contains("only current and past slots"), "{early}");
    port.scene.fail("billing", "b").await;
    port.scene.claim("billing", "b").await;
    assert!(refused(&port, &trigger, json!({})).await.contains("is held by node b"));
    port.scene.pass(2);
    port.scene.fail("billing", "b").await;
    assert!(refused(&port, &trigger, json!({})).await.contains("no attempts left"));
    port.ask(&format!("{SLOT}/mark-done"), &json!({"reason": "x"})).await;
    assert!(refused(&port, &trigger, json!({})).await.contains("is done"));
    assert!(port.commands.try_recv().is_err(), "no node was asked");
}

#[tokio::test]
async fn a_node_that_cannot_run_the_job_names_one_that_can() {
    let mut port = Port::new().await;
    port.scene.node("a", &["billing"]).await;
    port.scene.node("c", &["billing"]).await;
    port.scene.node("d", &["mail"]).await;
    let node = port.node_answers(Err(TriggerRefusal::OtherNodes));
    let refused = port.ask("/jobs/billing/trigger", &json!({})).await;
    node.await.unwrap();
    assert_eq!(refused.status, 409);
    assert!(refused.detail().ends_with("these nodes can run the job, ask one of them: c"), "{}", refused.body);
    // The node's loop has ended.
    let gone = port.ask("/jobs/billing/trigger", &json!({})).await;
    assert!(gone.status == 409 && gone.detail().contains("shutting down"), "{}", gone.body);
}

#[tokio::test]
async fn of_a_slot_to_come_a_reset_promises_no_run_now_and_no_retry_is_made() {
    let port = Port::new().await;
    let slot = "/slots/billing/2026-11-21T15Z";
    let (cookie, _) = port.logged_in().await;
    let reset = port.send("GET", "/jobs/billing/2026-11-21T15Z/reset", &[("cookie", &cookie)], "").await;
    assert!(reset.body.contains("nodes run the slot when it is due, unless the job is paused then"), "{}", reset.body);
    let retry = port.ask(&format!("{slot}/retry"), &json!({})).await;
    assert!(retry.status == 409 && retry.detail().contains("only current and past slots"), "{}", retry.body);
}

#[tokio::test]
async fn each_form_shows_the_command_that_does_the_same() {
    let mut port = Port::new().await;
    for _ in 0..3 {
        port.scene.fail("billing", "b").await;
    }
    let (cookie, _) = port.logged_in().await;
    let slot = "billing@2026-11-21T14Z";
    for (action, command) in [
        ("2026-11-21T14Z/reset", format!("cronward reset {slot} --config jobs.toml")),
        ("2026-11-21T14Z/mark-done", format!("cronward mark-done {slot} --config jobs.toml")),
        ("2026-11-21T14Z/retry", format!("cronward reset {slot} --config jobs.toml")),
        ("2026-11-21T13Z/trigger", "cronward trigger billing@2026-11-21T13Z --past --config jobs.toml".to_owned()),
        ("pause", "cronward pause billing --config jobs.toml".to_owned()),
    ] {
        let form = port.send("GET", &format!("/jobs/billing/{action}"), &[("cookie", &cookie)], "").await;
        let same = form.body.split_once("The same on a terminal").map(|(_, rest)| rest).unwrap_or_default();
        assert!(same.contains(&format!("<code lang=\"en\">{command}</code>")), "{action}: {}", form.body);
    }
}

#[tokio::test]
async fn the_page_after_an_action_says_what_is_recorded_and_believes_no_address() {
    let mut port = Port::new().await;
    let (cookie, token) = port.logged_in().await;
    port.scene.fail("billing", "b").await;
    let page = async |port: &Port, path: &str| {
        let answer = port.send("GET", path, &[("cookie", &cookie)], "").await;
        assert_eq!(answer.status, 200, "{}", answer.body);
        answer.body
    };
    let path = "/jobs/billing/2026-11-21T14Z";
    for word in ["reset", "mark-done", "unlock", "gone"] {
        let before = page(&port, &format!("{path}?did={word}")).await;
        assert!(!before.contains("Recorded"), "{word}: {before}");
    }
    let now = port.scene.clock.now().wall.timestamp();
    for (query, is_asked) in [
        (format!("did=trigger&at={now}"), true),
        (format!("did=retry&at={}", now - 599), true),
        (format!("did=trigger&at={}", now - 600), false),
        ("did=trigger".to_owned(), false),
        (format!("did=reset&at={now}"), false),
    ] {
        let told = page(&port, &format!("{path}?{query}")).await;
        assert_eq!(told.contains("This node was asked to run it."), is_asked, "{query}");
    }
    assert!(!page(&port, "/jobs/billing?did=resume").await.contains("Recorded"), "it was never paused");
    let done = port.form(&format!("{path}/reset"), &cookie, &format!("token={token}")).await;
    let told = done.header("location").to_owned();
    assert_eq!(told, format!("{path}?did=reset"));
    assert!(page(&port, &told).await.contains("Recorded: reset."));
    assert!(page(&port, &format!("{path}?did=retry")).await.contains("Recorded: retry."), "it resets");
    assert!(!page(&port, &format!("{path}?did=mark-done")).await.contains("Recorded"));
    port.scene.pass(10);
    assert!(!page(&port, &told).await.contains("Recorded"), "an address that was kept");
    let paused = "/jobs/billing?did=pause";
    assert!(!page(&port, paused).await.contains("Recorded"));
    port.ask("/jobs/billing/pause", &json!({})).await;
    let page = page(&port, paused).await;
    assert!(page.contains("Recorded: pause.") && page.contains("/jobs/billing/resume"), "{page}");
    // The time that a page is made by may be a second old.
    port.scene.clock.advance(Duration::from_millis(500));
    port.ask("/jobs/billing/resume", &json!({})).await;
    let resumed = port.send("GET", "/jobs/billing?did=resume", &[("cookie", &cookie)], "").await.body;
    assert!(resumed.contains("Recorded: resume.") && !resumed.contains("/jobs/billing/resume"), "{resumed}");
}

#[tokio::test]
async fn a_run_that_this_node_cannot_make_is_refused_by_its_form_and_resets_nothing() {
    let mut port = Port::new().await;
    port.scene.register("mail", "0 * * * *").await;
    port.scene.node("c", &["mail"]).await;
    let (cookie, token) = port.logged_in().await;
    let form = port.chinese("/jobs/mail/trigger", &cookie, None).await.body;
    assert!(form.contains("该节点的配置文件中没有") && !form.contains("class=\"panel form\""), "{form}");
    for _ in 0..3 {
        port.scene.fail("mail", "c").await;
        port.scene.pass(2);
    }
    let attempts = async |port: &Port| {
        let slot = Slot::parse("mail", "2026-11-21T14Z", "2026-11-21T15Z").unwrap();
        port.scene.store.inspect(&[slot]).await.unwrap().1.pop().unwrap().used()
    };
    let used = attempts(&port).await;
    assert!(used > 0);
    port.scene.pass(60);
    let path = "/jobs/mail/2026-11-21T14Z/retry";
    let refused = port.form(path, &cookie, &format!("token={token}&reason=x&past=true")).await;
    assert!(
        refused.status == 409 && refused.body.contains("the file of this node does not have the job"),
        "{}",
        refused.body
    );
    assert_eq!(attempts(&port).await, used);
    assert!(port.commands.try_recv().is_err(), "no node was asked");
}

#[tokio::test]
async fn an_operator_has_the_store_examined_as_doctor_does() {
    let port = Port::new().await;
    let found = port.ask("/store/examine", &json!({})).await;
    assert_eq!(
        (found.status, found.json()),
        (200, json!({"store": "memory", "kind": "memory", "severity": "ok", "findings": []}))
    );
}

#[tokio::test]
async fn the_page_of_the_store_asks_before_it_is_examined_and_then_tells_an_operator_what_was_found() {
    let found = vec![
        Finding::ok("version", "Redis 7.2.4"),
        Finding::warning(
            "policy",
            "allkeys-lru <b>",
            "a slot can be run twice",
            "CONFIG SET maxmemory-policy noeviction",
        ),
        Finding::fault("rights", "no SET\u{1b}[2J", "no slot is run", "grant SET"),
    ];
    let port = Port::over(|_| (), found).await;
    let (cookie, token) = port.logged_in().await;
    let asked = port.send("GET", "/store", &[("cookie", &cookie)], "").await;
    let form = format!(
        "<form method=\"post\" action=\"/store\"><input type=\"hidden\" name=\"token\" value=\"{token}\">\
         <button type=\"submit\">Check the store</button></form>"
    );
    assert!(asked.status == 200 && asked.body.contains(&form), "{}", asked.body);
    assert!(
        asked.body.contains("The check writes trial records and removes them again") && !asked.body.contains("7.2.4")
    );
    let told = port.form("/store", &cookie, &format!("token={token}")).await;
    assert_eq!(told.status, 200);
    for row in [
        "<th scope=\"row\" lang=\"en\">version</th><td><span class=\"tag\"><span class=\"g\" data-s=\"done\"></span>ok\
         </span></td><td lang=\"en\">Redis 7.2.4</td>",
        "policy</th><td><span class=\"tag\"><span class=\"g\" data-s=\"warning\"></span>warning</span></td><td lang=\"en\">\
         allkeys-lru &#60;b&#62;<br>a slot can be run twice<br><b>CONFIG SET maxmemory-policy noeviction</b></td>",
        "rights</th><td><span class=\"tag\"><span class=\"g\" data-s=\"failed\"></span>error</span></td><td lang=\"en\">\
         no SET\\x1b[2J<br>no slot is run<br><b>grant SET</b></td>",
    ] {
        assert!(told.body.contains(row), "{row}: {}", told.body);
    }
    assert_eq!(port.form("/store", &cookie, "token=x").await.status, 403, "a form of another login");
    let viewer = port.log_in(&port.viewer.token, "").await.cookie();
    let looked = port.send("GET", "/store", &[("cookie", &viewer)], "").await;
    assert!(looked.body.contains("Only operators can run the check here."), "{}", looked.body);
    assert!(!looked.body.contains("<form method=\"post\" action=\"/store\">"), "{}", looked.body);
    assert_eq!(port.form("/store", &viewer, "").await.status, 403);
}

#[tokio::test]
async fn a_retry_is_a_reset_while_the_slot_lasts_and_a_run_of_it_after_that() {
    let mut port = Port::new().await;
    for _ in 0..3 {
        port.scene.fail("billing", "b").await;
    }
    let retry = format!("{SLOT}/retry");
    let done = port.ask(&retry, &json!({})).await;
    assert_eq!((done.status, &done.json()["verb"]), (200, &json!("reset")));
    assert_eq!(port.current().await.used(), 0);
    for _ in 0..3 {
        port.scene.fail("billing", "b").await;
    }
    port.scene.pass(60);
    assert_eq!(port.ask(&retry, &json!({})).await.status, 400, "old work is done again for a reason alone");
    let node = port.node_answers(Ok(()));
    let begun = port.ask(&retry, &json!({"reason": "disk is free"})).await;
    assert_eq!((begun.status, &begun.json()["verb"]), (202, &json!("trigger")));
    let request = node.await.unwrap();
    assert_eq!((request.slot.key().to_string(), request.past), ("2026-11-21T14Z".to_owned(), true));
    assert_eq!(port.current().await.used(), 0, "its attempts were used up");
    port.ask(&format!("{SLOT}/mark-done"), &json!({"reason": "x"})).await;
    assert_eq!(port.ask(&retry, &json!({"reason": "x"})).await.status, 409, "and what is done is not");
}

#[tokio::test]
async fn a_body_that_is_not_understood_changes_nothing() {
    let port = Port::new().await;
    let token = format!("Bearer {}", port.operator.token);
    let headers =
        [("authorization", &*token), ("content-type", "application/json; charset=utf-8"), ("x-cronward", "1")];
    for body in ["{", "[]", "{\"force\":true}", "{\"reason\":1}", "{\"past\":\"yes\"}", "null", "\u{0}"] {
        let refused = port.send("POST", &format!("/api/v1{SLOT}/reset"), &headers, body).await;
        assert_eq!((refused.status, &*refused.word()), (400, "bad-request"), "{body}");
    }
    for path in
        ["/slots/billing/2026-11-21T14Z/forget", "/slots/billing/nonsense/reset", "/slots/biling/2026-11-21T14Z/reset"]
    {
        assert_eq!(port.ask(path, &json!({})).await.status, 404, "{path}");
    }
    assert_eq!(port.ask("/slots/billing/2026-11-21T14:30Z/reset", &json!({})).await.status, 404);
    assert!(port.current().await.audit.is_empty());
}

#[tokio::test]
async fn a_write_of_a_program_needs_what_no_form_of_another_site_can_send() {
    let port = Port::new().await;
    let (cookie, _) = port.logged_in().await;
    let path = format!("/api/v1{SLOT}/reset");
    let json = [("content-type", "application/json"), ("x-cronward", "1")];
    let as_operator = format!("Bearer {}", port.operator.token);
    let own = ("sec-fetch-site", "same-origin");
    let cases = [
        (vec![("cookie", &*cookie), own, json[0], json[1]], 200, "its own page"),
        (vec![("authorization", &*as_operator), json[0], json[1]], 200, "a program"),
        (vec![("cookie", &*cookie), ("origin", "http://localhost:9747"), json[0], json[1]], 200, "an older browser"),
        (vec![("cookie", &*cookie), own, json[0]], 403, "no own header"),
        (vec![("cookie", &*cookie), own, ("content-type", "text/plain"), json[1]], 415, "a plain body"),
        (vec![("cookie", &*cookie), own, json[1]], 415, "no content type"),
        (vec![("cookie", &*cookie), ("sec-fetch-site", "cross-site"), json[0], json[1]], 403, "another site"),
        (vec![("cookie", &*cookie), ("sec-fetch-site", "same-site"), json[0], json[1]], 403, "a neighbour"),
        (vec![("cookie", &*cookie), own, ("sec-fetch-site", "cross-site"), json[0], json[1]], 403, "two words"),
        (vec![("cookie", &*cookie), json[0], json[1]], 403, "nothing says where it comes from"),
        (vec![("cookie", &*cookie), ("origin", "null"), json[0], json[1]], 403, "a page of nowhere"),
        (vec![("cookie", &*cookie), ("origin", "https://evil.example"), json[0], json[1]], 403, "another origin"),
        (vec![("cookie", &*cookie), ("origin", "http://localhost:9748"), json[0], json[1]], 403, "another port"),
        (vec![("authorization", &*as_operator), ("sec-fetch-site", "cross-site"), json[0], json[1]], 403, "a script"),
    ];
    // All at once: what else breaks with one of them is seen, too.
    let (mut met, mut wanted) = (Vec::new(), Vec::new());
    for (headers, status, why) in cases {
        let before = port.current().await.audit.len();
        let answered = port.send("POST", &path, &headers, "{}").await.status;
        met.push((why, answered, port.current().await.audit.len() > before));
        wanted.push((why, status, status == 200));
    }
    assert_eq!(met, wanted);
    let read = port.send("GET", &path, &[("cookie", &cookie), own, json[1]], "").await;
    assert_eq!((read.status, read.header("allow")), (405, "POST"), "a link changes nothing");
}

#[tokio::test]
async fn behind_a_proxy_the_public_origin_is_its_own_one() {
    let port = Port::with(|http| http.public_url = Some("https://cron.example/ops/".to_owned())).await;
    let (cookie, _) = port.logged_in().await;
    let from = async |origin: &str| {
        let json =
            [("content-type", "application/json"), ("x-cronward", "1"), ("cookie", &*cookie), ("origin", origin)];
        port.send("POST", &format!("/api/v1{SLOT}/reset"), &json, "{}").await.status
    };
    assert_eq!(from("https://cron.example").await, 200);
    for other in ["http://cron.example", "https://cron.example:8443", "https://x.cron.example"] {
        assert_eq!(from(other).await, 403, "{other}");
    }
}

#[tokio::test]
async fn a_login_is_a_cookie_that_scripts_cannot_read_and_other_sites_cannot_send() {
    let port = Port::new().await;
    let entered = port.log_in(&port.operator.token, "/jobs/billing?zone=UTC").await;
    assert_eq!((entered.status, entered.header("location")), (303, "/jobs/billing?zone=UTC"));
    let cookie = entered.header("set-cookie");
    assert!(cookie.starts_with("cronward=") && !cookie.contains(&port.operator.token), "{cookie}");
    assert!(cookie.ends_with("; Max-Age=43200; Path=/; HttpOnly; SameSite=Strict"), "{cookie}");
    for (next, location) in
        [("", "/"), ("//evil.example", "/"), ("https://evil.example/", "/"), ("/\\evil.example", "/")]
    {
        assert_eq!(port.log_in(&port.operator.token, next).await.header("location"), location, "{next}");
    }
    let tls = Port::with(|http| (http.behind_tls_proxy, http.base_path) = (true, "/ops/cron".to_owned())).await;
    let headers = [("content-type", FORM), ("sec-fetch-site", "same-origin")];
    let entered = tls.send("POST", "/ops/cron/login", &headers, &format!("token={}", tls.operator.token)).await;
    assert_eq!((entered.status, entered.header("location")), (303, "/ops/cron/"));
    let cookie = entered.header("set-cookie");
    assert!(
        cookie.starts_with("__Host-cronward=") && cookie.ends_with("; Path=/; HttpOnly; SameSite=Strict; Secure"),
        "{cookie}"
    );
    let left = port.form("/logout", &port.logged_in().await.0, "").await;
    assert_eq!((left.status, left.header("location")), (303, "/login"));
    assert!(left.header("set-cookie").starts_with("cronward=; Max-Age=0; "), "{}", left.header("set-cookie"));
}

#[tokio::test]
async fn a_page_without_a_login_is_sent_to_it_and_a_program_is_told_what_to_send() {
    let port = Port::with(|http| http.base_path = "/ops/cron".to_owned()).await;
    let page = ("accept", "text/html,*/*;q=0.8");
    // Whoever has no page to log in with is told as a program is.
    let is_sent = TABLE.iter().any(|route| route.path == "/login");
    let asked = port.send("GET", "/ops/cron/metrics?zone=UTC&q=a%20b", &[page], "").await;
    let wanted = (303, "/ops/cron/login?next=%2Fops%2Fcron%2Fmetrics%3Fzone%3DUTC%26q%3Da%2520b");
    assert_eq!((asked.status, asked.header("location")), if is_sent { wanted } else { (401, "") });
    for headers in [vec![], vec![page, ("authorization", "Bearer x")]] {
        assert_eq!(port.send("GET", "/ops/cron/metrics", &headers, "").await.status, 401, "{headers:?}");
    }
    let write = [page, ("content-type", FORM), ("sec-fetch-site", "same-origin")];
    assert_eq!(port.send("POST", "/ops/cron/jobs/billing/pause", &write, "").await.status, 401);
}

#[tokio::test]
async fn a_wrong_token_is_sent_back_to_the_form_and_the_eleventh_a_minute_has_to_wait() {
    let port = Port::new().await;
    for wrong in ["", "x", "cronward_"] {
        let refused = port.log_in(wrong, "/jobs/billing").await;
        assert_eq!((refused.status, refused.header("location")), (303, "/login?wrong=1&next=%2Fjobs%2Fbilling"));
        assert!(refused.header("set-cookie").is_empty());
    }
    for _ in 3..10 {
        assert_eq!(port.log_in("x", "").await.header("location"), "/login?wrong=1");
    }
    let told = port.log_in("x", "").await;
    assert_eq!((told.status, &*told.word()), (429, "too-many-requests"));
    assert_eq!(port.log_in(&port.operator.token, "").await.status, 303, "nobody can lock others out");
    for headers in [
        vec![("content-type", FORM), ("sec-fetch-site", "cross-site")],
        vec![("content-type", FORM)],
        vec![("content-type", "text/plain"), ("sec-fetch-site", "same-origin")],
    ] {
        let body = format!("token={}", port.operator.token);
        let refused = port.send("POST", "/login", &headers, &body).await;
        assert!(matches!(refused.status, 403 | 415) && refused.header("set-cookie").is_empty(), "{headers:?}");
    }
}

#[tokio::test]
async fn a_cookie_lets_its_owner_in_until_it_ends_or_the_line_is_removed_and_a_forged_one_nobody() {
    let port = Port::new().await;
    let (cookie, token) = port.logged_in().await;
    let act = async |cookie: &str| {
        port.form("/jobs/billing/2026-11-21T14Z/reset", cookie, &format!("token={token}")).await.status
    };
    assert_eq!(act(&cookie).await, 303);
    let viewer = port.log_in(&port.viewer.token, "").await.cookie();
    assert_eq!(act(&viewer).await, 403);
    let (value, signature) = cookie.rsplit_once('.').unwrap();
    let forged = format!("{value}.{}", signature.replace(|c: char| c.is_ascii_digit(), "a"));
    for other in
        [&*forged, "cronward=", "cronward=1.ana.00", &format!("{cookie}; {viewer}"), &cookie.replace("cronward=", "x=")]
    {
        assert_eq!(act(other).await, 401, "{other}");
    }
    port.scene.pass(12 * 60 - 1);
    assert_eq!(act(&cookie).await, 303);
    let text = std::fs::read_to_string(&port.tokens).unwrap();
    write_private(&port.tokens, text.lines().next().unwrap());
    port.gate.reread().unwrap();
    assert_eq!(act(&cookie).await, 401, "the line is gone");
    write_private(&port.tokens, &text);
    port.gate.reread().unwrap();
    assert_eq!(act(&cookie).await, 303, "any node with that line takes it");
    port.scene.pass(1);
    assert_eq!(act(&cookie).await, 401, "twelve hours are over");
}

#[tokio::test]
async fn a_form_carries_the_token_of_its_login_and_unlock_the_name_of_the_job() {
    let mut port = Port::new().await;
    let (cookie, token) = port.logged_in().await;
    port.scene.pass(1);
    let (other_cookie, other) = port.logged_in().await;
    assert_ne!(token, other);
    let path = "/jobs/billing/2026-11-21T14Z/mark-done";
    for sent in ["", "token=", "token=x", &format!("token={other}")] {
        assert_eq!(port.form(path, &cookie, &format!("{sent}&reason=x")).await.status, 403, "{sent}");
    }
    let done = port.form(path, &cookie, &format!("token={token}&reason=by+hand&expect=pending")).await;
    assert_eq!((done.status, done.header("location")), (303, "/jobs/billing/2026-11-21T14Z?did=mark-done"));
    assert_eq!(port.current().await.audit.pop().unwrap().why, "by hand");
    let again = port.form(path, &other_cookie, &format!("token={other}&reason=by+hand")).await;
    assert_eq!(again.header("location"), "/jobs/billing/2026-11-21T14Z?did=nothing");
    port.scene.pass(60);
    port.scene.claim("billing", "b").await;
    let unlock = "/jobs/billing/2026-11-21T15Z/unlock";
    for typed in ["", "mail", "Billing"] {
        let body = format!("token={token}&reason=gone&confirm={typed}");
        assert_eq!(port.form(unlock, &cookie, &body).await.status, 400, "{typed}");
    }
    let done = port.form(unlock, &cookie, &format!("token={token}&reason=gone&confirm=billing")).await;
    assert_eq!((done.status, done.header("location")), (303, "/jobs/billing/2026-11-21T15Z?did=unlock"));
    let paused = port.form("/jobs/billing/pause", &cookie, &format!("token={token}&until=2h")).await;
    assert_eq!((paused.status, paused.header("location")), (303, "/jobs/billing?did=pause"));
}

#[tokio::test]
async fn a_form_that_is_not_taken_comes_back_with_what_was_typed_and_why() {
    let mut port = Port::new().await;
    let (cookie, token) = port.logged_in().await;
    port.scene.fail("billing", "b").await;
    let typed = |more: &str| format!("token={token}&reason=the+disk+is+%3Cfull%3E&{more}");
    let changed = port.form("/jobs/billing/2026-11-21T14Z/reset", &cookie, &typed("expect=failed")).await;
    assert_eq!(changed.status, 409);
    port.scene.claim("billing", "b").await;
    let misspelt = port.form("/jobs/billing/2026-11-21T14Z/unlock", &cookie, &typed("confirm=biling")).await;
    assert_eq!(misspelt.status, 400);
    for (page, why) in [(&changed, "is retrying, not failed"), (&misspelt, "type the job")] {
        assert!(
            page.body.contains(">the disk is &#60;full&#62;</textarea>") && page.body.contains(why),
            "{}",
            page.body
        );
    }
    for (page, changed) in [(&changed, true), (&misspelt, false)] {
        assert_eq!(page.body.contains("The slot changed in the meantime"), changed, "{}", page.body);
    }
    let unread = port.form("/jobs/billing/pause", &cookie, &typed("until=soon")).await;
    assert_eq!(unread.status, 400);
    let kept =
        [">the disk is &#60;full&#62;</textarea>", "name=\"until\" value=\"soon\"", "action=\"/jobs/billing/pause\""];
    assert!(kept.iter().all(|kept| unread.body.contains(kept)) && unread.body.contains("until: "), "{}", unread.body);
    assert_eq!(port.scene.store.pauses().await.unwrap(), []);
    assert_eq!(port.current().await.audit, []);
}

#[tokio::test]
async fn a_form_of_another_site_changes_nothing_though_the_cookie_and_the_token_are_right() {
    let port = Port::new().await;
    let (cookie, token) = port.logged_in().await;
    let path = "/jobs/billing/pause";
    let body = format!("token={token}&reason=x");
    let kind = ("content-type", "application/x-www-form-urlencoded");
    for from in [
        &[("sec-fetch-site", "cross-site")][..],
        &[("sec-fetch-site", "same-site")],
        &[("origin", "https://evil.example")],
        &[("sec-fetch-site", "cross-site"), ("origin", "http://localhost:9747")],
        &[("origin", "null")],
    ] {
        let headers = [&[kind, ("cookie", &*cookie)][..], from].concat();
        let refused = port.send("POST", path, &headers, &body).await;
        assert_eq!(refused.status, 403, "{from:?}: {}", refused.body);
        assert_eq!(port.scene.store.pauses().await.unwrap(), [], "{from:?}");
    }
    assert_eq!(port.form(path, &cookie, &body).await.status, 303, "from its own page it is done");
}

#[tokio::test]
async fn a_page_says_that_a_slot_changed_only_where_it_did_and_else_what_was_found() {
    let mut port = Port::new().await;
    let (cookie, token) = port.logged_in().await;
    port.scene.claim("billing", "b").await;
    let path = "/jobs/billing/2026-11-21T14Z/trigger";
    let body = format!("token={token}&reason=x&expect=running");
    let held = port.form(path, &cookie, &body).await;
    assert_eq!(held.status, 409);
    assert!(held.body.contains("running") && held.body.contains("role=\"alert\""), "{}", held.body);
    assert!(!held.body.contains("changed in the meantime"), "{}", held.body);
    let stale = port.form(path, &cookie, &body.replace("running", "pending")).await;
    assert!(stale.status == 409 && stale.body.contains("changed in the meantime"), "{}", stale.body);
    let expected = stale.body.contains("is running, not pending");
    assert!(expected, "{}", stale.body);
}

#[tokio::test]
async fn who_a_proxy_names_acts_under_that_name_and_only_from_its_own_pages() {
    let port = Port::with(|http| {
        let from = vec!["10.0.0.5/32".parse().unwrap()];
        let roles = RoleSource::Named("x-role".to_owned());
        http.proxy = Some(ProxyConfig { user_header: "x-forwarded-user".to_owned(), roles, from });
    })
    .await;
    let said = [("x-forwarded-user", "eve@example.org"), ("x-role", "operator"), ("content-type", FORM)];
    let path = "/jobs/billing/2026-11-21T14Z/reset";
    assert_eq!(port.send("POST", path, &said, "").await.status, 403, "the proxy's cookie is sent from any page");
    let own = [&said[..], &[("sec-fetch-site", "same-origin")]].concat();
    assert_eq!(port.send("POST", path, &own, "").await.status, 303);
    assert_eq!(port.current().await.audit.pop().unwrap().who, "eve@example.org");
}

#[tokio::test]
async fn where_every_user_can_read_the_tokens_nobody_logs_in_with_a_page() {
    use std::os::unix::fs::PermissionsExt;
    let port = Port::new().await;
    let (cookie, token) = port.logged_in().await;
    std::fs::set_permissions(&port.tokens, std::fs::Permissions::from_mode(0o644)).unwrap();
    port.gate.reread().unwrap();
    let refused = port.log_in(&port.operator.token, "").await;
    assert!(refused.status == 403 && refused.detail().contains("chmod o-r"), "{}", refused.body);
    let path = "/jobs/billing/2026-11-21T14Z/reset";
    assert_eq!(port.form(path, &cookie, &format!("token={token}")).await.status, 401);
    assert_eq!(port.ask(&format!("{SLOT}/reset"), &json!({})).await.status, 200, "a token in a header works");
}

#[tokio::test]
async fn a_slots_state_after_an_action_is_that_of_the_store() {
    let port = Port::new().await;
    port.ask(&format!("{SLOT}/mark-done"), &json!({"reason": "x"})).await;
    let record = port.current().await;
    assert_eq!(record.state(port.scene.clock.now().wall + Duration::from_secs(1), 3), SlotState::Done);
}

/// What is shown besides: where somebody paused a job from, and how an end is written.
const WRITTEN: [&str; 4] = ["ana", "http", "from", "past"];

#[tokio::test]
async fn the_form_of_each_action_is_chinese_for_whoever_reads_chinese() {
    let mut port = Port::new().await;
    let (cookie, _) = port.logged_in().await;
    let mut told = std::collections::BTreeSet::new();
    let slot = ["reset", "unlock", "mark-done", "trigger", "retry"];
    let job = ["trigger", "pause", "resume"];
    for state in ["untouched", "failed", "held", "exhausted", "done", "paused", "over"] {
        match state {
            "failed" => port.scene.fail("billing", "b").await,
            "held" => drop(port.scene.claim("billing", "b").await),
            "exhausted" => {
                port.scene.pass(2);
                port.scene.fail("billing", "b").await;
            }
            "done" => {
                port.ask(&format!("{SLOT}/mark-done"), &json!({"reason": "x"})).await;
            }
            "paused" => {
                port.ask("/jobs/billing/pause", &json!({"until": "2h"})).await;
            }
            "over" => {
                port.ask("/jobs/billing/resume", &json!({})).await;
                port.ask(&format!("{SLOT}/reset"), &json!({})).await;
                port.scene.pass(60);
            }
            _ => {}
        }
        let slots = slot.map(|verb| format!("/jobs/billing/2026-11-21T14Z/{verb}"));
        for path in slots.into_iter().chain(job.map(|verb| format!("/jobs/billing/{verb}"))) {
            let page = port.chinese(&path, &cookie, None).await;
            assert_eq!(page.status, 200, "{path} {state}: {}", page.body);
            // What would be refused is not promised.
            let asks = page.body.contains("name=\"reason\"");
            match (state, path.rsplit('/').next().unwrap()) {
                ("untouched" | "over", "trigger") | ("exhausted" | "over", "retry") => assert!(asks, "{path} {state}"),
                ("held" | "exhausted" | "done" | "paused", "trigger") | ("done", "retry") => {
                    assert!(!asks, "{path} {state}: {}", page.body);
                }
                _ => {}
            }
            told.insert(is_chinese(&page.body, &WRITTEN));
        }
    }
    for (part, sentence) in [
        ("effect", "2 次尝试不再计数；除非任务已暂停，节点会在几秒内再次运行该时间槽"),
        ("effect", "时间槽不再是已完成状态"),
        ("effect", "节点 b 上的第 2 次尝试将失去租约，除非任务已暂停，其他节点可以启动该时间槽"),
        ("effect", "时间槽视为已完成，不再有节点运行它"),
        ("effect", "命令将立即在节点 a 上运行"),
        ("effect", "时间槽已结束；命令将立即在节点 a 上运行"),
        ("effect", "恢复任务之前，不会启动该任务的任何时间槽；这将取代 ana（a, http from 10.0.0.5）设置的暂停"),
        ("effect", "该任务的时间槽会重新启动"),
        ("needless", "没有节点持有租约"),
        ("undo", "如需阻止节点运行该时间槽，请执行：cronward mark-done billing@2026-11-21T14Z"),
        ("undo", "如果节点 b 上的命令仍在运行，请将其停止：两次运行可能重叠"),
        ("undo", "无法撤销；如需再次运行该时间槽，请执行：cronward reset billing@2026-11-21T14Z"),
    ] {
        assert!(told.iter().any(|said| said.contains(sentence)), "{part}: {sentence} in {told:#?}");
    }
}

#[tokio::test]
async fn a_job_of_a_crontab_is_reset_in_chinese_too() {
    let mut port = Port::new().await;
    let (cookie, _) = port.logged_in().await;
    let entry = JobEntry { origin: JobOrigin::Crontab, enabled: false, ..crate::admin::fixture::entry("mail") };
    port.scene.store.register(&[entry]).await.unwrap();
    port.scene.fail("mail", "b").await;
    for (slot, sentence) in [("14Z", "待 crontab 再次启动它时，该时间槽才会运行"), ("13Z", "不会再有任何运行")]
    {
        let page = port.chinese(&format!("/jobs/mail/2026-11-21T{slot}/reset"), &cookie, None).await;
        let said = is_chinese(&page.body, &["mail", "crontab", "ana"]);
        assert!(said.contains(sentence), "{said}");
    }
}

#[tokio::test]
async fn why_an_action_is_refused_is_chinese_for_whoever_reads_chinese_and_english_for_programs() {
    let mut port = Port::new().await;
    let (cookie, token) = port.logged_in().await;
    let refused = async |port: &Port, path: &str, body: &str, (status, why): (u16, &str)| {
        let answer =
            port.chinese(&format!("/jobs/billing{path}"), &cookie, Some(&format!("token={token}&{body}"))).await;
        assert_eq!(answer.status, status, "{path} {body}: {}", answer.body);
        let said = is_chinese(&answer.body, &["ana", "soon", "only_on"]);
        assert!(said.contains(why), "{why} in {said}");
    };
    let slot = |verb: &str| format!("/2026-11-21T14Z/{verb}");
    refused(&port, "/pause", "until=soon", (400, "既不是时长也不是时间")).await;
    refused(&port, "/pause", "until=2026-11-21T14:00:00Z", (400, "已过：存储的时钟为 2026-11-21T14:10:00Z")).await;
    refused(&port, "/2026-11-21T13Z/trigger", "reason=x", (409, "billing@2026-11-21T13Z 已结束")).await;
    refused(&port, "/2026-11-21T15Z/trigger", "", (409, "只能运行当前和过去的时间槽")).await;
    port.scene.fail("billing", "b").await;
    refused(&port, &slot("reset"), "expect=failed", (409, "的状态是“重试中”，而不是“失败”")).await;
    let as_program = [("accept-language", "zh"), ("accept", "application/json")];
    let write = [("authorization", &*format!("Bearer {}", port.operator.token)), ("content-type", "application/json")];
    let headers = [&as_program[..], &write, &[("x-cronward", "1")]].concat();
    let told = port.send("POST", &format!("/api/v1{SLOT}/reset"), &headers, "{\"expect\":\"failed\"}").await;
    assert_eq!(told.detail(), "billing@2026-11-21T14Z is retrying, not failed");
    port.scene.claim("billing", "b").await;
    refused(&port, &slot("unlock"), "reason=x&confirm=mail", (400, "请输入任务名称以确认")).await;
    refused(&port, &slot("unlock"), "confirm=billing", (400, "此操作需要填写原因")).await;
    for verb in ["mark-done", "reset", "trigger"] {
        refused(&port, &slot(verb), "reason=x", (409, "由节点 b 以第 2 次尝试持有")).await;
    }
    port.scene.pass(2);
    port.scene.fail("billing", "b").await;
    refused(&port, &slot("trigger"), "", (409, "的尝试次数已用完：请先重置")).await;
    port.ask(&format!("{SLOT}/mark-done"), &json!({"reason": "x"})).await;
    refused(&port, &slot("trigger"), "", (409, "已完成：如需再次运行，请先重置")).await;
    refused(&port, &slot("retry"), "", (409, "已完成：如需再次运行，请先重置")).await;
    port.ask(&format!("{SLOT}/reset"), &json!({})).await;
    let node = port.node_answers(Err(TriggerRefusal::OtherNodes));
    refused(&port, &slot("trigger"), "", (409, "任务不在该节点上运行：only_on 指定了其他标签；没有其他在线节点")).await;
    node.await.unwrap();
    port.ask("/jobs/billing/pause", &json!({})).await;
    refused(&port, "/trigger", "", (409, "billing 已暂停：请先恢复任务")).await;
    let other = port.chinese("/jobs/billing/pause", &cookie, Some("token=x")).await;
    assert!(is_chinese(&other.body, &[]).contains("表单不属于当前登录"), "{}", other.body);
}

#[tokio::test]
async fn a_page_that_cannot_be_shown_says_why_in_chinese_and_the_interface_in_english() {
    let port = Port::new().await;
    let (cookie, _) = port.logged_in().await;
    let viewer = port.log_in(&port.viewer.token, "").await.cookie();
    for (cookie, path, status, why) in [
        (&cookie, "/nowhere", 404, "没有这个名称的内容"),
        (&cookie, "/jobs/Billing", 404, "不允许使用任务名称"),
        (&cookie, "/jobs/biling", 404, "没有任务 biling：是否指 billing？"),
        (&cookie, "/jobs/zzz/2026-11-21T14Z", 404, "列出已有的任务"),
        (&cookie, "/jobs/billing/noon", 404, "不是时间槽"),
        (&cookie, "/jobs/billing/2026-11-21T14:30Z", 404, "该时间属于 billing@2026-11-21T14Z"),
        (&cookie, "/jobs/billing/2026-11-21T14Z/forget", 404, "没有这个名称的内容"),
        (&cookie, "/go", 400, "请使用 /go?at="),
        (&viewer, "/jobs/billing/pause", 403, "您的角色不能执行此操作"),
        (&cookie, "/api/v1/jobs?q=colour%3Ared", 400, "不能按"),
        (&cookie, "/api/v1/next?count=0", 400, "count 为 1 至 1000"),
    ] {
        let page = port.chinese(path, cookie, None).await;
        assert_eq!(page.status, status, "{path}: {}", page.body);
        let names = ["Billing", "biling", "a-z", "zzz", "noon", "memory", "colour"];
        let fields = ["count", "job", "owner", "tag", "node", "state"];
        let said = is_chinese(&page.body, &[&names[..], &fields].concat());
        assert!(said.contains(why), "{why} in {said}");
        let told = port.send("GET", path, &[("cookie", cookie), ("accept-language", "zh")], "").await;
        assert!(told.status == status && told.detail().is_ascii(), "{}", told.body);
    }
    let closed = Port::with(|http| http.read_only = true).await;
    let (cookie, token) = closed.logged_in().await;
    let refused = closed.chinese("/jobs/billing/pause", &cookie, Some(&format!("token={token}"))).await;
    let said = is_chinese(&refused.body, &["http", "read_only", "false"]);
    assert!(refused.status == 403 && said.contains("此端口为只读"), "{said}");
}

#[tokio::test]
async fn what_a_change_of_the_clock_does_is_said_on_the_page_of_a_job_in_the_readers_language() {
    let port = Port::new().await;
    let (cookie, _) = port.logged_in().await;
    for (job, schedule, english, chinese) in [
        (
            "sweep",
            "30 2 28 3 *",
            "2027-03-28 02:30:00 does not exist (the clock goes forward): fires at 03:00:00 instead",
            "2027-03-28 02:30:00 不存在（时钟拨快）：改在 03:00:00 触发",
        ),
        (
            "new-job",
            "*/30 2-3 28 3 *",
            "2027-03-28 02:00:00 does not exist (the clock goes forward): does not fire",
            "2027-03-28 02:00:00 不存在（时钟拨快）：不会触发",
        ),
        (
            "retry-me",
            "*/30 2 31 10 *",
            "2027-10-31 02:00:00 comes twice (the clock goes back to 02:00:00): fires twice",
            "2027-10-31 02:00:00 会出现两次（时钟拨回 02:00:00）：触发两次",
        ),
    ] {
        let entry = JobEntry {
            schedule: schedule.to_owned(),
            timezone: "Europe/Berlin".to_owned(),
            ..crate::admin::fixture::entry(job)
        };
        port.scene.store.register(&[entry]).await.unwrap();
        // What is known of the jobs may be a second old.
        port.scene.pass(1);
        let page = port.send("GET", &format!("/jobs/{job}"), &[("accept", "text/html"), ("cookie", &cookie)], "").await;
        assert!(page.body.contains(&format!("<span class=\"warn\">{english}</span>")), "{}", page.body);
        let page = port.chinese(&format!("/jobs/{job}"), &cookie, None).await;
        let written =
            ["what", "does", "team-billing", "erp", "nightly", "bin", "true", "https", "runbooks", "example", "Berlin"];
        let said = is_chinese(&page.body, &[&written[..], &[job, "hour"]].concat());
        assert!(said.contains(chinese), "{chinese} in {said}");
    }
}
