//! The same commands through the keeper, and nothing else: no store, no schedule, no log.

use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use cronward::exec::{Launcher, Output};
use cronward::job::{CommandSpec, Program};
use cronward::slot::{ExitStatus, Fence, RunContext, Slot, Trigger};

/// At once: enough for the processors, whatever one start waits for.
const AT_ONCE: usize = 32;

/// The program that is measured, and the keeper of its commands.
pub(crate) fn program() -> PathBuf {
    std::env::var_os("CRONWARD_BENCH_PROGRAM").map_or_else(|| env!("CARGO_BIN_EXE_cronward").into(), PathBuf::from)
}

/// Commands per second, on a runtime like the daemon's.
pub(crate) fn rate(span: Duration) -> f64 {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    runtime.block_on(async {
        let (begun, ran) = (Instant::now(), std::sync::Arc::new(AtomicU64::new(0)));
        let mut tasks = tokio::task::JoinSet::new();
        for _ in 0..AT_ONCE {
            let ran = std::sync::Arc::clone(&ran);
            tasks.spawn(async move {
                let launcher = Launcher::new(program(), Output::Capture);
                let command = CommandSpec::new(Program::Direct(vec!["/bin/true".to_owned()]));
                while begun.elapsed() < span {
                    let exit =
                        launcher.launch(&command, &context(), tokio::sync::watch::channel(None).1).await.wait().await;
                    assert_eq!(exit.status, ExitStatus::Code(0));
                    ran.fetch_add(1, Ordering::Relaxed);
                }
            });
        }
        tasks.join_all().await;
        ran.load(Ordering::Relaxed) as f64 / begun.elapsed().as_secs_f64()
    })
}

fn context() -> RunContext {
    let slot = Slot::parse("bare", "2026-11-21T14Z", "2026-11-21T15Z").unwrap();
    RunContext {
        scheduled_at: slot.start(),
        slot,
        attempt: 1,
        max_attempts: 1,
        fence: Fence(1),
        fence_revision: None,
        run_id: "bench".to_owned(),
        node: "bench".parse().unwrap(),
        trigger: Trigger::Schedule,
        deadline: None,
        token: None,
        lease_held: true,
        locks: None,
    }
}
