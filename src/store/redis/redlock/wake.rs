//! Hints from any master are hints. Each is passed on: the first tells that something changed, the later ones that more
//! masters know of it, and the guard looks no more often than its own waits allow.

use std::sync::{Mutex, PoisonError};

use tokio::sync::broadcast;
use tokio_util::task::AbortOnDropHandle;

use crate::store::contract::pass_on;
use crate::store::{Wake, Wakeups};

/// Hints that a receiver may lag behind by before it has lost some.
const HINTS: usize = 4_096;

/// Those who listen, and the tasks that bring them every master's hints.
#[derive(Debug)]
pub(super) struct Chorus {
    hints: broadcast::Sender<Wake>,
    voices: Mutex<Vec<AbortOnDropHandle<()>>>,
}

impl Default for Chorus {
    fn default() -> Self {
        Self { hints: broadcast::Sender::new(HINTS), voices: Mutex::default() }
    }
}

impl Chorus {
    /// Hints from now on; `voices` are the masters' own, asked for once. Outside of a runtime there are none.
    pub(super) fn subscribe(&self, voices: impl FnOnce() -> Vec<Wakeups>) -> Wakeups {
        let hints = self.hints.subscribe();
        let mut tasks = self.voices.lock().unwrap_or_else(PoisonError::into_inner);
        if tasks.is_empty()
            && let Ok(runtime) = tokio::runtime::Handle::try_current()
        {
            let pass = |voice| AbortOnDropHandle::new(runtime.spawn(pass_on(voice, self.hints.clone())));
            *tasks = voices().into_iter().map(pass).collect();
        }
        hints
    }
}
