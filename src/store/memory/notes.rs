//! What was noted on slots, beside the ledger's own records. No rule reads it.

use chrono::{DateTime, Utc};

use crate::slot::{NotePage, Slot};
use crate::store::memory::ledger::{Ledger, id};
use crate::store::state::Moment;

impl Ledger {
    /// Keeps pages ([`crate::store::Store::note`]).
    pub fn note(&mut self, pages: &[(Slot, NotePage)], now: DateTime<Utc>) {
        let at = self.at(now);
        for (slot, page) in pages {
            let noted = self.notes.entry(id(slot)).or_default();
            if !noted.is_kept(at) {
                noted.pages.clear();
            }
            noted.kept_from = now.max(slot.end());
            noted.pages.insert(page.id.clone(), page.clone());
            let kept = noted.pages.values().map(|page| (page.last, page.id.clone(), ())).collect();
            for (id, ()) in NotePage::surplus(kept) {
                noted.pages.remove(&id);
            }
        }
    }

    /// The slot's pages ([`crate::store::Store::notes`]).
    pub fn notes(&self, slot: &Slot, now: DateTime<Utc>) -> Vec<NotePage> {
        let noted = self.notes.get(&id(slot)).filter(|noted| noted.is_kept(self.at(now)));
        let mut pages: Vec<NotePage> = noted.into_iter().flat_map(|noted| noted.pages.values().cloned()).collect();
        NotePage::sort(&mut pages);
        pages
    }

    /// The slot's pages become as old as can be: for probes.
    pub fn age_notes(&mut self, slot: &Slot) {
        if let Some(noted) = self.notes.get_mut(&id(slot)) {
            noted.kept_from = DateTime::UNIX_EPOCH;
        }
    }

    /// Removes what was kept for its time.
    pub(super) fn purge_notes(&mut self, at: Moment) {
        self.notes.retain(|_, noted| noted.is_kept(at));
    }
}
