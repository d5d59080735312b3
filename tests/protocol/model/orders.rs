//! Orders of events that come to the same are left out (`World::is_alone`). Here a small world is visited in both ways: each
//! state in which time can pass is reached in both, or in neither.

use std::collections::HashSet;

use stateright::Model;

use super::judge::Facts;
use super::setup::{Faults, NONE, Pace, Setup};
use super::world::{State, World};

/// All states in which nothing is under way, whatever the last step was.
fn calm(world: &World) -> HashSet<State> {
    let (mut known, mut calm) = (HashSet::new(), HashSet::new());
    let (mut pending, mut actions) = (world.init_states(), Vec::new());
    while let Some(state) = pending.pop() {
        if world.is_calm(&state) {
            calm.insert(state.clone());
        }
        world.actions(&state, &mut actions);
        for action in actions.drain(..) {
            let next = State { facts: Facts::default(), ..world.next_state(&state, action).expect("it can happen") };
            if known.insert(next.clone()) {
                pending.push(next);
            }
        }
    }
    calm
}

#[test]
fn the_orders_that_are_left_out_lead_nowhere_else() {
    let faults = Faults { crashes: 1, shutdowns: 1, ..NONE };
    let mut world = World::new(Setup { end: 3, horizon: 4, ..Setup::small(Pace::Prompt, faults) }, &[]);
    let some = calm(&world);
    world.every_order = true;
    let every = calm(&world);
    assert!(every.len() > 100);
    assert_eq!(some, every);
}
