//! The operator's commands against a store in memory: what they change, what they say, what they leave alone.

use std::sync::Arc;
use std::time::Duration;

use clap::{FromArgMatches, Parser};

use super::{Until, until};
use crate::admin::fixture::{self, Scene};
use crate::cli::console::Console;
use crate::cli::failure::Failure;
use crate::cli::verbs;
use crate::slot::{Mark, Slot, SlotRecord, Verdict};
use crate::store::layer::{Chaos, ChaosFault};
use crate::store::{Claim, JobEntry, JobOrigin, Op};

#[derive(Parser)]
struct Line<A: clap::Args> {
    #[command(flatten)]
    args: A,
}

fn args<A: clap::Args + FromArgMatches>(words: &[&str]) -> A {
    Line::<A>::parse_from([&["verb"], words].concat()).args
}

/// One verb, as a script calls it, and what it said.
macro_rules! said {
    ($scene:expr, $verb:ident::$call:ident, $($word:expr),+) => {{
        let session = $scene.session().await;
        let (mut console, out, _) = Console::captured(false);
        let done: Result<(), Failure> = $verb::$call(&session, &args(&[$($word),+]), &mut console).await;
        done.map(|()| out.text()).map_err(|failure| failure.to_string())
    }};
}

async fn scene() -> Scene {
    let scene = Scene::at("2026-11-21T14:10:00Z");
    scene.register("billing", "0 * * * *").await;
    scene
}

async fn record(scene: &Scene) -> SlotRecord {
    let slot = Slot::parse("billing", "2026-11-21T14Z", "2026-11-21T15Z").unwrap();
    scene.store.inspect(&[slot]).await.unwrap().1.pop().unwrap()
}

#[tokio::test]
async fn a_reset_takes_attempts_out_of_the_count_and_is_recorded_with_its_reason() {
    let mut scene = scene().await;
    for _ in 0..3 {
        scene.fail("billing", "a").await;
    }
    let said = said!(scene, verbs::reset_in, "billing", "--yes", "--reason", "disk is free again").unwrap();
    assert!(
        said.starts_with(
            "reset billing@2026-11-21T14Z: 3 attempts no longer count; nodes run the slot again within seconds, unless the job is paused\ncannot be undone; "
        ),
        "{said}"
    );
    let record = record(&scene).await;
    assert_eq!((record.attempts, record.used()), (3, 0));
    assert_eq!((record.audit[0].verb.as_str(), record.audit[0].why.as_str()), ("reset", "disk is free again"));
}

#[tokio::test]
async fn a_slot_that_is_over_is_reset_for_a_trigger_alone() {
    let scene = scene().await;
    let said = said!(scene, verbs::reset_in, "billing@2026-11-21T13Z", "--yes").unwrap();
    let wanted = "no attempt of the slot counts; the slot ended at 2026-11-21T14:00:00Z; to run it now: cronward trigger \
                  billing@2026-11-21T13Z --past --config FILE\n";
    assert!(said.contains(wanted), "{said}");
}

#[tokio::test]
async fn how_a_verb_is_undone_names_the_store_that_was_named() {
    let scene = scene().await;
    let flags = ["--config", "a b.toml", "--namespace", "prod", "--store", "redis://:secret@h/", "--yes"];
    let [a, b, c, d, e, f, g] = flags;
    let rest = "--config 'a b.toml' --store 'redis://:***@h/' --namespace prod";
    for (told, undo) in [
        (said!(scene, verbs::mark_done_in, "billing", a, b, c, d, e, f, g), "reset billing@2026-11-21T14Z"),
        (said!(scene, verbs::pause_in, "billing", a, b, c, d, e, f, g), "resume billing"),
        (said!(scene, verbs::resume_in, "billing", a, b, c, d, e, f, g), "pause billing"),
    ] {
        assert!(told.as_ref().unwrap().ends_with(&format!("to undo: cronward {undo} {rest}\n")), "{told:?}");
    }
    let reset = said!(scene, verbs::reset_in, "billing@-1", a, b, c, d, e, f, g).unwrap();
    let trigger = "trigger billing@2026-11-21T13Z --past --config FILE --store 'redis://:***@h/' --namespace prod";
    assert!(reset.contains(&format!("to run it now: cronward {trigger}\n")), "{reset}");
    assert!(
        reset.contains(&format!("running the slot: cronward mark-done billing@2026-11-21T13Z {rest}\n")),
        "{reset}"
    );
}

#[tokio::test]
async fn a_reset_of_what_only_a_crontab_knows_promises_no_node() {
    let mut scene = Scene::at("2026-11-21T14:10:00Z");
    let entry = JobEntry { origin: JobOrigin::Crontab, enabled: false, ..fixture::entry("billing") };
    scene.store.register(&[entry]).await.unwrap();
    scene.fail("billing", "a").await;
    let said = said!(scene, verbs::reset_in, "billing", "--yes").unwrap();
    assert!(said.contains("1 attempt no longer counts; the slot runs when its crontab starts it again\n"), "{said}");
    let over = said!(scene, verbs::reset_in, "billing@-1", "--yes").unwrap();
    assert!(over.contains("the slot ended at 2026-11-21T14:00:00Z, so nothing runs it any more\n"), "{over}");
}

#[tokio::test]
async fn nothing_is_promised_of_a_job_that_no_node_starts_by_itself() {
    let mut scene = Scene::at("2026-11-21T14:10:00Z");
    scene.store.register(&[JobEntry { enabled: false, ..fixture::entry("billing") }]).await.unwrap();
    scene.fail("billing", "a").await;
    let said = said!(scene, verbs::reset_in, "billing", "--yes").unwrap();
    let why = "no node runs the slot by itself: the job is disabled in the file; to run it now: cronward trigger \
               billing@2026-11-21T14Z";
    assert!(said.contains(why), "{said}");
    scene.claim("billing", "b").await;
    let said = said!(scene, verbs::unlock_in, "billing", "--yes").unwrap();
    assert!(said.contains("no node starts the slot again by itself: the job is disabled in the file"), "{said}");
    // No live node has the job in its file.
    scene.store.register(&[fixture::entry("billing")]).await.unwrap();
    scene.pass(60);
    scene.node("a", &["mail"]).await;
    scene.fail("billing", "a").await;
    let said = said!(scene, verbs::reset_in, "billing", "--yes").unwrap();
    assert!(said.contains("no node runs the slot by itself: no live node has the job in its file"), "{said}");
}

#[tokio::test]
async fn a_slot_that_is_held_is_neither_reset_nor_marked() {
    let mut scene = scene().await;
    scene.claim("billing", "b").await;
    for refused in
        [said!(scene, verbs::reset_in, "billing", "--yes"), said!(scene, verbs::mark_done_in, "billing", "--yes")]
    {
        let error = refused.unwrap_err();
        assert!(error.starts_with("billing@2026-11-21T14Z is held by node b, attempt 1"), "{error}");
    }
    assert!(record(&scene).await.audit.is_empty());
}

#[tokio::test]
async fn an_unlock_makes_the_holder_lose_and_lets_others_in() {
    let mut scene = scene().await;
    let lease = scene.claim("billing", "b").await;
    let said = said!(scene, verbs::unlock_in, "billing", "--yes").unwrap();
    assert!(said.contains("attempt 1 on node b loses its lease"), "{said}");
    let renewal = scene.store.renew(&lease).await.unwrap();
    assert!(matches!(renewal, crate::store::Renewal::Lost { .. }), "{renewal:?}");
    assert_eq!(scene.claim("billing", "a").await.attempt, 2);
}

#[tokio::test]
async fn an_unlock_says_that_nobody_starts_a_slot_whose_attempts_are_used_up_or_that_has_ended() {
    let mut scene = scene().await;
    scene.fail("billing", "a").await;
    scene.fail("billing", "b").await;
    scene.claim("billing", "b").await;
    let said = said!(scene, verbs::unlock_in, "billing", "--yes").unwrap();
    let left = "attempt 3 on node b loses its lease, and no attempts are left: no node starts the slot again unless it is reset";
    assert!(said.contains(left), "{said}");
    let claim = scene.store.claim(&scene.request("billing", "a")).await.unwrap();
    assert!(matches!(claim, crate::store::Claim::Exhausted { .. }), "{claim:?}");

    let mut scene = Scene::at("2026-11-21T14:59:30Z");
    scene.register("billing", "0 * * * *").await;
    scene.claim("billing", "b").await;
    scene.clock.advance(Duration::from_secs(45));
    let said = said!(scene, verbs::unlock_in, "billing@2026-11-21T14Z", "--yes").unwrap();
    assert!(said.contains("loses its lease, and no node starts the slot again: it has ended"), "{said}");
}

#[tokio::test]
async fn an_unlock_of_what_nobody_holds_asks_nothing_and_changes_nothing() {
    let scene = scene().await;
    let said = said!(scene, verbs::unlock_in, "billing").unwrap();
    assert_eq!(said, "unlock billing@2026-11-21T14Z: nothing to do, no node holds the lease\n");
}

#[tokio::test]
async fn an_unlock_of_what_nobody_holds_takes_no_lease_that_begins_meanwhile() {
    let mut scene = scene().await;
    // Whatever is asked of the store after the look fails.
    let network = Chaos::scripted();
    network.next(Op::Unlock, ChaosFault::LoseRequest);
    scene.store = Arc::new(network.over(Arc::clone(&scene.store)));
    let said = said!(scene, verbs::unlock_in, "billing", "--yes").unwrap();
    assert!(said.ends_with("nothing to do, no node holds the lease\n"), "{said}");
}

#[tokio::test]
async fn a_slot_that_is_marked_done_is_run_by_nobody_until_it_is_reset() {
    let mut scene = scene().await;
    let said = said!(scene, verbs::mark_done_in, "billing", "--yes").unwrap();
    assert!(said.ends_with("to undo: cronward reset billing@2026-11-21T14Z\n"), "{said}");
    let known = record(&scene).await;
    assert!(matches!(known.mark, Mark::Done(_)) && known.verdict.is_some_and(|told| told.verdict == Verdict::Done));
    assert!(said!(scene, verbs::mark_done_in, "billing", "--yes").unwrap().contains("nothing to do"));
    said!(scene, verbs::reset_in, "billing", "--yes").unwrap();
    assert_eq!(scene.claim("billing", "a").await.attempt, 1);
}

#[tokio::test]
async fn a_pause_keeps_claims_away_until_it_is_resumed() {
    let scene = scene().await;
    let said = said!(scene, verbs::pause_in, "billing", "--until", "2h", "--yes").unwrap();
    assert_eq!(
        said,
        "pause billing: no slot of the job starts until 2026-11-21T16:10:00Z (in 2h)\nto undo: cronward resume billing\n"
    );
    let request = scene.request("billing", "a");
    assert!(matches!(scene.store.claim(&request).await.unwrap(), Claim::Paused { remaining: Some(_) }));
    said!(scene, verbs::resume_in, "billing", "--yes").unwrap();
    assert!(matches!(scene.store.claim(&request).await.unwrap(), Claim::Claimed { .. }));
    assert!(said!(scene, verbs::resume_in, "billing", "--yes").unwrap().contains("the job is not paused"));
}

#[tokio::test]
async fn what_undoes_a_pause_or_a_resume_brings_back_what_was_in_force() {
    let scene = scene().await;
    let begun =
        said!(scene, verbs::pause_in, "billing", "--until", "2h", "--reason", "it's an upgrade", "--yes").unwrap();
    assert!(begun.ends_with("to undo: cronward resume billing\n"), "{begun}");
    let back = r"to undo: cronward pause billing --until 2026-11-21T16:10:00Z --reason 'it'\''s an upgrade'";
    let replaced = said!(scene, verbs::pause_in, "billing", "--yes").unwrap();
    assert!(replaced.contains("until the job is resumed; this replaces the pause by "), "{replaced}");
    assert!(replaced.trim_end().ends_with(back), "{replaced}");
    said!(scene, verbs::pause_in, "billing", "--until", "2h", "--reason", "it's an upgrade", "--yes").unwrap();
    let resumed = said!(scene, verbs::resume_in, "billing", "--yes").unwrap();
    assert!(resumed.trim_end().ends_with(back), "{resumed}");
    let known = scene.store.pauses().await.unwrap().pop().unwrap().1;
    assert_eq!((&*known.audit.verb, &*known.audit.why), ("pause", "it's an upgrade"));
    assert_eq!(known.ended.map(|ended| ended.verb).as_deref(), Some("resume"));
    let again = said!(scene, verbs::resume_in, "billing").unwrap();
    assert_eq!(again, "resume billing: nothing to do, the job is not paused\n");
    let over = said!(scene, verbs::pause_in, "billing", "--yes").unwrap();
    assert!(over.ends_with("to undo: cronward resume billing\n"), "one that is over is not brought back: {over}");
}

#[tokio::test]
async fn a_pause_that_would_be_over_and_a_job_that_is_unknown_are_refused() {
    let scene = scene().await;
    let over = said!(scene, verbs::pause_in, "billing", "--until", "2026-11-21T14Z", "--yes").unwrap_err();
    assert_eq!(
        over,
        "--until 2026-11-21T14:00:00Z has passed: the store's clock shows 2026-11-21T14:10:00Z; write a later time"
    );
    for late in ["999999999999h", "3000000d"] {
        let told = said!(scene, verbs::pause_in, "billing", "--until", late, "--yes").unwrap_err();
        assert_eq!(told, "--until is out of range: write a time before the year 10000, or leave it out", "{late}");
    }
    let unknown = said!(scene, verbs::pause_in, "biling", "--yes").unwrap_err();
    assert_eq!(unknown, "no job biling: did you mean billing?");
    assert!(scene.store.pauses().await.unwrap().is_empty());
}

#[tokio::test]
async fn a_script_that_does_not_say_yes_changes_nothing() {
    let scene = scene().await;
    let refused = said!(scene, verbs::mark_done_in, "billing").unwrap_err();
    assert_eq!(refused, "mark-done billing@2026-11-21T14Z changes the store and needs confirmation: add --yes");
    assert_eq!(record(&scene).await.mark, Mark::Free);
}

#[test]
fn an_end_is_a_duration_or_a_time() {
    assert_eq!(until("2h"), Ok(Until::After(Duration::from_secs(7_200))));
    assert_eq!(until("2026-11-21T14Z"), Ok(Until::At("2026-11-21T14:00:00Z".parse().unwrap())));
    for text in ["", "soon", "0s", "-2h"] {
        assert!(until(text).unwrap_err().to_string().contains("2h"), "{text}");
    }
}
