//! The daemon's port on real sockets: what it refuses to start with, its bounds in time, size and number, its tokens, its end.

use std::fs::File;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use rustix::process::Signal;
use serde_json::Value;

use crate::process::Killed;
use crate::program::Place;
use crate::wait;

/// One job, which has nothing to do while a test runs.
const QUIET: &str = "[jobs.quiet]\nschedule = \"0 0 1 1 *\"\ncommand = [\"true\"]\nslot = \"day\"\n";

/// A daemon with a port, in a folder of its own.
pub(crate) struct Served {
    pub(crate) place: Place,
    pub(crate) daemon: Killed,
    address: SocketAddr,
}

pub(crate) fn log_of(place: &Place) -> String {
    std::fs::read_to_string(place.path().join("log")).unwrap_or_default()
}

/// The lines of the log with this message.
fn told(place: &Place, message: &str) -> Vec<Value> {
    let log = log_of(place);
    let lines = log.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
    lines.filter(|line| line.to_string().contains(message)).collect()
}

fn start(place: &Place, more: &[&str]) -> Killed {
    launch(place, place.command(&[&["run", "--log-format", "json"], more].concat()))
}

pub(crate) fn launch(place: &Place, mut command: Command) -> Killed {
    let log = File::create(place.path().join("log")).unwrap();
    Killed(command.stdout(Stdio::null()).stderr(log).spawn().unwrap())
}

/// Where it says that it listens.
fn listens(place: &Place) -> SocketAddr {
    let line = wait::until("it listens", || told(place, "listens for HTTP").pop());
    find(&line, "address").unwrap_or_else(|| panic!("{line}")).parse().unwrap()
}

/// A field of a line of the log, wherever it stands.
fn find(line: &Value, field: &str) -> Option<String> {
    match line {
        Value::Object(fields) => {
            fields.iter().find_map(
                |(name, value)| {
                    if name == field { value.as_str().map(str::to_owned) } else { find(value, field) }
                },
            )
        }
        _ => None,
    }
}

impl Served {
    fn new(http: &str) -> Self {
        Self::in_place(Place::with_jobs(&file(http)))
    }

    pub(crate) fn in_place(place: Place) -> Self {
        Self::started(start(&place, &[]), place)
    }

    pub(crate) fn started(daemon: Killed, place: Place) -> Self {
        let address = listens(&place);
        Self { place, daemon, address }.alive("/healthz")
    }

    /// From the planner's first beat on.
    fn alive(self, path: &str) -> Self {
        wait::until_true("it is alive", || status(&self.get(path)) == 200);
        self
    }

    pub(crate) fn connect(&self) -> TcpStream {
        let stream = TcpStream::connect(self.address).unwrap();
        stream.set_read_timeout(Some(wait::LIMIT)).unwrap();
        stream
    }

    pub(crate) fn ask(&self, head: &str, body: &str) -> String {
        let mut stream = self.connect();
        let length = body.len();
        let more = format!("Host: localhost\r\nConnection: close\r\nContent-Length: {length}\r\n\r\n{body}");
        stream.write_all(format!("{head}\r\n{more}").as_bytes()).unwrap();
        all_of(&mut stream)
    }

    fn get(&self, path: &str) -> String {
        self.ask(&format!("GET {path} HTTP/1.1"), "")
    }

    pub(crate) fn with(&self, path: &str, token: &str) -> String {
        self.ask(&format!("GET {path} HTTP/1.1\r\nAuthorization: Bearer {token}"), "")
    }

    /// Until the node has reached its store.
    pub(crate) fn ready(self) -> Self {
        wait::until_true("it is ready", || status(&self.get("/readyz")) == 200);
        self
    }
}

fn file(http: &str) -> String {
    format!(
        "[store]\nurl = \"sqlite:cronward.sqlite\"\nop_timeout = \"10s\"\n[http]\nlisten = \"127.0.0.1:0\"\n{http}\n{QUIET}"
    )
}

/// What is read until the connection ends, however it does.
pub(crate) fn all_of(stream: &mut TcpStream) -> String {
    let mut bytes = Vec::new();
    let _ = stream.read_to_end(&mut bytes);
    String::from_utf8(bytes).unwrap()
}

pub(crate) fn status(answer: &str) -> u16 {
    answer.split(' ').nth(1).and_then(|code| code.parse().ok()).unwrap_or(0)
}

pub(crate) fn body(answer: &str) -> &str {
    answer.split_once("\r\n\r\n").map_or("", |(_, body)| body)
}

#[test]
fn the_port_tells_what_the_listings_tell_and_healthcheck_whether_it_is_well() {
    let served = Served::new("").ready();
    for listing in ["nodes", "jobs"] {
        // The store may have been reached before the node and its jobs were written there.
        let is_filled = |answer: &String| status(answer) == 200 && body(answer) != "[]";
        let ask = || Some(served.get(&format!("/api/v1/{listing}"))).filter(is_filled);
        let answer = wait::until("a listing with something in it", ask);
        assert!(answer.contains("content-security-policy: default-src 'none'"), "{answer}");
        let names = |text: &str| {
            let views: Vec<Value> = serde_json::from_str(text).unwrap_or_else(|error| panic!("{error}: {text}"));
            let keys = views.iter().map(|view| view.as_object().unwrap().keys().cloned().collect::<Vec<_>>());
            (views.iter().map(|view| view["job"].clone()).collect::<Vec<_>>(), keys.collect::<Vec<_>>())
        };
        assert_eq!(names(body(&answer)), names(&served.place.run(&[listing, "--json"]).stdout), "{listing}");
    }
    assert!(body(&served.get("/metrics")).contains("route=\"/api/v1/nodes\",code=\"200\"} "));
    for figure in [
        "cronward_runs_total{namespace=\"default\",job_name=\"quiet\",result=\"success\"} 0\n",
        "cronward_nodes{namespace=\"default\",state=\"alive\"} 1\n",
        "cronward_store_op_duration_seconds_count{namespace=\"default\",op=\"heartbeat\"} ",
        "cronward_build_info{",
    ] {
        wait::until_true(figure, || body(&served.get("/metrics")).contains(figure));
    }
    let url = format!("http://{}/", served.address);
    for more in [&[][..], &["--ready"]] {
        let well = served.place.run(&[&["healthcheck", "--url", &url], more].concat());
        assert_eq!((well.code, &*well.stdout, &*well.stderr), (0, "", ""));
    }
    let place = served.place.path().to_owned();
    drop(served.daemon);
    let gone = served.place.run(&["healthcheck", "--url", &url]);
    assert!(gone.code == 1 && gone.stderr.contains("/healthz does not answer: "), "{gone:?} {place:?}");
}

#[test]
fn what_others_do_in_a_store_that_tells_nothing_is_shown_to_who_looks() {
    let served = Served::new("").ready();
    let shown = || serde_json::from_str::<Value>(body(&served.get("/api/v1/jobs/quiet"))).unwrap_or_default();
    // The one slot of the year: nobody knew the job then, and no node runs it any more.
    wait::until_true("the job, without a slot", || shown()["job"] == "quiet" && shown()["current"].is_null());
    let marked = served.place.run(&["mark-done", "quiet@2026-01-01T00Z", "--yes"]);
    assert_eq!(marked.code, 0, "{marked:?}");
    wait::until_true("what was done", || shown()["current"]["state"] == "done");
}

#[test]
fn nothing_listens_unless_it_is_asked_for_and_a_flag_wins_over_the_file() {
    let place = Place::with_jobs(&file("base_path = \"/ops/cron/\"").replace("127.0.0.1:0", "127.0.0.1:1"));
    let silent = start(&place, &["--no-http"]);
    wait::until("the store", || told(&place, "store reached").pop());
    silent.leave();
    assert!(told(&place, "listen").is_empty(), "{}", log_of(&place));
    let daemon = start(&place, &["--listen", "127.0.0.1:0"]);
    let served = Served { address: listens(&place), daemon, place }.alive("/ops/cron/healthz");
    assert_eq!(status(&served.get("/healthz")), 404);
    let url = format!("http://{}/ops/cron", served.address);
    assert_eq!(served.place.run(&["healthcheck", "--url", &url]).code, 0);
    served.daemon.leave();
}

#[test]
fn a_port_where_others_reach_it_is_not_served_without_auth_nor_with_tokens_in_the_clear() {
    let refused = |http: &str, args: &[&str]| {
        let place = Place::with_jobs(&format!("[store]\nurl = \"sqlite:a.sqlite\"\n{http}\n{QUIET}"));
        place.write("tokens", "# nobody\nviewer ana\n");
        let ended = place.run(&[&["run"], args].concat());
        assert_eq!(ended.code, 78, "{http}: {ended:?}");
        assert!(!place.path().join("a.sqlite").exists(), "nothing was started");
        ended.stderr
    };
    let open = refused("[http]\nlisten = \"0.0.0.0:0\"", &[]);
    assert!(open.contains("jobs.toml:4:10") && open.contains("[http.auth] tokens_file"), "{open}");
    let plain = refused("[http]\nlisten = \"0.0.0.0:0\"\n[http.auth]\ntokens_file = \"tokens\"", &[]);
    assert!(plain.contains("plain-token") && plain.contains("behind_tls_proxy = true"), "{plain}");
    let flag = refused("", &["--listen", "0.0.0.0:0"]);
    assert!(flag.contains("listen is 0.0.0.0:0, where others can reach it"), "{flag}");
    let wrong = refused("[http]\nlisten = \"127.0.0.1:0\"\n[http.auth]\ntokens_file = \"tokens\"", &[]);
    assert!(wrong.contains("tokens_file tokens:2: the third word is no sha256:HEX; write `viewer"), "{wrong}");
    let absent = refused("[http]\nlisten = \"127.0.0.1:0\"\n[http.auth]\ntokens_file = \"none\"", &[]);
    assert!(absent.contains("tokens_file none cannot be read: there is no such file; name one"), "{absent}");
}

#[test]
fn a_port_that_is_taken_stops_no_job_and_is_tried_again() {
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap();
    let beats = "[jobs.beat]\nschedule = \"* * * * * *\"\nslot = \"tick\"\ncommand = \"echo x >> ran\"\n";
    let place = Place::with_jobs(&format!("{beats}{}", file("").replace("127.0.0.1:0", &address.to_string())));
    let daemon = start(&place, &[]);
    wait::until_true("the job runs", || place.path().join("ran").exists());
    let refused = told(&place, "cannot listen for HTTP");
    assert!(refused.len() == 1 && refused[0].to_string().contains(&address.to_string()), "{refused:?}");
    drop(taken);
    assert_eq!(listens(&place), address);
    assert_eq!(told(&place, "cannot listen for HTTP").len(), 1, "told once");
    drop(daemon);
}

#[test]
fn a_minted_token_lets_in_until_its_line_is_gone_and_stands_in_no_log() {
    let place = Place::with_jobs(&file("[http.auth]\ntokens_file = \"tokens\""));
    let minted = place.run(&["token", "new", "--role", "viewer", "--name", "prometheus", "--expires", "90d"]);
    let lines: Vec<&str> = minted.stdout.lines().collect();
    let [token, line] = lines[..] else { panic!("{minted:?}") };
    assert!(minted.code == 0 && minted.stderr.contains("it is shown once"), "{minted:?}");
    assert!(token.starts_with("cronward_") && line.starts_with("viewer prometheus sha256:"), "{lines:?}");
    assert!(!line.contains(&token[9..]), "the line has no token");
    place.write("tokens", &format!("# monitoring\n{line}\n"));
    let served = Served::in_place(place);
    assert_eq!(status(&served.with("/metrics", token)), 200);
    assert_eq!(status(&served.get("/metrics")), 401);
    let wrong = token.replace(&token[9..13], "0000");
    assert_eq!(status(&served.with("/metrics", &wrong)), 401);
    wait::until("the refusal is told", || told(&served.place, "a token was refused").pop());
    served.place.write("tokens", "# nobody\n");
    served.daemon.signal(Signal::HUP);
    wait::until_true("the token is gone", || status(&served.with("/metrics", token)) == 401);
    served.place.write("tokens", "nonsense\n");
    served.daemon.signal(Signal::HUP);
    wait::until("that is told", || told(&served.place, "the tokens stay as they were").pop());
    served.place.write("jobs.toml", &file("base_path = \"/x\""));
    served.daemon.signal(Signal::HUP);
    wait::until("a restart is asked for", || {
        told(&served.place, "[http] changed in the file: that needs a restart").pop()
    });
    let log = log_of(&served.place);
    served.daemon.leave();
    assert!(!log.contains(&token[9..]) && !log.contains(&wrong[9..]), "{log}");
}

#[test]
fn a_body_of_17_kib_and_a_long_address_are_refused_and_the_host_is_to_be_known() {
    let served = Served::new("public_url = \"https://cron.example/\"");
    assert_eq!(status(&served.ask("POST /healthz HTTP/1.1", &"x".repeat(17 * 1_024))), 413);
    assert_eq!(status(&served.get(&format!("/{}", "x".repeat(2_048)))), 414);
    for (host, wanted) in [("evil.example", 421), ("cron.example", 200), ("127.0.0.1:9747", 200), ("127.0.0.2", 421)] {
        let mut stream = served.connect();
        stream
            .write_all(format!("GET /healthz HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n").as_bytes())
            .unwrap();
        assert_eq!(status(&all_of(&mut stream)), wanted, "{host}");
    }
}

#[test]
fn a_head_that_takes_longer_than_ten_seconds_ends_its_connection_and_so_does_silence() {
    let served = Served::new("");
    let began = Instant::now();
    let (mut slow, mut silent, mut kept) = (served.connect(), served.connect(), served.connect());
    slow.write_all(b"GET /healthz HTTP/1.1\r\nHost: local").unwrap();
    kept.write_all(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n").unwrap();
    assert!(!all_of(&mut slow).contains(" 200 "));
    assert_eq!(all_of(&mut silent), "");
    assert_eq!(status(&all_of(&mut kept)), 200, "it was answered, and then silent");
    let passed = began.elapsed();
    assert!(passed >= Duration::from_secs(9) && passed < Duration::from_secs(30), "{passed:?}");
}

#[test]
fn three_hundred_idle_connections_keep_nobody_out() {
    let served = Served::new("");
    let idle: Vec<TcpStream> = (0..300).map(|_| served.connect()).collect();
    let began = Instant::now();
    assert_eq!(status(&served.get("/healthz")), 200);
    // The first of them lost their places, long before silence ends a connection; the last did not.
    let (mut first, mut last) = (&idle[0], &idle[299]);
    assert_eq!(first.read(&mut [0]).unwrap_or(0), 0);
    assert!(began.elapsed() < Duration::from_secs(5), "they gave way: {:?}", began.elapsed());
    last.write_all(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n").unwrap();
    let mut answer = String::new();
    last.read_to_string(&mut answer).unwrap();
    assert_eq!(status(&answer), 200);
}

#[test]
fn a_head_of_more_than_sixteen_kibibytes_is_refused() {
    let served = Served::new("");
    let head = "GET /healthz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nX-Long: ";
    let answer = |length: usize, end: &str| {
        let mut stream = served.connect();
        let filler = "x".repeat(length - head.len() - end.len());
        stream.write_all(format!("{head}{filler}{end}").as_bytes()).unwrap();
        all_of(&mut stream)
    };
    assert_eq!(status(&answer(16 * 1_024 - 1, "\r\n\r\n")), 200);
    // Nothing more is sent: what nobody reads would break the connection off.
    assert_eq!(status(&answer(16 * 1_024, "")), 431);
}

#[test]
fn a_stream_keeps_its_place_among_idle_connections() {
    let served = Served::new("").ready();
    let mut stream = served.connect();
    stream.write_all(b"GET /api/v1/events HTTP/1.1\r\nHost: localhost\r\n\r\n").unwrap();
    let mut begun = Vec::new();
    while !String::from_utf8_lossy(&begun).contains("retry:") {
        let mut bytes = [0; 512];
        let count = stream.read(&mut bytes).unwrap();
        assert!(count > 0, "it began: {}", String::from_utf8_lossy(&begun));
        begun.extend_from_slice(&bytes[..count]);
    }
    let _idle: Vec<TcpStream> = (0..300).map(|_| served.connect()).collect();
    assert_eq!(status(&served.get("/healthz")), 200, "some of the idle ones gave way");
    served.daemon.leave();
    let rest = all_of(&mut stream);
    assert!(rest.contains("event: bye"), "it was told until the end: {rest}");
}

#[test]
fn a_daemon_that_leaves_ends_its_connections_within_two_seconds() {
    let served = Served::new("").ready();
    let (mut silent, mut slow) = (served.connect(), served.connect());
    slow.write_all(b"POST /healthz HTTP/1.1\r\nHost: localhost\r\nContent-Length: 9\r\n\r\nhalf").unwrap();
    assert_eq!(status(&served.get("/healthz")), 200, "both were accepted before");
    let began = Instant::now();
    served.daemon.leave();
    assert!(began.elapsed() < Duration::from_secs(8), "{:?}", began.elapsed());
    assert_eq!((&*all_of(&mut silent), &*all_of(&mut slow)), ("", ""));
}

/// A place with a tokens file that no other user can read, and the operator's token.
pub(crate) fn operated(jobs: &str) -> (Place, String) {
    use std::os::unix::fs::PermissionsExt;
    let place = Place::with_jobs(&file(&format!("read_only = false\n[http.auth]\ntokens_file = \"tokens\"\n{jobs}")));
    let minted = place.run(&["token", "new", "--role", "operator", "--name", "ana"]);
    let (token, line) = minted.stdout.trim_end().split_once('\n').unwrap();
    place.write("tokens", &format!("{line}\n"));
    std::fs::set_permissions(place.path().join("tokens"), std::fs::Permissions::from_mode(0o600)).unwrap();
    (place, token.to_owned())
}

#[test]
fn a_run_that_is_asked_for_over_http_is_run_here_once_and_recorded_with_who_asked() {
    let command = "command = \"echo $CRONWARD_TRIGGER >> ran\"\nenabled = false\n";
    let (place, token) = operated(&format!("[jobs.work]\nschedule = \"0 0 * * *\"\nslot = \"day\"\n{command}"));
    let served = Served::in_place(place).ready();
    let post = |path: &str, body: &str| {
        let json = "Content-Type: application/json\r\nX-Cronward: 1";
        served.ask(&format!("POST {path} HTTP/1.1\r\nAuthorization: Bearer {token}\r\n{json}"), body)
    };
    let begun = post("/api/v1/jobs/work/trigger", "{\"reason\": \"the customer asks\"}");
    assert_eq!(status(&begun), 202, "{begun}");
    let shown = wait::until("it is done", || {
        let shown: Value = serde_json::from_str(&served.place.run(&["show", "work", "--json"]).stdout).ok()?;
        (shown["state"] == "done").then_some(shown)
    });
    let audit = &shown["audit"][0];
    assert_eq!(
        (&audit["verb"], &audit["who"], &audit["why"]),
        (&"trigger".into(), &"ana".into(), &"the customer asks".into())
    );
    assert!(audit["host"].as_str().unwrap().ends_with(", http from 127.0.0.1"), "{audit}");
    let again = post("/api/v1/jobs/work/trigger", "");
    assert!(status(&again) == 409 && again.contains("is done: reset it first"), "{again}");
    assert_eq!(std::fs::read_to_string(served.place.path().join("ran")).unwrap(), "manual\n");
    wait::until("it is logged", || told(&served.place, "an operator asked for it over HTTP").pop());
    wait::until("and so is the refusal", || told(&served.place, "an action was refused").pop());
    assert!(!log_of(&served.place).contains(&token[9..]));
}

#[test]
fn whoever_logs_in_with_a_form_looks_with_the_cookie_until_the_line_is_gone() {
    let (place, token) = operated("");
    let served = Served::in_place(place);
    let form = "Content-Type: application/x-www-form-urlencoded\r\nSec-Fetch-Site: same-origin";
    let entered = served.ask(&format!("POST /login HTTP/1.1\r\n{form}"), &format!("token={token}"));
    assert_eq!(status(&entered), 303, "{entered}");
    let cookie = entered.lines().find_map(|line| line.strip_prefix("set-cookie: ")).unwrap();
    let cookie = cookie.split(';').next().unwrap();
    let look = || status(&served.ask(&format!("GET /metrics HTTP/1.1\r\nCookie: {cookie}"), ""));
    assert_eq!((look(), status(&served.get("/metrics"))), (200, 401));
    served.place.write("tokens", "# nobody\n");
    served.daemon.signal(Signal::HUP);
    wait::until_true("the login is over", || look() == 401);
}

#[test]
fn check_finds_a_bad_line_of_the_tokens_file_at_its_place() {
    let (place, _) = operated("");
    assert_eq!(place.run(&["check"]).code, 0);
    place.write("tokens", "# people\noperator ana sha256:12\n");
    let told = place.run(&["check"]);
    assert!(told.code == 78 && told.stdout.contains("error[bad-token]: the third word is no sha256:HEX"), "{told:?}");
    assert!(told.stdout.contains(" --> tokens:2:1\n"), "{told:?}");
    let found: Value = serde_json::from_str(&place.run(&["check", "--json"]).stdout).unwrap();
    let finding = found.as_array().unwrap().last().unwrap();
    assert_eq!((&finding["file"], &finding["line"]), (&"tokens".into(), &2.into()));
    assert!(!found.to_string().contains("sha256:12"), "{found}");
    std::fs::remove_file(place.path().join("tokens")).unwrap();
    let absent = place.run(&["check"]);
    assert!(
        absent.code == 0 && absent.stdout.contains("warning[unreadable-tokens]"),
        "whoever checks may not read it: {absent:?}"
    );
}
