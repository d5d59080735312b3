//! The trials, by what goes wrong in them. The longest come first, so that no long one is left over at the end.

mod clocks;
mod commands;
mod crond;
mod deaths;
mod drains;
mod embedded;
mod failures;
mod gaps;
mod idle;
mod links;
mod locks;
mod logs;
mod once;
mod outages;
mod overlaps;
mod partitions;
mod reloads;
mod rotations;
mod shared_locks;
mod starts;
mod stored;

use crate::chaos::trials as chaos;
use crate::place::Place;
use crate::shared_store;
use shared_locks::redis as on_redis;

/// What a trial does; it panics when something does not hold.
pub(crate) type Body = fn(&Place);

macro_rules! trials {
    ($($module:ident::$name:ident),* $(,)?) => {
        vec![$((concat!(stringify!($module), "::", stringify!($name)), $module::$name as Body)),*]
    };
}

/// Each case about locks on each store that keeps them, with its name.
pub(crate) fn of_locks() -> impl Iterator<Item = (String, impl Fn(&Place) + Send + 'static)> {
    shared_locks::CASES.iter().flat_map(|case| {
        let stores = shared_store::ALL.iter().filter(|(store, _)| (case.is_for)(store));
        stores.map(|(store, start)| {
            let body = |place: &Place| (case.body)(place, &start(place));
            (format!("shared_locks::{}_on_{store}", case.name), body)
        })
    })
}

/// Every other trial with its name.
pub(crate) fn all() -> Vec<(&'static str, Body)> {
    trials![
        chaos::every_kind_of_fault_on_redis_leaves_each_slot_once_or_explained,
        chaos::nodes_and_runs_that_die_on_one_file_leave_each_slot_once_or_explained,
        chaos::a_wiped_store_costs_each_slot_one_repeat_at_most_and_the_judge_can_tell,
        starts::of_two_live_nodes_of_one_name_each_that_meets_the_other_warns_once,
        crond::of_two_hosts_crons_one_runs_the_line_and_the_other_has_nothing_to_mail,
        crond::an_imported_line_finds_the_surroundings_that_cron_gives_it,
        gaps::slots_that_ended_while_no_node_was_alive_are_told_as_missed_once,
        idle::a_thousand_idle_jobs_cost_the_store_heartbeats_only,
        once::three_nodes_do_ten_slots_once_each_when_each_tick_is_a_slot,
        once::three_nodes_do_ten_slots_once_each_when_slots_have_a_fixed_length,
        once::scripts_that_the_server_forgets_all_the_time_harm_no_slot,
        outages::a_slot_is_done_when_the_store_comes_back_within_it_and_told_as_missed_when_not,
        outages::a_store_that_is_emptied_under_live_nodes_is_reported_by_each_of_them,
        clocks::a_node_an_hour_ahead_runs_nothing_early_and_does_its_share_in_the_right_slots,
        clocks::a_node_an_hour_behind_runs_nothing_late_and_does_its_share_in_the_right_slots,
        partitions::with_continue_a_cut_off_nodes_overlap_is_told_by_both_nodes,
        partitions::with_kill_a_cut_off_nodes_job_is_dead_before_another_starts,
        overlaps::forbid_lets_a_slot_wait_for_the_run_of_an_older_one,
        overlaps::allow_lets_runs_of_two_slots_go_side_by_side,
        overlaps::replace_ends_the_older_run,
        failures::a_slot_that_always_fails_is_tried_three_times_on_several_nodes_and_told_once,
        failures::a_command_that_does_not_exist_fails_with_127_and_uses_attempts_up,
        failures::a_node_without_a_free_descriptor_leaves_every_slot_to_its_neighbour_and_recovers,
        gaps::a_slot_that_ended_while_all_nodes_were_started_again_is_told_as_missed_once,
        deaths::a_node_killed_mid_run_takes_its_job_along_and_another_takes_over,
        deaths::with_kill_the_job_of_a_stopped_node_is_dead_before_another_starts,
        deaths::a_node_stopped_beyond_its_lease_changes_nothing_that_is_anothers,
        links::a_lost_reply_to_a_claim_burns_no_attempt,
        links::a_lost_reply_to_a_completion_repeats_nothing,
        links::a_success_that_the_server_cannot_take_is_recorded_when_it_answers_again,
        links::a_lease_that_the_server_forgot_mid_run_is_restored_and_nothing_runs_twice,
        embedded::two_daemons_on_one_file_do_every_slot_once,
        embedded::on_one_file_the_run_of_a_killed_daemon_is_taken_over,
        logs::a_pipe_that_nobody_reads_holds_up_neither_the_jobs_nor_term,
        reloads::a_reload_leaves_the_running_command_alone_and_plans_what_is_new,
        reloads::a_file_with_an_error_changes_nothing_and_the_log_names_the_line,
        reloads::a_pipe_in_the_files_place_is_refused_and_the_next_hup_reads_again,
        reloads::a_node_takes_an_updated_time_zone_database_by_a_signal,
        reloads::nodes_with_different_files_each_run_what_they_know_and_the_difference_is_stored,
        reloads::two_namespaces_on_one_server_do_not_meet,
        rotations::a_password_that_changed_is_read_again_once_it_is_refused_and_the_run_ends_as_done,
        rotations::a_password_that_is_written_before_the_old_one_goes_is_taken_by_a_signal_and_nothing_is_refused,
        rotations::a_url_of_another_store_or_a_wrong_password_leaves_the_old_one_in_use_and_says_so,
        rotations::an_exec_whose_password_changes_records_its_success_with_the_new_one,
        commands::a_command_that_ignores_term_is_killed_with_its_group_and_counts_as_timed_out,
        commands::a_command_that_floods_its_output_is_done_and_its_last_bytes_are_kept,
        drains::a_run_that_outlasts_the_drain_is_given_back_and_done_by_another_node,
        drains::a_node_that_is_asked_twice_stops_its_run_and_gives_it_back,
        drains::a_node_whose_store_is_silent_leaves_when_its_lease_would_have_lapsed,
        drains::a_node_that_leaves_while_its_store_is_away_says_which_success_the_store_does_not_know,
        drains::a_node_that_leaves_lets_its_run_finish,
        on_redis::who_gives_up_while_its_store_is_paused_stands_in_no_queue_afterwards,
        on_redis::without_hints_a_waiter_looks_at_its_beat_and_at_the_next_lapse,
        on_redis::a_release_wakes_those_who_hold_next_and_nobody_else,
        on_redis::five_hundred_waiters_in_one_process_share_one_subscription,
        starts::a_node_that_starts_without_its_store_waits_for_it_and_is_ready_only_then,
        starts::a_store_that_is_away_makes_listings_say_try_again,
        starts::a_wrong_password_is_refused_at_once,
        starts::a_user_who_may_do_nothing_is_refused_at_once,
        starts::a_replica_takes_no_node_and_says_so,
        starts::a_server_that_is_no_redis_is_refused_at_once,
        starts::a_key_of_somebody_else_is_refused_at_once,
        chaos::a_seed_is_a_plan,
        chaos::each_store_that_is_named_has_a_trial_at_length,
        chaos::every_plan_strikes_every_server_in_every_way,
        chaos::a_plan_leaves_one_node_well_and_strikes_nothing_that_is_down,
    ]
}

/// Trials of many minutes: `--ignored`.
pub(crate) fn only_when_asked_for() -> Vec<(&'static str, Body)> {
    trials![
        chaos::thousands_of_slots_on_redis_are_each_once_or_explained,
        chaos::at_length_each_slot_on_sqlite_is_once_or_explained,
    ]
}
