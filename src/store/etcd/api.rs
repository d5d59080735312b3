//! The part of etcd's API (`rpc.proto`, `kv.proto`, version 3.4) that is used, written out by hand: prost derives the
//! encoding, so that no build needs `protoc`. A field's number is its name on the wire; fields that nobody here reads are
//! left out, and skipped when they come. Messages only; nothing here talks to a server.

use prost::{Message, Oneof};

/// Methods of the services, as they stand in a request.
pub(super) mod method {
    pub(in crate::store::etcd) const RANGE: &str = "/etcdserverpb.KV/Range";
    pub(in crate::store::etcd) const TXN: &str = "/etcdserverpb.KV/Txn";
    pub(in crate::store::etcd) const LEASE_GRANT: &str = "/etcdserverpb.Lease/LeaseGrant";
    pub(in crate::store::etcd) const LEASE_REVOKE: &str = "/etcdserverpb.Lease/LeaseRevoke";
    pub(in crate::store::etcd) const LEASE_KEEP_ALIVE: &str = "/etcdserverpb.Lease/LeaseKeepAlive";
    pub(in crate::store::etcd) const LEASE_TIME_TO_LIVE: &str = "/etcdserverpb.Lease/LeaseTimeToLive";
    pub(in crate::store::etcd) const AUTHENTICATE: &str = "/etcdserverpb.Auth/Authenticate";
    pub(in crate::store::etcd) const STATUS: &str = "/etcdserverpb.Maintenance/Status";
    pub(in crate::store::etcd) const ALARM: &str = "/etcdserverpb.Maintenance/Alarm";
    pub(in crate::store::etcd) const MEMBER_LIST: &str = "/etcdserverpb.Cluster/MemberList";
    pub(in crate::store::etcd) const WATCH: &str = "/etcdserverpb.Watch/Watch";
}

#[derive(Clone, Copy, PartialEq, Eq, Message)]
pub(super) struct ResponseHeader {
    #[prost(int64, tag = "3")]
    pub(super) revision: i64,
}

#[derive(Clone, PartialEq, Eq, Message)]
pub(super) struct KeyValue {
    #[prost(bytes = "vec", tag = "1")]
    pub(super) key: Vec<u8>,
    #[prost(int64, tag = "3")]
    pub(super) mod_revision: i64,
    #[prost(bytes = "vec", tag = "5")]
    pub(super) value: Vec<u8>,
    #[prost(int64, tag = "6")]
    pub(super) lease: i64,
}

#[derive(Clone, PartialEq, Eq, Message)]
pub(super) struct RangeRequest {
    #[prost(bytes = "vec", tag = "1")]
    pub(super) key: Vec<u8>,
    #[prost(bytes = "vec", tag = "2")]
    pub(super) range_end: Vec<u8>,
    #[prost(int64, tag = "3")]
    pub(super) limit: i64,
    #[prost(int32, tag = "5")]
    pub(super) sort_order: i32,
    #[prost(int32, tag = "6")]
    pub(super) sort_target: i32,
}

/// `SortOrder.ASCEND` and `SortTarget.MOD`.
pub(super) const ASCEND: i32 = 1;
pub(super) const BY_CHANGE: i32 = 3;

#[derive(Clone, PartialEq, Eq, Message)]
pub(super) struct RangeResponse {
    #[prost(message, repeated, tag = "2")]
    pub(super) kvs: Vec<KeyValue>,
    /// How many there are, also beyond the limit.
    #[prost(int64, tag = "4")]
    pub(super) count: i64,
}

#[derive(Clone, PartialEq, Eq, Message)]
struct PutRequest {
    #[prost(bytes = "vec", tag = "1")]
    key: Vec<u8>,
    #[prost(bytes = "vec", tag = "2")]
    value: Vec<u8>,
    #[prost(int64, tag = "3")]
    lease: i64,
}

#[derive(Clone, PartialEq, Eq, Message)]
struct DeleteRangeRequest {
    #[prost(bytes = "vec", tag = "1")]
    key: Vec<u8>,
    #[prost(bytes = "vec", tag = "2")]
    range_end: Vec<u8>,
}

#[derive(Clone, PartialEq, Eq, Message)]
pub(super) struct RequestOp {
    #[prost(oneof = "Operation", tags = "1, 2, 3")]
    request: Option<Operation>,
}

#[derive(Clone, PartialEq, Eq, Oneof)]
enum Operation {
    #[prost(message, tag = "1")]
    Range(RangeRequest),
    #[prost(message, tag = "2")]
    Put(PutRequest),
    #[prost(message, tag = "3")]
    Delete(DeleteRangeRequest),
}

#[derive(Clone, PartialEq, Eq, Message)]
pub(super) struct ResponseOp {
    #[prost(oneof = "OpReply", tags = "1")]
    pub(super) response: Option<OpReply>,
}

#[derive(Clone, PartialEq, Eq, Oneof)]
pub(super) enum OpReply {
    #[prost(message, tag = "1")]
    Range(RangeResponse),
}

/// A condition. `CompareResult.EQUAL` is 0 and so left out.
#[derive(Clone, PartialEq, Eq, Message)]
pub(super) struct Compare {
    #[prost(int32, tag = "2")]
    target: i32,
    #[prost(bytes = "vec", tag = "3")]
    key: Vec<u8>,
    #[prost(oneof = "Wanted", tags = "5, 6")]
    wanted: Option<Wanted>,
    /// With it the condition is one on each key of a range.
    #[prost(bytes = "vec", tag = "64")]
    range_end: Vec<u8>,
}

/// `CompareTarget`.
const CREATE: i32 = 1;
const MOD: i32 = 2;

/// Of a key that is not there each is 0.
#[derive(Clone, Copy, PartialEq, Eq, Oneof)]
enum Wanted {
    #[prost(int64, tag = "5")]
    CreateRevision(i64),
    #[prost(int64, tag = "6")]
    ModRevision(i64),
}

#[derive(Clone, PartialEq, Eq, Message)]
pub(super) struct TxnRequest {
    #[prost(message, repeated, tag = "1")]
    pub(super) compare: Vec<Compare>,
    #[prost(message, repeated, tag = "2")]
    pub(super) success: Vec<RequestOp>,
    /// What is done instead when a condition does not hold.
    #[prost(message, repeated, tag = "3")]
    pub(super) failure: Vec<RequestOp>,
}

#[derive(Clone, PartialEq, Eq, Message)]
pub(super) struct TxnResponse {
    #[prost(message, optional, tag = "1")]
    pub(super) header: Option<ResponseHeader>,
    #[prost(bool, tag = "2")]
    pub(super) succeeded: bool,
    #[prost(message, repeated, tag = "3")]
    pub(super) responses: Vec<ResponseOp>,
}

#[derive(Clone, Copy, PartialEq, Eq, Message)]
pub(super) struct LeaseGrantRequest {
    /// Seconds.
    #[prost(int64, tag = "1")]
    pub(super) ttl: i64,
}

#[derive(Clone, PartialEq, Eq, Message)]
pub(super) struct LeaseGrantResponse {
    #[prost(int64, tag = "2")]
    pub(super) id: i64,
    #[prost(string, tag = "4")]
    pub(super) error: String,
}

#[derive(Clone, Copy, PartialEq, Eq, Message)]
pub(super) struct LeaseId {
    #[prost(int64, tag = "1")]
    pub(super) id: i64,
}

#[derive(Clone, Copy, PartialEq, Eq, Message)]
pub(super) struct Nothing {}

#[derive(Clone, Copy, PartialEq, Eq, Message)]
pub(super) struct LeaseKeepAliveResponse {
    /// Seconds; 0 when there is no such lease.
    #[prost(int64, tag = "3")]
    pub(super) ttl: i64,
}

#[derive(Clone, Copy, PartialEq, Eq, Message)]
pub(super) struct LeaseTimeToLiveResponse {
    /// Whole seconds that are left; -1 when there is no such lease.
    #[prost(int64, tag = "3")]
    pub(super) ttl: i64,
    #[prost(int64, tag = "4")]
    pub(super) granted_ttl: i64,
}

#[derive(Clone, PartialEq, Eq, Message)]
pub(super) struct StatusResponse {
    #[prost(string, tag = "2")]
    pub(super) version: String,
    /// Bytes.
    #[prost(int64, tag = "3")]
    pub(super) db_size: i64,
    /// 0 while there is none.
    #[prost(uint64, tag = "4")]
    pub(super) leader: u64,
}

/// `AlarmAction.GET` is 0 and so left out, as are those of no member or kind in particular.
#[derive(Clone, Copy, PartialEq, Eq, Message)]
pub(super) struct AlarmRequest {
    #[prost(int32, tag = "1")]
    action: i32,
}

#[derive(Clone, PartialEq, Eq, Message)]
pub(super) struct AlarmResponse {
    #[prost(message, repeated, tag = "2")]
    pub(super) alarms: Vec<Alarm>,
}

#[derive(Clone, Copy, PartialEq, Eq, Message)]
pub(super) struct Alarm {
    /// `AlarmType`.
    #[prost(int32, tag = "2")]
    pub(super) kind: i32,
}

#[derive(Clone, PartialEq, Eq, Message)]
pub(super) struct MemberListResponse {
    #[prost(message, repeated, tag = "2")]
    pub(super) members: Vec<Nothing>,
}

#[derive(Clone, PartialEq, Eq, Message)]
pub(super) struct AuthenticateRequest {
    #[prost(string, tag = "1")]
    pub(super) name: String,
    #[prost(string, tag = "2")]
    pub(super) password: String,
}

#[derive(Clone, PartialEq, Eq, Message)]
pub(super) struct AuthenticateResponse {
    #[prost(string, tag = "2")]
    pub(super) token: String,
}

#[derive(Clone, PartialEq, Eq, Message)]
pub(super) struct WatchRequest {
    #[prost(oneof = "WatchOrder", tags = "1")]
    pub(super) order: Option<WatchOrder>,
}

#[derive(Clone, PartialEq, Eq, Oneof)]
pub(super) enum WatchOrder {
    #[prost(message, tag = "1")]
    Create(WatchCreateRequest),
}

#[derive(Clone, PartialEq, Eq, Message)]
pub(super) struct WatchCreateRequest {
    #[prost(bytes = "vec", tag = "1")]
    pub(super) key: Vec<u8>,
    #[prost(bytes = "vec", tag = "2")]
    pub(super) range_end: Vec<u8>,
    #[prost(int64, tag = "3")]
    pub(super) start_revision: i64,
    #[prost(bool, tag = "4")]
    pub(super) progress_notify: bool,
}

#[derive(Clone, PartialEq, Eq, Message)]
pub(super) struct WatchResponse {
    #[prost(message, optional, tag = "1")]
    pub(super) header: Option<ResponseHeader>,
    #[prost(bool, tag = "3")]
    pub(super) created: bool,
    #[prost(bool, tag = "4")]
    pub(super) canceled: bool,
    /// Not zero when what was asked for is compacted away.
    #[prost(int64, tag = "5")]
    pub(super) compact_revision: i64,
    #[prost(string, tag = "6")]
    pub(super) cancel_reason: String,
    #[prost(message, repeated, tag = "11")]
    pub(super) events: Vec<WatchEvent>,
}

#[derive(Clone, PartialEq, Eq, Message)]
pub(super) struct WatchEvent {
    /// 0 is a put, 1 a deletion.
    #[prost(int32, tag = "1")]
    pub(super) kind: i32,
    #[prost(message, optional, tag = "2")]
    pub(super) kv: Option<KeyValue>,
}

/// `EventType.DELETE`.
pub(super) const DELETE: i32 = 1;

impl RangeRequest {
    /// One key.
    pub(super) fn key(key: &str) -> Self {
        Self { key: key.as_bytes().to_vec(), ..Self::default() }
    }

    /// Every key that begins so, in order.
    pub(super) fn prefix(prefix: &str) -> Self {
        Self { range_end: end_of(prefix), ..Self::key(prefix) }
    }
}

/// The end of the range of all keys with this prefix: its last byte one larger. No prefix ends with the largest byte.
pub(super) fn end_of(prefix: &str) -> Vec<u8> {
    let mut end = prefix.as_bytes().to_vec();
    if let Some(last) = end.last_mut() {
        *last = last.saturating_add(1);
    }
    end
}

impl From<Operation> for RequestOp {
    fn from(operation: Operation) -> Self {
        Self { request: Some(operation) }
    }
}

impl From<RangeRequest> for RequestOp {
    fn from(range: RangeRequest) -> Self {
        Operation::Range(range).into()
    }
}

/// Sets a key, under a lease unless that is 0.
pub(super) fn put(key: &str, value: impl Into<Vec<u8>>, lease: i64) -> RequestOp {
    Operation::Put(PutRequest { key: key.as_bytes().to_vec(), value: value.into(), lease }).into()
}

/// Removes a key.
pub(super) fn delete(key: &str) -> RequestOp {
    Operation::Delete(DeleteRangeRequest { key: key.as_bytes().to_vec(), range_end: Vec::new() }).into()
}

/// Removes every key that begins so.
pub(super) fn delete_prefix(prefix: &str) -> RequestOp {
    Operation::Delete(DeleteRangeRequest { key: prefix.as_bytes().to_vec(), range_end: end_of(prefix) }).into()
}

impl TxnRequest {
    /// What is done while all of it holds; otherwise nothing.
    pub(super) fn when(compare: Vec<Compare>, success: Vec<RequestOp>) -> Self {
        Self { compare, success, failure: Vec::new() }
    }
}

impl TxnResponse {
    /// What each range held that was read.
    pub(super) fn found(self) -> Vec<Vec<KeyValue>> {
        let kvs = self.responses.into_iter().map(|response| match response.response {
            Some(OpReply::Range(range)) => range.kvs,
            None => Vec::new(),
        });
        kvs.collect()
    }
}

/// True while the key was last changed at this revision; 0 while it is not there.
pub(super) fn unchanged(key: &str, revision: i64) -> Compare {
    if revision == 0 {
        return absent(key);
    }
    Compare { target: MOD, wanted: Some(Wanted::ModRevision(revision)), ..absent(key) }
}

/// True while the key is not there.
pub(super) fn absent(key: &str) -> Compare {
    let wanted = Some(Wanted::CreateRevision(0));
    Compare { target: CREATE, key: key.as_bytes().to_vec(), wanted, range_end: Vec::new() }
}

/// True while of all keys with this prefix none is there but that one.
pub(super) fn none_but(prefix: &str, key: &str) -> [Compare; 2] {
    // The smallest key after it.
    let next = format!("{key}\0");
    [
        Compare { range_end: key.as_bytes().to_vec(), ..absent(prefix) },
        Compare { range_end: end_of(prefix), ..absent(&next) },
    ]
}
