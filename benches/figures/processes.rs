//! What a guarded run costs beside the command itself, and how long the program takes to say something.

use std::io::Read;
use std::process::{Command, Stdio};
use std::time::Duration;

use cronward::clock::{Clock, SystemClock};
use cronward::exec::{Launcher, Output};
use cronward::job::{CommandSpec, Policy, Program};
use cronward::slot::{ExitStatus, Lease, RunContext};
use cronward::store::Store;
use tokio::sync::watch;

use crate::redis_server::RedisServer;
use crate::rig::program;
use crate::sample::{Sample, median};
use crate::table::{Table, span};
use crate::{block_on, work};

const RUNS: usize = 200;
const EXECS: usize = 100;
const HELPS: usize = 100;
const TRUE: &str = "/bin/true";

pub(crate) fn measure(table: &mut Table) {
    let redis = RedisServer::start();
    block_on(runs(&redis, table));
    exec(&redis, table);
    help(table);
}

/// One of each in turn.
async fn runs(redis: &RedisServer, table: &mut Table) {
    let store = work::open(&redis.url()).await;
    let launcher = Launcher::new(program(), Output::Capture);
    let command = CommandSpec::new(Program::Direct(vec![TRUE.to_owned()]));
    let (mut bare, mut guarded, mut ratios) = (Vec::new(), Vec::new(), Vec::new());
    for number in 0..=RUNS {
        let (alone, status) = work::timed(tokio::process::Command::new(TRUE).status()).await;
        assert!(status.unwrap().success());
        let (whole, ()) = work::timed(run(&*store, &launcher, &command, number)).await;
        // The first connects.
        if number > 0 {
            ratios.push(whole.as_secs_f64() / alone.as_secs_f64());
            bare.push(alone);
            guarded.push(whole);
        }
    }
    let (bare, guarded) = (Sample::of(bare), Sample::of(guarded));
    table.told("a bare spawn of `true`", format!("p50 {}, p99 {}", span(bare.median()), span(bare.p99())));
    table.told(
        "a whole guarded run of `true`: claim, keeper, command, completion",
        format!("p50 {}, p99 {}", span(guarded.median()), span(guarded.p99())),
    );
    table.told("a guarded run against a bare spawn", format!("{:.1} times", median(ratios)));
}

async fn run(store: &dyn Store, launcher: &Launcher, command: &CommandSpec, number: usize) {
    let lease = work::acquire(store, number).await;
    let exit = launcher.launch(command, &context(&lease), watch::channel(None).1).await.wait().await;
    assert_eq!(exit.status, ExitStatus::Code(0));
    let done_ttl = Policy::default().done_ttl_for(&lease.slot);
    store.complete(&lease, &work::success(&lease), done_ttl).await.unwrap();
}

fn context(lease: &Lease) -> RunContext {
    RunContext {
        slot: lease.slot.clone(),
        scheduled_at: lease.slot.start(),
        attempt: lease.attempt,
        max_attempts: 3,
        fence: lease.fence(),
        fence_revision: lease.revision,
        run_id: "bench".to_owned(),
        node: lease.node.clone(),
        trigger: lease.trigger,
        deadline: None,
        token: None,
        lease_held: true,
        locks: None,
    }
}

/// What stands in a crontab: `flock` in front of a command, and `cronward exec`. One of each in turn.
fn exec(redis: &RedisServer, table: &mut Table) {
    let folder = tempfile::tempdir().unwrap();
    let (lock, url) = (folder.path().join("lock").display().to_string(), redis.url());
    let guarded = ["exec", "--store", &url, "--job", "bench", "--node", "bench-node", "--", TRUE];
    let (mut flocks, mut execs, mut added, mut ratios) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    for _ in 0..EXECS {
        // A slot that nobody has touched, of a job that is not known yet: exec never has more to do.
        redis.command(&["FLUSHALL", "SYNC"]);
        let flock = process(Command::new("flock").args(["--nonblock", &lock, TRUE]));
        let exec = process(Command::new(program()).args(guarded));
        assert_eq!(redis.number(&["EXISTS", "cronward:default:jobs"]), 1, "it ran");
        ratios.push(exec.as_secs_f64() / flock.as_secs_f64());
        added.push(exec.saturating_sub(flock));
        flocks.push(flock);
        execs.push(exec);
    }
    let (flocks, execs, added) = (Sample::of(flocks), Sample::of(execs), Sample::of(added));
    let shown = |sample: &Sample| format!("p50 {}, p99 {}", span(sample.median()), span(sample.p99()));
    table.told("`flock` in front of `true`", shown(&flocks));
    table.told("`cronward exec` in front of `true`", shown(&execs));
    table.told("`cronward exec` against `flock`", format!("{:.1} times", median(ratios)));
    let bound = Duration::from_millis(15);
    table.within("what `cronward exec` adds to `flock`, p50", bound, added.median(), &added.words());
}

/// From the start of a process to its end, which has to be a success.
fn process(command: &mut Command) -> Duration {
    let begun = SystemClock.now().mono;
    let status = command.stdin(Stdio::null()).status().unwrap();
    let took = SystemClock.now().mono.since(begun);
    assert!(status.success(), "{command:?}: {status}");
    took
}

/// From the start of the process to its first byte.
fn help(table: &mut Table) {
    let sample = Sample::of((0..HELPS).map(|_| {
        let begun = SystemClock.now().mono;
        let mut child = Command::new(program()).arg("--help").stdout(Stdio::piped()).spawn().unwrap();
        let mut output = child.stdout.take().unwrap();
        output.read_exact(&mut [0]).unwrap();
        let took = SystemClock.now().mono.since(begun);
        output.read_to_end(&mut Vec::new()).unwrap();
        assert!(child.wait().unwrap().success());
        took
    }));
    table.within("`--help`: start to first byte, p50", Duration::from_millis(10), sample.median(), &sample.words());
}
