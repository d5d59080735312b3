//! What is wrong in `[node]`, `[store]` and `[http]`, and in the file as a whole.

use std::io::Write;

use cronward::job::JobSelection;

use super::{config, job, report, tells, told};

fn with(section: &str) -> String {
    format!("{section}\n{}", job(""))
}

#[test]
fn a_value_that_is_not_quoted_is_told_with_the_line_to_write() {
    tells(&job("lease_ttl = 60s"), "4:13 syntax: the value of lease_ttl is not in quotes (write lease_ttl = \"60s\")");
}

#[test]
fn several_syntax_errors_and_the_errors_between_them_are_told_at_once() {
    let text = "[store]\nurl = \"sqlite\nnamespace = \"A B\"\n[jobs.a]\nschedule = @hourly\nmax_attempts = 0\n";
    let told = told(text);
    assert_eq!(told.len(), 4, "{told:#?}");
    assert!(told[0].starts_with("2:14 syntax: invalid basic string"), "{told:#?}");
    assert!(told[1].starts_with("3:13 bad-name: namespace: "), "{told:#?}");
    assert!(told[2].starts_with("5:12 syntax: the value of schedule is not in quotes"), "{told:#?}");
    assert!(told[3].starts_with("6:16 out-of-range: max_attempts is 0"), "{told:#?}");
}

#[test]
fn a_job_that_is_there_twice_is_one_error_that_names_the_first() {
    let text = format!("{}[http]\n{}", job(""), job(""));
    tells(
        &text,
        "6:7 duplicate-job: job a is defined twice (the first one is on line 1: give one of them another name)",
    );
}

#[test]
fn a_key_or_a_section_that_is_there_twice_is_told_with_the_first() {
    tells(
        &job("max_attempts = 1\nmax_attempts = 2"),
        "5:1 duplicate-key: max_attempts is given twice (the first one is on line 4: keep one of them)",
    );
    tells(&with("[http]\n[http]"), "2:2 duplicate-key: [http] is there twice (the first one is on line 1)");
}

#[test]
fn unknown_keys_are_told_with_the_nearest_or_the_section_they_belong_to() {
    for (section, expected) in [
        ("[stor]", "1:2 unknown-key: unknown key stor (did you mean store?)"),
        ("[[job]]\nschedule = \"@hourly\"", "1:3 unknown-key: unknown key job (write each job as [jobs.NAME])"),
        ("[job.a]\nschedule = \"@hourly\"", "1:2 unknown-key: unknown key job (write each job as [jobs.NAME])"),
        ("[node]\nnaem = \"a\"", "2:1 unknown-key: unknown key naem in [node] (did you mean name?)"),
        ("[node]\nlisten = \"x\"", "2:1 unknown-key: unknown key listen in [node] (listen belongs in [http])"),
        (
            "[http]\nport = 1",
            "2:1 unknown-key: unknown key port in [http] (known here: listen, read_only, base_path, public_url, behind_tls_proxy, tls, metrics_open, metrics_jobs, auth)",
        ),
        (
            "[defaults]\nschedule = \"x\"",
            "2:1 unknown-key: unknown key schedule in [defaults] (schedule belongs in [jobs.NAME])",
        ),
        ("[defaults]\nretries = 3", "2:1 unknown-key: unknown key retries in [defaults] (did you mean max_attempts?)"),
    ] {
        tells(&with(section), expected);
    }
}

#[test]
fn a_section_that_is_no_table_is_told() {
    tells(&with("node = \"a\""), "1:8 wrong-type: node must be a table, not a string (write it as [node])");
    tells("jobs = 3", "1:8 wrong-type: jobs must be a table, not a whole number");
    tells("[jobs]\na = 3", "2:5 wrong-type: a must be a table, not a whole number (write it as [jobs.a])");
    tells("[[jobs]]\nname = \"a\"", "1:1 wrong-type: jobs must be a table, not a list (write each job as [jobs.NAME])");
}

#[test]
fn names_that_break_their_rule_are_told_with_one_that_does_not() {
    tells(&with("[node]\nname = \"a b\""), "2:8 bad-name: name: node name \"a b\" is not allowed: 1 to 64 characters");
    tells(&with("[store]\nnamespace = \"Prod\""), "2:13 bad-name: namespace: namespace \"Prod\" is not allowed");
    assert!(told(&with("[node]\nname = \"a b\""))[0].ends_with("(for example \"a-b\")"));
}

#[test]
fn variables_that_are_not_set_are_told_where_they_stand() {
    tells(
        &with("[store]\nurl = \"redis://${REDIS_HOST}:6379\""),
        "2:16 unset-variable: url: variable REDIS_HOST is not set (set it, or give a default: ${REDIS_HOST:-value})",
    );
    tells(
        &with("[store]\nurl = \"${URL:?ask the ops team}\""),
        "2:8 unset-variable: url: variable URL is not set: ask the ops team",
    );
    tells(&with("[node]\nname = \"$NAME\""), "2:9 bad-variable: name: $NAME is not replaced (write ${NAME}");
}

#[test]
fn durations_are_told_with_their_bounds_and_what_to_write() {
    for (line, expected) in [
        ("drain = 10", "bad-duration: drain is a number without a unit (write drain = \"10s\" if seconds were meant)"),
        ("drain = \"10\"", "bad-duration: drain: \"10\" has no unit (write \"10s\" for seconds, \"10m\" for minutes)"),
        ("drain = \"8d\"", "out-of-range: drain is 8d, which is out of range (from \"0s\" to \"7d\")"),
        ("drain = true", "wrong-type: drain must be a duration, not true or false (write drain = \"1m\")"),
    ] {
        tells(&with(&format!("[node]\n{line}")), &format!("2:9 {expected}"));
    }
}

#[test]
fn a_node_runs_as_many_at_once_as_its_file_says() {
    assert_eq!(config(&with("[node]\nmax_running = 40")).node.max_running, 40);
    for number in ["0", "100001"] {
        let expected = format!("15 out-of-range: max_running is {number}, which is out of range (from 1 to 100000)");
        tells(&with(&format!("[node]\nmax_running = {number}")), &format!("2:{expected}"));
    }
}

#[cfg(feature = "redis-redlock")]
#[test]
fn a_redlock_has_an_odd_number_of_masters_and_says_what_it_cannot_promise() {
    for (url, expected) in [
        (
            "redlock://a,b",
            "bad-url: url cannot be used: it names 2 master(s) (write redis:// for one, or name three, five or",
        ),
        (
            "redlock://a,b,c,d",
            "bad-url: url cannot be used: it names 4 masters: 4 masters tolerate no more failures than 3",
        ),
        ("redlocks://a,,c", "bad-url: url cannot be used: one of its servers is no host (write host:port,host:port"),
        ("redlock://a:1,b:2,c:3/0", "redlock-limits: redlock: leases hold while most masters' clocks run at one rate"),
    ] {
        tells(&with(&format!("[store]\nurl = {url:?}")), &format!("2:7 {expected}"));
    }
}

#[test]
fn only_urls_that_this_build_can_open_are_taken() {
    for (url, expected) in [
        (
            "redsi://h",
            "bad-url: url cannot be used: unknown scheme \"redsi\" (did you mean \"redis\"? Known schemes: sqlite",
        ),
        ("mongodb://h", "bad-url: url cannot be used: unknown scheme \"mongodb\" (known schemes: sqlite, redis"),
        ("redis://", "bad-url: url cannot be used: it names no host (write redis://host:6379"),
        (
            "redis://h/0?foo=1",
            "bad-url: url cannot be used: parameter \"foo\" is not known with redis; known are: none (write redis",
        ),
        #[cfg(feature = "redis-sentinel")]
        (
            "redis+sentinel://h1,,h2/m",
            "bad-url: url cannot be used: one of its servers is no host (write host:port,host:port",
        ),
        #[cfg(feature = "redis-sentinel")]
        (
            "redis+sentinel://h1,h2",
            "bad-url: url cannot be used: it does not name the master that the sentinels watch (write /mymaster",
        ),
        #[cfg(not(feature = "redis-sentinel"))]
        (
            "redis+sentinel://h/m",
            "bad-url: url needs redis+sentinel, which this build has not (build with the cargo feature",
        ),
        #[cfg(feature = "redis-cluster")]
        ("redis+cluster://", "bad-url: url cannot be used: one of its servers is no host (write host:port,host:port"),
        ("", "empty: url is empty"),
        #[cfg(feature = "sqlite")]
        ("sqlite:./x?create=true", "bad-url: url cannot be used: it takes no options: nothing may follow the path"),
        #[cfg(feature = "postgres")]
        ("postgres://h/db?bar=2", "bad-url: url cannot be used: parameter \"bar\" is not known; known are sslmode"),
        #[cfg(feature = "mysql")]
        (
            "mysql://h",
            "bad-url: url cannot be used: it names no database (write mysql://user:password@host:3306/database",
        ),
        #[cfg(feature = "zookeeper")]
        (
            "zookeeper://h:1?x=1",
            "bad-url: url cannot be used: it has parameters, and none is known here (write zookeeper",
        ),
    ] {
        tells(&with(&format!("[store]\nurl = {url:?}")), &format!("2:7 {expected}"));
    }
    // Without a scheme it may be a password, which is in the file all the same.
    let text = with("[store]\nurl = \"hunter2@host\"");
    let told = told(&text);
    assert_eq!(told.len(), 2, "{told:#?}");
    assert!(told[0].starts_with("2:7 bad-url: url cannot be used: url has no scheme"), "{told:#?}");
    assert!(told[1].starts_with("2:8 secret-in-file: "), "{told:#?}");
    assert!(!report(&text).render(false).contains("hunter2"));
    for url in ["sqlite", "sqlite:///var/lib/x.db", "redis://h", "rediss://h:1/0", "memory"] {
        assert_eq!(config(&with(&format!("[store]\nurl = {url:?}"))).store.url, url);
    }
}

#[cfg(feature = "etcd")]
#[test]
fn what_a_store_cannot_do_is_told_where_it_is_chosen() {
    let text = with("[store]\nurl = \"etcd://h1,h2\"");
    tells(&text, "2:7 no-store-clock: etcd has no clock that nodes could share");
    assert_eq!(config(&text).store.url, "etcd://h1,h2", "it is no error");
}

#[test]
fn a_url_comes_from_a_file_or_from_here_but_not_both() {
    let mut file = tempfile::NamedTempFile::new().unwrap();
    writeln!(file, "redis://:hunter2@h:6379\n").unwrap();
    let path = file.path().display();
    let config = config(&with(&format!("[store]\nurl_file = \"{path}\"")));
    assert_eq!(config.store.url, "redis://:hunter2@h:6379");
    assert!(!format!("{config:?}").contains("hunter2"), "a config is shown without the password");
    tells(
        &with(&format!("[store]\nurl = \"sqlite\"\nurl_file = \"{path}\"")),
        "3:12 both-urls: url_file is given besides url",
    );
    tells(
        &with("[store]\nurl_file = \"/nowhere/url\""),
        "2:12 unreadable-file: url_file \"/nowhere/url\" cannot be read: there is no such file",
    );
}

#[test]
fn a_url_file_with_something_else_in_it_does_not_show_it() {
    let mut file = tempfile::NamedTempFile::new().unwrap();
    writeln!(file, "hunter2").unwrap();
    let report = report(&with(&format!("[store]\nurl_file = \"{}\"", file.path().display())));
    assert!(report.has_errors());
    assert!(!report.render(false).contains("hunter2"), "{}", report.render(false));
}

#[test]
fn only_loopback_is_listened_on_without_auth() {
    for address in ["0.0.0.0:9747", "[::]:80", "192.0.2.1:9747"] {
        tells(
            &with(&format!("[http]\nlisten = {address:?}")),
            &format!("2:10 not-loopback: listen is {address}, where others"),
        );
    }
    for address in ["9747", ":9747", "127.0.0.1", "host:9747", "127.0.0.1:99999"] {
        tells(
            &with(&format!("[http]\nlisten = {address:?}")),
            &format!("2:10 bad-address: listen cannot be {address:?}"),
        );
    }
    for (text, address) in [("localhost:1", "127.0.0.1:1"), ("[::1]:2", "[::1]:2"), ("127.8.8.8:3", "127.8.8.8:3")] {
        assert_eq!(config(&with(&format!("[http]\nlisten = {text:?}"))).http.unwrap().listen.to_string(), address);
    }
}

#[test]
fn a_base_path_is_a_plain_path() {
    for path in ["x", "", "/a b", "/../x", "//evil", "/a?b", "/%2e"] {
        tells(&with(&format!("[http]\nbase_path = {path:?}")), "2:13 bad-path: base_path cannot be");
    }
    for (text, path) in [("/", "/"), ("/cron/", "/cron"), ("/a/b", "/a/b")] {
        assert_eq!(config(&with(&format!("[http]\nbase_path = {text:?}"))).http.unwrap().base_path, path);
    }
}

#[test]
fn metrics_are_of_all_jobs_of_none_or_of_those_with_a_tag() {
    let said = |text: &str| config(&with(&format!("[http]\nmetrics_jobs = {text:?}"))).http.unwrap().metrics_jobs;
    assert_eq!(said("all"), JobSelection::All);
    assert_eq!(said("none"), JobSelection::None);
    assert_eq!(said("erp"), JobSelection::Tagged("erp".to_owned()));
    tells(&with("[http]\nmetrics_jobs = \"\""), "2:16 empty: metrics_jobs is empty");
}

#[test]
fn a_journal_is_a_path_and_an_empty_one_is_told() {
    let path = config(&with("[node]\njournal = \"/var/lib/j\"")).node.journal;
    assert_eq!(path.as_deref(), Some(std::path::Path::new("/var/lib/j")));
    let told = "2:11 bad-path: journal is empty (name a file, or leave the key out for no journal)";
    tells(&with("[node]\njournal = \"\""), told);
}

const AUTH: &str = "[http.auth]\ntokens_file = \"/etc/cronward/tokens\"\n";

#[test]
fn where_others_reach_the_port_a_token_needs_tls_in_front() {
    let listening = |more: &str| with(&format!("[http]\nlisten = \"0.0.0.0:9747\"\n{more}{AUTH}"));
    tells(&listening(""), "2:10 plain-token: listen is 0.0.0.0:9747, and tokens would cross the network in plain HTTP");
    let http = config(&listening("behind_tls_proxy = true\n")).http.unwrap();
    assert_eq!(http.tokens_file.unwrap().to_str(), Some("/etc/cronward/tokens"));
    assert!(http.behind_tls_proxy && http.read_only && !http.metrics_open);
}

#[test]
fn a_proxy_is_believed_by_the_addresses_that_are_named() {
    let proxy = |text: &str| with(&format!("[http.auth.proxy]\n{text}"));
    let read =
        config(&proxy("from = [\"10.0.0.5/32\", \"fd00::/8\"]\nuser_header = \"X-User\"\nrole_header = \"X-Role\""));
    let read = read.http.unwrap().proxy.unwrap();
    assert_eq!((read.user_header.as_str(), read.from.len()), ("x-user", 2));
    assert_eq!(read.roles, cronward::config::RoleSource::Named("x-role".to_owned()));
    let groups = config(&proxy("from = [\"10.0.0.5\"]\ngroups = { staff = \"viewer\" }")).http.unwrap().proxy.unwrap();
    assert!(matches!(groups.roles, cronward::config::RoleSource::Groups(header, _) if header == "x-forwarded-groups"));
    for (text, told) in [
        ("", "missing-from: [http.auth.proxy] names no address to believe"),
        ("from = []", "2:8 empty: from is empty"),
        ("from = [\"10.0.0.0/33\"]", "2:8 bad-network: from has what is no range"),
        ("from = [\"::1\"]\nuser_header = \"X-Forwarded-For\"", "3:15 bad-header: user_header cannot be"),
        ("from = [\"::1\"]\nuser_header = \"a b\"", "3:15 bad-header: user_header cannot be"),
        ("from = [\"::1\"]\ngroups = { a = \"admin\" }", "3:10 bad-word: groups gives a group a role that is none"),
        (
            "from = [\"::1\"]\nrole_header = \"x\"\ngroups = { a = \"viewer\" }",
            "4:10 both-roles: groups is given besides",
        ),
        ("form = [\"::1\"]", "2:1 unknown-key: unknown key form in [http.auth.proxy] (did you mean from?)"),
    ] {
        let report = cronward::config::parse("jobs.toml", proxy(text), &super::env()).unwrap_err();
        let found = report.findings.iter().any(|finding| {
            let (line, column) = report.position(finding.span.start);
            format!("{line}:{column} {}: {} ({})", finding.code, finding.message, finding.hint.as_deref().unwrap_or(""))
                .contains(told)
        });
        assert!(found, "{text}: {:?}", report.findings);
    }
}

#[test]
fn a_public_url_is_the_address_of_a_page() {
    let url = |text: &str| with(&format!("[http]\npublic_url = {text:?}"));
    for wrong in
        ["cron.example", "ftp://cron.example", "https://", "https://u:p@cron.example/", "https://cron.example/?a"]
    {
        tells(&url(wrong), "2:14 bad-url: public_url is no address of a page");
    }
    let read = config(&url("https://cron.example/ops")).http.unwrap().public_url;
    assert_eq!(read.as_deref(), Some("https://cron.example/ops"));
}

#[test]
fn a_public_url_that_does_not_lead_to_the_base_path_is_a_warning() {
    let both = |base: &str, url: &str| with(&format!("[http]\nbase_path = {base:?}\npublic_url = {url:?}"));
    let dead = "3:14 dead-links: public_url has the path /, and pages are served below /ops: ";
    let told_of = told(&both("/ops", "https://cron.example/"));
    let dead = format!("{dead}links in messages or on the pages lead nowhere");
    assert!(told_of.iter().any(|finding| finding.starts_with(&dead)), "{told_of:?}");
    for (base, url) in
        [("/ops", "https://cron.example/ops"), ("/ops/", "https://cron.example/ops/"), ("/", "https://cron.example")]
    {
        assert!(told(&both(base, url)).iter().all(|finding| !finding.contains("dead-links")), "{base} {url}");
    }
}

#[test]
fn a_port_without_an_address_is_told_with_one() {
    let written = "(write \"127.0.0.1:9747\", or another address of this host with the port)";
    tells(&with("[http]\nlisten = 9747"), &format!("2:10 bad-address: listen is a port without an address {written}"));
    for text in ["9747", ":9747", "*:9747"] {
        tells(
            &with(&format!("[http]\nlisten = {text:?}")),
            &format!("2:10 bad-address: listen cannot be {text:?} {written}"),
        );
    }
    tells(
        &with("[http]\nlisten = \"localhost\""),
        "2:10 bad-address: listen cannot be \"localhost\" (write an address and a port",
    );
}

#[test]
fn actions_that_no_operator_can_take_are_told() {
    let codes = |text: &str| -> Vec<&'static str> {
        super::report(&with(text)).findings.iter().map(|finding| finding.code).collect()
    };
    let proxy = "[http.auth.proxy]\nfrom = [\"10.0.0.5/32\"]\n";
    let open = "[http]\nread_only = false\n";
    assert_eq!(codes(open), ["open-to-users", "no-operator"]);
    assert_eq!(codes(&format!("{open}{proxy}")), ["no-operator"]);
    assert_eq!(codes(&format!("{open}{proxy}groups = {{ staff = \"viewer\" }}")), ["no-operator"]);
    for role in ["groups = { staff = \"operator\" }", "role_header = \"X-Role\""] {
        assert_eq!(codes(&format!("{open}{proxy}{role}")), [""; 0], "{role}");
    }
    assert_eq!(codes(&format!("{open}[http.auth]\ntokens_file = \"tokens\"")), [""; 0]);
    assert_eq!(codes("[http]\nread_only = true"), ["open-to-users"]);
}
