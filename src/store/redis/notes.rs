//! Notes on slots, as they are sent: one script for many slots. Nothing here is asked for by a rule.

use futures_util::future::try_join_all;

use super::adapter::SLOTS_AT_ONCE;
use super::script::{self, Args};
use super::store::{RedisStore, whole_millis};
use crate::slot::{MOST_PAGES, NotePage, Slot};
use crate::store::{Op, StoreError};

impl RedisStore {
    /// Keeps pages; those of one part are kept in one step.
    pub(super) async fn note_pages(&self, pages: &[(Slot, NotePage)]) -> Result<(), StoreError> {
        // Where servers share the keys, those of one job are with one of them.
        let of_one_job = pages.chunk_by(|(a, _), (b, _)| !self.route.is_shared() || a.job() == b.job());
        let parts = of_one_job.flat_map(|pages| pages.chunks(SLOTS_AT_ONCE));
        try_join_all(parts.map(async |part| self.note_part(part).await)).await.map(drop)
    }

    async fn note_part(&self, part: &[(Slot, NotePage)]) -> Result<(), StoreError> {
        let keys: Vec<String> = part.iter().map(|(slot, _)| self.keys.notes(slot)).collect();
        let about = keys.first().cloned().unwrap_or_default();
        let mut args = Args::keys(keys).arg(whole_millis(self.options.retention)).arg(MOST_PAGES);
        for (slot, page) in part {
            let text = serde_json::to_string(page).unwrap_or_default();
            args = args.arg(slot.end().timestamp_millis()).arg(&page.id).arg(text);
        }
        self.ask((Op::Note, &about), &script::NOTE, &args, |_| Ok(())).await
    }
}
