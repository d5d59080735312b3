//! Cases: the registry of jobs and nodes, and pauses.

use std::collections::BTreeMap;

use chrono::DateTime;

use crate::store::conformance::bench::{audit, case, is_recent, job_name, node_name};
use crate::store::conformance::{Bench, Case, Failure, Outcome};
use crate::store::{Intervention, JobEntry, JobOrigin, NodeReport};

pub(super) const CASES: &[Case] = &[
    case!("registry", an_empty_registry_knows_nothing),
    case!("registry", a_registered_job_is_known_to_all_by_name),
    case!("registry", a_job_registered_again_keeps_when_it_was_first_seen),
    case!("registry", what_a_file_said_of_a_job_is_replaced_by_a_file_alone),
    case!("registry", a_node_is_known_by_its_last_report),
    case!("registry", a_heartbeat_tells_the_stores_clock),
    case!("registry", a_restarted_node_takes_the_place_of_its_earlier_instance),
    case!("registry", a_pause_is_known_to_all),
    case!("registry", a_pause_replaces_the_earlier_one),
    case!("registry", a_resume_ends_the_pause_and_keeps_who_began_it),
    case!("registry", resuming_what_is_not_paused_changes_nothing),
    case!("registry", an_inspection_answers_in_the_order_asked),
    case!("registry", the_stores_clock_does_not_go_back, I6),
];

fn job(name: &str, schedule: &str) -> Result<JobEntry, Failure> {
    Ok(JobEntry {
        name: job_name(name)?,
        schedule: schedule.to_owned(),
        timezone: "Europe/Berlin".to_owned(),
        period: "hour".to_owned(),
        max_attempts: 3,
        enabled: true,
        planned: None,
        origin: JobOrigin::File,
        first_seen: DateTime::UNIX_EPOCH,
    })
}

fn report(bench: &Bench, node: &str, instance: &str) -> Result<NodeReport, Failure> {
    Ok(NodeReport {
        version: "1.2.3".to_owned(),
        config_hash: "c0ffee".to_owned(),
        job_hashes: BTreeMap::from([(job_name("push")?, "abc".to_owned())]),
        labels: BTreeMap::from([("zone".to_owned(), "eu-1 \"{x}\"\n".to_owned())]),
        clock_offset_ms: -12,
        running: vec!["push@2026-11-21T14Z".to_owned()],
        ..NodeReport::new(node_name(node)?, instance, bench.began)
    })
}

async fn an_empty_registry_knows_nothing(bench: &Bench) -> Outcome {
    ensure_eq!(bench.store.jobs().await?, Vec::new());
    ensure_eq!(bench.store.nodes().await?.1, Vec::new());
    ensure_eq!(bench.store.pauses().await?, Vec::new());
    ensure_eq!(bench.store.register(&[]).await?, Vec::new());
    ensure_eq!(bench.store.purge().await?, 0);
    Ok(())
}

async fn a_registered_job_is_known_to_all_by_name(bench: &Bench) -> Outcome {
    let known = bench.store.register(&[job("push", "0 * * * *")?, job("backup", "30 2 * * *")?]).await?;
    let names: Vec<&str> = known.iter().map(|entry| entry.name.as_str()).collect();
    ensure_eq!(names, vec!["backup", "push"]);
    for entry in &known {
        ensure!(is_recent(bench, entry.first_seen), "first seen at {}", entry.first_seen);
    }
    let other = bench.another().await?;
    ensure_eq!(other.jobs().await?, known);
    let all = other.register(&[job("clean", "@daily")?]).await?;
    let names: Vec<&str> = all.iter().map(|entry| entry.name.as_str()).collect();
    ensure_eq!(names, vec!["backup", "clean", "push"], "what others registered is answered too");
    Ok(())
}

async fn a_job_registered_again_keeps_when_it_was_first_seen(bench: &Bench) -> Outcome {
    let first = bench.store.register(&[job("push", "0 * * * *")?]).await?;
    let seen = take!(first.as_slice(), [entry] => entry.first_seen);
    bench.after(seen).await?;
    let changed = JobEntry { enabled: false, max_attempts: 9, ..job("push", "5 * * * *")? };
    let again = bench.store.register(std::slice::from_ref(&changed)).await?;
    ensure_eq!(again, vec![JobEntry { first_seen: seen, ..changed }]);
    Ok(())
}

/// A crontab's `exec` looks whether the name is known, and a daemon may register it before the word of `exec` arrives.
async fn what_a_file_said_of_a_job_is_replaced_by_a_file_alone(bench: &Bench) -> Outcome {
    let of_crontab = JobEntry { enabled: false, origin: JobOrigin::Crontab, ..job("push", "0 0 * * *")? };
    let of_service = JobEntry { origin: JobOrigin::Service, ..of_crontab.clone() };
    let crontab = bench.store.register(std::slice::from_ref(&of_crontab)).await?;
    let seen = take!(crontab.as_slice(), [entry] => entry.first_seen);
    for said in [&of_service, &of_crontab, &job("push", "0 * * * *")?] {
        let known = bench.store.register(std::slice::from_ref(said)).await?;
        ensure_eq!(known, vec![JobEntry { first_seen: seen, ..said.clone() }]);
    }
    let other = bench.another().await?;
    for late in [of_crontab.clone(), of_service] {
        let backup = JobEntry { name: job_name("backup")?, ..late.clone() };
        let known = other.register(&[late, backup.clone()]).await?;
        let (first, push) = take!(known.as_slice(), [first, push] => (first, push));
        ensure_eq!(*first, JobEntry { first_seen: first.first_seen, ..backup }, "what nobody said before is taken");
        ensure_eq!(*push, JobEntry { first_seen: seen, ..job("push", "0 * * * *")? }, "the file's stays");
    }
    let moved = JobEntry { max_attempts: 9, ..job("push", "5 * * * *")? };
    let known = bench.store.register(&[moved.clone(), of_crontab]).await?;
    ensure_eq!(known.last(), Some(&JobEntry { first_seen: seen, ..moved }), "also within one call");
    Ok(())
}

async fn a_node_is_known_by_its_last_report(bench: &Bench) -> Outcome {
    let first = report(bench, "b", "b1")?;
    bench.store.heartbeat(&report(bench, "a", "a1")?).await?;
    bench.store.heartbeat(&first).await?;
    let last = NodeReport { draining: true, running: Vec::new(), ..first };
    let reply = bench.store.heartbeat(&last).await?;
    let (heard, _) = bench.store.inspect(&[]).await?;
    bench.after(heard).await?;
    let (now, nodes) = bench.another().await?.nodes().await?;
    let names: Vec<&str> = nodes.iter().map(|entry| entry.report.name.as_str()).collect();
    ensure_eq!(names, vec!["a", "b"]);
    let entry = take!(nodes.last(), Some(entry) => entry);
    ensure_eq!(entry.report, last);
    // A network may bring a heartbeat twice: then its copy was the last.
    let seen = entry.seen;
    ensure!(reply.now <= seen && seen <= heard, "seen at {seen}, between {} and {heard}", reply.now);
    ensure!(now > heard, "{now} after {heard}");
    Ok(())
}

async fn a_heartbeat_tells_the_stores_clock(bench: &Bench) -> Outcome {
    let first = bench.store.heartbeat(&report(bench, "a", "a1")?).await?;
    ensure!(is_recent(bench, first.now), "now is {}", first.now);
    bench.after(first.now).await?;
    let second = bench.store.heartbeat(&report(bench, "a", "a1")?).await?;
    ensure!(second.now > first.now, "{} after {}", second.now, first.now);
    Ok(())
}

async fn a_restarted_node_takes_the_place_of_its_earlier_instance(bench: &Bench) -> Outcome {
    bench.store.heartbeat(&report(bench, "a", "a1")?).await?;
    bench.store.heartbeat(&report(bench, "a", "a2")?).await?;
    let (_, nodes) = bench.store.nodes().await?;
    let shown: Vec<_> = nodes.iter().map(|entry| entry.report.instance.as_str()).collect();
    ensure_eq!(shown, vec!["a2"]);
    Ok(())
}

async fn a_pause_is_known_to_all(bench: &Bench) -> Outcome {
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

async fn a_pause_replaces_the_earlier_one(bench: &Bench) -> Outcome {
    let (name, other) = (job_name("push")?, job_name("backup")?);
    bench.store.pause(&name, Some(bench.at(600)), &audit("pause")).await?;
    bench.store.pause(&other, None, &audit("pause")).await?;
    bench.store.pause(&name, None, &audit("pause")).await?;
    let pauses = bench.store.pauses().await?;
    let shown: Vec<_> = pauses.iter().map(|(job, pause)| (job.as_str(), pause.until)).collect();
    ensure_eq!(shown, vec![("backup", None), ("push", None)]);
    Ok(())
}

async fn a_resume_ends_the_pause_and_keeps_who_began_it(bench: &Bench) -> Outcome {
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

async fn resuming_what_is_not_paused_changes_nothing(bench: &Bench) -> Outcome {
    let name = job_name("push")?;
    ensure_eq!(bench.store.resume(&name, &audit("resume")).await?, Intervention::Unchanged);
    ensure_eq!(bench.store.pauses().await?, Vec::new());
    bench.store.pause(&name, Some(bench.at(-1)), &audit("pause")).await?;
    let before = bench.store.pauses().await?;
    ensure_eq!(bench.store.resume(&name, &audit("resume")).await?, Intervention::Unchanged);
    ensure_eq!(bench.store.pauses().await?, before);
    Ok(())
}

async fn an_inspection_answers_in_the_order_asked(bench: &Bench) -> Outcome {
    let (a, b, c) = (bench.slot("a")?, bench.slot("b")?, bench.slot("c")?);
    bench.grant(&b, "n").await?;
    let asked = [c, b.clone(), a, b];
    let (_, records) = bench.store.inspect(&asked).await?;
    let slots: Vec<_> = records.iter().map(|record| record.slot.clone()).collect();
    ensure_eq!(slots, asked.to_vec());
    let attempts: Vec<u32> = records.iter().map(|record| record.attempts).collect();
    ensure_eq!(attempts, vec![0, 1, 0, 1]);
    let untouched = take!(records.first(), Some(record) => record);
    ensure_eq!(*untouched, crate::slot::SlotRecord::untouched(untouched.slot.clone()));
    Ok(())
}

async fn the_stores_clock_does_not_go_back(bench: &Bench) -> Outcome {
    let (first, _) = bench.store.inspect(&[]).await?;
    let (second, _) = bench.store.nodes().await?;
    let (third, _) = bench.another().await?.inspect(&[bench.slot("job")?]).await?;
    ensure!(first <= second && second <= third, "{first} {second} {third}");
    Ok(())
}
