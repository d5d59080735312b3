//! What it costs the claims of a full hour that somebody has just opened the dashboard: the board reads a day of 1,000 jobs through the
//! node's own connection.

use std::sync::Arc;
use std::time::Duration;

use chrono::{DateTime, SubsecRound, TimeDelta, Timelike, Utc};
use cronward::board::{Board, BoardSetting};
use cronward::clock::{SystemClock, between};
use cronward::job::Policy;

use crate::redis_server::RedisServer;
use crate::rig::Rig;
use crate::sample::Sample;
use crate::spy::{Claims, Spy};
use crate::table::{Table, span};
use crate::{block_on, work};

const JOBS: usize = 1_000;
/// Rounds with and without a page, in turn.
const ROUNDS: usize = 10;
/// The node is up, and has claimed what is current, well before the tick.
const AHEAD: TimeDelta = TimeDelta::seconds(8);
/// Before the tick the page has not been filled yet.
const OPENED: Duration = Duration::from_millis(100);
const HOURS: usize = 24;

pub(crate) fn measure(table: &mut Table) {
    let redis = RedisServer::start();
    let (mut alone, mut beside, mut filled) = (Vec::new(), Vec::new(), Vec::new());
    let mut ratios = Vec::new();
    for _ in 0..ROUNDS {
        let (without, _) = block_on(hour(&redis, false));
        let (with, hours) = block_on(hour(&redis, true));
        ratios.push(p99(&with) / p99(&without));
        alone.extend(without);
        beside.extend(with);
        filled.push(hours);
    }
    let (alone, beside) = (Sample::of(alone), Sample::of(beside));
    ratios.sort_by(f64::total_cmp);
    table.at_most(
        "claims of a full hour answered, 1,000 jobs, p99: a page fills against nobody looks, median of the rounds",
        1.2,
        ratios.get(ROUNDS / 2).copied().unwrap_or(f64::NAN),
        "times",
    );
    let each: Vec<String> = ratios.iter().map(|ratio| format!("{ratio:.2}")).collect();
    table.told("the same, each round", each.join(", "));
    table.told("the same, nobody looks", format!("{} ({})", span(alone.p99()), alone.words()));
    table.told("the same, a page fills", format!("{} ({})", span(beside.p99()), beside.words()));
    table.is_so(
        "the page was being filled at the last answer",
        "in most rounds",
        format!("hours that were read by then: {filled:?} of {HOURS}"),
        filled.iter().filter(|hours| **hours < HOURS).count() * 2 > ROUNDS,
    );
}

fn p99(claims: &[Duration]) -> f64 {
    Sample::of(claims.to_vec()).p99().as_secs_f64()
}

/// From the tick to the answer of each claim of 1,000 jobs that are due in one second; and how many hours of the page were read by the last.
async fn hour(redis: &RedisServer, looked_at: bool) -> (Vec<Duration>, usize) {
    let spy = Spy::on(work::open(&redis.url()).await, Claims::AskedThenDone);
    let tick = work::wall().trunc_subsecs(0) + AHEAD;
    let schedule = format!("{} {} * * * *", tick.second(), tick.minute());
    let jobs = (0..JOBS).map(|number| work::ticking(number, &schedule, Policy::default()));
    let setting = BoardSetting {
        clock: Arc::new(SystemClock),
        boot: "bench".to_owned(),
        retention: Duration::from_secs(30 * 86_400),
    };
    let board = Board::new(setting);
    let (heard, node) = (Arc::<Board>::clone(&board), Arc::<Spy>::clone(&spy));
    let rig = Rig::heard_by(heard, "bench-node", node, jobs.collect()).await;
    let (followed, store) = (Arc::clone(&board), Arc::clone(&spy));
    let following = tokio::spawn(async move { followed.follow(&*store).await });
    sleep_until(tick - OPENED).await;
    spy.take();
    if looked_at {
        drop(board.read(HOURS).await);
    }
    let mut claims = Vec::new();
    while claims.len() < JOBS {
        tokio::time::sleep(Duration::from_millis(10)).await;
        claims.extend(spy.take().into_iter().filter(|noted| noted.slot.start() == tick));
        assert!(work::wall() < tick + AHEAD, "{} of {JOBS} claims", claims.len());
    }
    let hours = if looked_at { board.look(HOURS).filled } else { 0 };
    following.abort();
    rig.stop().await;
    (claims.iter().map(|noted| between(tick, noted.answered)).collect(), hours)
}

async fn sleep_until(instant: DateTime<Utc>) {
    tokio::time::sleep(between(work::wall(), instant)).await;
}
