//! Whether the node is alive, and whether it is ready. The first never asks the store: whoever restarts what is not alive would restart
//! every node in an outage of the store, and kill what they run.

use std::sync::Arc;

use axum::extract::State;
use axum::http::StatusCode;

use crate::web::detail::ProblemDetail;
use crate::web::problem::Problem;
use crate::web::site::Site;

/// Alive: the planner beats.
pub(super) async fn alive(State(site): State<Arc<Site>>) -> Result<&'static str, Problem> {
    if site.is_beating() { Ok("ok\n") } else { Err(unwell("not-alive", ProblemDetail::PlannerStands)) }
}

/// Ready: the planner beats, the store was reached at the last heartbeat, and nobody asked the node to leave.
pub(super) async fn ready(State(site): State<Arc<Site>>) -> Result<&'static str, Problem> {
    let (store_up, refuses, draining) = {
        let health = site.sources.health.borrow();
        (health.store_up, health.store_refuses, health.draining)
    };
    let store = if refuses { "store (it refuses this node: `cronward doctor` says why)" } else { "store" };
    let lacking = [(store, !store_up), ("plan", !site.is_beating()), ("draining", draining)];
    let words: Vec<&str> = lacking.into_iter().filter_map(|(word, lacks)| lacks.then_some(word)).collect();
    if words.is_empty() { Ok("ok\n") } else { Err(unwell("not-ready", ProblemDetail::NotReady(words.join(", ")))) }
}

fn unwell(word: &'static str, why: ProblemDetail) -> Problem {
    Problem::new(StatusCode::SERVICE_UNAVAILABLE, word, why)
}
