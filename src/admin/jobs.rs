//! Each job with the state of its current slot.

use std::sync::Arc;

use crate::admin::lookup::choose;
use crate::admin::{AdminError, AdminSession, IdleReason};
use crate::job::JobName;
use crate::observe::view::{JobView, LatestView, PauseView, SlotView};
use crate::slot::{JobLatest, Slot};
use crate::store::{StoreError, latest_each};

/// Every job, with its slot, its pause and what it has come to lately; and why what is left out of that cannot be read.
pub(crate) async fn views(session: &AdminSession) -> Result<(Vec<JobView>, Vec<StoreError>), AdminError> {
    let pauses = session.store.pauses().await?;
    let names: Vec<JobName> = session.catalog.iter().map(|job| job.entry.name.clone()).collect();
    let latest = latest_each(&*session.store, &names).await?;
    let candidates: Vec<Vec<Slot>> = session.catalog.iter().map(|job| job.current(session.now)).collect();
    let mut records = session.inspect_each(&candidates.concat()).await?.into_iter();
    let (mut views, mut unreadable) = (Vec::new(), Vec::new());
    for ((job, slots), latest) in session.catalog.iter().zip(candidates).zip(latest) {
        let read: Result<Vec<_>, _> = records.by_ref().take(slots.len()).collect();
        let current = read.map(choose).unwrap_or_else(|error| {
            unreadable.push(error);
            None
        });
        let latest = latest.unwrap_or_else(|error| {
            unreadable.push(error);
            JobLatest::default()
        });
        let pause = pauses.iter().find(|(name, _)| *name == job.entry.name);
        let current = current
            .filter(|record| !job.orphaned || record.is_touched())
            // Nobody missed what was over before anybody knew the job.
            .filter(|record| match job.idle_reason(record, session.now, session.retention) {
                Some(IdleReason::NotKnown) => false,
                Some(IdleReason::NotOwed(_)) => record.slot.end() > session.now,
                _ => true,
            })
            .map(|record| Arc::new(SlotView::of(&record, session.now, job.entry.max_attempts)));
        let next = job.next_tick(current.as_deref(), session.now);
        views.push(JobView {
            paused: pause.and_then(|(_, pause)| PauseView::of(pause, session.now)),
            no_start: current.as_ref().and_then(|slot| job.no_start_of(slot, session.now)),
            current,
            orphaned: job.orphaned,
            first_seen: job.known_since,
            latest: LatestView::of(&latest),
            ..JobView::of(&job.entry, next)
        });
    }
    Ok((views, unreadable))
}

#[cfg(test)]
mod tests {
    use super::*;

    use crate::admin::fixture::{self, NOON, Scene};
    use crate::observe::view::FailingView;
    use crate::slot::Verdict;

    #[tokio::test]
    async fn a_job_is_shown_with_its_pause_and_ticks_only_while_it_is_planned() {
        let mut scene = Scene::at(NOON);
        scene.register("billing", "0 * * * *").await;
        scene.node("a", &["billing", "off"]).await;
        let off = crate::store::JobEntry { enabled: false, ..fixture::entry("off") };
        scene.store.register(&[off]).await.unwrap();
        let until = Some(fixture::at("2026-11-21T12:30:00Z"));
        let billing = fixture::entry("billing").name;
        scene.store.pause(&billing, until, &fixture::audit("pause")).await.unwrap();

        let (shown, _) = views(&scene.session().await).await.unwrap();
        assert_eq!(shown[0].paused.as_ref().map(|pause| (pause.until, &*pause.who)), Some((until, "alice")));
        assert_eq!(shown[0].next_tick, Some(fixture::at("2026-11-21T13:00:00Z")));
        assert_eq!((shown[1].paused.as_ref(), shown[1].next_tick), (None, None));

        scene.pass(20);
        let (later, _) = views(&scene.session().await).await.unwrap();
        assert_eq!(later[0].paused, None, "a pause that is over is no pause");
    }

    #[tokio::test]
    async fn a_slot_that_was_over_before_the_job_was_known_is_not_its_current_one() {
        let scene = Scene::at("2026-11-21T02:00:00Z");
        scene.register("old", "0 3 * * *").await;
        scene.pass(600);
        scene.register("new", "0 3 * * *").await;
        let (shown, _) = views(&scene.session().await).await.unwrap();
        let current = shown.iter().map(|view| view.current.as_ref().map(|slot| slot.slot.as_str()));
        assert_eq!(current.collect::<Vec<_>>(), [None, Some("2026-11-21T03Z")]);
    }

    #[tokio::test]
    async fn what_cannot_be_read_of_one_job_is_told_beside_the_others() {
        let scene = Scene::at(NOON);
        for name in ["billing", "mail", "sweep"] {
            scene.register(name, "0 * * * *").await;
        }
        scene.spoil(&["mail@2026-11-21T12Z", "sweep"]);
        let (shown, unreadable) = views(&scene.session().await).await.unwrap();
        let current: Vec<bool> = shown.iter().map(|view| view.current.is_some()).collect();
        assert_eq!(current, [true, false, true]);
        let told: Vec<String> = unreadable.iter().map(ToString::to_string).collect();
        assert_eq!(
            told,
            [
                "memory:: inspect: mail@2026-11-21T12Z: a key of another type",
                "memory:: latest: sweep: a key of another type"
            ]
        );
    }

    #[tokio::test]
    async fn what_a_job_has_come_to_is_the_stores_word() {
        let scene = Scene::at(NOON);
        scene.register("billing", "0 * * * *").await;
        scene.register("mail", "0 * * * *").await;
        let missed = Slot::parse("mail", "2026-11-21T11Z", "2026-11-21T12Z").unwrap();
        scene.store.close(&missed, 3, &crate::job::NodeName::new("a").unwrap()).await.unwrap();
        let (shown, _) = views(&scene.session().await).await.unwrap();
        assert_eq!(shown[0].latest, LatestView::default());
        let failing = FailingView {
            since: "2026-11-21T11Z".to_owned(),
            last: "2026-11-21T11Z".to_owned(),
            verdict: Verdict::Missed,
            slots: 1,
        };
        assert_eq!(shown[1].latest.failing, Some(failing));
    }
}
