//! `cronward exec` and `cronward trigger`, as a crontab and a person call them, on the embedded store.

use std::io::{BufRead, BufReader};
use std::process::{Child, Stdio};
use std::sync::OnceLock;

use rustix::process::Signal;
use serde_json::Value;

use crate::process::signal;
use crate::program::{Ended, Place};
use crate::redis_server::RedisServer;
use crate::terminal;

pub(crate) const STORE: &str = "sqlite:store.db";

/// A zone in which it is about noon now: a slot of a day will not end while a test runs. The same one each time, also where
/// an hour turns meanwhile.
pub(crate) fn zone() -> String {
    static ZONE: OnceLock<String> = OnceLock::new();
    let zone = ZONE.get_or_init(|| {
        let hour = i32::try_from(std::time::SystemTime::UNIX_EPOCH.elapsed().unwrap().as_secs() / 3_600 % 24).unwrap();
        match hour - 12 {
            0 => "UTC".to_owned(),
            behind => format!("Etc/GMT{behind:+}"),
        }
    });
    zone.clone()
}

/// `cronward exec` of the job `push` with a slot of a day, and these flags before the command.
fn words<'a>(zone: &'a str, flags: &[&'a str], command: &[&'a str]) -> Vec<&'a str> {
    words_at(STORE, zone, flags, command)
}

/// The same on another store.
pub(crate) fn words_at<'a>(url: &'a str, zone: &'a str, flags: &[&'a str], command: &[&'a str]) -> Vec<&'a str> {
    let base = ["exec", "--store", url, "--job", "push", "--slot", "day", "--timezone", zone];
    [&base[..], flags, &["--"], command].concat()
}

fn exec(place: &Place, flags: &[&str], command: &[&str]) -> Ended {
    exec_at(STORE, place, flags, command)
}

pub(crate) fn exec_at(url: &str, place: &Place, flags: &[&str], command: &[&str]) -> Ended {
    let zone = zone();
    place.run(&words_at(url, &zone, flags, command))
}

/// A guarded command that says `up` once it runs, and is left running.
pub(crate) fn running(place: &Place, flags: &[&str], script: &str) -> (Child, BufReader<std::process::ChildStdout>) {
    running_at(STORE, place, flags, script)
}

pub(crate) fn running_at(
    url: &str,
    place: &Place,
    flags: &[&str],
    script: &str,
) -> (Child, BufReader<std::process::ChildStdout>) {
    let (zone, script) = (zone(), format!("echo up; {script}"));
    let mut command = place.command(&words_at(url, &zone, flags, &["/bin/sh", "-c", &script]));
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut out = BufReader::new(child.stdout.take().unwrap());
    let mut line = String::new();
    out.read_line(&mut line).unwrap();
    assert_eq!(line, "up\n");
    (child, out)
}

pub(crate) fn report(place: &Place) -> Value {
    serde_json::from_slice(&std::fs::read(place.path().join("report.json")).unwrap()).unwrap()
}

#[test]
fn the_first_start_of_a_slot_runs_and_the_others_are_silent() {
    let place = Place::new();
    let command = ["/bin/sh", "-c", "echo out; echo err >&2"];
    let first = exec(&place, &[], &command);
    assert_eq!((first.code, &*first.stdout, &*first.stderr), (0, "out\n", "err\n"));
    let second = exec(&place, &[], &command);
    assert_eq!((second.code, &*second.stdout, &*second.stderr), (0, "", ""));
    assert_eq!(exec(&place, &["--skip-exit-code", "7"], &command).code, 7);
}

#[test]
fn a_command_that_another_one_of_the_same_name_keeps_from_running_says_so_once_and_jobs_and_doctor_name_it() {
    let server = RedisServer::start();
    for url in [STORE, &server.url()] {
        let place = Place::new();
        assert_eq!(exec_at(url, &place, &[], &["/bin/echo", "--token", "hunter2"]).code, 0);
        let kept = exec_at(url, &place, &[], &["/bin/echo", "never"]);
        assert_eq!((kept.code, &*kept.stdout, kept.stderr.lines().count()), (0, "", 1), "{kept:?}");
        assert!(kept.stderr.contains("by another command that this machine starts under the name push"), "{kept:?}");
        let again = exec_at(url, &place, &[], &["/bin/echo", "never"]);
        assert_eq!((again.code, &*again.stdout, &*again.stderr), (0, "", ""));
        let jobs = place.run(&["jobs", "--store", url]);
        assert!(jobs.stderr.contains("different commands were started under the name push"), "{jobs:?}");
        let listed = place.run(&["jobs", "--store", url, "--json"]).stdout;
        let view: Value = serde_json::from_str(&listed).unwrap();
        assert!(view[0]["command_conflict"].is_string() && !listed.contains("hunter2"), "{listed}");
        let doctor = place.run(&["doctor", "--store", url]);
        assert!(doctor.stdout.contains("different commands were started under one job name: push"), "{doctor:?}");
    }
}

#[test]
fn the_commands_exit_code_is_passed_on_and_a_failure_may_be_tried_again_until_the_attempts_are_used_up() {
    let place = Place::new();
    for _ in 0..3 {
        assert_eq!(exec(&place, &[], &["/bin/sh", "-c", "exit 42"]).code, 42);
    }
    let spent = exec(&place, &["--report", "report.json"], &["/bin/sh", "-c", "exit 42"]);
    assert_eq!((spent.code, &*spent.stdout, &*spent.stderr), (0, "", ""));
    assert_eq!(report(&place)["result"], "exhausted");
}

#[test]
fn what_cannot_be_started_or_takes_too_long_has_the_codes_of_the_shell_and_of_timeout() {
    let place = Place::new();
    let missing = exec(&place, &[], &["/no/such/program"]);
    assert_eq!((missing.code, &*missing.stderr), (127, "cronward: \"/no/such/program\" was not found\n"));
    assert_eq!(exec(&place, &[], &["/"]).code, 126);
    let slow = exec(&place, &["--timeout", "200ms"], &["/bin/sleep", "60"]);
    assert_eq!(slow.code, 124);
    assert!(slow.stderr.contains("attempt 3 was stopped after its timeout"), "{}", slow.stderr);
}

#[test]
fn a_lease_that_outlasts_the_slot_is_refused_with_one_that_fits() {
    let place = Place::new();
    let line = ["exec", "--store", STORE, "--job", "push", "--lease-ttl", "61m", "--", "/bin/echo", "never"];
    let refused = place.run(&line);
    assert_eq!((refused.code, &*refused.stdout), (64, ""), "{refused:?}");
    assert!(refused.stderr.ends_with("write --lease-ttl 1m, or leave it out\n"), "{refused:?}");
}

#[test]
fn a_command_line_that_names_no_program_or_no_time_zone_is_refused() {
    let place = Place::new();
    for program in ["", " "] {
        let refused = exec(&place, &[], &[program]);
        assert_eq!((refused.code, refused.stderr.lines().count()), (64, 1), "{refused:?}");
        assert!(refused.stderr.starts_with("error: the command is empty: write it after --"), "{refused:?}");
    }
    let line = ["exec", "--store", STORE, "--job", "push", "--timezone", "Europe/Berln", "--", "/bin/echo", "never"];
    let refused = place.run(&line);
    assert_eq!((refused.code, &*refused.stdout), (64, ""));
    assert!(refused.stderr.contains("did you mean \"Europe/Berlin\"?"), "{refused:?}");
}

#[test]
fn standard_input_reaches_the_command() {
    let place = Place::new();
    std::fs::write(place.path().join("in"), "from a file\n").unwrap();
    let zone = zone();
    let mut command = place.command(&words(&zone, &[], &["/bin/cat"]));
    let ended: Ended = command.stdin(std::fs::File::open(place.path().join("in")).unwrap()).output().unwrap().into();
    assert_eq!((ended.code, &*ended.stdout), (0, "from a file\n"));
}

#[test]
fn what_goes_to_one_file_stays_in_its_order() {
    let place = Place::new();
    let zone = zone();
    let script = "i=0; while test $i -lt 300; do echo out $i; echo err $i >&2; i=$((i + 1)); done";
    // As cron gives it to a job: one pipe or file for both.
    let file = std::fs::File::create(place.path().join("mail")).unwrap();
    let mut command = place.command(&words(&zone, &[], &["/bin/sh", "-c", script]));
    assert!(command.stdout(file.try_clone().unwrap()).stderr(file).status().unwrap().success());
    let written: String = (0..300).map(|i| format!("out {i}\nerr {i}\n")).collect();
    assert_eq!(std::fs::read_to_string(place.path().join("mail")).unwrap(), written);
    let kept = place.run(&["logs", "push", "--store", STORE]);
    assert_eq!((kept.code, kept.stdout), (0, written), "{}", kept.stderr);
}

#[test]
fn braces_in_a_command_are_its_own() {
    let told = exec(&Place::new(), &[], &["/bin/echo", "{}", "{slot}", "{{"]);
    assert_eq!((told.code, &*told.stdout), (0, "{} {slot} {{\n"));
}

#[test]
fn a_held_slot_is_left_alone_only_if_that_is_asked_for_and_is_taken_over_otherwise() {
    let place = Place::new();
    // The lease outlasts what a busy machine makes a renewal wait, and is waited for when its holder is dead.
    let (mut holder, _out) = running(&place, &["--lease-ttl", "6s"], "exec sleep 60");
    let held = exec(&place, &["--no-wait", "--report", "report.json"], &["/bin/echo", "never"]);
    assert_eq!((held.code, &*held.stdout, &*held.stderr), (0, "", ""));
    assert_eq!(report(&place)["result"], "held");
    assert!(report(&place)["by"].is_string());
    let bounded = exec(&place, &["--wait", "100ms"], &["/bin/echo", "never"]);
    assert_eq!((bounded.code, &*bounded.stdout, &*bounded.stderr), (0, "", ""));
    holder.kill().unwrap();
    holder.wait().unwrap();
    let taken = exec(&place, &[], &["/bin/sh", "-c", "echo attempt $CRONWARD_ATTEMPT"]);
    assert_eq!((taken.code, &*taken.stdout, &*taken.stderr), (0, "attempt 2\n", ""));
}

#[test]
fn who_waits_for_a_holder_that_succeeds_says_done() {
    for url in [STORE, &RedisServer::start().url()] {
        let place = Place::new();
        let (holder, _out) = running_at(url, &place, &["--node", "a"], "while ! test -e end; do sleep 0.02; done");
        let zone = zone();
        let mut waiting = place.command(&words_at(
            url,
            &zone,
            &["--wait", "60s", "--report", "report.json"],
            &["/bin/echo", "never"],
        ));
        let waiting = waiting.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        // It has been told that the slot is held once it tells nothing and has not ended.
        crate::wait::let_pass(std::time::Duration::from_secs(1));
        std::fs::write(place.path().join("end"), "").unwrap();
        assert_eq!(holder.wait_with_output().unwrap().status.code(), Some(0));
        let ended: Ended = waiting.wait_with_output().unwrap().into();
        assert_eq!((ended.code, &*ended.stdout, &*ended.stderr), (0, "", ""));
        assert_eq!((&report(&place)["result"], &report(&place)["by"]), (&"done".into(), &"a".into()), "{url}");
    }
}

#[test]
fn a_slot_that_is_over_by_the_stores_clock_is_refused_in_one_line() {
    let place = Place::new();
    let line = ["exec", "--store", STORE, "--job", "push", "--slot", "2026-01-01T13Z", "--report", "report.json"];
    let refused = place.run(&[&line[..], &["--", "/bin/echo", "never"]].concat());
    let told = "push@2026-01-01T13Z was not run: the slot ended at 2026-01-01 14:00:00 UTC by the store's clock";
    assert_eq!((refused.code, &*refused.stdout, &*refused.stderr), (69, "", &*format!("cronward: {told}\n")));
    let report = report(&place);
    assert_eq!((&report["result"], &report["messages"][0]), (&"closed".into(), &told.into()), "{report}");
}

#[test]
fn a_slot_of_the_future_is_refused_at_once_with_its_start() {
    let place = Place::with_jobs(&JOBS.replace("ZONE", "UTC"));
    let future = "2099-01-01T00Z";
    let line = ["exec", "--job", "push", "--slot", future, "--report", "report.json", "--", "/bin/echo", "never"];
    for words in [&line[..], &["trigger", &format!("push@{future}"), "--report", "report.json"]] {
        let refused = place.run(words);
        assert_eq!((refused.code, &*refused.stdout), (69, ""), "{refused:?}");
        let told =
            "slot 2099-01-01T00Z of push starts at 2099-01-01 00:00:00 UTC; only current and past slots can be run";
        assert_eq!(refused.stderr, format!("cronward: {told}\n"));
        assert_eq!((&report(&place)["result"], &report(&place)["exit_code"]), (&"early".into(), &69.into()));
    }
}

#[test]
fn a_slot_that_is_skipped_for_a_pause_is_one_line() {
    let place = Place::with_jobs(&JOBS.replace("ZONE", &zone()));
    assert_eq!(place.run(&["migrate"]).code, 0);
    assert_eq!(place.run(&["pause", "push", "--yes"]).code, 0);
    let line = ["exec", "--job", "push", "--skip-exit-code", "7", "--", "/bin/echo", "never"];
    let skipped = place.run(&line);
    assert_eq!((skipped.code, &*skipped.stdout), (7, ""), "{skipped:?}");
    assert_eq!(skipped.stderr.lines().count(), 1, "{skipped:?}");
    assert!(skipped.stderr.contains("was skipped: the job is paused"), "{skipped:?}");
}

#[test]
fn an_older_slot_that_runs_is_waited_for_during_one_lease_so_that_one_whose_machine_died_costs_no_slot() {
    let jobs = JOBS
        .replace("ZONE", &zone())
        .replace("echo $CRONWARD_TRIGGER $CRONWARD_ATTEMPT; exit 1", "echo up; exec sleep 60");
    // Longer than a busy machine makes a renewal wait.
    let place = Place::with_jobs(&format!("{jobs}lease_ttl = \"6s\"\n"));
    let mut older = place.command(&["trigger", "push@-1", "--past", "--yes", "--node", "a"]);
    let mut older = older.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
    let mut line = String::new();
    BufReader::new(older.stdout.take().unwrap()).read_line(&mut line).unwrap();
    assert_eq!(line, "up\n");
    let line = ["exec", "--job", "push", "--skip-exit-code", "7", "--", "/bin/echo", "ran"];
    let skipped = place.run(&line);
    assert_eq!((skipped.code, &*skipped.stdout), (7, ""), "{skipped:?}");
    assert_eq!(skipped.stderr.lines().count(), 1, "{skipped:?}");
    assert!(skipped.stderr.contains("was skipped: another slot of the job still runs on node a"), "{skipped:?}");
    older.kill().unwrap();
    older.wait().unwrap();
    let ran = place.run(&line);
    assert_eq!((ran.code, &*ran.stdout, &*ran.stderr), (0, "ran\n", ""));
}

#[test]
fn with_a_wait_a_failure_is_tried_again_here() {
    let place = Place::new();
    let told = exec(
        &place,
        &["--wait", "30s", "--report", "report.json"],
        &["/bin/sh", "-c", "echo $CRONWARD_ATTEMPT; test $CRONWARD_ATTEMPT -eq 2"],
    );
    assert_eq!((told.code, &*told.stdout), (0, "1\n2\n"));
    let report = report(&place);
    assert_eq!(report["result"], "success");
    assert_eq!((&report["runs"][0]["exit_code"], &report["runs"][1]["recorded"]), (&1.into(), &true.into()));
}

#[test]
fn signals_are_passed_on_and_the_command_decides() {
    let place = Place::new();
    let (child, mut out) = running(
        &place,
        &[],
        "trap 'echo usr1' USR1; trap 'echo term; exit 9' TERM; echo set; while :; do sleep 0.05; done",
    );
    let mut line = String::new();
    out.read_line(&mut line).unwrap();
    signal(child.id(), Signal::USR1);
    out.read_line(&mut line).unwrap();
    signal(child.id(), Signal::TERM);
    out.read_line(&mut line).unwrap();
    assert_eq!(line, "set\nusr1\nterm\n");
    assert_eq!(child.wait_with_output().unwrap().status.code(), Some(9));
}

#[test]
fn a_signal_that_is_ignored_from_the_start_stays_ignored() {
    let place = Place::new();
    let zone = zone();
    let script = "trap 'echo term; exit 9' TERM; echo up; while :; do sleep 0.05; done";
    let program = [env!("CARGO_BIN_EXE_cronward")];
    let line = [&program[..], &words(&zone, &[], &["/bin/sh", "-c", script])].concat();
    let mut command = std::process::Command::new("nohup");
    command.args(line).current_dir(place.path()).env_clear().env("PATH", "/usr/bin:/bin").stdin(Stdio::null());
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines().map(Result::unwrap);
    assert_eq!(lines.next().as_deref(), Some("up"));
    signal(child.id(), Signal::HUP);
    signal(child.id(), Signal::TERM);
    assert_eq!(lines.next().as_deref(), Some("term"));
    assert_eq!(child.wait().unwrap().code(), Some(9));
}

#[test]
fn a_command_that_a_signal_ends_is_told_as_a_shell_tells_it() {
    let place = Place::new();
    let (child, _out) = running(&place, &[], "exec sleep 60");
    signal(child.id(), Signal::TERM);
    assert_eq!(child.wait_with_output().unwrap().status.code(), Some(143));
}

#[test]
fn a_store_that_is_away_is_one_line_and_try_again() {
    let told = Place::new().run(&[
        "exec",
        "--store",
        "redis://127.0.0.1:1",
        "--job",
        "push",
        "--no-wait",
        "--",
        "/bin/echo",
        "never",
    ]);
    assert_eq!((told.code, &*told.stdout), (75, ""));
    assert_eq!(told.stderr.lines().count(), 1, "{}", told.stderr);
    assert!(told.stderr.contains("redis://127.0.0.1:1") && told.stderr.ends_with("the command was not started\n"));
}

#[test]
fn a_password_in_the_url_is_mailed_to_nobody() {
    let (server, place) = (RedisServer::start_with(&[("requirepass", "hunter2")]), Place::new());
    let url = format!("redis://:hunter2@127.0.0.1:{}", server.port());
    let winner = exec_at(&url, &place, &[], &["/bin/echo", "ran"]);
    assert_eq!((winner.code, &*winner.stdout, &*winner.stderr), (0, "ran\n", ""));
    let loser = exec_at(&url, &place, &[], &["/bin/echo", "ran"]);
    assert_eq!((loser.code, &*loser.stdout, &*loser.stderr), (0, "", ""));
    let away = exec_at("redis://:hunter2@127.0.0.1:1", &place, &["--no-wait"], &["/bin/echo", "never"]);
    assert_eq!((away.code, away.stderr.lines().count()), (75, 1), "{}", away.stderr);
    let doctor = place.run(&["doctor", "--store", &url]);
    assert!(doctor.stderr.contains("url_file"), "whoever looks for faults is told: {}", doctor.stderr);
    assert!(!format!("{away:?}{doctor:?}").contains("hunter2"));
}

#[test]
fn a_closed_stdout_is_no_failure_of_the_guard() {
    let place = Place::new();
    let (child, out) = running(&place, &[], "sleep 0.2; yes | head -c 1000000; exit 4");
    drop(out);
    assert_eq!(child.wait_with_output().unwrap().status.code(), Some(4), "it is read and kept all the same");
}

/// A command that says `up`, and says more once there is the file `go`.
const SAYS_MORE: &str = "echo up; while ! test -e go; do sleep 0.02; done; echo more; echo still more";

#[test]
fn a_connection_that_is_reset_is_no_failure_of_the_guard() {
    let place = Place::new();
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let stream = std::net::TcpStream::connect(listener.local_addr().unwrap()).unwrap();
    let mut reader = listener.accept().unwrap().0;
    let zone = zone();
    let mut command = place.command(&words(&zone, &[], &["/bin/sh", "-c", SAYS_MORE]));
    let child = command.stdout(std::os::fd::OwnedFd::from(stream)).stderr(Stdio::piped()).spawn().unwrap();
    drop(command);
    std::io::Read::read_exact(&mut reader, &mut [0; 2]).unwrap();
    // The line end is left unread: the other side learns of a reset, not of an end.
    drop(reader);
    std::fs::write(place.path().join("go"), "").unwrap();
    let ended: Ended = child.wait_with_output().unwrap().into();
    assert_eq!((ended.code, &*ended.stderr), (0, ""));
}

#[test]
fn a_terminal_that_is_gone_is_no_failure_of_the_guard() {
    let place = Place::new();
    let zone = zone();
    let command = place.command(&words(&zone, &["--report", "report.json"], &["/bin/sh", "-c", "eval \"$SCRIPT\""]));
    // `script` ends without a word to anybody, as an ssh connection that breaks off.
    let env = [("SCRIPT", SAYS_MORE)];
    let mut terminal =
        crate::terminal::script(&command, "trap '' HUP; exec", &env).stdout(Stdio::piped()).spawn().unwrap();
    let mut line = String::new();
    BufReader::new(terminal.stdout.take().unwrap()).read_line(&mut line).unwrap();
    assert_eq!(line, "up\r\n");
    terminal.kill().unwrap();
    terminal.wait().unwrap();
    std::fs::write(place.path().join("go"), "").unwrap();
    let is_whole = || std::fs::metadata(place.path().join("report.json")).is_ok_and(|found| found.len() > 0);
    crate::wait::until_true("the end of the run", is_whole);
    assert_eq!((&report(&place)["result"], &report(&place)["exit_code"]), (&"success".into(), &0.into()));
}

#[test]
fn a_report_to_a_stream_that_is_redirected_to_a_file_goes_to_its_end() {
    let place = Place::new();
    let zone = zone();
    let said = place.path().join("said");
    let file = std::fs::File::create(&said).unwrap();
    let line = ["--report", "/dev/stderr"];
    let status = place.command(&words(&zone, &line, &["/bin/sh", "-c", "echo said >&2"])).stderr(file).status();
    assert_eq!(status.unwrap().code(), Some(0));
    let said = std::fs::read_to_string(&said).unwrap();
    let report: serde_json::Value = serde_json::from_str(said.strip_prefix("said\n").unwrap()).unwrap();
    assert_eq!(report["result"], "success");
    let device = std::fs::symlink_metadata("/dev/stderr").unwrap();
    assert!(device.is_symlink(), "no file takes its place");
}

#[test]
fn a_report_to_a_pipe_that_nobody_reads_is_refused_before_anything_is_started() {
    let place = Place::new();
    let pipe = place.path().join("pipe");
    rustix::fs::mkfifoat(rustix::fs::CWD, &pipe, rustix::fs::Mode::from_raw_mode(0o600)).unwrap();
    let refused = exec(&place, &["--report", "pipe"], &["/bin/sh", "-c", "echo ran > ran"]);
    assert_eq!((refused.code, &*refused.stdout), (64, ""), "{refused:?}");
    assert!(refused.stderr.contains("--report pipe: it is a pipe that no process reads; "), "{refused:?}");
    assert!(!place.path().join("ran").exists());
    // A reader is there before.
    let reader = std::fs::File::options().read(true).write(true).open(&pipe).unwrap();
    assert_eq!(exec(&place, &["--report", "pipe"], &["/bin/true"]).code, 0);
    let mut line = String::new();
    BufReader::new(reader).read_line(&mut line).unwrap();
    assert_eq!(line, "{\n");
}

#[test]
fn a_stdout_that_does_not_block_is_waited_for() {
    let place = Place::new();
    let (mut reader, writer) = std::io::pipe().unwrap();
    rustix::io::ioctl_fionbio(&writer, true).unwrap();
    let zone = zone();
    let mut command = place.command(&words(&zone, &[], &["/usr/bin/head", "-c", "300000", "/dev/zero"]));
    let child = command.stdout(writer).stderr(Stdio::piped()).spawn().unwrap();
    drop(command);
    // Full: the next write has to wait.
    crate::wait::until_true("a full pipe", || rustix::io::ioctl_fionread(&reader).unwrap() > 60_000);
    let mut passed = Vec::new();
    std::io::Read::read_to_end(&mut reader, &mut passed).unwrap();
    let ended: Ended = child.wait_with_output().unwrap().into();
    assert_eq!((ended.code, &*ended.stderr, passed.len()), (0, "", 300_000));
}

/// `cronward exec` with one of its streams on a device that is always full.
fn on_a_full_disk(place: &Place, stdout_is_full: bool, command: &[&str]) -> Ended {
    let zone = zone();
    let full = std::fs::File::options().write(true).open("/dev/full").unwrap();
    let mut process = place.command(&words(&zone, &["--report", "report.json"], command));
    if stdout_is_full {
        process.stdout(full)
    } else {
        process.stderr(full)
    };
    process.output().unwrap().into()
}

#[test]
fn a_command_whose_output_cannot_be_written_meets_the_end_of_its_pipe() {
    let place = Place::new();
    let told = on_a_full_disk(&place, true, &["/usr/bin/head", "-c", "5000000", "/dev/zero"]);
    let line = "the command's stdout could not be written: No space left on device (os error 28)";
    assert_eq!((told.code, &*told.stderr), (128 + 13, &*format!("cronward: {line}\n")), "SIGPIPE");
    let report = report(&place);
    assert_eq!((&report["result"], &report["messages"][0]), (&"killed".into(), &line.into()), "{report}");
    let shown = place.run(&["show", "push", "--store", STORE]);
    assert!(shown.stdout.lines().any(|line| line == "attempt 1  signal 13"), "{}", shown.stderr);
}

#[test]
fn a_success_whose_output_cannot_be_written_is_a_failure_and_the_slot_is_not_done() {
    let place = Place::new();
    let told = on_a_full_disk(&place, true, &["/bin/echo", "lost"]);
    assert_eq!((told.code, told.stderr.lines().count()), (74, 1), "{}", told.stderr);
    let why =
        "stdout could not be written: No space left on device (os error 28); the command itself ended with exit code 0";
    assert!(told.stderr.contains(why), "{}", told.stderr);
    let told = on_a_full_disk(&place, false, &["/bin/sh", "-c", "echo out; echo err >&2"]);
    assert_eq!((told.code, &*told.stdout), (74, "out\n"));
    let report = report(&place);
    assert_eq!((&report["result"], &report["exit_code"]), (&"failure".into(), &74.into()), "{report}");
    assert!(report["messages"][0].as_str().unwrap().contains("stderr could not be written"), "{report}");
    let again = exec(&place, &[], &["/bin/sh", "-c", "echo attempt $CRONWARD_ATTEMPT"]);
    assert_eq!((again.code, &*again.stdout), (0, "attempt 3\n"), "{}", again.stderr);
}

#[test]
fn lost_output_is_a_failure_also_where_its_exit_code_is_the_commands_own_success() {
    let job = "[jobs.push]\nschedule = \"0 0 * * *\"\nslot = \"day\"\ncommand = \"echo lost; exit 74\"\n";
    let place = Place::with_jobs(&format!(
        "[store]\nurl = \"{STORE}\"\nop_timeout = \"10s\"\n{job}success_codes = [0, 74]\ntimezone = \"{}\"\n",
        zone()
    ));
    let full = std::fs::File::options().write(true).open("/dev/full").unwrap();
    let line = ["trigger", "push", "--yes", "--report", "report.json"];
    let told: Ended = place.command(&line).stdout(full).output().unwrap().into();
    assert_eq!(told.code, 74, "{}", told.stderr);
    assert!(told.stderr.contains("the command itself ended with exit code 74"), "{}", told.stderr);
    assert_eq!((&report(&place)["result"], &report(&place)["exit_code"]), (&"failure".into(), &74.into()));
    assert_eq!(place.run(&["reset", "push", "--yes"]).code, 0);
    let again = place.run(&line);
    assert_eq!((again.code, &*again.stdout), (74, "lost\n"), "{}", again.stderr);
    assert_eq!(report(&place)["result"], "success", "the output was passed on, and 74 is what the job calls success");
}

#[test]
fn a_command_that_ignores_term_is_killed_after_its_grace() {
    let job = "[jobs.push]\nschedule = \"0 0 * * *\"\nslot = \"day\"\ncommand = \"true\"\n";
    // A busy machine takes its time to start the shell, and to let it tell of TERM.
    let limits = "timeout = \"6s\"\nkill_after = \"6s\"\n";
    let place = Place::with_jobs(&format!("[store]\nurl = \"{STORE}\"\n{job}{limits}timezone = \"{}\"\n", zone()));
    let script = "trap 'echo ignored' TERM; echo up; while :; do sleep 0.05; done";
    let told = place.run(&["exec", "--job", "push", "--", "/bin/sh", "-c", script]);
    assert_eq!((told.code, &*told.stdout), (124, "up\nignored\n"), "{}", told.stderr);
    let shown = place.run(&["show", "push"]);
    assert!(shown.stdout.contains("attempt 1  timeout"), "it is recorded: {shown:?}");
}

#[test]
fn a_job_that_only_a_crontab_knows_is_listed_and_never_told_as_missed() {
    let place = Place::new();
    exec(&place, &[], &["/bin/false"]);
    let jobs = place.run(&["jobs", "--store", STORE]);
    assert!(jobs.stdout.contains("push"), "{jobs:?}");
    let failed: Value = serde_json::from_str(&place.run(&["attempts", "--store", STORE, "--json"]).stdout).unwrap();
    assert_eq!((failed.as_array().unwrap().len(), &failed[0]["attempts"]), (1, &1.into()), "{failed}");
}

const JOBS: &str = r#"
[store]
url = "sqlite:store.db"
op_timeout = "10s"

[jobs.push]
schedule = "0 0 * * *"
slot = "day"
timezone = "ZONE"
max_attempts = 1
command = ["/bin/sh", "-c", "echo $CRONWARD_TRIGGER $CRONWARD_ATTEMPT; exit 1"]
"#;

#[test]
fn a_trigger_runs_the_files_command_here_and_is_refused_with_the_verb_that_mends_it() {
    let place = Place::with_jobs(&JOBS.replace("ZONE", &zone()));
    let first = place.run(&["trigger", "push", "--yes"]);
    assert_eq!((first.code, &*first.stdout), (1, "manual 1\n"), "{}", first.stderr);
    let spent = place.run(&["trigger", "push", "--yes", "--config", "jobs.toml"]);
    assert_eq!((spent.code, &*spent.stdout), (69, ""));
    assert!(
        spent.stderr.contains("the attempts are exhausted: to allow more, `cronward reset push@"),
        "{}",
        spent.stderr
    );
    assert!(spent.stderr.contains(" --config jobs.toml`"), "{}", spent.stderr);
    assert_eq!(place.run(&["reset", "push", "--yes"]).code, 0);
    let again = place.run(&["trigger", "push", "--yes"]);
    assert_eq!((again.code, &*again.stdout), (1, "manual 2\n"), "{}", again.stderr);
}

#[test]
fn exec_shares_the_ledger_of_the_files_job() {
    let place = Place::with_jobs(&JOBS.replace("ZONE", &zone()));
    assert_eq!(place.run(&["trigger", "push", "--yes"]).code, 1);
    let told = place.run(&["exec", "--job", "push", "--", "/bin/echo", "never"]);
    assert_eq!((told.code, &*told.stdout, &*told.stderr), (0, "", ""), "the file's max_attempts is 1");
    assert_eq!(place.run(&["exec", "--job", "push", "--max-attempts", "2", "--", "/bin/echo", "ran"]).stdout, "ran\n");
}

#[test]
fn a_person_at_a_terminal_is_told_that_the_store_is_waited_for() {
    let place = Place::new();
    let words = ["exec", "--store", "redis://127.0.0.1:1", "--job", "push", "--", "/bin/true"];
    let shown = terminal::until(&place.command(&words), |shown| shown.contains("claim: "));
    assert!(shown.contains("waiting for the store: redis://127.0.0.1:1: claim: "), "{shown}");
}

#[test]
fn a_guard_in_the_background_of_a_terminal_is_not_stopped_for_a_word_about_its_store() {
    let place = Place::new();
    let guard = place.command(&["exec", "--store", "redis://127.0.0.1:1", "--job", "push", "--", "/bin/true"]);
    let words = std::iter::once(guard.get_program()).chain(guard.get_args());
    let words: Vec<String> = words.map(|word| format!("'{}'", word.to_str().unwrap())).collect();
    let line = format!("stty tostop; set -m; {} & sleep 2; jobs; kill -9 %1", words.join(" "));
    let mut script = std::process::Command::new("script");
    script.args(["-qec", &line, "/dev/null"]).stdin(Stdio::null()).current_dir(place.path());
    let shown = script.env_clear().env("PATH", "/usr/bin:/bin").output().unwrap();
    let shown = String::from_utf8(shown.stdout).unwrap();
    assert!(shown.contains("Running") && !shown.contains("Stopped"), "{shown}");
}
