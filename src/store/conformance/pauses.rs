//! Cases: pauses of jobs, which all nodes know, and of which the store's clock says whether they last.

use crate::store::Intervention;
use crate::store::conformance::bench::{audit, case, is_recent, job_name};
use crate::store::conformance::{Bench, Case, CaseOutcome};

pub(super) const CASES: &[Case] = &[
    case!("registry", a_pause_is_known_to_all),
    case!("registry", a_pause_replaces_the_earlier_one),
    case!("registry", the_pause_of_one_job_is_told_with_the_stores_clock),
    case!("registry", a_resume_ends_the_pause_and_keeps_who_began_it),
    case!("registry", resuming_what_is_not_paused_changes_nothing),
];

async fn a_pause_is_known_to_all(bench: &Bench) -> CaseOutcome {
    let name = job_name("push")?;
    let until = Some(bench.at(600));
    ensure_eq!(bench.store.pause(&name, until, &audit("pause")).await?, Intervention::Applied);
    let pauses = bench.another().await?.pauses().await?;
    let (job, pause) = take!(pauses.as_slice(), [pause] => pause);
    ensure_eq!((job, pause.until), (&name, until));
    ensure!(is_recent(bench, pause.since), "since {}", pause.since);
    ensure!(is_recent(bench, pause.audit.at), "at {}", pause.audit.at);
    ensure_eq!((pause.audit.who.as_str(), pause.audit.why.as_str()), ("alice", "the suite asks"));
    Ok(())
}

async fn a_pause_replaces_the_earlier_one(bench: &Bench) -> CaseOutcome {
    let (name, other) = (job_name("push")?, job_name("backup")?);
    bench.store.pause(&name, Some(bench.at(600)), &audit("pause")).await?;
    bench.store.pause(&other, None, &audit("pause")).await?;
    bench.store.pause(&name, None, &audit("pause")).await?;
    let pauses = bench.store.pauses().await?;
    let shown: Vec<_> = pauses.iter().map(|(job, pause)| (job.as_str(), pause.until)).collect();
    ensure_eq!(shown, vec![("backup", None), ("push", None)]);
    Ok(())
}

async fn the_pause_of_one_job_is_told_with_the_stores_clock(bench: &Bench) -> CaseOutcome {
    let (name, other) = (job_name("push")?, job_name("backup")?);
    let (now, pause) = bench.store.pause_of(&name).await?;
    ensure!(is_recent(bench, now), "at {now}");
    ensure_eq!(pause, None);
    bench.store.pause(&other, None, &audit("pause")).await?;
    ensure_eq!(bench.store.pause_of(&name).await?.1, None);
    bench.store.pause(&name, Some(bench.at(600)), &audit("pause")).await?;
    let (now, pause) = bench.another().await?.pause_of(&name).await?;
    let pause = take!(pause, Some(pause) => pause);
    let pauses = bench.store.pauses().await?;
    ensure_eq!(pauses.last(), Some(&(name.clone(), pause.clone())));
    ensure!(now >= pause.since && pause.remaining(now).is_some(), "since {}, at {now}", pause.since);
    bench.store.resume(&name, &audit("resume")).await?;
    let (now, ended) = bench.store.pause_of(&name).await?;
    let ended = take!(ended, Some(pause) => pause);
    ensure!(ended.ended.is_some() && ended.remaining(now).is_none(), "{ended:?} at {now}");
    Ok(())
}

async fn a_resume_ends_the_pause_and_keeps_who_began_it(bench: &Bench) -> CaseOutcome {
    let name = job_name("push")?;
    let odd = crate::slot::Audit { why: "the {suite} \"asks\"}".to_owned(), ..audit("pause") };
    bench.store.pause(&name, Some(bench.at(600)), &odd).await?;
    ensure_eq!(bench.another().await?.resume(&name, &audit("resume")).await?, Intervention::Applied);
    let pauses = bench.store.pauses().await?;
    let (_, pause) = take!(pauses.as_slice(), [pause] => pause);
    let until = take!(pause.until, Some(until) => until);
    ensure!(is_recent(bench, until) && until >= pause.since, "from {} to {until}", pause.since);
    let ended = take!(&pause.ended, Some(ended) => ended);
    ensure_eq!((pause.audit.verb.as_str(), pause.audit.why.as_str()), ("pause", "the {suite} \"asks\"}"));
    ensure_eq!((ended.verb.as_str(), ended.who.as_str(), ended.why.as_str()), ("resume", "alice", "the suite asks"));
    ensure_eq!(ended.at, until);
    bench.store.pause(&name, None, &audit("pause")).await?;
    let pauses = bench.store.pauses().await?;
    let (_, pause) = take!(pauses.as_slice(), [pause] => pause);
    ensure_eq!((pause.until, &pause.ended), (None, &None));
    Ok(())
}

async fn resuming_what_is_not_paused_changes_nothing(bench: &Bench) -> CaseOutcome {
    let name = job_name("push")?;
    ensure_eq!(bench.store.resume(&name, &audit("resume")).await?, Intervention::Unchanged);
    ensure_eq!(bench.store.pauses().await?, Vec::new());
    bench.store.pause(&name, Some(bench.at(-1)), &audit("pause")).await?;
    let before = bench.store.pauses().await?;
    ensure_eq!(bench.store.resume(&name, &audit("resume")).await?, Intervention::Unchanged);
    ensure_eq!(bench.store.pauses().await?, before);
    Ok(())
}
