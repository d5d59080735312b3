//! A door for the fuzz target: any bytes as an answer of etcd, decoded as each message that is asked for, and what stands in
//! its keys and values read. Only behind its feature.

use prost::Message;

use super::api::{
    AuthenticateResponse, KeyValue, LeaseGrantResponse, LeaseKeepAliveResponse, LeaseTimeToLiveResponse, OpReply,
    RangeResponse, TxnResponse, WatchResponse,
};
use super::fault::Fault;
use super::keys::Keys;
use super::locks::queue;
use super::read::{read_counter, read_document, read_json};
use crate::clock::later;
use crate::slot::OutputTail;
use crate::store::codec::{MarkText, NodeText, NoteText, PauseText};
use crate::store::{JobEntry, Op, StoreOptions, Wake};

/// An answer as it comes over the wire, without the frame of gRPC. True when it holds something that is read: a value that
/// cronward could have written, or another message with all that it needs.
pub fn etcd_reply(bytes: &[u8]) -> bool {
    let range = decode::<RangeResponse>(bytes).map(|range| range.kvs);
    let step = decode::<TxnResponse>(bytes).map(|answer| {
        let ranges = answer.responses.into_iter().filter_map(|response| response.response);
        ranges.flat_map(|OpReply::Range(range)| range.kvs).collect()
    });
    let watch = decode::<WatchResponse>(bytes);
    let told = watch.map(|watch| watch.events.into_iter().filter_map(|event| event.kv).collect());
    let found: Vec<KeyValue> = [range, step, told].into_iter().flatten().flatten().collect();
    assert!(found.len() <= 3 * bytes.len(), "no more comes out than went in");
    let taken = found.iter().filter(|kv| is_read(kv)).count();
    let lease = decode::<LeaseGrantResponse>(bytes).is_some_and(|lease| lease.id != 0);
    decode::<LeaseKeepAliveResponse>(bytes);
    decode::<LeaseTimeToLiveResponse>(bytes);
    decode::<AuthenticateResponse>(bytes);
    taken > 0 || lease
}

/// What is decoded is the same when it is encoded and decoded again.
fn decode<T: Message + Default + PartialEq>(bytes: &[u8]) -> Option<T> {
    let value = T::decode(bytes).ok()?;
    let again = T::decode(&*value.encode_to_vec()).ok();
    assert!(again.as_ref() == Some(&value), "it is read back as something else");
    Some(value)
}

/// A key and its value, as each thing that is kept; what is refused is told in one line.
fn is_read(kv: &KeyValue) -> bool {
    names(&kv.key);
    let mark = MarkText::read(&kv.value).map_err(|why| Fault::foreign(&String::from_utf8_lossy(&kv.key), &why));
    let wake = std::str::from_utf8(&kv.value).ok().and_then(|text| text.parse::<Wake>().ok());
    let taken = [
        told(mark),
        told(read_counter(Some(kv))),
        told(read_document(Some(kv))),
        told(read_json::<OutputTail>(kv)),
        told(read_json::<JobEntry>(kv)),
        told(read_json::<NodeText>(kv)),
        told(read_json::<PauseText>(kv)),
        told(read_json::<NoteText>(kv).map(|text| later(text.kept_from, StoreOptions::default().retention))),
    ];
    taken.contains(&true) || wake.is_some() || is_lock(kv)
}

/// A lock's queue. Each of its parts may be absent, so that any object is one.
fn is_lock(kv: &KeyValue) -> bool {
    let queue = queue(kv);
    let is_used = queue.as_ref().is_ok_and(|(_, (state, _))| !state.is_untouched());
    told(queue) && is_used
}

fn names(key: &[u8]) {
    let keys = Keys::new(&StoreOptions::default().namespace);
    if let Some((job, slot)) = keys.slot_key_of(key) {
        assert!(!job.as_str().is_empty() && slot.to_string().parse() == Ok(slot));
    }
    let _ = Keys::name_of(key);
}

fn told<T>(outcome: Result<T, Fault>) -> bool {
    match outcome {
        Ok(_) => true,
        Err(fault) => {
            let message = fault.into_error(Op::Inspect, false, "etcd://h").to_string();
            assert!(!message.chars().any(crate::text::is_harmful), "not one harmless line: {message:?}");
            assert!(message.chars().count() <= 4_000, "{} bytes of message", message.len());
            false
        }
    }
}
