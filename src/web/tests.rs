//! Requests to a site, without a socket: who may what, and what every answer has.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use axum::Router;
use axum::body::{Body, Bytes};
use axum::http::{HeaderMap, Request};
use axum::routing::any;
use futures_util::FutureExt;
use http_body_util::BodyExt;
use hyper::service::Service;
use hyper_util::service::TowerToHyperService;
use serde_json::Value;
use sha2::{Digest as _, Sha256};
use tokio::sync::watch;

use crate::admin::command_line::CommandLine;
use crate::board::{Board, BoardRow, Snapshot, StoreStanding};
use crate::clock::{Clock, ManualClock};
use crate::config::{HttpConfig, ProxyConfig, Role, RoleSource};
use crate::error::{Applied, ErrorKind, Op, Reply, StoreError};
use crate::job::{JobName, JobSpec, NodeName, Program};
use crate::node::Health;
use crate::observe::Observer;
use crate::slot::{Outcome, OutputTail, RunRecord, Slot, Token};
use crate::store::layer::{Call, Layer, Layered};
use crate::store::memory::MemoryStore;
use crate::store::{Claim, ClaimRequest, Store, StoreOptions};
use crate::web::asking::Peer;
use crate::web::door::{Door, Ends};
use crate::web::operations::{Operations, PlannedJobs};
use crate::web::routes::{Need, TABLE, WRITES};
use crate::web::{Activity, Exposition, Gate, Mint, Site, Sources};

/// Counts the calls to the store, and lets none through while it is away or hangs.
#[derive(Debug, Default)]
struct Calls {
    asked: AtomicUsize,
    /// What each is answered with instead.
    error: Mutex<Option<ErrorKind>>,
    hangs: AtomicBool,
}

impl Calls {
    /// From now on it answers each call with this.
    fn says(&self, kind: ErrorKind) {
        *self.error.lock().unwrap() = Some(kind);
    }

    /// It works again.
    fn recovers(&self) {
        *self.error.lock().unwrap() = None;
    }
}

#[async_trait]
impl Layer for Arc<Calls> {
    async fn around<'a, T: Send + 'a>(&'a self, op: Op, location: &'a str, call: Call<'a, T>) -> Reply<T> {
        self.asked.fetch_add(1, Ordering::Relaxed);
        if self.hangs.load(Ordering::Relaxed) {
            std::future::pending::<()>().await;
        }
        let error = *self.error.lock().unwrap();
        if let Some(kind) = error {
            return Err(StoreError::new(kind, Applied::No, op, location, "secret"));
        }
        call().await
    }
}

#[derive(Debug)]
struct OneFigure;

impl Exposition for OneFigure {
    fn write(&self, out: &mut dyn Write) -> std::fmt::Result {
        writeln!(out, "cronward_other 1")
    }
}

/// A site, and its world.
struct Stand {
    door: Door,
    clock: ManualClock,
    health: watch::Sender<Health>,
    store: Arc<Calls>,
    memory: MemoryStore,
    gate: Arc<Gate>,
    site: Arc<Site>,
}

/// What operators may do with it; no node runs anything.
fn operations(store: Arc<dyn Store>) -> Operations {
    let jobs = Arc::new(PlannedJobs::default());
    jobs.plan(&[push()], "c0ffee");
    let (node, line) = (NodeName::new("a").unwrap(), CommandLine::default());
    let retention = crate::admin::fixture::KEPT;
    Operations {
        store,
        jobs,
        commands: tokio::sync::mpsc::channel(1).0,
        node,
        labels: BTreeMap::new(),
        retention,
        line,
    }
}

/// The status of an answer, of which a redirection to another page of the site is as good as the page.
fn met(answer: &Answer) -> u16 {
    if answer.header("location").starts_with("/jobs/") { 200 } else { answer.status }
}

/// What came back.
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
        serde_json::from_str(&self.body).unwrap_or_else(|_| panic!("{:?}", self.body))
    }
}

impl Stand {
    fn new(http: HttpConfig) -> Self {
        let clock = ManualClock::at("2026-11-21T15:00:00Z".parse().unwrap());
        let well = Health { last_beat: Some(clock.now()), store_up: true, ..Health::default() };
        let (health, watched) = watch::channel(well);
        let store = Arc::new(Calls::default());
        let memory = MemoryStore::new(StoreOptions::default(), Arc::new(clock.clone()));
        claimed(&memory).now_or_never().unwrap();
        let gate = Arc::new(Gate::open(&http).unwrap());
        let kept: Arc<dyn Store> = Arc::new(Layered::new(Arc::new(memory.clone()), Arc::clone(&store)));
        let operations = operations(Arc::clone(&kept));
        let sources = Sources {
            clock: Arc::new(clock.clone()),
            health: watched,
            namespace: "prod".to_owned(),
            board: shown(None),
            activity: Arc::new(Activity::new(Arc::new(clock.clone()))),
            node: NodeName::new("a").unwrap(),
            operations: Some(Arc::new(operations)),
            examination: None,
            store: kept,
            scheme: "redis".to_owned(),
            expositions: vec![Arc::new(OneFigure)],
        };
        let site = Arc::new(Site::new(http, Arc::clone(&gate), sources));
        let door = Door::of(Arc::clone(&site));
        Self { door, clock, health, store, memory, gate, site }
    }

    async fn send(&self, peer: &str, request: Request<Body>) -> Answer {
        let ends = Ends { peer: SocketAddr::new(peer.parse().unwrap(), 50_000), local: "127.0.0.1".parse().unwrap() };
        let (head, body) = self.door.answer(ends, request).await.into_parts();
        let body = if head.headers.get("content-type").is_some_and(|kind| kind == "text/event-stream") {
            // It never ends by itself.
            let mut body = body;
            body.frame().await.unwrap().unwrap().into_data().unwrap()
        } else {
            body.collect().await.unwrap().to_bytes()
        };
        Answer { status: head.status.as_u16(), headers: head.headers, body: String::from_utf8(body.to_vec()).unwrap() }
    }

    async fn get(&self, path: &str, headers: &[(&str, &str)]) -> Answer {
        self.send("127.0.0.1", request("GET", path, headers, "")).await
    }

    /// With this token.
    async fn with(&self, path: &str, token: &str) -> Answer {
        self.get(path, &[("authorization", &format!("Bearer {token}"))]).await
    }
}

/// The job of the tests.
fn push() -> Arc<JobSpec> {
    Arc::new(JobSpec::new(JobName::new("push").unwrap(), "0 * * * *", Program::Direct(Vec::new())))
}

/// A board that knows this job; while the store is away, because of this.
fn shown(away: Option<&str>) -> Arc<Board> {
    let now = "2026-11-21T15:00:00Z".parse().unwrap();
    let entry = crate::store::JobEntry::of(&push(), now);
    let view = crate::observe::view::JobView::of(&entry, None);
    let row = BoardRow { view, spec: Some(push()), cells: Vec::new(), late: false };
    let store =
        StoreStanding { away_since: away.map(|_| now), error: away.map(str::to_owned), ..StoreStanding::default() };
    let board = Board::standing(Snapshot {
        version: "standing-0".to_owned(),
        store_time: now,
        read_at: Some(now),
        store,
        hours: Vec::new(),
        filled: 0,
        rows: vec![Arc::new(row)],
        nodes: Arc::default(),
        concerns: Arc::default(),
        warnings: Vec::new(),
    });
    board.plan(&[push()], "c0ffee");
    board
}

/// An attempt of its slot of 15:00 failed.
async fn claimed(store: &MemoryStore) {
    let slot = Slot::parse("push", "2026-11-21T15Z", "2026-11-21T16Z").unwrap();
    let (token, node) = (Token::from_bits(1), NodeName::new("a").unwrap());
    let request = ClaimRequest::new(slot, token, node, Duration::from_secs(60), 3);
    let Claim::Claimed { attempt, at, .. } = store.claim(&request).await.unwrap() else { panic!() };
    let lease = request.granted(attempt, at);
    let output = OutputTail { text: "<script>alert(1)</script>\n".to_owned(), dropped_bytes: 0, loss: None };
    let run = RunRecord { output: Some(output), exit_code: Some(1), ..RunRecord::ended(&lease, Outcome::Failure) };
    store.fail(&lease, &run, Duration::ZERO).await.unwrap();
}

/// An address of this path of the table.
fn example(path: &str) -> String {
    let asset = crate::web::pages::stylesheet();
    let filled = [("{job}", "push"), ("{slot}", "2026-11-21T15Z"), ("{attempt}", "1"), ("{name}", asset)];
    let filled =
        filled.iter().fold(path.replace("{action}", "mark-done"), |path, (place, value)| path.replace(place, value));
    if filled == "/go" { "/go?at=push".to_owned() } else { filled }
}

fn request(method: &str, path: &str, headers: &[(&str, &str)], body: &str) -> Request<Body> {
    let request = Request::builder().method(method).uri(path);
    let named = headers.iter().any(|(name, _)| *name == "host");
    let request = if named { request } else { request.header("host", "localhost:9747") };
    let request = headers.iter().fold(request, |request, (name, value)| request.header(*name, *value));
    request.body(Body::from(body.to_owned())).unwrap()
}

/// A file with a viewer's token and an operator's, and these tokens.
struct Given {
    _folder: tempfile::TempDir,
    path: PathBuf,
    viewer: String,
    operator: String,
}

fn given() -> Given {
    let folder = tempfile::tempdir().unwrap();
    let mint = |bits, role, name| Mint::new([bits; 32], role, name, None).unwrap();
    let (viewer, operator) = (mint(1, Role::Viewer, "vic"), mint(2, Role::Operator, "ana"));
    let path = folder.path().join("tokens");
    std::fs::write(&path, format!("{}\n{}\n", viewer.line, operator.line)).unwrap();
    Given { path, viewer: viewer.token, operator: operator.token, _folder: folder }
}

fn guarded(given: &Given) -> HttpConfig {
    HttpConfig { tokens_file: Some(given.path.clone()), ..HttpConfig::default() }
}

#[tokio::test]
async fn every_route_is_for_the_role_of_the_table_and_for_nobody_below_it() {
    let given = given();
    let stand = Stand::new(guarded(&given));
    for route in &TABLE {
        let path = example(route.path);
        let nobody = stand.get(&path, &[]).await.status;
        let (viewer, operator) =
            (met(&stand.with(&path, &given.viewer).await), met(&stand.with(&path, &given.operator).await));
        let wanted = match route.need {
            Need::Nothing => (200, 200, 200),
            Need::Figures | Need::Role(Role::Viewer) => (401, 200, 200),
            Need::Role(Role::Operator) => (401, 403, 200),
        };
        assert_eq!((nobody, viewer, operator), wanted, "{}", route.path);
    }
    let open = Stand::new(HttpConfig { metrics_open: true, ..guarded(&given) });
    assert_eq!(open.get("/metrics", &[]).await.status, 200);
    assert_eq!(open.get("/api/v1/jobs", &[]).await.status, 401, "the figures alone");
}

#[tokio::test]
async fn without_auth_everybody_who_reaches_the_port_is_a_viewer_and_no_more() {
    let stand = Stand::new(HttpConfig::default());
    for route in &TABLE {
        let wanted = if route.need == Need::Role(Role::Operator) { 403 } else { 200 };
        assert_eq!(met(&stand.get(&example(route.path), &[]).await), wanted, "{}", route.path);
    }
}

#[tokio::test]
async fn unknown_wrong_and_malformed_tokens_have_one_answer_and_the_eleventh_a_minute_another() {
    let given = given();
    let stand = Stand::new(guarded(&given));
    let unknown = format!("cronward_{}", "0".repeat(64));
    let basic = ("authorization", "Basic YTpi");
    let mut answers = vec![
        stand.get("/metrics", &[]).await,
        stand.with("/metrics", &unknown).await,
        stand.with("/metrics", "x").await,
        stand.with("/metrics", &given.viewer[..70]).await,
        stand.get("/metrics", &[basic]).await,
        stand.get("/metrics", &[("authorization", &format!("Bearer {}", given.viewer)), basic]).await,
    ];
    for answer in &answers {
        assert_eq!((answer.status, answer.header("www-authenticate")), (401, "Bearer realm=\"cronward\""));
    }
    answers.dedup_by(|a, b| a.body == b.body);
    assert_eq!(answers.len(), 1);
    for _ in 0..5 {
        assert_eq!(stand.with("/metrics", &unknown).await.status, 401);
    }
    let told = stand.with("/metrics", &unknown).await;
    assert_eq!((told.status, told.header("retry-after")), (429, "60"));
    assert_eq!(stand.with("/metrics", &given.viewer).await.status, 200, "nobody can lock others out");
    assert_eq!(stand.with("/healthz", &unknown).await.status, 200, "nobody asks for a token there");
    let elsewhere = request("GET", "/metrics", &[("authorization", &format!("Bearer {unknown}"))], "");
    assert_eq!(stand.send("192.0.2.9", elsewhere).await.status, 401, "another peer");
    stand.clock.advance(Duration::from_secs(60));
    assert_eq!(stand.with("/metrics", &unknown).await.status, 401);
}

#[tokio::test]
async fn tokens_are_taken_anew_and_stay_as_they_were_while_the_file_cannot_be_read() {
    let given = given();
    let stand = Stand::new(guarded(&given));
    let both = async || {
        (stand.with("/metrics", &given.viewer).await.status, stand.with("/metrics", &given.operator).await.status)
    };
    let text = std::fs::read_to_string(&given.path).unwrap();
    std::fs::write(&given.path, text.lines().next().unwrap()).unwrap();
    assert_eq!(both().await, (200, 200), "until they are read");
    assert_eq!(stand.gate.reread(), Ok(Some(1)));
    assert_eq!(both().await, (200, 401));
    std::fs::write(&given.path, "nonsense").unwrap();
    let told = stand.gate.reread().unwrap_err();
    assert!(told.contains("tokens:1: "), "{told}");
    assert_eq!(both().await, (200, 401));
}

#[tokio::test]
async fn what_a_proxy_says_counts_from_its_address_and_is_nothing_from_another() {
    let from = vec!["10.0.0.5/32".parse().unwrap()];
    let proxy = ProxyConfig { user_header: "x-forwarded-user".to_owned(), roles: RoleSource::Nowhere, from };
    let stand = Stand::new(HttpConfig { proxy: Some(proxy), ..HttpConfig::default() });
    let said = [("x-forwarded-user", "ana"), ("x-forwarded-for", "10.0.0.5")];
    assert_eq!(stand.send("10.0.0.5", request("GET", "/metrics", &said, "")).await.status, 200);
    assert_eq!(stand.send("127.0.0.1", request("GET", "/metrics", &said, "")).await.status, 401);
    assert_eq!(stand.send("10.0.0.5", request("GET", "/metrics", &[], "")).await.status, 401, "who says nothing");
}

/// What a page may do, and what a document may do that is what a command wrote.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; \
                      form-action 'self'; base-uri 'none'; object-src 'none'; frame-ancestors 'none'";
const OF_OUTPUT: &str = "sandbox; default-src 'none'";

/// An answer has the headers that bind a browser, and none that opens it to other sites.
fn is_bound(answer: &Answer, policy: &str, tls: bool, what: &str) {
    assert_eq!(answer.header("content-security-policy"), policy, "{what}");
    assert_eq!(answer.header("x-content-type-options"), "nosniff", "{what}");
    assert_eq!(answer.header("referrer-policy"), "no-referrer", "{what}");
    assert_eq!(answer.header("cross-origin-opener-policy"), "same-origin", "{what}");
    assert_eq!(answer.header("cross-origin-resource-policy"), "same-origin", "{what}");
    let may = "clipboard-write=(self), accelerometer=(), autoplay=(), camera=(), clipboard-read=(), display-capture=(), \
               fullscreen=(), geolocation=(), gyroscope=(), magnetometer=(), microphone=(), midi=(), payment=(), usb=()";
    assert_eq!(answer.header("permissions-policy"), may, "{what}");
    let kept = answer.header("content-type");
    let is_asset = kept.starts_with("text/css") || kept.starts_with("image/");
    assert!(is_asset || answer.header("cache-control") == "no-store", "{what}: {kept}");
    let hsts = if tls { "max-age=31536000; includeSubDomains" } else { "" };
    assert_eq!(answer.header("strict-transport-security"), hsts, "{what}");
    let opening = answer.headers.keys().find(|name| name.as_str().starts_with("access-control"));
    assert_eq!(opening, None, "{what}");
    assert!(answer.header("server").is_empty(), "nor what serves it: {what}");
}

/// Every kind of answer: each route, and each way of being refused.
async fn all_answers(stand: &Stand) -> Vec<Answer> {
    let mut answers = Vec::new();
    for route in &TABLE {
        answers.push(stand.get(&example(route.path), &[]).await);
    }
    let long = format!("/{}", "x".repeat(2_048));
    answers.push(stand.get("/nowhere", &[("accept", "text/html")]).await);
    answers.push(stand.get("/healthz", &[("host", "evil.example")]).await);
    answers.push(stand.get(&long, &[]).await);
    answers.push(stand.send("127.0.0.1", request("POST", "/healthz", &[], "")).await);
    answers.push(stand.send("127.0.0.1", request("POST", "/healthz", &[], &"x".repeat(17 * 1_024))).await);
    answers.push(stand.get("/metrics", &[("authorization", "Bearer x"), ("origin", "https://evil.example")]).await);
    answers
}

#[tokio::test]
async fn every_answer_has_the_headers_that_bind_a_browser_and_none_that_opens_it_to_other_sites() {
    let given = given();
    for tls in [false, true] {
        let stand = Stand::new(HttpConfig { behind_tls_proxy: tls, ..guarded(&given) });
        let answers = all_answers(&stand).await;
        let statuses: Vec<u16> = answers.iter().map(|answer| answer.status).collect();
        assert!(statuses.starts_with(&[200, 200, 401, 401, 401]), "{statuses:?}");
        assert!(statuses.ends_with(&[200, 404, 421, 414, 405, 413, 401]), "{statuses:?}");
        answers.iter().for_each(|answer| is_bound(answer, POLICY, tls, &answer.body));
    }
}

/// What a write of a program has, and what a form has.
fn meant(path: &str) -> [(&'static str, &'static str); 3] {
    let kind = if path.starts_with("/api/") { "application/json" } else { "application/x-www-form-urlencoded" };
    [("content-type", kind), ("x-cronward", "1"), ("sec-fetch-site", "same-origin")]
}

#[tokio::test]
async fn what_a_token_opens_is_bound_as_well_and_what_a_command_wrote_may_do_nothing_at_all() {
    let given = given();
    let bearer = format!("Bearer {}", given.operator);
    for tls in [false, true] {
        let stand = Stand::new(HttpConfig { behind_tls_proxy: tls, read_only: false, ..guarded(&given) });
        for route in &TABLE {
            let answer = stand.with(&example(route.path), &given.operator).await;
            assert_eq!(met(&answer), 200, "{}", route.path);
            let policy = if route.path.ends_with("/logs") { OF_OUTPUT } else { POLICY };
            is_bound(&answer, policy, tls, route.path);
        }
        for route in &WRITES {
            let path = example(route.path);
            let headers = [&meant(&path)[..], &[("authorization", &bearer)]].concat();
            let answer = stand.send("127.0.0.1", request("POST", &path, &headers, "")).await;
            let is_done = !matches!(answer.status, 401 | 403 | 405 | 415);
            assert!(is_done || route.need == Need::Nothing, "{path}: {} {}", answer.status, answer.body);
            is_bound(&answer, POLICY, tls, &path);
        }
        is_bound(&stand.with("/jobs/push/2026-11-21T15Z/runs/1?raw", &given.operator).await, OF_OUTPUT, tls, "raw");
    }
}

#[tokio::test]
async fn another_site_that_asks_is_allowed_nothing_and_no_page_loads_anything_from_elsewhere() {
    let given = given();
    let stand = Stand::new(guarded(&given));
    let bearer = format!("Bearer {}", given.operator);
    let foreign = [("authorization", &*bearer), ("origin", "https://evil.example"), ("accept", "text/html")];
    for route in &TABLE {
        let answer = stand.get(&example(route.path), &foreign).await;
        assert_eq!(met(&answer), 200, "{}", route.path);
        let opening = answer.headers.keys().find(|name| name.as_str().starts_with("access-control"));
        assert_eq!(opening, None, "{}", route.path);
        let preflight = [("access-control-request-method", "POST"), foreign[0], foreign[1]];
        let asked = stand.send("127.0.0.1", request("OPTIONS", &example(route.path), &preflight, "")).await;
        let opening = asked.headers.keys().find(|name| name.as_str().starts_with("access-control"));
        assert!(asked.status >= 400 && opening.is_none(), "{}: {} {opening:?}", route.path, asked.status);
        if answer.header("content-type").starts_with("text/html") {
            let loads = ["src=\"", "href=\"", "action=\"", "content=\"", "url("];
            let elsewhere = loads.iter().flat_map(|place| answer.body.split(place).skip(1));
            let elsewhere =
                elsewhere.filter(|rest| ["http:", "https:", "//"].iter().any(|begin| rest.starts_with(begin)));
            assert_eq!(elsewhere.count(), 0, "{}: {}", route.path, answer.body);
        }
        if answer.header("content-type").starts_with("text/css") {
            assert!(!answer.body.contains("http:") && !answer.body.contains("https:"), "{}", route.path);
            assert!(!answer.body.contains("@import"), "{}", route.path);
        }
    }
}

#[tokio::test]
async fn what_a_command_wrote_is_text_in_the_page_and_by_itself() {
    let stand = Stand::new(HttpConfig::default());
    let page = stand.get("/jobs/push/2026-11-21T15Z/runs/1", &[("accept", "text/html")]).await;
    assert!(page.body.contains("<pre class=\"output all\" lang=\"\">&#60;script&#62;alert(1)&#60;/script&#62;</pre>"));
    assert!(page.body.contains("<a href=\"/jobs/push/2026-11-21T15Z/runs/1?raw\">"), "{}", page.body);
    let raw = stand.get("/jobs/push/2026-11-21T15Z/runs/1?raw", &[("accept", "text/html")]).await;
    assert_eq!((raw.status, &*raw.body), (200, "<script>alert(1)</script>\n"));
    let log = stand.get("/api/v1/slots/push/2026-11-21T15Z/logs", &[("accept", "text/html")]).await;
    assert_eq!(log.body, raw.body);
    for answer in [&raw, &log] {
        assert_eq!(answer.header("content-type"), "text/plain; charset=utf-8");
    }
    assert_eq!(raw.header("content-disposition"), "inline; filename=\"push-2026-11-21T15Z-1.txt\"");
    let none = stand.get("/jobs/push/2026-11-21T15Z/runs/2?raw", &[]).await;
    assert_eq!((none.status, none.header("content-disposition")), (404, ""));
}

#[tokio::test]
async fn an_asset_is_kept_for_ever_under_the_hash_of_its_content_and_any_other_name_is_nothing() {
    let stand = Stand::new(HttpConfig { base_path: "/ops".to_owned(), ..HttpConfig::default() });
    let page = stand.get("/ops/help", &[]).await.body;
    let named: BTreeSet<&str> = page.split('"').filter(|text| text.starts_with("/ops/assets/")).collect();
    assert_eq!(named.len(), 3, "a stylesheet, a script and an icon: {named:?}");
    for address in named {
        let asset = stand.get(address, &[]).await;
        let kept = "public, max-age=31536000, immutable";
        assert_eq!((asset.status, asset.header("cache-control")), (200, kept), "{address}");
        let hash: String = Sha256::digest(&asset.body).iter().map(|byte| format!("{byte:02x}")).collect();
        assert!(address.starts_with(&format!("/ops/assets/cronward-{}.", &hash[..12])), "{address}: {hash}");
        let other = stand.get(&address.replace(&hash[..12], "000000000000"), &[]).await;
        assert_eq!((other.status, other.header("cache-control")), (404, "no-store"), "{address}");
    }
    assert_eq!(stand.get("/ops/assets/../routes.rs", &[]).await.status, 404);
    assert_eq!(stand.get("/ops/favicon.ico", &[]).await.header("cache-control"), "public, max-age=86400");
}

#[tokio::test]
async fn what_is_not_in_the_table_is_for_nobody_even_where_something_would_answer() {
    let given = given();
    let stand = Stand::new(HttpConfig { read_only: false, ..guarded(&given) });
    let reached = Arc::new(AtomicUsize::new(0));
    let answering = || {
        let reached = Arc::clone(&reached);
        any(async move || reached.fetch_add(1, Ordering::Relaxed).to_string())
    };
    let more = Router::new().route("/secrets", answering()).route("/healthz/{more}", answering());
    let routes = TowerToHyperService::new(crate::web::routes::guarded(more, &stand.site));
    for bearer in [None, Some(&given.viewer), Some(&given.operator)] {
        for (method, path) in [("GET", "/secrets"), ("HEAD", "/secrets"), ("POST", "/secrets"), ("GET", "/healthz/x")] {
            let token = bearer.map(|token| format!("Bearer {token}"));
            let headers = token.iter().map(|token| ("authorization", &**token)).chain(meant(path));
            let mut asked = request(method, path, &headers.collect::<Vec<_>>(), "");
            asked.extensions_mut().insert(Peer("127.0.0.1".parse().unwrap()));
            let answer = routes.call(asked).await.unwrap();
            assert_eq!(answer.status(), 403, "{method} {path} {bearer:?}");
        }
    }
    assert_eq!(reached.load(Ordering::Relaxed), 0);
}

#[tokio::test]
async fn a_method_that_the_table_does_not_have_does_nothing_for_anybody() {
    let given = given();
    let stand = Stand::new(HttpConfig { read_only: false, ..guarded(&given) });
    let paths: BTreeSet<&str> = TABLE.iter().chain(&WRITES).map(|route| route.path).collect();
    for path in paths {
        let (read, write) = (TABLE.iter().find(|r| r.path == path), WRITES.iter().find(|r| r.path == path));
        let needs: Vec<Need> = read.iter().chain(&write).map(|route| route.need).collect();
        let absent = [read.is_none().then_some("GET"), write.is_none().then_some("POST")].into_iter().flatten();
        for method in ["PUT", "PATCH", "DELETE", "OPTIONS", "TRACE"].into_iter().chain(absent) {
            let mut met = Vec::new();
            for token in [None, Some(&given.viewer), Some(&given.operator)] {
                let token = token.map(|token| format!("Bearer {token}"));
                let headers = token.iter().map(|token| ("authorization", &**token)).chain(meant(path));
                let asked = request(method, &example(path), &headers.collect::<Vec<_>>(), "");
                met.push(stand.send("127.0.0.1", asked).await.status);
            }
            let nobody = if needs.contains(&Need::Nothing) { 405 } else { 401 };
            let viewer = if needs.contains(&Need::Role(Role::Operator)) { 403 } else { 405 };
            assert_eq!(met, [nobody, viewer, 405], "{method} {path}");
        }
    }
    for token in [&given.viewer, &given.operator] {
        assert_eq!(stand.with("/nowhere", token).await.status, 404);
    }
}

#[tokio::test]
async fn an_error_is_a_problem_with_a_word_or_a_page_for_who_reads_pages() {
    let stand = Stand::new(HttpConfig::default());
    for (path, headers, status, word) in [
        ("/nowhere", &[][..], 404, "not-found"),
        ("/healthz/", &[], 404, "not-found"),
        ("/healthz", &[("host", "evil.example")], 421, "unknown-host"),
        (&*format!("/healthz?{}", "x".repeat(2_048)), &[], 414, "too-long"),
    ] {
        let answer = stand.get(path, headers).await;
        assert_eq!((answer.status, answer.header("content-type")), (status, "application/problem+json"));
        let json = answer.json();
        assert_eq!((&json["type"], &json["status"]), (&Value::from(word), &Value::from(status)));
        assert!(json["detail"].is_string() && json["title"].is_string(), "{json}");
    }
    let page = stand.get("/nowhere", &[("accept", "text/html,application/xhtml+xml;q=0.9,*/*;q=0.8")]).await;
    assert_eq!((page.status, page.header("content-type")), (404, "text/html; charset=utf-8"));
    assert!(page.body.starts_with("<!doctype html>") && !page.body.contains("style=") && !page.body.contains("<style"));
    let method = stand.send("127.0.0.1", request("DELETE", "/healthz", &[], "")).await;
    assert_eq!((method.status, method.header("allow")), (405, "GET,HEAD"));
    assert_eq!(method.json()["type"], "method-not-allowed");
    assert_eq!(stand.send("127.0.0.1", request("HEAD", "/healthz", &[], "")).await.body, "");
}

#[tokio::test]
async fn an_address_that_cannot_be_read_names_nothing_in_the_form_of_every_other_error() {
    let given = given();
    let stand = Stand::new(HttpConfig { read_only: false, ..guarded(&given) });
    let page = ("accept", "text/html");
    for route in TABLE.iter().chain(&WRITES).filter(|route| route.path.contains('{')) {
        let places =
            [("{attempt}", "abc"), ("{job}", "%ff"), ("{slot}", "%ff"), ("{name}", "%ff"), ("{action}", "reset")];
        let path = places.iter().fold(route.path.to_owned(), |path, (place, value)| path.replace(place, value));
        let own = [("x-cronward", "1"), ("content-type", "application/json")];
        let authorization = format!("Bearer {}", given.operator);
        let asked = |accept: (&'static str, &'static str)| {
            let headers = [("authorization", &*authorization), accept, own[0], own[1]];
            let method = if TABLE.iter().any(|read| std::ptr::eq(read, route)) { "GET" } else { "POST" };
            stand.send("127.0.0.1", request(method, &path, &headers, ""))
        };
        let problem = asked(("accept", "application/json")).await;
        let told = (problem.status, problem.header("content-type"));
        assert!(told.0 >= 400 && told.1 == "application/problem+json", "{path}: {told:?} {}", problem.body);
        assert_eq!(asked(page).await.header("content-type"), "text/html; charset=utf-8", "{path}");
    }
    for path in ["/jobs/%ff", "/jobs/billing/2026-11-21T14Z/runs/abc", "/assets/%ff", "/jobs/%ff/pause"] {
        let headers = [("authorization", &*format!("Bearer {}", given.operator)), page];
        let answer = stand.get(path, &headers).await;
        assert_eq!((answer.status, answer.header("content-type")), (404, "text/html; charset=utf-8"), "{path}");
    }
}

#[tokio::test]
async fn a_body_has_its_limit_whether_it_is_announced_or_not() {
    let stand = Stand::new(HttpConfig::default());
    let post = |body: Body| {
        let request = Request::builder().method("POST").uri("/healthz").header("host", "localhost");
        request.body(body).unwrap()
    };
    assert_eq!(stand.send("127.0.0.1", post(Body::from("x".repeat(16 * 1_024)))).await.status, 405);
    let large = stand.send("127.0.0.1", post(Body::from("x".repeat(16 * 1_024 + 1)))).await;
    assert_eq!((large.status, &large.json()["type"]), (413, &Value::from("too-large")));
    let parts = (0..17).map(|_| Ok::<_, std::io::Error>(Bytes::from(vec![b'x'; 1_024])));
    let streamed = Body::from_stream(futures_util::stream::iter(parts));
    assert_eq!(stand.send("127.0.0.1", post(streamed)).await.status, 413);
}

#[tokio::test(start_paused = true)]
#[allow(clippy::disallowed_methods, reason = "it is the time of the test that stands still")]
async fn a_request_that_takes_longer_than_ten_seconds_is_answered_without_what_it_asked_for() {
    let stand = Stand::new(HttpConfig::default());
    stand.store.hangs.store(true, Ordering::Relaxed);
    let began = tokio::time::Instant::now();
    let late = stand.get("/api/v1/slots/push/2026-11-21T15Z", &[]).await;
    assert_eq!((late.status, &late.json()["type"]), (503, &Value::from("timeout")));
    assert_eq!(began.elapsed().as_secs(), 10);
    let never = Body::from_stream(futures_util::stream::pending::<Result<Bytes, std::io::Error>>());
    let slow = Request::builder().method("POST").uri("/healthz").header("host", "localhost").body(never).unwrap();
    assert_eq!(stand.send("127.0.0.1", slow).await.status, 503, "nor is a body waited for any longer");
}

#[tokio::test]
async fn a_base_path_is_before_every_path_and_nothing_is_beside_it() {
    let stand = Stand::new(HttpConfig { base_path: "/ops/cron".to_owned(), ..HttpConfig::default() });
    assert_eq!(stand.get("/ops/cron/healthz", &[]).await.status, 200);
    assert_eq!(stand.get("/ops/cron/api/v1/jobs?q=x", &[]).await.status, 200);
    assert_eq!((stand.get("/ops/cron", &[]).await.status, stand.get("/ops/cron/", &[]).await.status), (200, 200));
    let next = stand.get("/ops/cron/api/v1/jobs/push/slots?limit=1", &[]).await;
    let link = "</ops/cron/api/v1/jobs/push/slots?before=2026-11-21T15Z&limit=1>; rel=\"next\"";
    assert_eq!((next.status, next.header("link")), (200, link));
    for elsewhere in ["/healthz", "/ops/cronhealthz", "/ops/cronx/healthz"] {
        assert_eq!(stand.get(elsewhere, &[]).await.status, 404, "{elsewhere}");
    }
}

#[tokio::test]
async fn alive_means_that_the_planner_beats_and_ready_that_nothing_is_missing() {
    let stand = Stand::new(HttpConfig::default());
    let asked = async || {
        let (alive, ready) = (stand.get("/healthz", &[]).await, stand.get("/readyz", &[]).await);
        let why = if ready.status == 200 { String::new() } else { ready.json()["detail"].as_str().unwrap().to_owned() };
        (alive.status, ready.status, why)
    };
    assert_eq!(asked().await, (200, 200, String::new()));
    stand.health.send_modify(|health| health.store_up = false);
    assert_eq!(asked().await, (200, 503, "store".to_owned()), "an outage of the store restarts nobody");
    stand.health.send_modify(|health| health.store_refuses = true);
    let refused = "store (it refuses this node: `cronward doctor` says why)".to_owned();
    assert_eq!(asked().await, (200, 503, refused), "nor does a store that refuses");
    stand.health.send_modify(|health| (health.store_up, health.draining) = (true, true));
    stand.health.send_modify(|health| health.store_refuses = false);
    assert_eq!(asked().await, (200, 503, "draining".to_owned()));
    stand.clock.advance(Duration::from_millis(4_999));
    assert_eq!(asked().await.0, 200);
    stand.clock.advance(Duration::from_millis(1));
    assert_eq!(asked().await, (503, 503, "plan, draining".to_owned()));
    stand.health.send_modify(|health| *health = Health::default());
    assert_eq!(asked().await, (503, 503, "store, plan".to_owned()), "before the first beat");
    assert_eq!(stand.store.asked.load(Ordering::Relaxed), 0, "and the store was never asked");
}

#[tokio::test]
async fn what_the_board_knows_is_answered_without_the_store_and_a_store_that_is_away_with_when_to_come_back() {
    let stand = Stand::new(HttpConfig::default());
    let jobs = stand.get("/api/v1/jobs", &[]).await;
    assert_eq!((jobs.status, jobs.header("content-type")), (200, "application/json"));
    assert_eq!(jobs.json()[0]["job"], "push");
    assert_eq!(stand.get("/api/v1/jobs/push", &[]).await.json()["job"], "push");
    assert_eq!(stand.get("/api/v1/nodes", &[]).await.body, "[]");
    assert_eq!(stand.get("/api/v1/store", &[]).await.json()["jobs"], 1);
    for (path, status, word) in [
        ("/api/v1/jobs/pull", 404, "not-found"),
        ("/api/v1/jobs/PUSH%20", 404, "not-found"),
        ("/api/v1/jobs?q=stat:x", 400, "bad-request"),
        ("/api/v1/jobs?page=0", 400, "bad-request"),
        ("/api/v1/jobs?per_page=501", 400, "bad-request"),
        ("/api/v1/jobs?page=x", 400, "bad-request"),
    ] {
        let answer = stand.get(path, &[]).await;
        assert_eq!((answer.status, &answer.json()["type"]), (status, &Value::from(word)), "{path}");
    }
    assert_eq!(stand.get("/api/v1/jobs?q=state:paused", &[]).await.body, "[]");
    assert_eq!(stand.store.asked.load(Ordering::Relaxed), 0);
}

#[tokio::test]
async fn jobs_are_told_page_by_page_with_the_filter_in_the_link_to_the_next() {
    let stand = Stand::new(HttpConfig { base_path: "/ops".to_owned(), ..HttpConfig::default() });
    let known = (*stand.site.sources.board.look(24)).clone();
    let named = |name: &str| {
        let mut row = (*known.rows[0]).clone();
        row.view.job = JobName::new(name).unwrap();
        Arc::new(row)
    };
    let rows = ["a", "b", "c", "d", "e"].map(|end| named(&format!("push-{end}"))).into();
    let board = Board::standing(Snapshot { rows, ..known.clone() });
    let sources = Sources { board, ..stand.site.sources.clone() };
    let http = stand.site.http.clone();
    let stand = Stand { door: Door::of(Arc::new(Site::new(http, Arc::clone(&stand.gate), sources))), ..stand };
    let mut told = Vec::new();
    let mut at = "/ops/api/v1/jobs?q=push&page=1&per_page=2".to_owned();
    for page in 1..=3 {
        let answer = stand.get(&at, &[]).await;
        let jobs = answer.json().as_array().unwrap().clone();
        told.extend(jobs.iter().map(|job| job["job"].as_str().unwrap().to_owned()));
        let next = format!("/ops/api/v1/jobs?q=push&page={}&per_page=2", page + 1);
        let link = if page < 3 { format!("<{next}>; rel=\"next\"") } else { String::new() };
        assert_eq!((answer.status, answer.header("link")), (200, &*link));
        at = next;
    }
    assert_eq!(told, ["push-a", "push-b", "push-c", "push-d", "push-e"]);
    let beyond = stand.get("/ops/api/v1/jobs?page=4&per_page=2", &[]).await;
    assert_eq!((beyond.status, &*beyond.body, beyond.header("link")), (200, "[]", ""));
}

#[tokio::test]
async fn a_store_that_is_away_is_told_of_and_why_stands_in_the_log_alone() {
    let stand = Stand::new(HttpConfig::default());
    stand.store.says(ErrorKind::Unavailable);
    let away = stand.get("/api/v1/slots/push/2026-11-21T15Z", &[]).await;
    assert_eq!((away.status, away.header("retry-after")), (503, "10"));
    assert_eq!(away.json()["type"], "store-away");
    assert!(!away.body.contains("secret"), "{}", away.body);
    let clock: Arc<dyn Clock> = Arc::new(stand.clock.clone());
    let sources = Sources { board: shown(Some("connection refused")), clock, ..stand.site.sources.clone() };
    let door = Door::of(Arc::new(Site::new(HttpConfig::default(), Arc::clone(&stand.gate), sources)));
    let stand = Stand { door, ..stand };
    let jobs = stand.get("/api/v1/jobs", &[]).await;
    assert_eq!((jobs.status, jobs.header("retry-after")), (503, "10"));
    let store = stand.get("/api/v1/store", &[]).await;
    assert_eq!((store.status, &store.json()["error"]), (200, &Value::from("connection refused")));
}

#[tokio::test]
async fn a_store_that_refuses_is_not_said_to_be_away_and_why_stands_in_the_log_alone() {
    let stand = Stand::new(HttpConfig::default());
    stand.store.says(ErrorKind::Denied);
    let refused = stand.get("/api/v1/slots/push/2026-11-21T15Z", &[]).await;
    assert_eq!((refused.status, refused.header("retry-after")), (503, ""), "waiting is no cure");
    assert_eq!(refused.json()["type"], "store-refuses");
    assert!(refused.body.contains("cronward doctor") && !refused.body.contains("secret"), "{}", refused.body);
    let page = stand.get("/jobs/push", &[("accept", "text/html")]).await;
    assert!(page.status == 503 && page.body.contains("cronward doctor"), "{}", page.body);
    assert!(page.body.contains("Waiting does not help"), "{}", page.body);
    stand.store.says(ErrorKind::ReadOnly);
    let away = stand.get("/api/v1/slots/push/2026-11-21T14Z", &[]).await;
    assert_eq!((away.status, &away.json()["type"]), (503, &Value::from("store-away")), "a failover ends that");
    assert_ne!(away.header("retry-after"), "");
}

#[tokio::test]
async fn a_store_that_answers_that_it_is_full_or_holds_something_else_is_quoted() {
    let stand = Stand::new(HttpConfig::default());
    stand.store.says(ErrorKind::Overloaded);
    let full = stand.get("/api/v1/slots/push/2026-11-21T15Z", &[]).await;
    assert_eq!((full.status, full.header("retry-after"), &full.json()["type"]), (503, "10", &"store-away".into()));
    assert!(full.body.contains("the store cannot be used now: memory:: nodes: secret"), "{}", full.body);
    stand.store.says(ErrorKind::Corrupt);
    let other = stand.get("/api/v1/slots/push/2026-11-21T14Z", &[]).await;
    assert_eq!((other.status, other.header("retry-after"), &other.json()["type"]), (500, "", &"store-corrupt".into()));
    assert!(other.body.contains("holds what cronward did not write: memory:: "), "{}", other.body);
    assert!(other.body.contains("move it away"), "{}", other.body);
    let page = stand.get("/jobs/push/2026-11-21T15Z", &[("accept", "text/html")]).await;
    assert!(page.status == 500 && page.body.contains("Waiting does not help"), "{}", page.body);
}

#[tokio::test]
async fn a_page_that_needs_a_store_that_is_away_says_so_and_the_others_show_what_was_known() {
    let stand = Stand::new(HttpConfig::default());
    let clock: Arc<dyn Clock> = Arc::new(stand.clock.clone());
    let sources = Sources { board: shown(Some("connection refused")), clock, ..stand.site.sources.clone() };
    let door = Door::of(Arc::new(Site::new(HttpConfig::default(), Arc::clone(&stand.gate), sources)));
    let stand = Stand { door, ..stand };
    stand.store.says(ErrorKind::Unavailable);
    let page = [("accept", "text/html")];
    for path in ["/jobs/push", "/jobs/push/2026-11-21T15Z", "/jobs/push/2026-11-21T15Z/runs/1", "/locks", "/go?at=push"]
    {
        let away = stand.get(path, &page).await;
        assert_eq!((away.status, away.header("retry-after")), (503, "10"), "{path}");
        assert_eq!(away.header("content-type"), "text/html; charset=utf-8", "{path}");
        for said in [
            "<h1>Not available now<small>503</small></h1>",
            "Try again in some seconds. Jobs run on as they can.",
            "the store does not answer; the node goes on asking it",
            "<a href=\"/nodes\">Nodes</a>",
        ] {
            assert!(away.body.contains(said), "{path}: {said}: {}", away.body);
        }
        assert_eq!(stand.get(path, &[]).await.json()["type"], "store-away", "{path}, to a program");
    }
    for path in ["/", "/nodes", "/store", "/activity"] {
        let known = stand.get(path, &page).await;
        assert_eq!(known.status, 200, "{path}");
        let strip = "The store has been unreachable since 15:00 UTC. This page shows what was known then.";
        assert!(known.body.contains(strip) && known.body.contains("Last error: connection refused"), "{path}");
    }
    stand.store.recovers();
    assert_eq!(stand.get("/jobs/push", &page).await.status, 200, "once it is back");
}

#[tokio::test]
async fn the_page_of_a_slot_names_the_keys_of_the_store_where_it_has_some() {
    let stand = Stand::new(HttpConfig::default());
    let page = stand.get("/jobs/push/2026-11-21T15Z", &[("accept", "text/html")]).await;
    assert_eq!(page.status, 200);
    for key in ["cronward:prod:{push@2026-11-21T15Z}", "cronward:prod:{push@2026-11-21T15Z}:attempts"] {
        assert!(page.body.contains(&format!("<code>{key}</code>")), "{key}: {}", page.body);
    }
    let sources = Sources { scheme: "memory".to_owned(), ..stand.site.sources.clone() };
    let door = Door::of(Arc::new(Site::new(HttpConfig::default(), Arc::clone(&stand.gate), sources)));
    let page = Stand { door, ..stand }.get("/jobs/push/2026-11-21T15Z", &[("accept", "text/html")]).await;
    assert!(page.status == 200 && !page.body.contains("Kept in the store as"), "{}", page.body);
}

#[tokio::test]
async fn the_page_of_a_job_shows_the_slots_that_can_be_read_and_says_which_cannot() {
    let stand = Stand::new(HttpConfig::default());
    stand.memory.spoil(&["push@2026-11-21T13Z"]);
    let page = stand.get("/jobs/push", &[("accept", "text/html")]).await;
    let error =
        "the store holds what cronward did not write: memory:: inspect: push@2026-11-21T13Z: a key of another type";
    assert!(page.status == 200 && page.body.contains(error), "{}", page.body);
    assert!(page.body.contains("/jobs/push/2026-11-21T14Z") && !page.body.contains("/jobs/push/2026-11-21T13Z\""));
    let slot = stand.get("/jobs/push/2026-11-21T13Z", &[("accept", "text/html")]).await;
    assert!(slot.status == 500 && slot.body.contains("move it away"), "{}", slot.body);
    let list = stand.get("/api/v1/jobs/push/slots", &[]).await;
    assert_eq!((list.status, &list.json()["type"]), (500, &"store-corrupt".into()), "nothing is left out in silence");
    assert!(list.body.contains("push@2026-11-21T13Z: a key of another type"), "{}", list.body);
}

#[tokio::test]
async fn details_are_read_once_for_all_who_ask_within_a_second() {
    let stand = Stand::new(HttpConfig::default());
    let (slot, asked) = ("/api/v1/slots/push/2026-11-21T15Z", || stand.store.asked.load(Ordering::Relaxed));
    let first = stand.get(slot, &[]).await;
    assert_eq!(first.json()["runs"][0]["output_tail"], "<script>alert(1)</script>\n");
    let once = asked();
    let all = futures_util::future::join_all((0..50).map(|_| stand.get(slot, &[]))).await;
    assert!(all.iter().all(|answer| answer.body == first.body));
    assert_eq!(asked(), once);
    let tag = first.header("etag").to_owned();
    let same = stand.get(slot, &[("if-none-match", &tag)]).await;
    assert_eq!((same.status, &*same.body, same.header("etag")), (304, "", &*tag));
    stand.clock.advance(Duration::from_secs(1));
    stand.get(slot, &[]).await;
    assert_eq!(asked(), 2 * once, "a second later");
}

#[tokio::test]
async fn no_more_than_four_requests_ask_the_store_at_once() {
    let stand = Stand::new(HttpConfig::default());
    stand.get("/api/v1/next", &[]).await;
    let before = stand.store.asked.load(Ordering::Relaxed);
    stand.store.hangs.store(true, Ordering::Relaxed);
    let paths: Vec<String> = (0..50).map(|hour| format!("/api/v1/attempts?since={}m", hour + 1)).collect();
    let all = futures_util::future::join_all(paths.iter().map(|path| stand.get(path, &[])));
    assert!(all.now_or_never().is_none());
    assert_eq!(stand.store.asked.load(Ordering::Relaxed) - before, 4);
}

#[tokio::test]
async fn what_can_be_asked_of_slots_is_answered_as_the_commands_do_and_what_cannot_be_read_is_refused() {
    let stand = Stand::new(HttpConfig::default());
    let log = stand.get("/api/v1/slots/push/2026-11-21T15Z/logs", &[]).await;
    assert_eq!((log.header("content-type"), &*log.body), ("text/plain; charset=utf-8", "<script>alert(1)</script>\n"));
    assert_eq!(log.header("x-content-type-options"), "nosniff");
    assert_eq!(stand.get("/api/v1/slots/push/-1", &[]).await.json()["slot"], "2026-11-21T14Z");
    let slots = stand.get("/api/v1/jobs/push/slots?before=2026-11-21T15Z&limit=2", &[]).await.json();
    assert_eq!((&slots[0]["slot"], &slots[1]["slot"]), (&"2026-11-21T14Z".into(), &"2026-11-21T13Z".into()));
    let listed = stand.get("/api/v1/attempts?since=1h&state=retrying", &[]).await.json();
    assert_eq!((listed.as_array().unwrap().len(), &listed[0]["slot"]), (1, &"2026-11-21T15Z".into()));
    assert_eq!(stand.get("/api/v1/next?count=3", &[]).await.json()[2]["slot"], "2026-11-21T18Z");
    assert!(stand.get("/api/v1/slots/push/2026-11-21T15Z/why", &[]).await.json()["sentence"].is_string());
    for (path, status) in [
        ("/api/v1/slots/push/2026-11-21T15:30Z", 404),
        ("/api/v1/slots/push/%00", 404),
        ("/api/v1/slots/push/2026-11-21T15Z/logs?attempt=2", 404),
        ("/api/v1/slots/push/2026-11-21T15Z/logs?attempt=x", 400),
        ("/api/v1/jobs/push/slots?limit=501", 400),
        ("/api/v1/jobs/push/slots?before=now", 400),
        ("/api/v1/attempts?since=32d", 400),
        ("/api/v1/attempts?state=sleeping", 400),
        ("/api/v1/next?count=0", 400),
        ("/api/v1/next?job=pull", 404),
    ] {
        assert_eq!(stand.get(path, &[]).await.status, status, "{path}");
    }
}

#[tokio::test]
async fn the_description_has_each_address_of_the_table_and_no_other() {
    let stand = Stand::new(HttpConfig::default());
    let document = stand.get("/api/v1/openapi.json", &[]).await.json();
    let described: Vec<&String> = document["paths"].as_object().unwrap().keys().collect();
    let routes = TABLE.iter().chain(&WRITES).map(|route| route.path);
    let mut table: Vec<&str> = routes.filter(|path| path.starts_with("/api/")).collect();
    table.sort_unstable();
    assert_eq!(described, table);
}

#[tokio::test]
async fn requests_are_counted_by_their_routes_and_never_by_their_paths() {
    let given = given();
    let stand = Stand::new(guarded(&given));
    stand.get("/healthz", &[]).await;
    stand.get("/healthz?secret=hunter2", &[]).await;
    stand.get("/hunter2", &[]).await;
    stand.get("/metrics", &[]).await;
    stand.get("/healthz", &[("host", "hunter2")]).await;
    let figures = stand.with("/metrics", &given.viewer).await;
    assert_eq!(figures.header("content-type"), "text/plain; version=0.0.4; charset=utf-8");
    for line in [
        "cronward_http_requests_total{namespace=\"prod\",route=\"/healthz\",code=\"200\"} 2",
        "cronward_http_requests_total{namespace=\"prod\",route=\"/metrics\",code=\"401\"} 1",
        "cronward_http_requests_total{namespace=\"prod\",route=\"none\",code=\"404\"} 1",
        "cronward_http_requests_total{namespace=\"prod\",route=\"none\",code=\"421\"} 1",
        "cronward_other 1",
    ] {
        assert!(figures.body.lines().any(|told| told == line), "{line}\n{}", figures.body);
    }
    assert!(!figures.body.contains("hunter2"), "{}", figures.body);
}
