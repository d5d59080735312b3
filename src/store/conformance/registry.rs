//! Cases: the registry of jobs and nodes, and pauses; and what nodes note on slots, for people (`notes::`).

use std::collections::BTreeMap;
use std::time::Duration;

use chrono::{DateTime, TimeDelta, Utc};

use crate::clock::later;
use crate::slot::{Decision, MOST_PAGES, NotePage, Slot, SlotRecord};
use crate::store::conformance::bench::{case, is_recent, job_name, node_name, record};
use crate::store::conformance::{Bench, Case, CaseOutcome, Failure};
use crate::store::{Claim, JobEntry, JobOrigin, NodeReport, Store};

pub(super) const CASES: &[Case] = &[
    case!("registry", an_empty_registry_knows_nothing),
    case!("registry", a_registered_job_is_known_to_all_by_name),
    case!("registry", many_jobs_are_registered_at_once_and_each_is_answered_once),
    case!("registry", a_job_registered_again_keeps_when_it_was_first_seen),
    case!("registry", the_earliest_first_sight_of_a_job_is_kept),
    case!("registry", what_a_file_said_of_a_job_is_replaced_by_a_file_alone),
    case!("registry", a_node_is_known_by_its_last_report),
    case!("registry", a_heartbeat_tells_the_stores_clock),
    case!("registry", a_restarted_node_takes_the_place_of_its_earlier_instance),
    case!("registry", an_inspection_answers_in_the_order_asked),
    case!("registry", the_stores_clock_does_not_go_back, I6),
    case!("notes", a_slot_that_nobody_noted_on_has_none),
    case!("notes", pages_are_read_by_all_in_the_order_in_which_they_were_begun),
    case!("notes", a_page_takes_the_place_of_its_earlier_form_and_of_no_other),
    case!("notes", many_slots_are_noted_on_at_once_and_each_keeps_its_own),
    case!("notes", the_newest_pages_are_kept),
    case!("notes", two_nodes_that_note_at_the_same_time_keep_both_their_pages),
    case!("notes", what_was_noted_long_ago_is_gone),
    case!("notes", notes_of_a_slot_that_lasts_stay_whatever_their_age),
    case!("notes", notes_change_nothing_of_the_slot),
    case!("notes", a_text_of_any_kind_comes_back_as_it_was),
    case!("notes", notes_stay_in_their_namespace, I9),
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
        command: None,
        origin: JobOrigin::File,
        first_seen: DateTime::<Utc>::MAX_UTC,
    })
}

fn report(bench: &Bench, node: &str, instance: &str) -> Result<NodeReport, Failure> {
    Ok(NodeReport {
        version: "1.2.3".to_owned(),
        config_hash: "c0ffee".to_owned(),
        zones: None,
        job_hashes: BTreeMap::from([(job_name("push")?, "abc".to_owned())]),
        labels: BTreeMap::from([("zone".to_owned(), "eu-1 \"{x}\"\n".to_owned())]),
        clock_offset_ms: -12,
        running: vec!["push@2026-11-21T14Z".to_owned()],
        ..NodeReport::new(node_name(node)?, instance, bench.began)
    })
}

async fn an_empty_registry_knows_nothing(bench: &Bench) -> CaseOutcome {
    ensure_eq!(bench.store.jobs().await?, Vec::new());
    ensure_eq!(bench.store.nodes().await?.1, Vec::new());
    ensure_eq!(bench.store.pauses().await?, Vec::new());
    ensure_eq!(bench.store.register(&[]).await?, Vec::new());
    ensure_eq!(bench.store.purge().await?, 0);
    Ok(())
}

async fn a_registered_job_is_known_to_all_by_name(bench: &Bench) -> CaseOutcome {
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

/// A file of thousands of jobs is one call, however many requests a store makes of it.
async fn many_jobs_are_registered_at_once_and_each_is_answered_once(bench: &Bench) -> CaseOutcome {
    let names: Vec<String> = (0..4_500).map(|number| format!("job-{number:04}")).collect();
    let jobs: Vec<JobEntry> = names.iter().map(|name| job(name, "0 * * * *")).collect::<Result<_, _>>()?;
    for _ in 0..2 {
        let known = bench.store.register(&jobs).await?;
        ensure_eq!(known.iter().map(|entry| entry.name.as_str()).collect::<Vec<_>>(), names);
    }
    ensure_eq!(bench.another().await?.jobs().await?.len(), names.len());
    Ok(())
}

async fn a_job_registered_again_keeps_when_it_was_first_seen(bench: &Bench) -> CaseOutcome {
    let first = bench.store.register(&[job("push", "0 * * * *")?]).await?;
    let seen = take!(first.as_slice(), [entry] => entry.first_seen);
    bench.after(seen).await?;
    let changed = JobEntry { enabled: false, max_attempts: 9, ..job("push", "5 * * * *")? };
    let again = bench.store.register(std::slice::from_ref(&changed)).await?;
    ensure_eq!(again, vec![JobEntry { first_seen: seen, ..changed }]);
    Ok(())
}

/// A node that has planned a job tells it to a store that came back empty.
async fn the_earliest_first_sight_of_a_job_is_kept(bench: &Bench) -> CaseOutcome {
    let first = bench.store.register(&[job("push", "0 * * * *")?]).await?;
    let seen = take!(first.as_slice(), [entry] => entry.first_seen);
    let early = DateTime::from_timestamp_millis(seen.timestamp_millis()).unwrap_or(seen) - TimeDelta::hours(3);
    let known = JobEntry { first_seen: early, ..job("push", "0 * * * *")? };
    ensure_eq!(bench.store.register(std::slice::from_ref(&known)).await?, vec![known.clone()]);
    let later = JobEntry { first_seen: early + TimeDelta::hours(1), ..known.clone() };
    ensure_eq!(bench.another().await?.register(std::slice::from_ref(&later)).await?, vec![known.clone()]);
    let other = JobEntry { name: job_name("backup")?, first_seen: early, ..known.clone() };
    ensure_eq!(bench.store.register(std::slice::from_ref(&other)).await?, vec![other.clone(), known.clone()]);
    let of_crontab = JobEntry { origin: JobOrigin::Crontab, first_seen: early - TimeDelta::hours(1), ..known.clone() };
    ensure_eq!(bench.store.register(&[of_crontab]).await?, vec![other, known]);
    Ok(())
}

/// A crontab's `exec` looks whether the name is known, and a daemon may register it before the word of `exec` arrives.
async fn what_a_file_said_of_a_job_is_replaced_by_a_file_alone(bench: &Bench) -> CaseOutcome {
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

async fn a_node_is_known_by_its_last_report(bench: &Bench) -> CaseOutcome {
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

async fn a_heartbeat_tells_the_stores_clock(bench: &Bench) -> CaseOutcome {
    let first = bench.store.heartbeat(&report(bench, "a", "a1")?).await?;
    ensure!(is_recent(bench, first.now), "now is {}", first.now);
    let mut is_new = !first.was_known;
    // A network may bring the first heartbeat of a node twice, but not of each.
    for name in ["b", "c", "d", "e"] {
        is_new |= !bench.store.heartbeat(&report(bench, name, "1")?).await?.was_known;
    }
    ensure!(is_new, "none of these was known before");
    bench.after(first.now).await?;
    let second = bench.store.heartbeat(&report(bench, "a", "a2")?).await?;
    ensure!(second.was_known, "the name is known, whichever instance reports");
    ensure!(second.now > first.now, "{} after {}", second.now, first.now);
    Ok(())
}

async fn a_restarted_node_takes_the_place_of_its_earlier_instance(bench: &Bench) -> CaseOutcome {
    bench.store.heartbeat(&report(bench, "a", "a1")?).await?;
    bench.store.heartbeat(&report(bench, "a", "a2")?).await?;
    let (_, nodes) = bench.store.nodes().await?;
    let shown: Vec<_> = nodes.iter().map(|entry| entry.report.instance.as_str()).collect();
    ensure_eq!(shown, vec!["a2"]);
    Ok(())
}

async fn an_inspection_answers_in_the_order_asked(bench: &Bench) -> CaseOutcome {
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

async fn the_stores_clock_does_not_go_back(bench: &Bench) -> CaseOutcome {
    let (first, _) = bench.store.inspect(&[]).await?;
    let (second, _) = bench.store.nodes().await?;
    let (third, _) = bench.another().await?.inspect(&[bench.slot("job")?]).await?;
    ensure!(first <= second && second <= third, "{first} {second} {third}");
    Ok(())
}

/// A page of this node, begun so many seconds after the case.
fn page(bench: &Bench, id: &str, node: &str, second: i64) -> Result<NotePage, Failure> {
    let at = bench.at(second);
    let mut page = NotePage::new(id.to_owned(), node_name(node)?, Some("c0ffee".to_owned()), at);
    page.add(at, Decision::Ticked { tick: bench.began });
    page.add(at, Decision::Held { by: Some(node_name("other")?) });
    Ok(page)
}

async fn noted(store: &dyn Store, slot: &Slot) -> Result<Vec<String>, Failure> {
    Ok(store.notes(slot).await?.into_iter().map(|page| page.id).collect())
}

async fn a_slot_that_nobody_noted_on_has_none(bench: &Bench) -> CaseOutcome {
    ensure_eq!(bench.store.notes(&bench.slot("job")?).await?, Vec::new());
    bench.store.note(&[]).await?;
    Ok(())
}

async fn pages_are_read_by_all_in_the_order_in_which_they_were_begun(bench: &Bench) -> CaseOutcome {
    let slot = bench.slot("job")?;
    let (late, early) = (page(bench, "a.1", "a", 9)?, page(bench, "b.1", "b", 2)?);
    bench.store.note(&[(slot.clone(), late.clone())]).await?;
    bench.another().await?.note(&[(slot.clone(), early.clone())]).await?;
    ensure_eq!(bench.another().await?.notes(&slot).await?, vec![early, late]);
    Ok(())
}

async fn a_page_takes_the_place_of_its_earlier_form_and_of_no_other(bench: &Bench) -> CaseOutcome {
    let slot = bench.slot("job")?;
    let (mut own, other) = (page(bench, "a.1", "a", 1)?, page(bench, "a.2", "a", 2)?);
    bench.store.note(&[(slot.clone(), own.clone()), (slot.clone(), other.clone())]).await?;
    own.add(bench.at(5), Decision::Exhausted);
    // The same call again, as after a lost answer.
    for _ in 0..2 {
        bench.store.note(&[(slot.clone(), own.clone())]).await?;
    }
    ensure_eq!(bench.store.notes(&slot).await?, vec![own, other]);
    Ok(())
}

async fn many_slots_are_noted_on_at_once_and_each_keeps_its_own(bench: &Bench) -> CaseOutcome {
    let mut pages = Vec::new();
    for index in 0..300 {
        let slot = bench.span(&format!("job-{}", index % 7), -600 - index, 7_200)?;
        pages.push((slot, page(bench, &format!("a.{index}"), "a", 1)?));
    }
    pages.sort_by(|a, b| a.0.cmp(&b.0));
    // A node does it in parts.
    for part in pages.chunks(100) {
        bench.store.note(part).await?;
    }
    for (slot, page) in pages.iter().step_by(37) {
        ensure_eq!(noted(&*bench.store, slot).await?, vec![page.id.clone()], "{slot}");
    }
    Ok(())
}

async fn the_newest_pages_are_kept(bench: &Bench) -> CaseOutcome {
    let slot = bench.slot("job")?;
    let most = i64::try_from(MOST_PAGES).unwrap_or(i64::MAX);
    for index in 0..most + 3 {
        bench.store.note(&[(slot.clone(), page(bench, &format!("a.{index:03}"), "a", index)?)]).await?;
    }
    let kept = noted(&*bench.store, &slot).await?;
    let wanted: Vec<String> = (3..most + 3).map(|index| format!("a.{index:03}")).collect();
    ensure_eq!(kept, wanted);
    Ok(())
}

async fn two_nodes_that_note_at_the_same_time_keep_both_their_pages(bench: &Bench) -> CaseOutcome {
    let mut slots = Vec::new();
    for index in 0..20 {
        slots.push(bench.span("job", -600 - index, 7_200)?);
    }
    let of = |node: &str| -> Result<Vec<(Slot, NotePage)>, Failure> {
        slots.iter().map(|slot| Ok((slot.clone(), page(bench, &format!("{node}.1"), node, 1)?))).collect()
    };
    let (a, b, beside) = (of("a")?, of("b")?, bench.another().await?);
    let (first, second) = futures_util::join!(bench.store.note(&a), beside.note(&b));
    first?;
    second?;
    for slot in &slots {
        ensure_eq!(noted(&*bench.store, slot).await?, vec!["a.1".to_owned(), "b.1".to_owned()], "{slot}");
    }
    Ok(())
}

/// Longer than any retention of the suite's setups.
const LONG: i64 = 400 * 86_400;

async fn what_was_noted_long_ago_is_gone(bench: &Bench) -> CaseOutcome {
    let slot = bench.slot("job")?;
    bench.store.note(&[(slot.clone(), page(bench, "a.1", "a", 1)?)]).await?;
    bench.probe.age_notes(&slot).await?;
    ensure_eq!(bench.store.notes(&slot).await?, Vec::new());
    bench.store.purge().await?;
    // What is noted from then on begins anew.
    bench.store.note(&[(slot.clone(), page(bench, "b.1", "b", 2)?)]).await?;
    ensure_eq!(noted(&*bench.store, &slot).await?, vec!["b.1".to_owned()]);
    Ok(())
}

async fn notes_of_a_slot_that_lasts_stay_whatever_their_age(bench: &Bench) -> CaseOutcome {
    let slot = bench.span("job", -LONG, LONG)?;
    bench.store.note(&[(slot.clone(), page(bench, "a.1", "a", -LONG)?)]).await?;
    bench.store.purge().await?;
    ensure_eq!(noted(&*bench.store, &slot).await?, vec!["a.1".to_owned()]);
    Ok(())
}

async fn notes_change_nothing_of_the_slot(bench: &Bench) -> CaseOutcome {
    let (slot, untouched) = (bench.slot("job")?, bench.slot("other")?);
    let lease = bench.grant(&slot, "a").await?;
    let before = bench.record(&slot).await?;
    let both = [(slot.clone(), page(bench, "a.1", "a", 1)?), (untouched.clone(), page(bench, "a.2", "a", 1)?)];
    bench.store.note(&both).await?;
    let after = bench.record(&slot).await?;
    ensure_eq!((after.attempts, &after.runs, &after.audit), (before.attempts, &before.runs, &before.audit));
    ensure_eq!(bench.record(&untouched).await?, SlotRecord::untouched(untouched.clone()));
    ensure_is!(bench.store.renew(&lease).await?, crate::store::Renewal::Renewed);
    ensure_is!(bench.claim(&untouched, "b").await?, Claim::Claimed { attempt: 1, .. });
    Ok(())
}

async fn a_text_of_any_kind_comes_back_as_it_was(bench: &Bench) -> CaseOutcome {
    let slot = bench.slot("job")?;
    let mut page = page(bench, "a.1", "a", 1)?;
    let message = r#"'; DROP TABLE notes; -- "{x}" \u0000 %s $1 ä 漢 🦀"#.to_owned();
    page.add(later(page.last, Duration::from_millis(1)), Decision::StoreAway { message });
    bench.store.note(&[(slot.clone(), page.clone())]).await?;
    ensure_eq!(bench.store.notes(&slot).await?, vec![page]);
    Ok(())
}

async fn notes_stay_in_their_namespace(bench: &Bench) -> CaseOutcome {
    let (beside, _) = bench.neighbour().await?;
    let slot = bench.slot("job")?;
    bench.store.note(&[(slot.clone(), page(bench, "a.1", "a", 1)?)]).await?;
    ensure_eq!(record(&*beside, &slot).await?, SlotRecord::untouched(slot.clone()));
    ensure_eq!(beside.notes(&slot).await?, Vec::new());
    beside.note(&[(slot.clone(), page(bench, "b.1", "b", 1)?)]).await?;
    ensure_eq!(noted(&*bench.store, &slot).await?, vec!["a.1".to_owned()]);
    Ok(())
}
