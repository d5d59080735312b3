//! A server that takes its time: it ends its fault on a thread of its own, while the run goes on.

use std::ops::{Deref, DerefMut};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;

/// Told when the fault is over, though the servers still tidy up.
#[derive(Clone, Default)]
pub(super) struct Over(Arc<AtomicBool>);

impl Over {
    pub(super) fn tell(&self) {
        self.0.store(true, Ordering::Release);
    }
}

/// Here, or away until its thread has ended. Whoever reaches for it while it is away panics.
pub(super) struct Busy<T> {
    here: Option<T>,
    away: Option<(JoinHandle<T>, Over)>,
}

impl<T: Send + 'static> Busy<T> {
    pub(super) fn new(here: T) -> Self {
        Self { here: Some(here), away: None }
    }

    /// Lets it do this by itself.
    pub(super) fn go(&mut self, work: impl FnOnce(&mut T, &Over) + Send + 'static) {
        let (mut here, over) = (self.here.take().expect("it is ready"), Over::default());
        let told = over.clone();
        let thread = std::thread::spawn(move || {
            work(&mut here, &told);
            told.tell();
            here
        });
        self.away = Some((thread, over));
    }

    pub(super) fn is_over(&self) -> bool {
        self.away.as_ref().is_none_or(|(thread, over)| over.0.load(Ordering::Acquire) || thread.is_finished())
    }

    /// Whether it is back; what its thread complained of is complained of here.
    pub(super) fn is_ready(&mut self) -> bool {
        if let Some((thread, _)) = self.away.take_if(|(thread, _)| thread.is_finished()) {
            self.here = Some(thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)));
        }
        self.here.is_some()
    }
}

impl<T> Deref for Busy<T> {
    type Target = T;

    fn deref(&self) -> &T {
        self.here.as_ref().expect("it is ready")
    }
}

impl<T> DerefMut for Busy<T> {
    fn deref_mut(&mut self) -> &mut T {
        self.here.as_mut().expect("it is ready")
    }
}

impl<T> Drop for Busy<T> {
    /// No server outlives its trial.
    fn drop(&mut self) {
        if let Some((thread, _)) = self.away.take() {
            let _ = thread.join();
        }
    }
}
