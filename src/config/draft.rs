//! A job of the file while it is read and checked: what could be read of it, and where each of its keys stands.

use std::ops::Range;
use std::rc::Rc;

use crate::config::NodeConfig;
use crate::config::settings::Places;
use crate::job::JobSpec;
use crate::schedule::Timetable;

/// A job as far as it could be read.
pub(super) struct Draft {
    pub(super) spec: JobSpec,
    /// Its ticks and slots; none when its schedule cannot be used.
    pub(super) timetable: Option<Timetable>,
    /// Where its name is.
    pub(super) name: Range<usize>,
    /// Where its own keys are.
    pub(super) own: Places,
    /// Where the keys of `[defaults]` are.
    pub(super) inherited: Rc<Places>,
    /// Whether nothing was wrong with it so far.
    pub(super) sound: bool,
}

impl Draft {
    /// Where the job itself says this.
    pub(super) fn own(&self, key: &str) -> Option<Range<usize>> {
        self.own.get(key).cloned()
    }

    /// Where the file says this of the job: in the job, or in `[defaults]`.
    pub(super) fn place(&self, key: &str) -> Option<Range<usize>> {
        self.own(key).or_else(|| self.inherited.get(key).cloned())
    }

    /// The same; the job's name when the file does not say it.
    pub(super) fn place_or_name(&self, key: &str) -> Range<usize> {
        self.place(key).unwrap_or_else(|| self.name.clone())
    }

    /// A label that the job asks for and the node does not have.
    pub(super) fn missing_label(&self, node: &NodeConfig) -> Option<(&String, &String)> {
        self.spec.only_on.iter().find(|(key, value)| node.labels.get(*key) != Some(*value))
    }

    /// Whether the node has every label that the job asks for.
    pub(super) fn is_selected(&self, node: &NodeConfig) -> bool {
        self.missing_label(node).is_none()
    }
}
