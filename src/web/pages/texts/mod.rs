//! Every sentence of the pages, in each language. A sentence that one language lacks does not compile: a language is a value of [`Texts`].
//! What users wrote is never translated: names, reasons, output; nor what commands print.

mod chinese;
mod english;
mod plain;

pub(super) use chinese::CHINESE;
pub(super) use english::ENGLISH;

use crate::web::pages::state::Shown;

/// The sentences of one language. Those with something in them are functions of it.
pub(super) struct Texts {
    /// As `lang` and `hreflang` name it.
    pub(super) tag: &'static str,
    /// The other language: its code in `?lang=`, its tag, and its own name for itself.
    pub(super) other: (&'static str, &'static str, &'static str),
    pub(super) words: Words,
    pub(super) time: TimeTexts,
    pub(super) frame: FrameTexts,
    pub(super) home: HomeTexts,
    pub(super) needs: NeedTexts,
    pub(super) job: JobTexts,
    pub(super) slot: SlotTexts,
    pub(super) cluster: ClusterTexts,
    pub(super) act: ActTexts,
    pub(super) other_pages: OtherTexts,
    pub(super) live: LiveTexts,
}

impl std::fmt::Debug for Texts {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Texts").field(&self.tag).finish()
    }
}

/// The states, and other single words.
pub(super) struct Words {
    pub(super) state: fn(Shown) -> &'static str,
    /// What a state means, for the legend.
    pub(super) meaning: fn(Shown) -> &'static str,
    pub(super) outcome: fn(&str) -> String,
    /// How a job stands, as the filter names it.
    pub(super) job_state: fn(&str) -> &'static str,
    pub(super) node_state: fn(&str) -> &'static str,
    pub(super) verb: fn(&str) -> String,
    pub(super) event: fn(&str) -> String,
    pub(super) severity: fn(&str) -> &'static str,
    pub(super) none: &'static str,
}

/// Instants and spans.
pub(super) struct TimeTexts {
    /// A number and its unit: seconds, minutes, hours, days.
    pub(super) units: [&'static str; 4],
    pub(super) ago: &'static str,
    pub(super) ahead: &'static str,
    pub(super) weekdays: [&'static str; 7],
    pub(super) zone: &'static str,
    pub(super) hours_in: fn(&str) -> String,
}

/// What surrounds each page.
pub(super) struct FrameTexts {
    pub(super) skip: &'static str,
    pub(super) pages: &'static str,
    pub(super) hours: &'static str,
    pub(super) nodes: &'static str,
    pub(super) store: &'static str,
    pub(super) locks: &'static str,
    pub(super) activity: &'static str,
    pub(super) help: &'static str,
    pub(super) api: &'static str,
    pub(super) settings: &'static str,
    pub(super) apply: &'static str,
    pub(super) language: &'static str,
    pub(super) theme: &'static str,
    pub(super) themes: [&'static str; 3],
    pub(super) refresh: &'static str,
    pub(super) refreshes: [&'static str; 3],
    pub(super) single_keys: &'static str,
    pub(super) login: &'static str,
    pub(super) logout: &'static str,
    pub(super) viewer: &'static str,
    pub(super) operator: &'static str,
    pub(super) store_well: fn(&str) -> String,
    pub(super) store_away: &'static str,
    pub(super) nodes_alive: fn(usize, usize) -> String,
    pub(super) files_same: fn(&str) -> String,
    pub(super) files_differ: &'static str,
    pub(super) data_age: fn(&str) -> String,
    pub(super) reading: &'static str,
    pub(super) draining: &'static str,
    pub(super) away_since: fn(&str) -> String,
    pub(super) away_since_unknown: &'static str,
    pub(super) away_why: fn(&str) -> String,
}

/// `/`.
pub(super) struct HomeTexts {
    pub(super) title: &'static str,
    pub(super) needs_you: &'static str,
    pub(super) well: fn(usize, usize) -> String,
    pub(super) nothing: &'static str,
    pub(super) looked: fn(&str, usize) -> String,
    pub(super) last_failure: fn(&str) -> String,
    pub(super) no_failure: &'static str,
    pub(super) filter: &'static str,
    pub(super) filter_hint: &'static str,
    pub(super) filter_do: &'static str,
    pub(super) sort: &'static str,
    pub(super) sorts: [&'static str; 3],
    pub(super) all: &'static str,
    pub(super) job: &'static str,
    pub(super) now: &'static str,
    pub(super) next: &'static str,
    pub(super) filled: fn(usize, usize) -> String,
    pub(super) no_jobs: &'static str,
    pub(super) no_jobs_file: &'static str,
    pub(super) no_jobs_exec: &'static str,
    pub(super) no_match: fn(&str) -> String,
    pub(super) no_match_all: &'static str,
    pub(super) page: fn(usize, usize) -> String,
    pub(super) newer_page: &'static str,
    pub(super) older_page: &'static str,
    pub(super) legend: &'static str,
    pub(super) grid: fn(usize) -> String,
    pub(super) open: &'static str,
    pub(super) cell_attempts: fn(&str, u32) -> String,
    pub(super) cell_count: fn(&str, u32, u32) -> String,
}

/// What the lines of NEEDS YOU and of the columns NOW and NEXT say.
pub(super) struct NeedTexts {
    pub(super) failed: fn(u32, u32) -> String,
    pub(super) missed: &'static str,
    pub(super) late: fn(&str) -> String,
    pub(super) files: fn(&str) -> String,
    pub(super) versions: fn(&str) -> String,
    pub(super) clock: fn(&str) -> String,
    pub(super) node_lost: &'static str,
    pub(super) store_away: &'static str,
    pub(super) undelivered: fn(&str) -> String,
    pub(super) since: fn(&str) -> String,
    pub(super) exit: fn(i32) -> String,
    pub(super) on_node: fn(&str) -> String,
    pub(super) failed_slots: fn(u32) -> String,
    pub(super) nobody_tries: &'static str,
    pub(super) done_at: fn(&str) -> String,
    pub(super) running_on: fn(&str) -> String,
    pub(super) running_since: fn(&str, &str) -> String,
    pub(super) retry_in: fn(&str) -> String,
    pub(super) retry_soon: &'static str,
    pub(super) waiting: &'static str,
    pub(super) not_due: &'static str,
    pub(super) missed_at: fn(&str) -> String,
    pub(super) skipped_at: fn(&str) -> String,
    pub(super) paused: &'static str,
    pub(super) paused_until: fn(&str) -> String,
    pub(super) disabled: &'static str,
    pub(super) orphaned: &'static str,
    pub(super) no_next: &'static str,
    pub(super) count_in: fn(u32, u32, &str) -> String,
}

/// `/jobs/J`.
pub(super) struct JobTexts {
    pub(super) schedule: &'static str,
    pub(super) zone: &'static str,
    pub(super) slot_spans: &'static str,
    pub(super) origin: &'static str,
    pub(super) owner: &'static str,
    pub(super) runbook: &'static str,
    pub(super) tags: &'static str,
    pub(super) attempts: &'static str,
    pub(super) timeout: &'static str,
    pub(super) no_timeout: &'static str,
    pub(super) defined: &'static str,
    pub(super) differs: fn(&str) -> String,
    pub(super) next_ticks: &'static str,
    pub(super) no_ticks: &'static str,
    pub(super) recent: fn(usize) -> String,
    pub(super) recent_hour: fn(&str) -> String,
    pub(super) durations: fn(&str, &str) -> String,
    pub(super) no_durations: &'static str,
    pub(super) chart: fn(usize) -> String,
    pub(super) slot: &'static str,
    pub(super) state: &'static str,
    pub(super) took: &'static str,
    pub(super) by: &'static str,
    pub(super) last_success: &'static str,
    pub(super) failing_since: &'static str,
    pub(super) never: &'static str,
    pub(super) older: &'static str,
    pub(super) from_registry: &'static str,
    pub(super) only_on: &'static str,
}

/// `/jobs/J/S` and its outputs.
pub(super) struct SlotTexts {
    pub(super) failed: fn(u32, u32) -> String,
    pub(super) missed: &'static str,
    pub(super) done: fn(&str, u32) -> String,
    pub(super) done_by_hand: fn(&str) -> String,
    pub(super) running: fn(&str, u32, u32) -> String,
    pub(super) retrying: fn(u32, u32) -> String,
    pub(super) retry_at: fn(&str) -> String,
    pub(super) pending: &'static str,
    pub(super) not_begun: fn(&str) -> String,
    pub(super) skipped: &'static str,
    pub(super) why: &'static str,
    pub(super) fix: &'static str,
    pub(super) copy: &'static str,
    pub(super) copied: &'static str,
    pub(super) timeline: &'static str,
    pub(super) timeline_of: fn(usize) -> String,
    pub(super) attempts: &'static str,
    pub(super) no_attempts: &'static str,
    pub(super) attempt: fn(u32) -> String,
    pub(super) node: &'static str,
    pub(super) trigger: &'static str,
    pub(super) fence: &'static str,
    pub(super) output: &'static str,
    pub(super) no_output: &'static str,
    pub(super) whole_output: &'static str,
    pub(super) raw_output: &'static str,
    pub(super) dropped: fn(u64) -> String,
    pub(super) decisions: &'static str,
    pub(super) no_decisions: &'static str,
    pub(super) audit: &'static str,
    pub(super) no_audit: &'static str,
    pub(super) keys: &'static str,
    pub(super) previous: &'static str,
    pub(super) following: &'static str,
    pub(super) from_to: fn(&str, &str) -> String,
    pub(super) actions: &'static str,
    pub(super) did: fn(&str) -> String,
    pub(super) did_nothing: &'static str,
    pub(super) cut: fn(&str) -> String,
}

/// `/nodes`, `/store`, `/locks`, `/activity`.
pub(super) struct ClusterTexts {
    pub(super) node: &'static str,
    pub(super) state: &'static str,
    pub(super) seen: &'static str,
    pub(super) started: &'static str,
    pub(super) version: &'static str,
    pub(super) clock: &'static str,
    pub(super) file: &'static str,
    pub(super) differs: &'static str,
    pub(super) running: &'static str,
    pub(super) labels: &'static str,
    pub(super) no_nodes: &'static str,
    pub(super) where_: &'static str,
    pub(super) kind: &'static str,
    pub(super) latency: &'static str,
    pub(super) reached: &'static str,
    pub(super) not_reached: &'static str,
    pub(super) namespace: &'static str,
    pub(super) examine: &'static str,
    pub(super) examine_writes: &'static str,
    pub(super) examine_operators: &'static str,
    pub(super) check: &'static str,
    pub(super) found: &'static str,
    pub(super) lock: &'static str,
    pub(super) held: &'static str,
    pub(super) waiting: &'static str,
    pub(super) holder: &'static str,
    pub(super) no_locks: &'static str,
    pub(super) locks_absent: &'static str,
    pub(super) unlimited: &'static str,
    pub(super) when: &'static str,
    pub(super) what: &'static str,
    pub(super) no_activity: &'static str,
    pub(super) activity_of: fn(&str) -> String,
}

/// Forms of the actions.
pub(super) struct ActTexts {
    pub(super) label: fn(&str) -> &'static str,
    pub(super) heading: fn(&str, &str) -> String,
    pub(super) effect: &'static str,
    pub(super) undo: &'static str,
    pub(super) command: &'static str,
    pub(super) reason: &'static str,
    pub(super) reason_required: &'static str,
    pub(super) reason_optional: &'static str,
    pub(super) confirm: fn(&str) -> String,
    pub(super) until: &'static str,
    pub(super) until_hint: &'static str,
    pub(super) back: &'static str,
    pub(super) off_away: &'static str,
    pub(super) needless: &'static str,
    pub(super) audited: fn(&str) -> String,
    pub(super) changed: &'static str,
}

/// `/login`, `/help`, and what went wrong.
pub(super) struct OtherTexts {
    pub(super) login_title: &'static str,
    pub(super) token: &'static str,
    pub(super) token_hint: &'static str,
    pub(super) token_wrong: &'static str,
    pub(super) keys_title: &'static str,
    pub(super) keys: [(&'static str, &'static str); 14],
    pub(super) states_title: &'static str,
    pub(super) filter_title: &'static str,
    pub(super) filters: [(&'static str, &'static str); 6],
    pub(super) addresses_title: &'static str,
    pub(super) addresses: [(&'static str, &'static str); 4],
    pub(super) home: &'static str,
    pub(super) problem: fn(u16) -> &'static str,
    pub(super) problem_do: fn(u16) -> &'static str,
    pub(super) problem_said: &'static str,
}

/// What the script says.
pub(super) struct LiveTexts {
    pub(super) live: &'static str,
    pub(super) polling: &'static str,
    pub(super) off: &'static str,
    pub(super) lost: &'static str,
    pub(super) moved: &'static str,
    pub(super) sort: &'static str,
    pub(super) changed: &'static str,
    pub(super) data_age: &'static str,
    pub(super) browser_zone: &'static str,
}
