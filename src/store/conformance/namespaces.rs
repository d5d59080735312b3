//! Cases: clusters that share one store never touch (I9); names at the edge of the rule, texts that try to break out of a key, a
//! script, a query or a line, and data that cronward did not write (`hostile::`).

use std::time::Duration;

use crate::slot::{Audit, Mark, OutputTail, RunRecord, SlotRecord, Verdict};
use crate::store::conformance::bench::{
    DONE, WAIT, audit, case, failed, granted, job_name, node_name, record, succeeded,
};
use crate::store::conformance::{Bench, Case, CaseOutcome};
use crate::store::{Claim, ClaimRequest, Closing, ErrorKind, StoreError, WakeKind};

pub(super) const CASES: &[Case] = &[
    case!("namespaces", a_slot_held_in_one_is_free_in_another, I9),
    case!("namespaces", done_in_one_is_not_done_in_another, I9),
    case!("namespaces", a_pause_holds_in_one_alone, I9),
    case!("namespaces", the_registry_of_one_is_unknown_to_another, I9),
    case!("namespaces", one_lease_is_nothing_in_another, I9),
    case!("namespaces", wiping_one_leaves_the_other, I9),
    case!("namespaces", hints_stay_in_their_namespace, I9),
    case!("hostile", names_at_the_edge_of_the_rule_work, I9),
    case!("hostile", names_that_look_like_keys_stay_apart, I9),
    case!("hostile", output_comes_back_as_it_went_in),
    case!("hostile", long_output_comes_back_whole),
    case!("hostile", a_persons_words_come_back_as_they_went_in),
    case!("hostile", slots_at_the_ends_of_the_calendar_work, I6),
    case!("hostile", extreme_tokens_and_times_work, I5),
    case!("hostile", what_cronward_did_not_write_is_refused_and_left, I8),
];

async fn a_slot_held_in_one_is_free_in_another(bench: &Bench) -> CaseOutcome {
    let (beside, probe) = bench.neighbour().await?;
    let slot = bench.slot("job")?;
    bench.grant(&slot, "a").await?;
    ensure_eq!(record(&*beside, &slot).await?, SlotRecord::untouched(slot.clone()));
    ensure_eq!(probe.attempts(&slot).await?, None);
    let claim = beside.claim(&bench.request(&slot, "b")?).await?;
    ensure_is!(claim, Claim::Claimed { attempt: 1, used: 1, .. });
    Ok(())
}

async fn done_in_one_is_not_done_in_another(bench: &Bench) -> CaseOutcome {
    let (beside, _) = bench.neighbour().await?;
    let (slot, over) = (bench.slot("job")?, bench.span("job", -600, -1)?);
    let lease = bench.grant(&slot, "a").await?;
    bench.store.complete(&lease, &succeeded(&lease), DONE).await?;
    ensure_is!(beside.close(&over, 3, &node_name("b")?).await?, Closing::First(_));
    ensure_is!(beside.claim(&bench.request(&slot, "b")?).await?, Claim::Claimed { .. });
    beside.unlock(&slot, &audit("unlock")).await?;
    beside.reset(&slot, &audit("reset")).await?;
    let known = bench.record(&slot).await?;
    ensure_is!(known.mark, Mark::Done(_));
    ensure_eq!(known.audit, Vec::new());
    Ok(())
}

async fn a_pause_holds_in_one_alone(bench: &Bench) -> CaseOutcome {
    let (beside, _) = bench.neighbour().await?;
    let slot = bench.slot("job")?;
    bench.store.pause(slot.job(), None, &audit("pause")).await?;
    ensure_eq!(beside.pauses().await?, Vec::new());
    ensure_is!(beside.claim(&bench.request(&slot, "b")?).await?, Claim::Claimed { .. });
    Ok(())
}

async fn the_registry_of_one_is_unknown_to_another(bench: &Bench) -> CaseOutcome {
    let (beside, _) = bench.neighbour().await?;
    let entry = crate::store::JobEntry {
        name: job_name("push")?,
        schedule: "0 * * * *".to_owned(),
        timezone: "UTC".to_owned(),
        period: "hour".to_owned(),
        max_attempts: 3,
        enabled: true,
        planned: None,
        command: None,
        origin: crate::store::JobOrigin::File,
        first_seen: bench.began,
    };
    bench.store.register(&[entry]).await?;
    ensure_eq!(beside.jobs().await?, Vec::new());
    ensure_eq!(beside.nodes().await?.1, Vec::new());
    Ok(())
}

async fn one_lease_is_nothing_in_another(bench: &Bench) -> CaseOutcome {
    let (beside, _) = bench.neighbour().await?;
    let slot = bench.slot("job")?;
    let lease = bench.grant(&slot, "a").await?;
    let request = bench.request(&slot, "b")?;
    let other = granted(&request, beside.claim(&request).await?)?;
    beside.fail(&other, &crate::store::conformance::bench::failed(&other), Duration::ZERO).await?;
    let token = take!(bench.record(&slot).await?.mark, Mark::Leased { token, .. } => token);
    ensure_eq!(token, lease.token);
    Ok(())
}

async fn wiping_one_leaves_the_other(bench: &Bench) -> CaseOutcome {
    let (beside, probe) = bench.neighbour().await?;
    let slot = bench.slot("job")?;
    bench.grant(&slot, "a").await?;
    beside.claim(&bench.request(&slot, "b")?).await?;
    probe.wipe().await?;
    ensure_is!(bench.record(&slot).await?.mark, Mark::Leased { .. });
    Ok(())
}

async fn hints_stay_in_their_namespace(bench: &Bench) -> CaseOutcome {
    let (beside, _) = bench.neighbour().await?;
    // Another connection: one that does not push may still tell itself of its own changes.
    let listener = bench.another().await?;
    let (mut here, mut there) = (listener.subscribe(), beside.subscribe());
    crate::store::conformance::wake::until_told(bench, &mut here, "here", WakeKind::Done).await?;
    // Whatever the other side would be told was published before the hint that was just heard.
    while let Ok(wake) = there.try_recv() {
        ensure_eq!(wake, crate::store::Wake::Resync, "told of another namespace");
    }
    Ok(())
}

/// Quotes of every language that a store might speak, line ends, NUL, and characters beyond the first plane.
const NASTY: &str = "'\"`;--/*\\\\*/ $1 ? :x {{}} %s %00 \r\n\t\0\u{1} \u{7f}\u{2028} äß漢字🦀 ');DROP TABLE slots; redis.call('FLUSHALL') |x=\u{feff}";

async fn names_at_the_edge_of_the_rule_work(bench: &Bench) -> CaseOutcome {
    let long_job = "x".repeat(52);
    let long_node = format!("N{}0", "-._Z".repeat(15));
    for (job, node) in [("a", "A"), ("0", "9"), (&*long_job, &*long_node), ("a.b_c-d..e--f__0", "Web-01.example.COM")] {
        let slot = bench.slot(job)?;
        let lease = bench.grant(&slot, node).await?;
        let known = bench.record(&slot).await?;
        let by = take!(&known.mark, Mark::Leased { by, .. } => by);
        ensure_eq!(by.node, node_name(node)?);
        bench.store.complete(&lease, &succeeded(&lease), DONE).await?;
        let mark = take!(bench.claim(&slot, node).await?, Claim::Done(mark) => mark);
        ensure_eq!(mark.by.node, node_name(node)?);
    }
    Ok(())
}

async fn names_that_look_like_keys_stay_apart(bench: &Bench) -> CaseOutcome {
    let names =
        ["attempts", "log", "jobs", "nodes", "pauses", "cronward", "a", "a.b", "a_b", "a-b", "null", "1", "01", "1e0"];
    for name in names {
        let slot = bench.slot(name)?;
        ensure_eq!(bench.grant(&slot, "log").await?.attempt, 1, "{name}");
    }
    for name in names {
        bench.store.pause(&crate::store::conformance::bench::job_name(name)?, None, &audit("pause")).await?;
    }
    ensure_eq!(bench.store.pauses().await?.len(), names.len());
    Ok(())
}

async fn output_comes_back_as_it_went_in(bench: &Bench) -> CaseOutcome {
    let slot = bench.slot("job")?;
    let lease = bench.grant(&slot, "a").await?;
    let output = Some(OutputTail { text: NASTY.to_owned(), dropped_bytes: u64::from(u32::MAX) * 2, loss: None });
    let failed = RunRecord {
        message: Some(NASTY.to_owned()),
        output,
        exit_code: Some(-1),
        signal: Some(9),
        duration_ms: Some(1 << 50),
        ..failed(&lease)
    };
    bench.store.fail(&lease, &failed, WAIT).await?;
    ensure_eq!(bench.record(&slot).await?.runs, vec![failed]);
    Ok(())
}

async fn long_output_comes_back_whole(bench: &Bench) -> CaseOutcome {
    for (job, text) in [("ascii", "x".repeat(65_536)), ("nul", "\0".repeat(65_536)), ("wide", "🦀\"".repeat(13_000))]
    {
        let slot = bench.slot(job)?;
        let lease = bench.grant(&slot, "a").await?;
        let run = RunRecord { output: Some(OutputTail { text, dropped_bytes: 1, loss: None }), ..succeeded(&lease) };
        bench.store.complete(&lease, &run, DONE).await?;
        ensure!(bench.record(&slot).await?.runs == vec![run], "{job}");
    }
    Ok(())
}

async fn a_persons_words_come_back_as_they_went_in(bench: &Bench) -> CaseOutcome {
    let slot = bench.slot("job")?;
    let nasty =
        |verb: &str| Audit { who: NASTY.to_owned(), host: NASTY.to_owned(), why: NASTY.to_owned(), ..audit(verb) };
    bench.store.pause(slot.job(), None, &nasty("pause")).await?;
    bench.store.reset(&slot, &nasty("reset")).await?;
    bench.store.mark_done(&slot, &nasty("mark_done"), DONE).await?;
    let known = bench.record(&slot).await?;
    // A verb that a network delivers twice may be recorded twice.
    ensure!(known.audit.len() >= 2, "{:?}", known.audit);
    let pauses = bench.store.pauses().await?;
    let (_, pause) = take!(pauses.as_slice(), [pause] => pause);
    for entry in known.audit.iter().chain([&pause.audit]) {
        ensure_eq!((entry.who.as_str(), entry.host.as_str(), entry.why.as_str()), (NASTY, NASTY, NASTY));
    }
    ensure_eq!(known.verdict.map(|record| record.verdict), Some(Verdict::Done));
    Ok(())
}

async fn slots_at_the_ends_of_the_calendar_work(bench: &Bench) -> CaseOutcome {
    let parse = |start: &str, end: &str| {
        crate::slot::Slot::parse("job", start, end)
            .map_err(|error| crate::store::conformance::Failure::from(error.to_string()))
    };
    let first = parse("1970-01-01T00Z", "9999-12-31T23:59:59Z")?;
    let last = parse("9999-12-31T23Z", "9999-12-31T23:59:59Z")?;
    let over = parse("1970-01-01T00:00:01Z", "1970-01-01T01Z")?;
    ensure_is!(bench.claim(&first, "a").await?, Claim::Claimed { attempt: 1, .. });
    ensure_is!(bench.claim(&last, "a").await?, Claim::Early { .. });
    ensure_eq!(bench.claim(&over, "a").await?, Claim::Closed);
    ensure_eq!(bench.record(&first).await?.attempts, 1);
    Ok(())
}

async fn extreme_tokens_and_times_work(bench: &Bench) -> CaseOutcome {
    let year = std::time::Duration::from_secs(365 * 86_400);
    for (job, bits) in [("zero", 0), ("max", u128::MAX), ("high", 1 << 127), ("low", 1)] {
        let slot = bench.slot(job)?;
        let token = crate::slot::Token::from_bits(bits);
        let request = ClaimRequest { token, lease_ttl: year, max_attempts: u32::MAX, ..bench.request(&slot, "a")? };
        ensure_is!(bench.store.claim(&request).await?, Claim::Claimed { attempt: 1, .. });
        ensure_is!(bench.store.claim(&request).await?, Claim::Claimed { attempt: 1, .. });
        let lease = request.granted(1, bench.began);
        bench.store.complete(&lease, &succeeded(&lease), year).await?;
        ensure_is!(bench.store.claim(&request).await?, Claim::Done(_));
    }
    Ok(())
}

/// An answer that cannot be read is no permission: it is an error of its own kind, nothing is granted and nothing removed.
async fn what_cronward_did_not_write_is_refused_and_left(bench: &Bench) -> CaseOutcome {
    let slot = bench.slot("job")?;
    let lease = bench.grant(&slot, "a").await?;
    if !bench.probe.corrupt_mark(&slot).await? {
        return Ok(());
    }
    let corrupt = |error: Option<StoreError>| error.map(|error| error.kind) == Some(ErrorKind::Corrupt);
    ensure!(corrupt(bench.store.claim(&bench.request(&slot, "b")?).await.err()), "claim");
    ensure!(corrupt(bench.store.renew(&lease).await.err()), "renew");
    ensure!(corrupt(bench.store.inspect(std::slice::from_ref(&slot)).await.err()), "inspect");
    ensure_eq!(bench.probe.attempts(&slot).await?, Some(1));
    Ok(())
}
