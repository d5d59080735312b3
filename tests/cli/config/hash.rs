//! The hash by which nodes find out that they run different files.

use super::{config, config_with, env, job};

#[test]
fn comments_order_spelling_and_other_sections_do_not_count() {
    let one = config("[jobs.a]\nschedule = \"@hourly\"\ncommand = [\"true\"]\ntimeout = \"1h\"\n");
    let other = config(
        "# other\n[node]\nname = \"x\"\n[defaults]\ntimeout = \"60m\"\n[jobs]\na = { command = ['true'], schedule = '@hourly' }\n",
    );
    assert_eq!(one.hash(), other.hash());
    assert_eq!(one.job_hashes(), other.job_hashes());
    assert_eq!(one.hash().len(), 16);
}

#[test]
fn every_value_counts() {
    let plain = config(&job("")).hash();
    for line in [
        "description = \"x\"",
        "timezone = \"Europe/Berlin\"",
        "max_attempts = 4",
        "timeout = \"none\"",
        "start_deadline = \"30m\"",
        "env = { A = \"1\" }",
        "enabled = false",
        "tags = [\"x\"]",
    ] {
        assert_ne!(config(&job(line)).hash(), plain, "{line}");
    }
}

#[test]
fn a_difference_is_named_by_the_job() {
    let two = |attempts: u32| {
        config(&format!(
            "{}[jobs.b]\nschedule = \"@hourly\"\ncommand = [\"true\"]\nmax_attempts = {attempts}\n",
            job("")
        ))
    };
    let (one, other) = (two(1), two(2));
    let differing: Vec<String> = one
        .job_hashes()
        .into_iter()
        .filter(|(name, hash)| other.job_hashes()[name] != *hash)
        .map(|(name, _)| name.to_string())
        .collect();
    assert_eq!(differing, ["b"]);
    assert_ne!(one.hash(), other.hash());
}

#[test]
fn a_value_that_differs_between_hosts_is_a_difference() {
    let text = job("env = { WHO = \"${HOSTNAME}\" }");
    let other = env().with_hostname("web-2");
    assert_ne!(config(&text).hash(), config_with(&text, &other).hash());
}
