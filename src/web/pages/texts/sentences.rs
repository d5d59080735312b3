//! Which sentences there are: the fields that each language fills in. No sentence stands here.

use crate::admin::actions::ActionTexts;
use crate::admin::ticks::NoteText;
use crate::admin::why::WhyTexts;
use crate::board::FilterError;
use crate::schedule::Schedule;
use crate::slot::OutputLoss;
use crate::store::{Capability, JobOrigin, KeptPart};
use crate::web::detail::ProblemDetail;
use crate::web::pages::state::Shown;

/// The sentences of one language. Those with something in them are functions of it.
pub(in crate::web::pages) struct Texts {
    /// As `lang` and `hreflang` name it.
    pub(in crate::web::pages) tag: &'static str,
    /// The other language: its code in `?lang=`, its tag, and its own name for itself.
    pub(in crate::web::pages) other: (&'static str, &'static str, &'static str),
    pub(in crate::web::pages) words: Words,
    pub(in crate::web::pages) time: TimeTexts,
    pub(in crate::web::pages) frame: FrameTexts,
    pub(in crate::web::pages) home: HomeTexts,
    pub(in crate::web::pages) needs: NeedTexts,
    pub(in crate::web::pages) job: JobTexts,
    pub(in crate::web::pages) slot: SlotTexts,
    /// Why a slot ran or did not.
    pub(in crate::web::pages) reasons: WhyTexts,
    /// What an action does, and how it is undone.
    pub(in crate::web::pages) actions: ActionTexts,
    /// Why a request was not answered as it wished.
    pub(in crate::web::pages) said: fn(&ProblemDetail) -> String,
    pub(in crate::web::pages) cluster: ClusterTexts,
    pub(in crate::web::pages) act: ActTexts,
    pub(in crate::web::pages) other_pages: OtherTexts,
    pub(in crate::web::pages) live: LiveTexts,
}

impl std::fmt::Debug for Texts {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Texts").field(&self.tag).finish()
    }
}

/// The states, and other single words.
pub(in crate::web::pages) struct Words {
    pub(in crate::web::pages) state: fn(Shown) -> &'static str,
    /// What a state means, for the legend.
    pub(in crate::web::pages) meaning: fn(Shown) -> &'static str,
    pub(in crate::web::pages) outcome: fn(&str) -> String,
    /// How a job stands, as the filter names it.
    pub(in crate::web::pages) job_state: fn(&str) -> &'static str,
    pub(in crate::web::pages) node_state: fn(&str) -> &'static str,
    pub(in crate::web::pages) verb: fn(&str) -> String,
    pub(in crate::web::pages) event: fn(&str) -> String,
    pub(in crate::web::pages) severity: fn(&str) -> &'static str,
    pub(in crate::web::pages) none: &'static str,
}

/// Instants and spans.
pub(in crate::web::pages) struct TimeTexts {
    /// A number and its unit: seconds, minutes, hours, days.
    pub(in crate::web::pages) units: [&'static str; 4],
    pub(in crate::web::pages) ago: &'static str,
    pub(in crate::web::pages) ahead: &'static str,
    pub(in crate::web::pages) weekdays: [&'static str; 7],
    pub(in crate::web::pages) zone: &'static str,
    pub(in crate::web::pages) hours_in: fn(&str) -> String,
}

/// What surrounds each page.
pub(in crate::web::pages) struct FrameTexts {
    pub(in crate::web::pages) skip: &'static str,
    pub(in crate::web::pages) pages: &'static str,
    pub(in crate::web::pages) hours: &'static str,
    pub(in crate::web::pages) nodes: &'static str,
    pub(in crate::web::pages) store: &'static str,
    pub(in crate::web::pages) locks: &'static str,
    pub(in crate::web::pages) activity: &'static str,
    pub(in crate::web::pages) help: &'static str,
    pub(in crate::web::pages) api: &'static str,
    pub(in crate::web::pages) settings: &'static str,
    pub(in crate::web::pages) apply: &'static str,
    pub(in crate::web::pages) language: &'static str,
    pub(in crate::web::pages) theme: &'static str,
    pub(in crate::web::pages) themes: [&'static str; 3],
    pub(in crate::web::pages) refresh: &'static str,
    pub(in crate::web::pages) refreshes: [&'static str; 3],
    pub(in crate::web::pages) single_keys: &'static str,
    pub(in crate::web::pages) login: &'static str,
    pub(in crate::web::pages) logout: &'static str,
    pub(in crate::web::pages) viewer: &'static str,
    pub(in crate::web::pages) operator: &'static str,
    pub(in crate::web::pages) store_well: fn(&str) -> String,
    pub(in crate::web::pages) store_away: &'static str,
    pub(in crate::web::pages) store_refuses: &'static str,
    pub(in crate::web::pages) store_unusable: &'static str,
    pub(in crate::web::pages) nodes_alive: fn(usize, usize) -> String,
    pub(in crate::web::pages) files_same: fn(&str) -> String,
    pub(in crate::web::pages) files_differ: &'static str,
    pub(in crate::web::pages) data_age: fn(&str) -> String,
    pub(in crate::web::pages) reading: &'static str,
    pub(in crate::web::pages) draining: &'static str,
    pub(in crate::web::pages) away_since: fn(&str) -> String,
    pub(in crate::web::pages) away_since_unknown: &'static str,
    pub(in crate::web::pages) refuses_since: fn(&str) -> String,
    pub(in crate::web::pages) refuses_since_unknown: &'static str,
    pub(in crate::web::pages) refuses_do: &'static str,
    pub(in crate::web::pages) unusable_since: fn(&str) -> String,
    pub(in crate::web::pages) away_why: fn(&str) -> String,
}

/// `/`.
pub(in crate::web::pages) struct HomeTexts {
    pub(in crate::web::pages) title: &'static str,
    pub(in crate::web::pages) needs_you: &'static str,
    pub(in crate::web::pages) well: fn(usize, usize) -> String,
    pub(in crate::web::pages) nothing: &'static str,
    pub(in crate::web::pages) looked: fn(&str, usize) -> String,
    pub(in crate::web::pages) last_failure: fn(&str) -> String,
    pub(in crate::web::pages) no_failure: &'static str,
    pub(in crate::web::pages) filter: &'static str,
    pub(in crate::web::pages) filter_hint: &'static str,
    pub(in crate::web::pages) filter_do: &'static str,
    /// Why the filter cannot be read.
    pub(in crate::web::pages) filter_error: fn(&FilterError) -> String,
    pub(in crate::web::pages) sort: &'static str,
    pub(in crate::web::pages) sorts: [&'static str; 3],
    pub(in crate::web::pages) all: &'static str,
    pub(in crate::web::pages) job: &'static str,
    pub(in crate::web::pages) now: &'static str,
    pub(in crate::web::pages) next: &'static str,
    pub(in crate::web::pages) filled: fn(usize, usize) -> String,
    pub(in crate::web::pages) no_jobs: &'static str,
    pub(in crate::web::pages) no_jobs_file: &'static str,
    pub(in crate::web::pages) no_jobs_exec: &'static str,
    pub(in crate::web::pages) no_match: fn(&str) -> String,
    pub(in crate::web::pages) no_match_all: &'static str,
    pub(in crate::web::pages) page: fn(usize, usize) -> String,
    pub(in crate::web::pages) newer_page: &'static str,
    pub(in crate::web::pages) older_page: &'static str,
    pub(in crate::web::pages) legend: &'static str,
    pub(in crate::web::pages) grid: fn(usize) -> String,
    pub(in crate::web::pages) open: &'static str,
    pub(in crate::web::pages) cell_attempts: fn(&str, u32) -> String,
    pub(in crate::web::pages) cell_count: fn(&str, u32, u32) -> String,
    /// What follows counts: how many slots were not read yet.
    pub(in crate::web::pages) unread: fn(u32) -> String,
}

/// What the lines of NEEDS YOU and of the columns NOW and NEXT say.
pub(in crate::web::pages) struct NeedTexts {
    pub(in crate::web::pages) failed: fn(u32, u32) -> String,
    pub(in crate::web::pages) missed: &'static str,
    /// How many attempts failed, of how many.
    pub(in crate::web::pages) missed_after: fn(u32, u32) -> String,
    pub(in crate::web::pages) late: fn(&str) -> String,
    pub(in crate::web::pages) files: fn(&str) -> String,
    pub(in crate::web::pages) versions: fn(&str) -> String,
    pub(in crate::web::pages) zones: fn(&str) -> String,
    pub(in crate::web::pages) clock: fn(&str) -> String,
    /// How many records of the store, and the error of the newest.
    pub(in crate::web::pages) unreadable: fn(u32, &str) -> String,
    pub(in crate::web::pages) node_lost: &'static str,
    pub(in crate::web::pages) store_away: &'static str,
    pub(in crate::web::pages) store_refuses: &'static str,
    pub(in crate::web::pages) store_unusable: &'static str,
    /// To whom, and how many.
    pub(in crate::web::pages) undelivered: fn(&str, u32) -> String,
    pub(in crate::web::pages) since: fn(&str) -> String,
    pub(in crate::web::pages) signal: fn(i32) -> String,
    pub(in crate::web::pages) exit: fn(i32) -> String,
    pub(in crate::web::pages) on_node: fn(&str) -> String,
    pub(in crate::web::pages) failed_slots: fn(u32) -> String,
    pub(in crate::web::pages) nobody_tries: &'static str,
    pub(in crate::web::pages) too_late: &'static str,
    pub(in crate::web::pages) done_at: fn(&str) -> String,
    pub(in crate::web::pages) running_on: fn(&str) -> String,
    pub(in crate::web::pages) running_since: fn(&str, &str) -> String,
    pub(in crate::web::pages) retry_in: fn(&str) -> String,
    pub(in crate::web::pages) retry_soon: &'static str,
    pub(in crate::web::pages) waiting: &'static str,
    pub(in crate::web::pages) not_due: &'static str,
    pub(in crate::web::pages) not_due_before: fn(&str) -> String,
    pub(in crate::web::pages) missed_at: fn(&str) -> String,
    pub(in crate::web::pages) missed_after_at: fn(&str, u32, u32) -> String,
    pub(in crate::web::pages) skipped_at: fn(&str) -> String,
    pub(in crate::web::pages) paused: &'static str,
    pub(in crate::web::pages) paused_until: fn(&str) -> String,
    pub(in crate::web::pages) disabled: &'static str,
    pub(in crate::web::pages) orphaned: &'static str,
    pub(in crate::web::pages) no_next: &'static str,
    pub(in crate::web::pages) count_in: fn(u32, u32, &str) -> String,
}

/// `/jobs/J`.
pub(in crate::web::pages) struct JobTexts {
    pub(in crate::web::pages) schedule: &'static str,
    pub(in crate::web::pages) zone: &'static str,
    pub(in crate::web::pages) slot_spans: &'static str,
    pub(in crate::web::pages) origin: &'static str,
    pub(in crate::web::pages) owner: &'static str,
    pub(in crate::web::pages) runbook: &'static str,
    pub(in crate::web::pages) tags: &'static str,
    pub(in crate::web::pages) attempts: &'static str,
    pub(in crate::web::pages) timeout: &'static str,
    pub(in crate::web::pages) no_timeout: &'static str,
    pub(in crate::web::pages) defined: &'static str,
    pub(in crate::web::pages) differs: fn(&str) -> String,
    pub(in crate::web::pages) next_ticks: &'static str,
    pub(in crate::web::pages) no_ticks: &'static str,
    pub(in crate::web::pages) recent: fn(usize) -> String,
    pub(in crate::web::pages) recent_hour: fn(&str) -> String,
    pub(in crate::web::pages) durations: fn(&str, &str) -> String,
    pub(in crate::web::pages) no_durations: &'static str,
    pub(in crate::web::pages) chart: fn(usize) -> String,
    pub(in crate::web::pages) slot: &'static str,
    pub(in crate::web::pages) state: &'static str,
    pub(in crate::web::pages) took: &'static str,
    pub(in crate::web::pages) by: &'static str,
    pub(in crate::web::pages) last_success: &'static str,
    pub(in crate::web::pages) failing_since: &'static str,
    pub(in crate::web::pages) paused: &'static str,
    /// The person, the host, and when the pause began.
    pub(in crate::web::pages) paused_by: fn(&str, &str, &str) -> String,
    pub(in crate::web::pages) never: &'static str,
    pub(in crate::web::pages) older: &'static str,
    pub(in crate::web::pages) from_registry: &'static str,
    pub(in crate::web::pages) only_on: &'static str,
    /// Where its definition is.
    pub(in crate::web::pages) where_: fn(JobOrigin) -> &'static str,
    /// The schedule in words.
    pub(in crate::web::pages) in_words: fn(&Schedule) -> String,
    /// What a change of the clock does to scheduled times.
    pub(in crate::web::pages) clock_change: NoteText,
}

/// `/jobs/J/S` and its outputs.
pub(in crate::web::pages) struct SlotTexts {
    pub(in crate::web::pages) failed: fn(u32, u32) -> String,
    pub(in crate::web::pages) missed: &'static str,
    pub(in crate::web::pages) done: fn(&str, u32) -> String,
    pub(in crate::web::pages) done_by_hand: fn(&str) -> String,
    pub(in crate::web::pages) running: fn(&str, u32, u32) -> String,
    pub(in crate::web::pages) retrying: fn(u32, u32) -> String,
    pub(in crate::web::pages) retry_at: fn(&str) -> String,
    pub(in crate::web::pages) pending: &'static str,
    pub(in crate::web::pages) disabled: &'static str,
    /// How many attempts were used of how many, where nobody tries by itself.
    pub(in crate::web::pages) waiting: fn(u32, u32) -> String,
    /// Why no node starts it by itself.
    pub(in crate::web::pages) not_started: fn(&str) -> String,
    pub(in crate::web::pages) pending_but: fn(&str) -> String,
    pub(in crate::web::pages) no_tick: &'static str,
    /// When it is due, and how soon.
    pub(in crate::web::pages) not_due: fn(&str, &str) -> String,
    pub(in crate::web::pages) not_owed: fn(&str) -> String,
    pub(in crate::web::pages) not_known: &'static str,
    pub(in crate::web::pages) forgotten: &'static str,
    pub(in crate::web::pages) not_begun: fn(&str) -> String,
    pub(in crate::web::pages) skipped: &'static str,
    pub(in crate::web::pages) why: &'static str,
    pub(in crate::web::pages) fix: &'static str,
    pub(in crate::web::pages) copy: &'static str,
    pub(in crate::web::pages) copied: &'static str,
    pub(in crate::web::pages) timeline: &'static str,
    pub(in crate::web::pages) timeline_of: fn(usize) -> String,
    pub(in crate::web::pages) attempts: &'static str,
    pub(in crate::web::pages) no_attempts: &'static str,
    pub(in crate::web::pages) attempt: fn(u32) -> String,
    pub(in crate::web::pages) node: &'static str,
    pub(in crate::web::pages) trigger: &'static str,
    pub(in crate::web::pages) fence: &'static str,
    pub(in crate::web::pages) output: &'static str,
    pub(in crate::web::pages) no_output: &'static str,
    pub(in crate::web::pages) whole_output: &'static str,
    pub(in crate::web::pages) raw_output: &'static str,
    pub(in crate::web::pages) dropped: fn(u64, Option<OutputLoss>) -> String,
    pub(in crate::web::pages) decisions: &'static str,
    pub(in crate::web::pages) no_decisions: &'static str,
    pub(in crate::web::pages) audit: &'static str,
    pub(in crate::web::pages) no_audit: &'static str,
    pub(in crate::web::pages) keys: &'static str,
    /// Where the store keeps it.
    pub(in crate::web::pages) kept: &'static str,
    /// What it keeps there.
    pub(in crate::web::pages) kept_part: fn(KeptPart) -> &'static str,
    pub(in crate::web::pages) previous: &'static str,
    pub(in crate::web::pages) following: &'static str,
    pub(in crate::web::pages) from_to: fn(&str, &str) -> String,
    /// Between which instants an attempt ended whose node stood still.
    pub(in crate::web::pages) ended_between: fn(&str, &str) -> String,
    pub(in crate::web::pages) actions: &'static str,
    pub(in crate::web::pages) did: fn(&str) -> String,
    /// That this node was asked to run it.
    pub(in crate::web::pages) asked: &'static str,
    pub(in crate::web::pages) did_nothing: &'static str,
    pub(in crate::web::pages) cut: fn(&str) -> String,
}

/// `/nodes`, `/store`, `/locks`, `/activity`.
pub(in crate::web::pages) struct ClusterTexts {
    pub(in crate::web::pages) node: &'static str,
    pub(in crate::web::pages) state: &'static str,
    pub(in crate::web::pages) seen: &'static str,
    pub(in crate::web::pages) started: &'static str,
    pub(in crate::web::pages) version: &'static str,
    pub(in crate::web::pages) clock: &'static str,
    pub(in crate::web::pages) file: &'static str,
    pub(in crate::web::pages) differs: &'static str,
    pub(in crate::web::pages) zones: &'static str,
    pub(in crate::web::pages) zones_old: &'static str,
    pub(in crate::web::pages) running: &'static str,
    pub(in crate::web::pages) labels: &'static str,
    pub(in crate::web::pages) no_nodes: &'static str,
    pub(in crate::web::pages) where_: &'static str,
    pub(in crate::web::pages) kind: &'static str,
    pub(in crate::web::pages) latency: &'static str,
    pub(in crate::web::pages) capability: &'static str,
    pub(in crate::web::pages) capability_of: fn(&Capability) -> String,
    pub(in crate::web::pages) reached: &'static str,
    pub(in crate::web::pages) not_reached: &'static str,
    pub(in crate::web::pages) namespace: &'static str,
    pub(in crate::web::pages) examine: &'static str,
    pub(in crate::web::pages) examine_writes: &'static str,
    pub(in crate::web::pages) examine_operators: &'static str,
    pub(in crate::web::pages) check: &'static str,
    pub(in crate::web::pages) found: &'static str,
    pub(in crate::web::pages) lock: &'static str,
    pub(in crate::web::pages) held: &'static str,
    pub(in crate::web::pages) waiting: &'static str,
    pub(in crate::web::pages) holder: &'static str,
    pub(in crate::web::pages) no_locks: &'static str,
    pub(in crate::web::pages) locks_absent: &'static str,
    pub(in crate::web::pages) unlimited: &'static str,
    /// Beside a request that waits in a ring.
    pub(in crate::web::pages) deadlock: &'static str,
    pub(in crate::web::pages) when: &'static str,
    pub(in crate::web::pages) what: &'static str,
    pub(in crate::web::pages) no_activity: &'static str,
    pub(in crate::web::pages) activity_of: fn(&str) -> String,
}

/// Forms of the actions.
pub(in crate::web::pages) struct ActTexts {
    pub(in crate::web::pages) label: fn(&str) -> &'static str,
    pub(in crate::web::pages) heading: fn(&str, &str) -> String,
    pub(in crate::web::pages) effect: &'static str,
    pub(in crate::web::pages) undo: &'static str,
    pub(in crate::web::pages) command: &'static str,
    pub(in crate::web::pages) reason: &'static str,
    pub(in crate::web::pages) reason_required: &'static str,
    pub(in crate::web::pages) reason_optional: &'static str,
    pub(in crate::web::pages) confirm: fn(&str) -> String,
    pub(in crate::web::pages) until: &'static str,
    pub(in crate::web::pages) until_hint: &'static str,
    pub(in crate::web::pages) back: &'static str,
    pub(in crate::web::pages) off_away: &'static str,
    /// Before why there is nothing to do.
    pub(in crate::web::pages) needless: &'static str,
    /// Before why it would be refused.
    pub(in crate::web::pages) refused: &'static str,
    pub(in crate::web::pages) audited: fn(&str) -> String,
    pub(in crate::web::pages) changed: &'static str,
}

/// `/login`, `/help`, and what went wrong.
pub(in crate::web::pages) struct OtherTexts {
    pub(in crate::web::pages) login_title: &'static str,
    pub(in crate::web::pages) token: &'static str,
    pub(in crate::web::pages) token_hint: &'static str,
    pub(in crate::web::pages) token_wrong: &'static str,
    pub(in crate::web::pages) keys_title: &'static str,
    pub(in crate::web::pages) keys: [(&'static str, &'static str); 14],
    pub(in crate::web::pages) states_title: &'static str,
    pub(in crate::web::pages) filter_title: &'static str,
    pub(in crate::web::pages) filters: [(&'static str, &'static str); 6],
    pub(in crate::web::pages) addresses_title: &'static str,
    pub(in crate::web::pages) addresses: [(&'static str, &'static str); 4],
    pub(in crate::web::pages) home: &'static str,
    pub(in crate::web::pages) problem: fn(u16) -> &'static str,
    pub(in crate::web::pages) problem_do: fn(u16) -> &'static str,
    /// Where waiting does not help.
    pub(in crate::web::pages) problem_fix: &'static str,
    pub(in crate::web::pages) problem_said: &'static str,
}

/// What the script says.
pub(in crate::web::pages) struct LiveTexts {
    pub(in crate::web::pages) live: &'static str,
    pub(in crate::web::pages) polling: &'static str,
    pub(in crate::web::pages) off: &'static str,
    pub(in crate::web::pages) lost: &'static str,
    pub(in crate::web::pages) moved: &'static str,
    pub(in crate::web::pages) sort: &'static str,
    pub(in crate::web::pages) data_age: &'static str,
    pub(in crate::web::pages) browser_zone: &'static str,
}
