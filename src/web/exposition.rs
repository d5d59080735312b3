//! Figures as Prometheus reads them: who may add some, and those of the port itself.

use std::collections::BTreeMap;
use std::fmt::{self, Write};
use std::sync::{Mutex, PoisonError};

use crate::metrics::Metrics;

/// Something that has figures to show.
pub trait Exposition: fmt::Debug + Send + Sync {
    /// Writes them in the text format 0.0.4, each family once. Asks no store.
    ///
    /// # Errors
    /// Whatever `out` fails with.
    fn write(&self, out: &mut dyn Write) -> fmt::Result;
}

impl Exposition for Metrics {
    fn write(&self, out: &mut dyn Write) -> fmt::Result {
        self.write_now(out)
    }
}

/// How many requests were answered, by their route and by how.
#[derive(Debug, Default)]
pub(super) struct Requests(Mutex<BTreeMap<(&'static str, u16), u64>>);

impl Requests {
    /// Counts one. `route` is that of the table, never the path: whoever asks would make as many figures as they like.
    pub(super) fn count(&self, route: &'static str, code: u16) {
        let mut counts = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let count = counts.entry((route, code)).or_default();
        *count = count.saturating_add(1);
    }

    /// Writes them, and how many streams there are.
    pub(super) fn write(&self, namespace: &str, streams: usize, out: &mut dyn Write) -> fmt::Result {
        let namespace = escaped(namespace);
        writeln!(
            out,
            "# HELP cronward_http_streams Streams of events that are open.\n# TYPE cronward_http_streams gauge\ncronward_http_streams{{namespace=\"{namespace}\"}} {streams}"
        )?;
        writeln!(
            out,
            "# HELP cronward_http_requests_total Requests answered on the port.\n# TYPE cronward_http_requests_total counter"
        )?;
        let counts = self.0.lock().unwrap_or_else(PoisonError::into_inner).clone();
        for ((route, code), count) in counts {
            writeln!(
                out,
                "cronward_http_requests_total{{namespace=\"{namespace}\",route=\"{route}\",code=\"{code}\"}} {count}"
            )?;
        }
        Ok(())
    }
}

/// As it stands between the quotes of a label.
fn escaped(value: &str) -> String {
    value.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n")
}
