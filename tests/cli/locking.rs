//! `cronward lock`: real processes that hold and wait for locks on the embedded store.

use std::io::{BufRead, BufReader, Read};
use std::process::{Child, ChildStdout, Command, Stdio};

use rustix::process::Signal;
use serde_json::Value;

use crate::process::{Killed, lives, pid_in, signal};
use crate::program::{Ended, Place};
use crate::{terminal, wait};

const STORE: &str = "sqlite:store.db";

const CRONWARD: &str = env!("CARGO_BIN_EXE_cronward");

/// The words of `cronward lock` with these words before the command.
fn words<'a>(before: &[&'a str], command: &[&'a str]) -> Vec<&'a str> {
    [&["lock"], before, &["--store", STORE, "--"], command].concat()
}

fn lock(place: &Place, before: &[&str], command: &[&str]) -> Ended {
    place.run(&words(before, command))
}

/// The same with a script of the shell.
fn lock_of(place: &Place, before: &[&str], script: &str) -> Ended {
    lock(place, before, &["/bin/sh", "-c", script])
}

/// A command under locks that says `up` once it runs, and is left running.
fn running(place: &Place, before: &[&str], script: &str) -> (Killed, BufReader<ChildStdout>) {
    let script = format!("echo up; {script}");
    let command = place.command(&words(before, &["/bin/sh", "-c", &script]));
    let (child, mut out) = piped(command);
    let mut line = String::new();
    out.read_line(&mut line).unwrap();
    assert_eq!(line, "up\n");
    (child, out)
}

fn piped(mut command: Command) -> (Killed, BufReader<ChildStdout>) {
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let out = BufReader::new(child.stdout.take().unwrap());
    (Killed(child), out)
}

/// Its exit code, and what it said on stderr.
fn ended(child: &mut Child) -> (Option<i32>, String) {
    let status = wait::until("its end", || child.try_wait().unwrap());
    let mut told = String::new();
    child.stderr.take().unwrap().read_to_string(&mut told).unwrap();
    (status.code(), told)
}

/// The queue of a lock, as `locks NAME --json` tells it.
fn queue(place: &Place, lock: &str) -> Vec<Value> {
    let told = place.run(&["locks", lock, "--json", "--store", STORE]);
    assert_eq!(told.code, 0, "{told:?}");
    serde_json::from_str::<Value>(&told.stdout).unwrap()["queue"].as_array().unwrap().clone()
}

fn until_queued(place: &Place, lock: &str, entries: usize) {
    wait::until_true("so many in the queue", || queue(place, lock).len() == entries);
}

/// Commands that go on until a file is there.
const UNTIL_END: &str = "while ! test -e end; do sleep 0.02; done";

#[test]
fn exit_codes() {
    let place = Place::new();
    let sh = |script| lock(&place, &["x"], &["/bin/sh", "-c", script]);
    let passed = sh("echo out; echo err >&2; exit 42");
    assert_eq!((passed.code, &*passed.stdout, &*passed.stderr), (42, "out\n", "err\n"));
    assert_eq!(sh("exit 0").code, 0);
    assert_eq!(sh("kill -TERM $$").code, 143);
    let missing = lock(&place, &["x"], &["/no/such/program"]);
    assert_eq!((missing.code, &*missing.stderr), (127, "cronward: \"/no/such/program\" was not found\n"));
    assert_eq!(lock(&place, &["x"], &["/"]).code, 126);
    assert!(queue(&place, "x").is_empty(), "all of them have released it");
    place.write("broken.db", &"no database ".repeat(100));
    let refused = place.run(&["lock", "x", "--store", "sqlite:broken.db", "--", "/bin/echo", "never"]);
    assert_eq!((refused.code, &*refused.stdout, refused.stderr.lines().count()), (69, "", 1), "{refused:?}");
    let missing = place.run(&["lock", "x", "--config", "none.toml", "--", "/bin/echo", "never"]);
    assert_eq!((missing.code, &*missing.stdout, missing.stderr.lines().count()), (78, "", 1), "{missing:?}");
}

#[test]
fn who_finds_it_busy_says_so_with_one_or_the_code_that_was_given() {
    let place = Place::new();
    let (_holder, _out) = running(&place, &["x", "--node", "a"], "exec sleep 60");
    let never = ["/bin/echo", "never"];
    let busy = lock(&place, &["x", "--try"], &never);
    let told = "cronward: x: held by a (sh); the command was not started\n";
    assert_eq!((busy.code, &*busy.stdout, &*busy.stderr), (1, "", told));
    let bounded = lock(&place, &["x", "--wait", "100ms"], &never);
    let told = "cronward: x did not become free within 100ms; the command was not started\n";
    assert_eq!((bounded.code, &*bounded.stdout, &*bounded.stderr), (1, "", told));
    assert_eq!(queue(&place, "x").len(), 1, "who gave up stands in no queue");
    assert_eq!(lock(&place, &["x", "--try", "-E", "9"], &never).code, 9);
    let silent = lock(&place, &["x", "--try", "-E", "0"], &never);
    assert_eq!((silent.code, &*silent.stdout, &*silent.stderr), (0, "", ""));
}

#[test]
fn what_cannot_be_asked_for_is_a_usage_error_of_one_line() {
    let place = Place::new();
    let never = ["/bin/echo", "never"];
    let many: Vec<String> = (0..17).map(|n| format!("l{n}")).collect();
    let many: Vec<&str> = many.iter().map(String::as_str).collect();
    for (before, why) in [
        (&["x:0/4"][..], "x: ask for at least one permit"),
        (&["x:5/4"], "x: 5 permits of 4 can never be held"),
        (&["x:often"], "x: after the colon write shared, or permits as in 2/4"),
        (&["Ledger"], "lock name"),
        (&["x", "x:shared"], "x is named twice in one request"),
        (&many, "a request names at most 16 locks, not 17"),
        (&["x", "--try", "--wait", "1s"], "cannot be used with"),
        (&["x", "--ttl", "10ms"], "--ttl: write a duration of 500 ms to a day"),
        (&["x", "-E", "256"], "write a whole number from 0 to 255"),
        (&[], "required arguments were not provided"),
    ] {
        let refused = lock(&place, before, &never);
        assert_eq!((refused.code, &*refused.stdout, refused.stderr.lines().count()), (64, "", 1), "{refused:?}");
        assert!(refused.stderr.contains(why), "{refused:?}");
    }
    for command in [&[][..], &[" "]] {
        let refused = lock(&place, &["x"], command);
        assert_eq!((refused.code, refused.stderr.lines().count()), (64, 1), "{refused:?}");
    }
    let unknown = place.command(&words(&["x"], &never)).env("CRONWARD_LOCK_OWNER", "me").output().unwrap();
    assert_eq!(unknown.status.code(), Some(64));
}

#[test]
fn a_store_that_keeps_no_locks_is_refused_before_anything_runs() {
    let url = "redlock://127.0.0.1:1,127.0.0.1:2,127.0.0.1:3";
    let place = Place::with_jobs(&format!("[store]\nurl = \"{url}\"\n"));
    let store = ["--store", url];
    let never = ["--", "/bin/echo", "never"];
    let none = "error: redlock keeps no locks: docs/locks.md says which stores do\n";
    let of_flag = "error: store redlock keeps no locks, and --lock names one: use another store, or leave out --lock\n";
    for (words, code, why) in [
        ([&["lock", "x"][..], &never].concat(), 78, none),
        ([&["lock", "x"][..], &store, &never].concat(), 64, none),
        ([&["locks"][..], &store].concat(), 64, none),
        ([&["unlock", "--lock", "x", "--yes"][..], &store].concat(), 64, none),
        ([&["exec", "--job", "j", "--lock", "x"][..], &store, &never].concat(), 64, of_flag),
        ([&["exec", "--job", "j", "--lock", "x"][..], &never].concat(), 78, of_flag),
    ] {
        let refused = place.run(&words);
        assert_eq!((refused.code, &*refused.stdout, &*refused.stderr), (code, "", why), "{words:?}");
    }
}

#[test]
fn the_second_runs_after_the_first() {
    let place = Place::new();
    let (mut first, _out) = running(&place, &["x"], &format!("{UNTIL_END}; echo first >> done"));
    let (mut second, _out) = piped(place.command(&words(&["x"], &["/bin/sh", "-c", "echo second >> done"])));
    until_queued(&place, "x", 2);
    assert!(!place.path().join("done").exists());
    place.write("end", "");
    assert_eq!(ended(&mut first.0), (Some(0), String::new()));
    assert_eq!(ended(&mut second.0), (Some(0), String::new()));
    assert_eq!(std::fs::read_to_string(place.path().join("done")).unwrap(), "first\nsecond\n");
}

#[test]
fn permits_readers_and_several_locks_are_held_beside_each_other_as_far_as_they_fit() {
    let place = Place::new();
    let all = ["gpu:2/4", "schema:shared", "ledger"];
    let (_holder, _out) = running(&place, &all, "exec sleep 60");
    let tries = |locks: &[&str]| lock(&place, &[locks, &["--try"]].concat(), &["/bin/true"]).code;
    assert_eq!([tries(&["gpu:2/4"]), tries(&["gpu:3/4"]), tries(&["gpu"])], [0, 1, 1]);
    assert_eq!([tries(&["schema:shared"]), tries(&["schema"])], [0, 1]);
    // All or none: what is free is not taken.
    assert_eq!(tries(&["other", "ledger"]), 1);
    assert_eq!(tries(&["other"]), 0);
}

#[test]
fn the_command_is_told_what_it_holds_and_nothing_of_the_store() {
    let place = Place::new();
    let script = "echo $CRONWARD_LOCKS; echo $CRONWARD_LOCK_FENCE; echo $CRONWARD_LOCK_OWNER; env";
    let mut command = place.command(&words(&["x", "gpu:2/4"], &["/bin/sh", "-c", script]));
    let told: Ended = command.env("CRONWARD_STORE", STORE).env("DB", "a:sqlite:store.db").output().unwrap().into();
    let lines: Vec<&str> = told.stdout.lines().collect();
    assert_eq!((told.code, lines[0], &*told.stderr), (0, "x gpu", ""));
    let earlier: u64 = lines[1].parse().unwrap();
    assert!(lines[2].len() == 32 && !told.stdout.contains("CRONWARD_STORE"), "{}", told.stdout);
    let later = lock(&place, &["x"], &["/bin/sh", "-c", "echo $CRONWARD_LOCK_FENCE"]);
    assert!(later.stdout.trim().parse::<u64>().unwrap() > earlier, "{later:?}");
}

#[test]
fn standard_input_and_braces_reach_the_command_as_they_are() {
    let place = Place::new();
    place.write("in", "from a file\n");
    let mut command = place.command(&words(&["x"], &["/bin/sh", "-c", "cat; echo \"$0\"", "{slot} {"]));
    let told: Ended = command.stdin(std::fs::File::open(place.path().join("in")).unwrap()).output().unwrap().into();
    assert_eq!((told.code, &*told.stdout, &*told.stderr), (0, "from a file\n{slot} {\n", ""));
}

#[test]
fn reentry_over_processes() {
    let place = Place::new();
    let inner = ["lock", "x", "y", "--store", STORE, "--", "/bin/sh", "-c", "echo in $CRONWARD_LOCKS"];
    let nested = lock(&place, &["x"], &[&[CRONWARD], &inner[..]].concat());
    assert_eq!((nested.code, &*nested.stdout, &*nested.stderr), (0, "in x y\n", ""));
    // Through a guard of a slot, too, and then a lock within that.
    let guard = ["exec", "--store", STORE, "--job", "push", "--", CRONWARD];
    let nested = lock(&place, &["x"], &[&[CRONWARD], &guard[..], &inner[..]].concat());
    assert_eq!((nested.code, &*nested.stdout, &*nested.stderr), (0, "in x y\n", ""));
    // And what runs under a lock within a run is still that run.
    let of_run = ["lock", "x", "--store", STORE, "--", "/bin/sh", "-c", "echo $CRONWARD_JOB $CRONWARD_LOCKS"];
    let told = place.run(&[&["exec", "--store", STORE, "--job", "pull", "--", CRONWARD], &of_run[..]].concat());
    assert_eq!((told.code, &*told.stdout, &*told.stderr), (0, "pull x\n", ""));
    assert!(queue(&place, "x").is_empty() && queue(&place, "y").is_empty());
}

#[test]
fn who_would_wait_for_itself_is_refused_and_its_first_lock_stays() {
    let place = Place::new();
    let (_reader, _out) = running(&place, &["x:shared"], "exec sleep 60");
    let inner = [CRONWARD, "lock", "x", "--store", STORE, "--", "/bin/echo", "never"];
    let told = lock(&place, &["x:shared"], &inner);
    assert_eq!((told.code, &*told.stdout), (69, ""), "{told:?}");
    assert!(told.stderr.contains("would wait for itself"), "{told:?}");
}

#[test]
fn grandchildren_do_not_keep_it() {
    let place = Place::new();
    let script = "sleep 600 & echo $! > group; setsid sleep 600 & echo $! > session; exit 3";
    let mut command = place.command(&words(&["x"], &["/bin/sh", "-c", script]));
    let told: Ended = command.env("PATH", "/usr/bin:/bin").output().unwrap().into();
    assert_eq!(told.code, 3, "{told:?}");
    for name in ["group", "session"] {
        assert!(!lives(pid_in(place.path(), name).unwrap()), "{name}");
    }
    assert_eq!(lock(&place, &["x", "--try"], &["/bin/true"]).code, 0, "it is free at once");
}

#[test]
fn signals_forwarded() {
    let place = Place::new();
    let script = "trap 'echo usr1' USR1; trap 'echo term; exit 9' TERM; echo set; while :; do sleep 0.05; done";
    let (mut child, mut out) = running(&place, &["x"], script);
    let mut line = String::new();
    out.read_line(&mut line).unwrap();
    child.signal(Signal::USR1);
    out.read_line(&mut line).unwrap();
    child.signal(Signal::TERM);
    out.read_line(&mut line).unwrap();
    assert_eq!(line, "set\nusr1\nterm\n");
    // What the signal does to the shell's own child the shell tells.
    assert_eq!(ended(&mut child.0).0, Some(9));
    assert_eq!(lock(&place, &["x", "--try"], &["/bin/true"]).code, 0, "released after the command");
}

#[test]
fn a_signal_to_the_group_ends_all_of_it_and_then_the_lock_is_free() {
    let place = Place::new();
    let (mut child, _out) = running(&place, &["x"], "sleep 600 & echo $! > child; wait");
    let grandchild = wait::until("its child", || pid_in(place.path(), "child"));
    child.signal(Signal::TERM);
    assert_eq!(ended(&mut child.0).0, Some(143));
    assert!(!lives(grandchild));
    assert_eq!(lock(&place, &["x", "--try"], &["/bin/true"]).code, 0);
}

#[test]
fn a_signal_while_it_waits_ends_the_wait_and_leaves_the_queue() {
    let place = Place::new();
    let (_holder, _out) = running(&place, &["x"], "exec sleep 60");
    let (mut waiting, _out) = piped(place.command(&words(&["x"], &["/bin/echo", "never"])));
    until_queued(&place, "x", 2);
    waiting.signal(Signal::TERM);
    assert_eq!(ended(&mut waiting.0), (Some(143), String::new()));
    assert_eq!(queue(&place, "x").len(), 1);
}

#[test]
fn a_holder_that_is_killed_is_followed_after_its_ttl_and_its_command_is_dead_by_then() {
    let place = Place::new();
    let (mut holder, _out) = running(&place, &["x", "--ttl", "5s"], "echo $$ > pid; exec sleep 600");
    let command = wait::until("the command", || pid_in(place.path(), "pid"));
    let (mut next, _out) = piped(place.command(&words(&["x"], &["/bin/true"])));
    until_queued(&place, "x", 2);
    holder.kill();
    assert_eq!(ended(&mut next.0), (Some(0), String::new()));
    assert!(!lives(command));
}

#[test]
fn a_holder_that_is_stopped_loses_its_command_before_the_next_one_runs() {
    let place = Place::new();
    let (mut holder, _out) = running(&place, &["x", "--ttl", "5s"], "echo $$ > pid; exec sleep 600");
    let command = wait::until("the command", || pid_in(place.path(), "pid"));
    signal(holder.0.id(), Signal::STOP);
    let next = lock(&place, &["x"], &["/bin/sh", "-c", "kill -0 $(cat pid) 2> /dev/null && echo both; true"]);
    assert_eq!((next.code, &*next.stdout), (0, ""), "{next:?}");
    assert!(!lives(command));
    signal(holder.0.id(), Signal::CONT);
    let (code, told) = ended(&mut holder.0);
    assert_eq!(code, Some(76), "{told}");
    assert!(told.contains("x: the lock was lost or its renewal was overdue"), "{told}");
}

fn unlock(place: &Place, flags: &[&str]) -> Ended {
    place.run(&[&["unlock", "--store", STORE, "--yes", "--reason", "it hangs"], flags].concat())
}

#[test]
fn who_is_evicted_has_its_command_killed_and_ends_with_76() {
    let place = Place::new();
    let (mut holder, mut out) = running(&place, &["x", "--node", "a", "--ttl", "6s"], "exec sleep 600");
    let told = unlock(&place, &["--lock", "x"]);
    assert_eq!(told.code, 0, "{told:?}");
    assert!(told.stdout.starts_with("unlock x: sh on node a loses the lock\ncannot be undone; "), "{told:?}");
    let (code, told) = ended(&mut holder.0);
    assert_eq!(code, Some(76), "{told}");
    assert!(told.ends_with("the command was killed\n"), "{told}");
    let mut rest = String::new();
    out.read_to_string(&mut rest).unwrap();
    assert_eq!(rest, "", "the command is dead");
    let shown = place.run(&["locks", "x", "--store", STORE]).stdout;
    assert!(shown.contains("\noperators\n") && shown.contains(": it hangs\n"), "{shown}");
}

#[test]
fn a_loss_is_told_while_nobody_reads_the_output_which_is_given_up_then() {
    let place = Place::new();
    let script = "echo > up; exec /usr/bin/head -c 3000000 /dev/zero";
    let mut command = place.command(&words(&["x", "--ttl", "6s"], &["/bin/sh", "-c", script]));
    let err = place.path().join("err");
    let child = command.stdout(Stdio::piped()).stderr(std::fs::File::create(&err).unwrap()).spawn().unwrap();
    let mut holder = Killed(child);
    wait::until_true("the command", || place.path().join("up").exists());
    assert_eq!(unlock(&place, &["--lock", "x"]).code, 0);
    let told = || std::fs::read_to_string(&err).unwrap();
    wait::until_true("the loss is told", || told().ends_with("the command was killed\n"));
    assert!(holder.0.try_wait().unwrap().is_none(), "its output is waited for");
    let status = wait::until("its end", || holder.0.try_wait().unwrap());
    assert_eq!(status.code(), Some(76));
    assert!(told().ends_with("cronward: the rest of the command's output was not read within 10s and is lost\n"));
}

#[test]
fn who_may_go_on_after_a_loss_ends_as_it_would_and_says_so() {
    let place = Place::new();
    let flags = ["x", "--ttl", "6s", "--on-lost", "continue"];
    let (mut holder, _out) = running(&place, &flags, &format!("{UNTIL_END}; exit 5"));
    assert_eq!(unlock(&place, &["--lock", "x"]).code, 0);
    let next = lock(&place, &["x", "--node", "b"], &["/bin/sh", "-c", "touch end"]);
    assert_eq!((next.code, &*next.stderr), (0, ""));
    let (code, told) = ended(&mut holder.0);
    assert_eq!(code, Some(5), "{told}");
    assert!(told.contains("another holder may have overlapped"), "{told}");
}

#[test]
fn who_ends_before_it_has_noticed_a_loss_says_so_all_the_same() {
    let place = Place::new();
    let inner = [CRONWARD, "unlock", "--lock", "x", "--yes", "--store", STORE];
    let told = lock(&place, &["x"], &inner);
    let line = "cronward: x: the lock expired or was evicted before it was released; nobody else has held it since\n";
    assert_eq!((told.code, &*told.stderr), (0, line), "{told:?}");
}

#[test]
fn a_token_without_a_lock_takes_no_slot_from_anybody() {
    let place = Place::new();
    let token = "00000000000000000000000000000000";
    for flags in [&["--token", token][..], &["--all"]] {
        let told = place.run(&[&["unlock", "job", "--yes", "--reason", "x", "--store", STORE], flags].concat());
        assert_eq!((told.code, told.stderr.contains("cannot be used with")), (64, true), "{told:?}");
    }
}

#[test]
fn of_several_holders_the_one_that_is_named_is_evicted_and_a_waiter_too() {
    let place = Place::new();
    let flags = ["x:shared", "--ttl", "6s"];
    let (mut one, _out) = running(&place, &flags, "exec sleep 600");
    let (_two, _out) = running(&place, &flags, "exec sleep 600");
    let (mut waiting, _out) = piped(place.command(&words(&["x", "--ttl", "6s"], &["/bin/echo", "never"])));
    until_queued(&place, "x", 3);
    let refused = unlock(&place, &["--lock", "x"]);
    assert_eq!((refused.code, refused.stderr.lines().count()), (64, 1), "{refused:?}");
    assert!(refused.stderr.contains("x has 2 holders: name one of them with --token"), "{refused:?}");
    let tokens: Vec<String> =
        queue(&place, "x").iter().map(|entry| entry["token"].as_str().unwrap().to_owned()).collect();
    assert_eq!(unlock(&place, &["--lock", "x", "--token", &tokens[2]]).code, 0);
    let (code, told) = ended(&mut waiting.0);
    assert_eq!((code, told.lines().count()), (Some(69), 1), "{told}");
    assert!(told.contains("taken out of the queue"), "{told}");
    assert_eq!(unlock(&place, &["--lock", "x", "--token", &tokens[0]]).code, 0);
    assert_eq!(ended(&mut one.0).0, Some(76));
    assert_eq!(queue(&place, "x").len(), 1);
}

#[test]
fn of_all_who_are_evicted_each_has_a_line_of_its_own_in_the_record() {
    let place = Place::new();
    let flags = |node| ["x:shared", "--ttl", "6s", "--node", node];
    let (_one, _out) = running(&place, &flags("a"), "exec sleep 600");
    let (_two, _out) = running(&place, &flags("b"), "exec sleep 600");
    let named: Vec<String> = queue(&place, "x")
        .iter()
        .map(|entry| {
            let of = |field: &str| entry[field].as_str().unwrap().to_owned();
            format!(": sh on node {} ({}): it hangs\n", of("node"), of("token"))
        })
        .collect();
    assert_eq!((unlock(&place, &["--lock", "x", "--all"]).code, named.len()), (0, 2));
    let shown = place.run(&["locks", "x", "--store", STORE]).stdout;
    assert!(named.iter().all(|line| shown.matches(&**line).count() == 1), "{named:?}: {shown}");
}

#[test]
fn a_listing_tells_who_holds_and_who_waits() {
    let place = Place::new();
    let (_holder, _out) = running(&place, &["gpu:2/4", "x", "--node", "a"], "exec sleep 60");
    let (_waiting, _out) = piped(place.command(&words(&["x", "--node", "b"], &["/bin/true"])));
    until_queued(&place, "x", 2);
    let listed = place.run(&["locks", "--store", STORE]);
    assert_eq!(listed.code, 0, "{listed:?}");
    let row = |name: &str| {
        let line = listed.stdout.lines().find(|line| line.starts_with(name)).unwrap();
        line.split_whitespace().map(str::to_owned).collect::<Vec<_>>()
    };
    assert_eq!(row("LOCK"), ["LOCK", "HELD", "HOLDERS", "WAITING", "OLDEST"]);
    assert_eq!(row("gpu"), ["gpu", "2/4", "sh@a", "0", "-"]);
    assert_eq!(row("x")[..4], ["x", "1/1", "sh@a", "1"]);
    let shown = place.run(&["locks", "x", "--store", STORE]).stdout;
    assert!(shown.starts_with("x  1/1 held, 1 waiting  at "), "{shown}");
    assert!(shown.contains(" holds ") && shown.contains(" waits for a "), "{shown}");
    let queue = queue(&place, "x");
    assert_eq!((&queue[0]["holds"], &queue[0]["label"], &queue[0]["node"]), (&true.into(), &"sh".into(), &"a".into()));
    assert_eq!(
        (&queue[1]["holds"], &queue[1]["ahead"], &queue[1]["waits_for"]),
        (&false.into(), &1.into(), &"a".into())
    );
    assert_eq!((&queue[1]["fence"], &queue[1]["since"]), (&Value::Null, &Value::Null));
    let free = place.run(&["locks", "--store", STORE, "--namespace", "other"]);
    assert_eq!((free.code, &*free.stdout), (0, ""), "{free:?}");
    assert!(free.stderr.starts_with("no locks: "), "{free:?}");
}

#[test]
fn a_watch_tells_each_change_of_a_lock_in_a_line() {
    let place = Place::new();
    let (mut holder, _out) = running(&place, &["x", "--node", "a"], UNTIL_END);
    let (_watch, out) = piped(place.command(&["locks", "--watch", "--interval", "50ms", "--store", STORE]));
    let mut lines = out.lines().map(Result::unwrap);
    assert!(lines.next().unwrap().starts_with("LOCK "));
    let held = lines.next().unwrap();
    assert!(held.contains("1/1") && held.contains("sh@a"), "{held}");
    place.write("end", "");
    assert_eq!(ended(&mut holder.0).0, Some(0));
    let free = lines.next().unwrap();
    assert!(free.starts_with("x ") && free.contains(" 0 ") && !free.contains("sh@a"), "{free}");
}

#[test]
fn on_a_terminal_the_queue_of_a_lock_is_drawn_in_its_place() {
    let place = Place::new();
    let (_holder, _out) = running(&place, &["x", "--node", "a"], "exec sleep 60");
    let command = place.command(&["locks", "x", "--watch", "--interval", "100ms", "--store", STORE]);
    let shown = terminal::until(&command, |shown| shown.contains("nobody waits  at "));
    assert!(shown.contains("polled every 100ms; Ctrl-C ends"), "{shown}");
    assert!(shown.contains("x  1/1 held, nobody waits  at "), "{shown}");
}

#[test]
fn a_ring_of_waits_is_named_with_what_opens_it() {
    let place = Place::new();
    // Each takes a lock more while it holds one: nothing keeps two such from waiting for each other but the end of their waits.
    let nested = |node: &str, lock: &str| {
        format!("{CRONWARD} lock {lock} --node {node} --wait 2m --store {STORE} -- /bin/echo ran; echo over")
    };
    let after = |file: &str, then: String| format!("while ! test -e {file}; do sleep 0.02; done; {then}");
    let (_a, mut from_a) = running(&place, &["x", "--node", "a"], &after("go-a", nested("a", "y")));
    let (_b, mut from_b) = running(&place, &["y", "--node", "b"], &after("go-b", nested("b", "x")));
    place.write("go-a", "");
    until_queued(&place, "y", 2);
    assert!(!place.run(&["locks", "--store", STORE]).stderr.contains("deadlock"));
    place.write("go-b", "");
    until_queued(&place, "x", 2);
    let told = place.run(&["locks", "--store", STORE]);
    let ring = "deadlock: echo on node a waits for y, echo on node b waits for x, each behind the next; end one of them, or: \
                cronward unlock --lock x --token ";
    assert!(told.stderr.starts_with(ring), "{told:?}");
    // Who looks at a lock in which nobody of the ring waits is told nothing of it.
    let _z = running(&place, &["z"], UNTIL_END);
    let mut behind = place.command(&words(&["z"], &["/bin/true"]));
    let _behind = Killed(behind.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap());
    until_queued(&place, "z", 2);
    let told = place.run(&["locks", "z", "--store", STORE]);
    assert_eq!((told.code, &*told.stderr), (0, ""), "{told:?}");
    let told = place.run(&["locks", "x", "--store", STORE]);
    assert!(told.stdout.contains("waits for a, deadlock") && told.stderr.contains("deadlock: "), "{told:?}");
    let rings: Vec<(bool, bool)> =
        queue(&place, "x").iter().map(|entry| (entry["holds"] == true, entry["deadlocked"] == true)).collect();
    assert_eq!(rings, [(true, false), (false, true)]);
    // What it advises opens it.
    let advice = told.stderr.trim().rsplit_once("or: cronward ").unwrap().1;
    let opened = place.run(&[&advice.split(' ').collect::<Vec<_>>()[..], &["--yes"]].concat());
    assert_eq!(opened.code, 0, "{opened:?}");
    let lines = [&mut from_b, &mut from_a].map(|from| from.lines().map_while(Result::ok).collect::<Vec<_>>());
    assert_eq!(lines, [vec!["over"], vec!["ran", "over"]]);
    let told = place.run(&["locks", "--store", STORE]);
    assert!(!told.stderr.contains("deadlock"), "{told:?}");
}

#[test]
fn a_listing_makes_no_store() {
    let place = Place::new();
    assert_eq!(place.run(&["locks", "--store", STORE]).code, 75);
    assert!(!place.path().join("store.db").exists());
}

/// The words of `exec` of a job with these flags.
fn exec(place: &Place, job: &str, flags: &[&str], script: &str) -> Ended {
    let words = [&["exec", "--job", job, "--store", STORE], flags, &["--", "/bin/sh", "-c", script]].concat();
    place.run(&words)
}

#[test]
fn exec_holds_the_locks_that_its_line_names() {
    let place = Place::new();
    let told = exec(&place, "a", &["--lock", "x", "--lock", "gpu:1/4"], "echo $CRONWARD_LOCKS");
    assert_eq!((told.code, &*told.stdout, &*told.stderr), (0, "x gpu\n", ""));
    assert!(queue(&place, "x").is_empty(), "it is free again");
    let (_holder, _out) = running(&place, &["x", "--node", "a"], "exec sleep 60");
    let flags = ["--lock", "x:shared", "--no-wait", "--skip-exit-code", "9"];
    let busy = exec(&place, "b", &flags, "echo never");
    assert_eq!((busy.code, &*busy.stdout, busy.stderr.lines().count()), (9, "", 1), "{busy:?}");
    assert_eq!(exec(&place, "b", &["--lock", "y", "--no-wait"], "echo $CRONWARD_LOCKS").stdout, "y\n");
    let twice = exec(&place, "c", &["--lock", "y", "--lock", "y:shared"], "echo never");
    assert_eq!((twice.code, &*twice.stdout), (64, ""), "{twice:?}");
    assert!(twice.stderr.contains("--lock: y is named twice in one request"), "{twice:?}");
}

#[test]
fn doctor_names_who_has_held_a_lock_for_longer_than_any_run_may_last() {
    let place = Place::with_jobs(&format!(
        "[store]\nurl = \"{STORE}\"\n[jobs.a]\nschedule = \"@daily\"\nslot = \"day\"\ncommand = [\"true\"]\ntimeout = \"1s\"\n"
    ));
    let (_holder, _out) = running(&place, &["x", "--node", "n1"], "exec sleep 60");
    let warned = || {
        let told = place.run(&["doctor", "--json"]);
        let told: Value = serde_json::from_str(&told.stdout).unwrap();
        told["findings"].as_array().unwrap().iter().find(|finding| finding["check"] == "holders").cloned()
    };
    let warning = wait::until("a warning", warned);
    let told = |field: &str| warning[field].as_str().unwrap().to_owned();
    assert_eq!(told("severity"), "warning");
    assert!(told("found").starts_with("x: held by sh on n1 since 20"), "{warning}");
    assert!(told("found").ends_with("longer than the longest timeout of all jobs, 1s"), "{warning}");
    let token = queue(&place, "x")[0]["token"].as_str().unwrap().to_owned();
    assert!(told("fix").ends_with(&format!("cronward unlock --lock x --token {token}")), "{warning}");
}

#[test]
fn exec_within_its_own_slot_runs_under_the_locks_that_are_held() {
    let place = Place::new();
    let within = |job: &str, lock: &str| {
        let inner = format!(
            "{CRONWARD} exec --job {job} --lock {lock} --store {STORE} -- /bin/sh -c 'echo in $CRONWARD_LOCKS'"
        );
        exec(&place, job, &["--lock", "x", "--lock", "y"], &inner)
    };
    let held = within("a", "x");
    assert_eq!((held.code, &*held.stdout, &*held.stderr), (0, "in x y\n", ""));
    let other = within("b", "z");
    assert_eq!((other.code, &*other.stdout), (64, ""), "{other:?}");
    assert!(other.stderr.contains("--lock z: this runs within a run of b@"), "{other:?}");
}

#[test]
fn a_guard_that_would_wait_for_a_lock_that_is_held_around_it_is_refused_before_it_claims() {
    let place = Place::new();
    let inner =
        |job: &str, lock: &str| format!("{CRONWARD} exec --job {job} --lock {lock} --store {STORE} -- /bin/echo ran");
    let under = |held: &str, job: &str, lock: &str| lock_of(&place, &[held], &inner(job, lock));
    let told = under("x", "a", "x");
    assert_eq!((told.code, &*told.stdout, told.stderr.lines().count()), (69, "", 1), "{told:?}");
    assert!(told.stderr.contains("so it would wait for itself: take x in one of the two only"), "{told:?}");
    let known = place.run(&["attempts", "--all", "--job", "a", "--json", "--store", STORE]);
    assert_eq!((known.code, known.stderr.contains("no job a")), (64, true), "not even the job is known: {known:?}");
    // The run of another job around it is no other thing.
    let told = exec(&place, "b", &["--lock", "x"], &inner("c", "x:shared"));
    assert_eq!((told.code, &*told.stdout), (69, ""), "{told:?}");
    // What can be held beside the outer one waits for nobody.
    for (held, job, lock) in [("x:shared", "d", "x:shared"), ("x:1/2", "e", "x:1/2"), ("x", "f", "y")] {
        let told = under(held, job, lock);
        assert_eq!((told.code, &*told.stdout, &*told.stderr), (0, "ran\n", ""), "{held} and {lock}");
    }
    let full = under("x:2/2", "g", "x:1/2");
    assert_eq!(full.code, 69, "{full:?}");
    // Two around it hold one permit each: neither of them alone leaves no room.
    let innermost = format!("{CRONWARD} exec --job i --lock p:1/2 --wait 1s --store {STORE} -- /bin/echo ran");
    let between = format!("{CRONWARD} exec --job h --lock p:1/2 --store {STORE} -- {innermost}");
    let full = lock_of(&place, &["p:1/2"], &between);
    assert_eq!((full.code, full.stderr.contains("so it would wait for itself")), (69, true), "{full:?}");
}

#[test]
fn what_an_outer_lock_holds_is_refused_at_once_also_within_a_run_that_has_locks_of_its_own() {
    let place = Place::new();
    // Each in a job of its own: a slot that is done is not run again.
    let through = |job: &str, inner: &str| {
        let run = format!("{CRONWARD} exec --job {job} --lock y --store {STORE} -- {inner}");
        lock_of(&place, &["x"], &run)
    };
    let within = |lock: &str| format!("{CRONWARD} lock {lock} --wait 1s --store {STORE} -- /bin/echo ran");
    let told = through("a", &within("x"));
    assert_eq!((told.code, &*told.stdout, told.stderr.lines().count()), (69, "", 1), "{told:?}");
    assert!(told.stderr.contains("x is held by the cronward lock or the run that this was started under"), "{told:?}");
    let guard = format!("{CRONWARD} exec --job b --lock x --wait 1s --store {STORE} -- /bin/echo ran");
    let told = through("c", &guard);
    assert_eq!((told.code, &*told.stdout, told.stderr.lines().count()), (69, "", 1), "{told:?}");
    // What the run between holds is taken again, and what nobody holds is taken.
    for (job, lock) in [("d", "y"), ("e", "z")] {
        let told = through(job, &within(lock));
        assert_eq!((told.code, &*told.stdout, &*told.stderr), (0, "ran\n", ""), "{lock}");
    }
}

#[test]
fn an_owner_that_is_empty_is_none_and_one_that_is_wrong_is_told_with_the_way_out() {
    let place = Place::new();
    let nested = format!("CRONWARD_LOCK_OWNER= {CRONWARD} lock x --try --store {STORE} -- /bin/echo ran");
    let told = lock_of(&place, &["x"], &nested);
    assert_eq!((told.code, &*told.stdout), (1, ""), "another owner: {told:?}");
    let nested = format!("CRONWARD_LOCK_OWNER=me {CRONWARD} lock x --store {STORE} -- /bin/echo ran");
    let told = lock_of(&place, &["x"], &nested);
    assert_eq!((told.code, &*told.stdout), (64, ""), "{told:?}");
    assert!(told.stderr.contains("CRONWARD_LOCK_OWNER in the environment is no owner of locks: unset it"), "{told:?}");
}
