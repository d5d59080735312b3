//! What a stream tells, and when it ends.

use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use http_body_util::BodyExt;
use tokio::sync::watch;

use super::*;
use crate::board::{Board, BoardSetting};
use crate::clock::{Clock, RuntimeClock};
use crate::config::HttpConfig;
use crate::node::Health;
use crate::store::StoreOptions;
use crate::store::memory::MemoryStore;
use crate::web::activity::Activity;
use crate::web::{Gate, Sources};

fn site() -> Arc<Site> {
    let clock: Arc<dyn Clock> = Arc::new(RuntimeClock::at("2026-11-21T15:00:00Z".parse().unwrap()));
    let setting =
        BoardSetting { clock: Arc::clone(&clock), boot: "boot".to_owned(), retention: Duration::from_secs(60) };
    let http = HttpConfig::default();
    let gate = Arc::new(Gate::open(&http).unwrap());
    let sources = Sources {
        store: Arc::new(MemoryStore::new(StoreOptions::default(), Arc::clone(&clock))),
        activity: Arc::new(Activity::new(Arc::clone(&clock))),
        scheme: "memory".to_owned(),
        node: "a".parse().unwrap(),
        operations: None,
        examination: None,
        clock,
        health: watch::channel(Health::default()).1,
        namespace: "prod".to_owned(),
        board: Board::new(setting),
        expositions: Vec::new(),
    };
    Arc::new(Site::new(http, gate, sources))
}

async fn listen(site: &Arc<Site>, heard: Option<&str>) -> Result<Response, Problem> {
    let mut headers = HeaderMap::new();
    if let Some(heard) = heard {
        headers.insert("last-event-id", heard.parse().unwrap());
    }
    events(State(Arc::clone(site)), Ok(Query(EventsQuery { after: None })), headers).await
}

async fn frame(body: &mut Body) -> Option<String> {
    let data = body.frame().await?.unwrap().into_data().unwrap();
    Some(String::from_utf8(data.to_vec()).unwrap())
}

#[tokio::test(start_paused = true)]
async fn a_stream_tells_what_changes_says_that_it_lives_and_goodbye_at_the_end() {
    let site = site();
    let response = listen(&site, None).await.unwrap();
    assert_eq!(response.headers()["x-accel-buffering"], "no");
    assert_eq!(response.headers()[CONTENT_TYPE], "text/event-stream");
    let mut body = response.into_body();
    assert_eq!(frame(&mut body).await.unwrap(), "retry: 3000\n\n");
    site.sources.board.tell("store", &serde_json::json!({ "jobs": 1 }));
    assert_eq!(frame(&mut body).await.unwrap(), "id: boot-1\nevent: store\ndata: {\"jobs\":1}\n\n");
    let (clock, began) = (Arc::clone(&site.sources.clock), site.sources.clock.now().mono);
    assert_eq!(frame(&mut body).await.unwrap(), ": still here\n\n");
    assert_eq!(clock.now().mono.since(began).as_secs(), 15);
    site.leaving.cancel();
    assert_eq!(frame(&mut body).await.unwrap(), "event: bye\ndata: {}\n\n");
    assert_eq!(frame(&mut body).await, None);
}

#[tokio::test(start_paused = true)]
async fn one_who_comes_back_is_told_what_it_missed_or_to_look_at_everything_again() {
    let site = site();
    let board = &site.sources.board;
    (0..3).for_each(|jobs| board.tell("jobs", &serde_json::json!({ "jobs": jobs })));
    for (heard, told) in [
        (None, None),
        (Some("boot-2"), Some("id: boot-3\nevent: jobs\ndata: {\"jobs\":2}\n\n")),
        (Some("boot-9"), Some("id: boot-3\nevent: reset\ndata: {}\n\n")),
        (Some("before-2"), Some("id: boot-3\nevent: reset\ndata: {}\n\n")),
    ] {
        let mut body = listen(&site, heard).await.unwrap().into_body();
        frame(&mut body).await.unwrap();
        let next = tokio::time::timeout(Duration::from_secs(1), frame(&mut body)).await.ok().flatten();
        assert_eq!(next.as_deref(), told, "{heard:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn one_who_reads_too_slowly_looks_at_everything_again_and_holds_nobody_up() {
    let site = site();
    let mut body = listen(&site, None).await.unwrap().into_body();
    frame(&mut body).await.unwrap();
    (0..1_000).for_each(|jobs| site.sources.board.tell("jobs", &serde_json::json!({ "jobs": jobs })));
    assert_eq!(frame(&mut body).await.unwrap(), "id: boot-1000\nevent: reset\ndata: {}\n\n");
    site.sources.board.tell("jobs", &serde_json::json!({}));
    assert!(frame(&mut body).await.unwrap().starts_with("id: boot-1001\nevent: jobs"));
}

#[tokio::test(start_paused = true)]
async fn the_sixty_fifth_stream_is_refused_until_another_ends() {
    let site = site();
    let mut open = Vec::new();
    for _ in 0..64 {
        open.push(listen(&site, None).await.unwrap());
    }
    assert_eq!(site.streams.count(), 64);
    let refused = listen(&site, None).await.unwrap_err().into_response();
    assert_eq!(
        (refused.status(), refused.headers()["retry-after"].to_str().unwrap()),
        (StatusCode::SERVICE_UNAVAILABLE, "10")
    );
    open.pop();
    assert!(listen(&site, None).await.is_ok());
    open.clear();
    assert_eq!(site.streams.count(), 0);
}

#[tokio::test(start_paused = true)]
async fn no_stream_lasts_longer_than_an_hour() {
    let site = site();
    let mut body = listen(&site, None).await.unwrap().into_body();
    let mut last = String::new();
    while let Some(next) = frame(&mut body).await {
        last = next;
    }
    assert_eq!(last, "event: bye\ndata: {}\n\n");
    assert!(site.streams.count() <= 1);
}
