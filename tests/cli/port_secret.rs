//! The password in the store's url: what the port, the log and the commands say has nothing of it, while the store is well, refuses
//! the password, and is gone.

use std::collections::BTreeSet;
use std::io::Write;

use serde_json::Value;

use crate::guarding::zone;
use crate::port::{Served, all_of, body, launch, log_of, operated, status};
use crate::support::redis_server::RedisServer;
use crate::wait;

/// Every path of the table of routes: one that is added is tried, too.
fn paths() -> BTreeSet<&'static str> {
    let table = include_str!("../../src/web/routes.rs").split("Route { path: \"").skip(1);
    table.filter_map(|rest| rest.split('"').next()).collect()
}

/// An operator who asks for everything that there is.
struct Asking<'a> {
    served: &'a Served,
    token: String,
    key: String,
    /// All that was answered.
    told: Vec<String>,
}

impl Asking<'_> {
    fn path(&self, path: &str) -> String {
        let path = path.replace("{job}", "work").replace("{slot}", &self.key).replace("{attempt}", "1");
        let path = path.replace("{action}", "reset").replace("{name}", "x");
        if path == "/go" { "/go?at=work".to_owned() } else { path }
    }

    /// Asks for each path as a browser and as a program, and does whatever can be done; answers with what was not found.
    fn ask_all(&mut self) -> Vec<String> {
        let mut absent = Vec::new();
        // It never ends by itself.
        for path in paths().into_iter().filter(|path| *path != "/api/v1/events") {
            let (at, token) = (self.path(path), format!("Authorization: Bearer {}", self.token));
            for kind in ["text/html", "application/json"] {
                let answer = self.served.ask(&format!("GET {at} HTTP/1.1\r\n{token}\r\nAccept: {kind}"), "");
                absent.extend((!matches!(status(&answer), 200 | 303)).then(|| format!("{} {at}", status(&answer))));
                self.told.push(answer);
            }
            let kind = if path.starts_with("/api/") { "application/json" } else { "application/x-www-form-urlencoded" };
            let meant = format!("X-Cronward: 1\r\nSec-Fetch-Site: same-origin\r\nContent-Type: {kind}");
            self.told.push(self.served.ask(&format!("POST {at} HTTP/1.1\r\n{token}\r\n{meant}"), ""));
        }
        absent
    }

    /// Waits until the node says of the store that it is away for this reason, and asks for everything then.
    fn ask_all_once(&mut self, reason: &str) {
        let says_so = || {
            let answer = self.served.with("/api/v1/store", &self.token);
            let store: Value = serde_json::from_str(body(&answer)).unwrap_or_default();
            store["error"].as_str().is_some_and(|error| error.contains(reason))
        };
        wait::until_true(reason, says_so);
        self.ask_all();
    }
}

#[test]
fn the_password_of_the_store_stands_on_no_page_in_no_answer_in_no_log_and_in_no_error() {
    let mut redis = RedisServer::start();
    redis.command(&["ACL", "SETUSER", "cronward", "reset", "on", ">hunter2/pa55", "~*", "&*", "+@all"]);
    let url = format!("redis://cronward:hunter2%2Fpa55@127.0.0.1:{}", redis.port());
    // A node that leaves tries to record what its last run came to until the lease is over.
    let (place, token) = operated(
        "[jobs.work]\nschedule = \"0 0 1 1 *\"\nslot = \"tick\"\nlease_ttl = \"5s\"\ncommand = \"env; false\"\n",
    );
    let file = std::fs::read_to_string(place.path().join("jobs.toml")).unwrap();
    place.write("jobs.toml", &file.replace("url = \"sqlite:cronward.sqlite\"", "url_file = \"url\""));
    place.write("url", &format!("{url}\n"));
    let mut command = place.command(&["run", "--log-format", "json", "--journal", "journal"]);
    command.env("CRONWARD_LOG", "debug").env("PATH", "/usr/bin:/bin");
    let served = Served::started(launch(&place, command), place).ready();
    let current = || {
        let job: Value = serde_json::from_str(body(&served.with("/api/v1/jobs/work", &token))).unwrap_or_default();
        job["current"]["slot"].as_str().map(str::to_owned)
    };
    let key = wait::until("the job's slot", current);
    let meant = "X-Cronward: 1\r\nContent-Type: application/json";
    let trigger = format!("POST /api/v1/slots/work/{key}/trigger HTTP/1.1\r\nAuthorization: Bearer {token}\r\n{meant}");
    served.ask(&trigger, "");
    let output = || served.with(&format!("/api/v1/slots/work/{key}/logs"), &token);
    wait::until_true("a run, and what it wrote", || body(&output()).contains("CRONWARD_SLOT"));
    let mut stream = served.connect();
    write!(stream, "GET /api/v1/events HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {token}\r\n\r\n").unwrap();

    let mut asking = Asking { served: &served, token: token.clone(), key, told: Vec::new() };
    let absent = asking.ask_all();
    // What is not read with GET, and the asset that there is not.
    let unread = |line: &String| line.starts_with("405 ") || line == "404 /assets/x";
    assert!(paths().len() > 35 && absent.iter().all(unread), "{absent:?}");
    let examined = asking.told.iter().any(|answer| answer.contains("\"findings\":[{"));
    assert!(examined, "what doctor finds is among what is asked for");
    redis.command(&["ACL", "SETUSER", "cronward", "resetpass", ">another"]);
    redis.command(&["CLIENT", "KILL", "USER", "cronward"]);
    asking.ask_all_once("wrong user or password");
    redis.kill();
    asking.ask_all_once("refused");
    let mut told = asking.told;

    for args in
        [&["nodes"][..], &["doctor"], &["show", "work"], &["check"], &["nodes", "--store", &url], &["check", "--json"]]
    {
        let ended = served.place.run(args);
        told.extend([ended.stdout, ended.stderr]);
    }
    let Served { place, daemon, .. } = served;
    daemon.leave();
    told.extend([all_of(&mut stream), log_of(&place), std::fs::read_to_string(place.path().join("journal")).unwrap()]);
    assert!(log_of(&place).contains("wrong user or password"), "the log says why");
    for text in told {
        assert!(!text.contains("hunter2") && !text.contains("pa55"), "{text}");
    }
}

#[test]
#[cfg(feature = "notify")]
fn what_is_a_sinks_secret_is_inherited_by_no_command_also_where_it_became_one_with_a_reload() {
    let job = |name: &str| {
        let zone = zone();
        format!(
            "[jobs.{name}]\nschedule = \"0 0 * * *\"\nslot = \"day\"\ntimezone = \"{zone}\"\ncommand = \"env\"\nenabled = false\n"
        )
    };
    let (place, token) = operated(&(job("before") + &job("after")));
    place.write("first", "https://127.0.0.1:9/robot/hunter2\n");
    place.write("second", "https://127.0.0.1:9/robot/pa55word\n");
    let sink = |name: &str| format!("[notify.{name}]\ntype = \"webhook\"\nurl_file = \"{name}\"\n");
    let file = std::fs::read_to_string(place.path().join("jobs.toml")).unwrap();
    place.write("jobs.toml", &(file.clone() + &sink("first")));
    let mut command = place.command(&["run", "--log-format", "json"]);
    command.env("FIRST", "https://127.0.0.1:9/robot/hunter2").env("SECOND", "see https://127.0.0.1:9/robot/pa55word");
    let served = Served::started(launch(&place, command), place).ready();
    let inherited = |name: &str| {
        let meant = "X-Cronward: 1\r\nContent-Type: application/json";
        let head = format!("POST /api/v1/jobs/{name}/trigger HTTP/1.1\r\nAuthorization: Bearer {token}\r\n{meant}");
        let begun = served.ask(&head, "");
        assert_eq!(status(&begun), 202, "{begun}");
        wait::until("its output", || {
            let shown: Value = serde_json::from_str(&served.place.run(&["show", name, "--json"]).stdout).ok()?;
            let logs = served.place.run(&["logs", name]).stdout;
            (shown["state"] == "done").then_some(logs)
        })
    };
    let before = inherited("before");
    assert!(before.contains("SECOND=see") && !before.contains("hunter2"), "{before}");
    served.place.write("jobs.toml", &(file + &sink("first") + &sink("second")));
    served.daemon.signal(rustix::process::Signal::HUP);
    wait::until_true("it has taken the file", || log_of(&served.place).contains("reloaded"));
    let after = inherited("after");
    assert!(after.contains("CRONWARD_SLOT=") && !after.contains("SECOND") && !after.contains("hunter2"), "{after}");
}
