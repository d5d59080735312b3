//! Notes on slots: a key for each page, beside the keys of the slot. No rule reads them, so nothing is compared.

use super::api::{
    ASCEND, Answer, BY_CHANGE, KeyValue, RangeRequest, RangeResponse, RequestOp, TxnRequest, TxnResponse, delete,
    method, put, unchanged,
};
use super::fault::Fault;
use super::slots::{json, read_json};
use super::store::{Call, EtcdStore};
use crate::clock::later;
use crate::slot::{MOST_PAGES, NotePage, Slot};
use crate::store::document::NoteText;
use crate::store::shelf::Notes;

/// Pages of one transaction, two operations each: a server takes 128 (`--max-txn-ops`).
const AT_ONCE: usize = 50;

/// The most pages that one purge looks at, and that go in one transaction.
const PURGE_AT_ONCE: i64 = 1_000;
const PURGE_IN_ONE: usize = 50;

impl Notes for EtcdStore {
    async fn note_pages(&self, call: &Call, pages: &[(Slot, NotePage)]) -> Result<(), Fault> {
        for part in pages.chunks(AT_ONCE) {
            let now = self.moment().now;
            let mut success = Vec::with_capacity(part.len() * 2);
            for (slot, page) in part {
                let text = NoteText { kept_from: now.max(slot.end()), page: page.clone() };
                success.push(put(&self.keys.note(slot, &page.id), json(&text)?, 0));
            }
            // How many there are, with those that were changed the longest ago; what this very step writes is counted.
            success.extend(part.iter().map(|(slot, _)| RequestOp::from(self.oldest(slot))));
            call.sending();
            let answer: TxnResponse = self.link.call(method::TXN, TxnRequest::when(Vec::new(), success)).await?;
            call.answered();
            self.trim(call, answer).await?;
        }
        Ok(())
    }

    async fn notes_known(&self, slot: &Slot) -> Result<Vec<NotePage>, Fault> {
        let found = self.read(vec![RangeRequest::prefix(&self.keys.notes(slot))]).await?;
        let at = self.moment();
        let mut pages = Vec::new();
        for kv in found.iter().flatten() {
            let text: NoteText = read_json(kv)?;
            pages.extend((later(text.kept_from, at.retention) > at.now).then_some(text.page));
        }
        NotePage::sort(&mut pages);
        Ok(pages)
    }
}

impl EtcdStore {
    fn oldest(&self, slot: &Slot) -> RangeRequest {
        let all = RangeRequest::prefix(&self.keys.notes(slot));
        RangeRequest { limit: 1, sort_order: ASCEND, sort_target: BY_CHANGE, ..all }
    }

    async fn trim(&self, call: &Call, answer: TxnResponse) -> Result<(), Fault> {
        let most = i64::try_from(MOST_PAGES).unwrap_or(i64::MAX);
        for response in answer.responses {
            let Some(Answer::Range(RangeResponse { kvs, count })) = response.response else { continue };
            // A page at a time: each step adds few, and there is always a next one.
            if let Some(kv) = kvs.first().filter(|_| count > most) {
                let key = String::from_utf8_lossy(&kv.key);
                let (compare, success) = (vec![unchanged(&key, kv.mod_revision)], vec![delete(&key)]);
                self.commit(call, TxnRequest::when(compare, success)).await?;
            }
        }
        Ok(())
    }

    /// Removes a batch of what is older than the retention.
    pub(super) async fn remove_old_notes(&self, call: &Call) -> Result<(), Fault> {
        let all = RangeRequest::prefix(&self.keys.all_notes());
        let oldest = RangeRequest { limit: PURGE_AT_ONCE, sort_order: ASCEND, sort_target: BY_CHANGE, ..all };
        let at = self.moment();
        let mut old: Vec<KeyValue> = Vec::new();
        for kv in self.read(vec![oldest]).await?.into_iter().flatten() {
            let text: NoteText = read_json(&kv)?;
            old.extend((later(text.kept_from, at.retention) <= at.now).then_some(kv));
        }
        for part in old.chunks(PURGE_IN_ONE) {
            let success = part.iter().map(|kv| delete(&String::from_utf8_lossy(&kv.key))).collect();
            self.commit(call, TxnRequest::when(Vec::new(), success)).await?;
        }
        Ok(())
    }
}
