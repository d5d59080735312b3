//! What a file means where it says nothing, and how `[defaults]` and jobs are laid over each other.

use std::time::Duration;

use cronward::job::{
    Backoff, CommandSpec, Concurrency, JobName, JobSpec, KillMode, OnLost, OnStoreError, Policy, Program, RetryPolicy,
};
use cronward::slot::Period;

use super::{config, config_with, env, job};

fn name(name: &str) -> JobName {
    JobName::new(name).unwrap()
}

#[test]
fn a_file_that_says_nothing_has_every_default() {
    let config = config(&job(""));
    assert_eq!(config.node.name.as_str(), "web-1");
    assert_eq!(config.node.drain, Duration::from_secs(600));
    assert_eq!(config.node.journal, None);
    assert_eq!(config.node.max_running, 512);
    assert_eq!(config.store.url, "sqlite");
    assert_eq!(config.store.namespace.as_str(), "default");
    assert_eq!(config.store.op_timeout, Duration::from_millis(500));
    assert_eq!(config.store.retention, Duration::from_secs(7 * 86_400));
    assert_eq!(config.http, None, "nothing listens");
    let expected = JobSpec::new(name("a"), "0 * * * *", Program::Direct(vec!["true".to_owned()]));
    assert_eq!(config.jobs[&name("a")], expected);
}

#[test]
fn a_port_is_for_this_machine_and_for_looking_unless_the_file_says_otherwise() {
    let http = config(&format!("[http]\n{}", job(""))).http.unwrap();
    assert_eq!((http.listen.to_string().as_str(), http.base_path.as_str()), ("127.0.0.1:9747", "/"));
    assert!(http.read_only && !http.metrics_open && !http.behind_tls_proxy && !http.has_auth());
    assert_eq!(http.public_url, None);
}

#[test]
fn every_key_of_a_job_is_read() {
    let config = config(
        r#"
        [jobs.a]
        description = "d"
        owner = "o"
        runbook = "r"
        tags = ["t"]
        schedule = "@daily"
        timezone = "Europe/Berlin"
        slot = "day"
        lease_ttl = "30s"
        done_ttl = "26h"
        max_attempts = 5
        retry_delay = "1m"
        retry_backoff = "exponential"
        retry_max_delay = "10m"
        timeout = "1h"
        kill_after = "5s"
        on_lost = "kill"
        on_store_error = "run"
        concurrency = "replace"
        start_deadline = "2h"
        locks = []
        lock_wait = "10m"
        jitter = "90s"
        command = "echo hi | cat"
        env = { RUST_LOG = "info" }
        env_file = "/e"
        cwd = "/c"
        user = "u"
        group = "g"
        success_codes = [0, 3]
        output_limit = "4KiB"
        kill_mode = "process"
        enabled = false
        only_on = { zone = "eu-1" }
        alert_after = "2d"
        notify = ["ops"]
        [notify.ops]
        type = "exec"
        command = ["true"]
        "#,
    );
    let seconds = Duration::from_secs;
    let policy = Policy {
        lease_ttl: seconds(30),
        done_ttl: seconds(26 * 3_600),
        max_attempts: 5,
        retry: RetryPolicy { delay: seconds(60), backoff: Backoff::Exponential, max_delay: seconds(600) },
        timeout: Some(seconds(3_600)),
        kill_after: seconds(5),
        on_lost: OnLost::Kill,
        on_store_error: OnStoreError::Run,
        concurrency: Concurrency::Replace,
        start_deadline: Some(seconds(7_200)),
        locks: None,
        lock_wait: Some(seconds(600)),
    };
    let command = CommandSpec {
        program: Program::Shell("echo hi | cat".to_owned()),
        env: [("RUST_LOG".to_owned(), "info".to_owned())].into(),
        env_file: Some("/e".into()),
        cwd: Some("/c".into()),
        user: Some("u".to_owned()),
        group: Some("g".to_owned()),
        success_codes: vec![0, 3],
        output_limit: 4096,
        kill_mode: KillMode::Process,
    };
    let expected = JobSpec {
        description: Some("d".to_owned()),
        owner: Some("o".to_owned()),
        runbook: Some("r".to_owned()),
        tags: vec!["t".to_owned()],
        timezone: "Europe/Berlin".parse().unwrap(),
        period: Period::Day,
        policy,
        command,
        enabled: false,
        jitter: seconds(90),
        only_on: [("zone".to_owned(), "eu-1".to_owned())].into(),
        alert_after: Some(seconds(2 * 86_400)),
        notify: vec!["ops".to_owned()],
        ..JobSpec::new(name("a"), "@daily", Program::Shell(String::new()))
    };
    assert_eq!(config.jobs[&name("a")], expected);
}

#[test]
fn a_job_overrides_defaults_key_by_key() {
    let text = r#"
        [defaults]
        max_attempts = 7
        retry_delay = "5s"
        env = { A = "1", B = "1" }
        only_on = { disk = "ssd", zone = "eu-1" }
        tags = ["x"]
        [jobs.a]
        schedule = "@hourly"
        command = ["true"]
        [jobs.b]
        schedule = "@hourly"
        command = ["true"]
        max_attempts = 2
        env = { B = "2" }
        only_on = { zone = "eu-2" }
        tags = []
        "#;
    let config = config(text);
    let (a, b) = (&config.jobs[&name("a")], &config.jobs[&name("b")]);
    assert_eq!((a.policy.max_attempts, b.policy.max_attempts), (7, 2));
    assert_eq!((a.policy.retry.delay, b.policy.retry.delay), (Duration::from_secs(5), Duration::from_secs(5)));
    assert_eq!(a.command.env["B"], "1");
    assert_eq!((b.command.env["A"].as_str(), b.command.env["B"].as_str()), ("1", "2"));
    assert_eq!((b.only_on["disk"].as_str(), b.only_on["zone"].as_str()), ("ssd", "eu-2"));
    assert_eq!((a.tags.len(), b.tags.len()), (1, 0));
}

#[test]
fn none_means_no_time_limit_and_slot_means_while_the_slot_lasts() {
    for limit in ["none", "${NO_LIMIT:-none}"] {
        let text = format!(
            "[defaults]\nstart_deadline = \"1m\"\n{}",
            job(&format!("timeout = {limit:?}\nstart_deadline = \"slot\""))
        );
        let policy = config(&text).jobs[&name("a")].policy.clone();
        assert_eq!((policy.timeout, policy.start_deadline), (None, None), "{limit}");
    }
}

#[test]
fn variables_are_replaced_everywhere_but_in_commands() {
    let env = env().with("ZONE", "eu-1").with("CRON", "5 * * * *").with("EMPTY", "");
    let text = r#"
        [node]
        name = "${HOSTNAME:-local}-x"
        labels = { zone = "${ZONE}" }
        [store]
        namespace = "${NS:-prod}"
        [jobs.a]
        schedule = "${CRON:?no schedule}"
        command = ["echo", "${{ZONE}}", "$HOME", "$$"]
        lease_ttl = "${EMPTY:-30s}"
        env = { PRICE = "$$5", WHERE = "in ${ZONE}" }
        [jobs.b]
        schedule = "@hourly"
        command = "echo ${ZONE} $$"
        "#;
    let config = config_with(text, &env);
    let a = &config.jobs[&name("a")];
    assert_eq!(config.node.name.as_str(), "web-1-x");
    assert_eq!(config.node.labels["zone"], "eu-1");
    assert_eq!(config.store.namespace.as_str(), "prod");
    assert_eq!(a.schedule, "5 * * * *");
    assert_eq!(a.policy.lease_ttl, Duration::from_secs(30));
    assert_eq!((a.command.env["PRICE"].as_str(), a.command.env["WHERE"].as_str()), ("$5", "in eu-1"));
    let words = ["echo", "${{ZONE}}", "$HOME", "$$"].map(str::to_owned).to_vec();
    assert_eq!(a.command.program, Program::Direct(words));
    assert_eq!(config.jobs[&name("b")].command.program, Program::Shell("echo ${ZONE} $$".to_owned()));
}

#[test]
fn a_node_without_a_host_name_is_called_local_and_a_strange_host_name_is_made_to_fit() {
    let nowhere = cronward::config::Environment::new(env().now());
    assert_eq!(config_with(&job(""), &nowhere).node.name.as_str(), "local");
    let strange = nowhere.with("HOSTNAME", "my host!");
    assert_eq!(config_with(&job(""), &strange).node.name.as_str(), "my-host");
}

#[test]
fn the_registry_gets_every_job_as_written() {
    let entries = config(&job("slot = \"tick\"\ntimezone = \"Europe/Berlin\"\nenabled = false")).entries();
    assert_eq!(entries.len(), 1);
    let entry = &entries[0];
    assert_eq!((entry.name.as_str(), entry.schedule.as_str()), ("a", "0 * * * *"));
    assert_eq!((entry.timezone.as_str(), entry.period.as_str()), ("Europe/Berlin", "tick"));
    assert_eq!((entry.max_attempts, entry.enabled), (3, false));
}
