//! Cases: what nodes note on slots, for people.

use std::time::Duration;

use crate::clock::later;
use crate::slot::{Decision, MOST_PAGES, NotePage, Slot, SlotRecord};
use crate::store::conformance::bench::{case, node_name, record};
use crate::store::conformance::{Bench, Case, Failure, Outcome};
use crate::store::{Claim, Store};

pub(super) const CASES: &[Case] = &[
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

async fn a_slot_that_nobody_noted_on_has_none(bench: &Bench) -> Outcome {
    ensure_eq!(bench.store.notes(&bench.slot("job")?).await?, Vec::new());
    bench.store.note(&[]).await?;
    Ok(())
}

async fn pages_are_read_by_all_in_the_order_in_which_they_were_begun(bench: &Bench) -> Outcome {
    let slot = bench.slot("job")?;
    let (late, early) = (page(bench, "a.1", "a", 9)?, page(bench, "b.1", "b", 2)?);
    bench.store.note(&[(slot.clone(), late.clone())]).await?;
    bench.another().await?.note(&[(slot.clone(), early.clone())]).await?;
    ensure_eq!(bench.another().await?.notes(&slot).await?, vec![early, late]);
    Ok(())
}

async fn a_page_takes_the_place_of_its_earlier_form_and_of_no_other(bench: &Bench) -> Outcome {
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

async fn many_slots_are_noted_on_at_once_and_each_keeps_its_own(bench: &Bench) -> Outcome {
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

async fn the_newest_pages_are_kept(bench: &Bench) -> Outcome {
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

async fn two_nodes_that_note_at_the_same_time_keep_both_their_pages(bench: &Bench) -> Outcome {
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

async fn what_was_noted_long_ago_is_gone(bench: &Bench) -> Outcome {
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

async fn notes_of_a_slot_that_lasts_stay_whatever_their_age(bench: &Bench) -> Outcome {
    let slot = bench.span("job", -LONG, LONG)?;
    bench.store.note(&[(slot.clone(), page(bench, "a.1", "a", -LONG)?)]).await?;
    bench.store.purge().await?;
    ensure_eq!(noted(&*bench.store, &slot).await?, vec!["a.1".to_owned()]);
    Ok(())
}

async fn notes_change_nothing_of_the_slot(bench: &Bench) -> Outcome {
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

async fn a_text_of_any_kind_comes_back_as_it_was(bench: &Bench) -> Outcome {
    let slot = bench.slot("job")?;
    let mut page = page(bench, "a.1", "a", 1)?;
    let message = r#"'; DROP TABLE notes; -- "{x}" \u0000 %s $1 ä 漢 🦀"#.to_owned();
    page.add(later(page.last, Duration::from_millis(1)), Decision::StoreAway { message });
    bench.store.note(&[(slot.clone(), page.clone())]).await?;
    ensure_eq!(bench.store.notes(&slot).await?, vec![page]);
    Ok(())
}

async fn notes_stay_in_their_namespace(bench: &Bench) -> Outcome {
    let (beside, _) = bench.neighbour().await?;
    let slot = bench.slot("job")?;
    bench.store.note(&[(slot.clone(), page(bench, "a.1", "a", 1)?)]).await?;
    ensure_eq!(record(&*beside, &slot).await?, SlotRecord::untouched(slot.clone()));
    ensure_eq!(beside.notes(&slot).await?, Vec::new());
    beside.note(&[(slot.clone(), page(bench, "b.1", "b", 1)?)]).await?;
    ensure_eq!(noted(&*bench.store, &slot).await?, vec!["a.1".to_owned()]);
    Ok(())
}
