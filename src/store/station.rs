//! One of several servers, each with users and rights of its own: what is allowed at one may be refused at the next. Asks nothing.

use std::fmt;
use std::sync::Arc;

use crate::job::JobName;
use crate::store::Store;

/// Says of a job whether its slots are kept there.
type Keeps = Box<dyn Fn(&JobName) -> bool + Send + Sync>;

/// One of several servers that a store stands on, to be tried by itself.
pub struct Station {
    /// What is asked of it about the slots of a job that [`Station::keeps`] reaches this server; an error that a server
    /// answered with names it.
    pub store: Arc<dyn Store>,
    /// Whether the others do its work while it is away.
    pub is_replaceable: bool,
    keeps: Keeps,
}

impl Station {
    /// A server that is asked about every job, as the others are.
    #[cfg(feature = "redis-redlock")]
    pub(super) fn of_all(store: Arc<dyn Store>) -> Self {
        Self { store, is_replaceable: true, keeps: Box::new(|_| true) }
    }

    /// A server that alone keeps some jobs' slots.
    #[cfg(feature = "redis-cluster")]
    pub(super) fn of_some(store: Arc<dyn Store>, keeps: impl Fn(&JobName) -> bool + Send + Sync + 'static) -> Self {
        Self { store, is_replaceable: false, keeps: Box::new(keeps) }
    }

    /// Whether it keeps the slots of this job.
    pub fn keeps(&self, job: &JobName) -> bool {
        (self.keeps)(job)
    }
}

impl fmt::Debug for Station {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { store, is_replaceable, keeps: _ } = self;
        f.debug_struct("Station").field("store", store).field("is_replaceable", is_replaceable).finish_non_exhaustive()
    }
}
