//! What the description of `/api/v1` is made of: forms, and addresses. A test holds the first against what is written, and the second
//! against the table of routes.

/// The fields of each form, with their kinds: `string`, `integer`, `number`, `boolean`, `time`, `object`, or the name of another form;
/// `[…]` is a list, and `?` says that it may be null.
pub(super) const FORMS: [(&str, &[(&str, &str)]); 28] = [
    (
        "Job",
        &[
            ("job", "string"),
            ("schedule", "string"),
            ("timezone", "string"),
            ("period", "string"),
            ("enabled", "boolean"),
            ("origin", "string"),
            ("command_conflict", "time?"),
            ("paused", "Pause?"),
            ("first_seen", "time?"),
            ("last_planned", "time?"),
            ("orphaned", "boolean"),
            ("next_tick", "time?"),
            ("latest", "Latest"),
            ("current", "Slot?"),
            ("no_start", "string?"),
        ],
    ),
    ("Pause", &[("since", "time"), ("until", "time?"), ("who", "string"), ("host", "string"), ("why", "string")]),
    ("Latest", &[("success", "Success?"), ("end", "End?"), ("failing", "Failing?")]),
    ("Success", &[("slot", "string"), ("at", "time")]),
    ("End", &[("slot", "string"), ("at", "time"), ("outcome", "string")]),
    ("Failing", &[("since", "string"), ("last", "string"), ("verdict", "string"), ("slots", "integer")]),
    (
        "Slot",
        &[
            ("job", "string"),
            ("slot", "string"),
            ("start", "time"),
            ("end", "time"),
            ("state", "string"),
            ("attempts", "integer"),
            ("max_attempts", "integer"),
            ("forgiven", "integer"),
            ("lease", "Lease?"),
            ("retry_in_s", "number?"),
            ("done", "Done?"),
            ("verdict", "Verdict?"),
            ("runs", "[Run]"),
            ("audit", "[Audit]"),
            ("latest", "Latest?"),
        ],
    ),
    ("Lease", &[("node", "string"), ("attempt", "integer"), ("token", "string"), ("remaining_s", "number")]),
    ("Done", &[("node", "string"), ("attempt", "integer"), ("at", "time")]),
    ("Verdict", &[("verdict", "string"), ("by", "string"), ("at", "time")]),
    (
        "Run",
        &[
            ("attempt", "integer"),
            ("node", "string"),
            ("fence", "integer"),
            ("trigger", "string"),
            ("started", "time"),
            ("ended", "time?"),
            ("ended_after", "time?"),
            ("outcome", "string?"),
            ("exit_code", "integer?"),
            ("signal", "integer?"),
            ("duration_s", "number?"),
            ("cpu_s", "number?"),
            ("message", "string?"),
            ("output_tail", "string?"),
            ("output_dropped_bytes", "integer"),
            ("output_loss", "string?"),
        ],
    ),
    ("Audit", &[("verb", "string"), ("who", "string"), ("host", "string"), ("why", "string"), ("at", "time")]),
    (
        "Why",
        &[
            ("job", "string"),
            ("slot", "string"),
            ("start", "time"),
            ("end", "time"),
            ("state", "string"),
            ("decisions", "[Decision]"),
            ("dropped", "integer"),
            ("unreadable", "string?"),
            ("sentence", "string"),
            ("fix", "string?"),
        ],
    ),
    (
        "Decision",
        &[
            ("at", "time"),
            ("until", "time?"),
            ("times", "integer"),
            ("node", "string?"),
            ("attempt", "integer?"),
            ("what", "string"),
            ("text", "string"),
        ],
    ),
    (
        "Node",
        &[
            ("node", "string"),
            ("instance", "string"),
            ("state", "string"),
            ("version", "string"),
            ("started", "time"),
            ("seen", "time"),
            ("clock_offset_s", "number"),
            ("config_hash", "string"),
            ("differs", "[string]"),
            ("zones", "string?"),
            ("zones_from", "string?"),
            ("zones_old", "boolean"),
            ("overdue", "boolean"),
            ("labels", "object"),
            ("running", "[string]"),
            ("behind", "[string]"),
        ],
    ),
    (
        "Store",
        &[
            ("location", "string"),
            ("kind", "string"),
            ("away_since", "time?"),
            ("refuses", "boolean"),
            ("error", "string?"),
            ("latency_ms", "integer?"),
            ("tells", "boolean"),
            ("now", "time"),
            ("read", "time?"),
            ("jobs", "integer"),
            ("concerns", "[Concern]"),
        ],
    ),
    ("Concern", &[("since", "time"), ("concern", "string")]),
    (
        "Tick",
        &[
            ("job", "string"),
            ("tick", "time"),
            ("local", "string"),
            ("slot", "string"),
            ("start", "time"),
            ("end", "time"),
            ("notes", "[string]"),
        ],
    ),
    (
        "Lock",
        &[
            ("lock", "string"),
            ("held", "integer"),
            ("limit", "integer?"),
            ("waiting", "integer"),
            ("oldest_wait_s", "number?"),
            ("queue", "[LockRequest]"),
            ("audit", "[Audit]"),
        ],
    ),
    (
        "LockRequest",
        &[
            ("place", "integer"),
            ("token", "string"),
            ("owner", "string"),
            ("node", "string"),
            ("label", "string"),
            ("demand", "string"),
            ("weight", "integer"),
            ("of", "integer?"),
            ("holds", "boolean"),
            ("ahead", "integer"),
            ("waits_for", "string?"),
            ("deadlocked", "boolean"),
            ("fence", "integer?"),
            ("asked", "time?"),
            ("since", "time?"),
            ("age_s", "number"),
            ("remaining_s", "number"),
        ],
    ),
    (
        "Change",
        &[
            ("verb", "string"),
            ("target", "string"),
            ("changed", "boolean"),
            ("undo", "string"),
            ("requests", "[object]"),
        ],
    ),
    ("Diagnosis", &[("store", "string"), ("kind", "string"), ("severity", "string"), ("findings", "[Finding]")]),
    (
        "Finding",
        &[("check", "string"), ("severity", "string"), ("found", "string"), ("effect", "string?"), ("fix", "string?")],
    ),
    ("Problem", &[("type", "string"), ("title", "string"), ("status", "integer"), ("detail", "string")]),
    // What a stream tells.
    ("Rows", &[("at", "time"), ("rows", "[object]")]),
    ("Cells", &[("at", "time"), ("hour", "time"), ("cells", "object"), ("filled", "integer")]),
    ("Hours", &[("at", "time"), ("hours", "[time]")]),
    ("Concerns", &[("at", "time"), ("count", "integer"), ("concerns", "[Concern]")]),
];

/// What can be asked for with GET.
pub(super) struct DescribedRead {
    pub(super) path: &'static str,
    pub(super) summary: &'static str,
    /// Of the query: name and kind.
    pub(super) query: &'static [(&'static str, &'static str)],
    pub(super) answer: Form,
}

/// What an answer is.
pub(super) enum Form {
    Json(&'static str),
    Text,
    Events,
    Object,
}

const fn reading(
    path: &'static str,
    summary: &'static str,
    query: &'static [(&'static str, &'static str)],
    answer: Form,
) -> DescribedRead {
    DescribedRead { path, summary, query, answer }
}

/// Every address below `/api/v1` that is read.
pub(super) const READINGS: [DescribedRead; 13] = [
    reading(
        "/api/v1/jobs",
        "Every job that the filter q wants, a page at a time",
        &[("q", "string"), ("page", "positive"), ("per_page", "page")],
        Form::Json("[Job]"),
    ),
    reading("/api/v1/jobs/{job}", "One job", &[], Form::Json("Job")),
    reading(
        "/api/v1/jobs/{job}/slots",
        "A job's slots, newest first",
        &[("before", "string"), ("limit", "page")],
        Form::Json("[Slot]"),
    ),
    reading("/api/v1/slots/{job}/{slot}", "One slot with its attempts and their outputs", &[], Form::Json("Slot")),
    reading("/api/v1/slots/{job}/{slot}/why", "Why a slot ran or did not", &[], Form::Json("Why")),
    reading(
        "/api/v1/slots/{job}/{slot}/logs",
        "What is kept of the output of an attempt, the newest where none is named",
        &[("attempt", "count")],
        Form::Text,
    ),
    reading(
        "/api/v1/attempts",
        "Slots that are not done, newest first",
        &[("job", "string"), ("since", "string"), ("state", "string")],
        Form::Json("[Slot]"),
    ),
    reading("/api/v1/nodes", "Every node", &[], Form::Json("[Node]")),
    reading("/api/v1/store", "How the store is, and what needs a person", &[], Form::Json("Store")),
    reading(
        "/api/v1/next",
        "The next scheduled times",
        &[("job", "string"), ("count", "ticks"), ("from", "time")],
        Form::Json("[Tick]"),
    ),
    reading("/api/v1/locks", "Every lock that somebody holds or waits for", &[], Form::Json("[Lock]")),
    reading("/api/v1/events", "What changes, as server-sent events", &[("after", "string")], Form::Events),
    reading("/api/v1/openapi.json", "This description", &[], Form::Object),
];

/// What changes something, with POST.
pub(super) struct DescribedWrite {
    pub(super) path: &'static str,
    pub(super) summary: &'static str,
    /// Whether it takes the fields of an action.
    pub(super) takes: bool,
    pub(super) answer: &'static str,
}

/// Every address below `/api/v1` that something is posted to.
pub(super) const WRITINGS: [DescribedWrite; 5] = [
    DescribedWrite {
        path: "/api/v1/slots/{job}/{slot}/{action}",
        summary: "Act on a slot: reset, unlock, mark-done, trigger or retry",
        takes: true,
        answer: "Change",
    },
    DescribedWrite {
        path: "/api/v1/jobs/{job}/trigger",
        summary: "Run the current slot here",
        takes: true,
        answer: "Change",
    },
    DescribedWrite {
        path: "/api/v1/jobs/{job}/pause",
        summary: "Start no slot of the job",
        takes: true,
        answer: "Change",
    },
    DescribedWrite { path: "/api/v1/jobs/{job}/resume", summary: "End the pause", takes: true, answer: "Change" },
    DescribedWrite { path: "/api/v1/store/examine", summary: "Try the store", takes: false, answer: "Diagnosis" },
];
