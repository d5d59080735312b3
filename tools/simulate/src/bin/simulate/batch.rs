//! What came of a batch of worlds, as text and as JSON.

use std::io::Write;
use std::path::Path;
use std::time::Duration;

use serde_json::{Map, Value, json};
use simulate::{Bug, Control, Summary};

/// From the end of a dead node's lease to the next grant, by the protocol: its second.
const RECOVERY_BOUND: Duration = Duration::from_secs(1);

/// A batch.
#[derive(Default)]
pub(crate) struct Batch {
    pub(crate) summary: Summary,
    /// The first seed, and the one after the last.
    pub(crate) seeds: Option<(u64, u64)>,
    /// The same of the seeds that were drawn anew: those from this one on.
    pub(crate) fresh: Option<(u64, u64)>,
    pub(crate) fresh_from: u64,
    pub(crate) broken: u64,
    /// Worlds of which the checker of journals and the simulator's own judge say different things.
    pub(crate) disagreements: u64,
    pub(crate) took: Duration,
    /// Bugs that were put in on purpose and found.
    pub(crate) controls: Vec<Control>,
    /// Bugs that were put in and that nothing caught.
    pub(crate) missed: Vec<Bug>,
}

impl Batch {
    pub(crate) fn add(&mut self, seed: u64, summary: &Summary) {
        let seeds = if seed < self.fresh_from { &mut self.seeds } else { &mut self.fresh };
        let first = seeds.map_or(seed, |(first, _)| first);
        *seeds = Some((first, seed.saturating_add(1)));
        self.summary.add(summary);
    }

    fn slots_per_second(&self) -> f64 {
        #[allow(clippy::cast_precision_loss, reason = "a figure for people")]
        let slots = self.summary.classes.slots as f64;
        slots / self.took.as_secs_f64().max(f64::MIN_POSITIVE)
    }

    pub(crate) fn print(&self) {
        println!("{}", self.summary);
        if let Some(recovery) = self.recovery() {
            println!("next grant after the lease of a dead node, in seconds: {recovery}");
        }
        if let Some((first, next)) = self.fresh {
            println!("fresh seeds: --seeds {first}..{next} repeats them");
        }
        println!("{} worlds broke a promise; {:.0} slots/s", self.broken, self.slots_per_second());
    }

    /// Whether the next grant always came in time, where another node was well and waited.
    pub(crate) fn recovers_in_time(&self) -> bool {
        self.summary.recovery_ms(100).is_none_or(|most| Duration::from_millis(most) <= RECOVERY_BOUND)
    }

    fn recovery(&self) -> Option<Value> {
        #[allow(clippy::cast_precision_loss, reason = "milliseconds within a minute")]
        let seconds = |percent| self.summary.recovery_ms(percent).map(|ms| ms as f64 / 1_000.0);
        let (p50, p99, max) = (seconds(50)?, seconds(99)?, seconds(100)?);
        let of = "from the end of a dead node's lease to the next grant, where another node was well and waited";
        Some(json!({"p50": p50, "p99": p99, "max": max, "bound": RECOVERY_BOUND.as_secs_f64(), "of": of}))
    }

    fn json(&self) -> Value {
        let counts = |rows: Vec<(&'static str, u64)>| -> Map<String, Value> {
            rows.into_iter().map(|(name, count)| (name.to_owned(), count.into())).collect()
        };
        let (first, next) = self.seeds.unwrap_or_default();
        let controls = self.controls.iter().map(|control| {
            let (bug, check) = (format!("{:?}", control.bug), format!("{:?}", control.finding.check));
            let judged = control.judged.as_ref().map(|(seed, text)| json!({"seed": seed, "text": text}));
            json!({"bug": bug, "check": check, "seed": control.seed, "slots": control.slots, "text": control.finding.text, "journals": judged})
        });
        let missed = self.missed.iter().map(|bug| json!({"bug": format!("{bug:?}"), "check": null}));
        let mut all = json!({
            "seeds": [first, next],
            "fresh": self.fresh,
            "worlds": self.summary.worlds,
            "short": self.summary.short,
            "locked": self.summary.locked,
            "changes_of_offset": self.summary.changes_of_offset,
            "slots": self.summary.classes.slots,
            "judged": {"worlds": self.summary.judged, "slots": self.summary.judged_slots, "disagreements": self.disagreements},
            "faults": counts(self.summary.faults.iter().map(|(name, count)| (*name, *count)).collect()),
            "classes": counts(self.summary.classes.named()),
            "broken": self.broken,
            "slots_per_second": self.slots_per_second().round(),
            "seconds": self.took.as_secs_f64(),
            "controls": controls.chain(missed).collect::<Vec<_>>(),
        });
        if let (Some(recovery), Some(all)) = (self.recovery(), all.as_object_mut()) {
            all.insert("recovery_s".to_owned(), recovery);
        }
        all
    }

    /// Writes the JSON; the file's folder is made if it is missing.
    pub(crate) fn write(&self, path: &Path) -> std::io::Result<()> {
        let text = format!("{}\n", self.json());
        if path == Path::new("-") {
            return std::io::stdout().write_all(text.as_bytes());
        }
        if let Some(folder) = path.parent().filter(|folder| !folder.as_os_str().is_empty()) {
            std::fs::create_dir_all(folder)?;
        }
        std::fs::write(path, text)
    }
}
