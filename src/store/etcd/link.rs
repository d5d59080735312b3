//! A connection to one of the cluster's members, made when first needed, and to the next one when it failed. Many calls
//! share it.
//!
//! - A member that does not answer, or has no leader, is left for the next one; who gave up waiting counts as not
//!   answered.
//! - What changes nothing is asked of another member at once. What may have been applied is never sent again.
//! - A login is made once per connection, and again when the cluster has forgotten it: then nothing was done yet.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use prost::Message;
use tonic::client::Grpc;
use tonic::codegen::http::uri::PathAndQuery;
use tonic::metadata::{Ascii, MetadataValue};
use tonic::transport::Channel;
use tonic::{Request, Status, Streaming};
use tonic_prost::ProstCodec;

use super::api::{AuthenticateRequest, AuthenticateResponse, method};
use super::fault::{Fault, is_stale_login, odd_answer};
use super::target::Target;

/// The largest answer that is read: many slots with long outputs.
const LARGEST_ANSWER: usize = 64 * 1024 * 1024;

/// A connection that stands, and how to say who asks on it.
#[derive(Clone)]
struct Open {
    /// Counts connections, so that a late failure of an old one does not break a new one.
    generation: u64,
    channel: Channel,
    token: Option<MetadataValue<Ascii>>,
}

#[derive(Default)]
struct State {
    /// The member to ask, or to try first.
    at: usize,
    generation: u64,
    open: Option<Open>,
}

/// The connection and what is needed to make it again.
pub(super) struct Link {
    target: Target,
    /// The longest wait for one answer where another member can be asked instead.
    patience: Duration,
    state: Mutex<State>,
    /// Held by the one who connects; the others wait for its outcome.
    connecting: tokio::sync::Mutex<()>,
}

impl std::fmt::Debug for Link {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Link").field("target", &self.target).finish_non_exhaustive()
    }
}

impl Link {
    /// A link that does not connect before its first call.
    pub(super) fn new(target: Target, op_timeout: Duration) -> Self {
        Self { target, patience: op_timeout / 2, state: Mutex::default(), connecting: tokio::sync::Mutex::default() }
    }

    /// A link of its own to the same cluster.
    pub(super) fn another(&self) -> Self {
        Self::new(self.target.clone(), self.patience * 2)
    }

    /// Asks for what changes nothing that anybody would miss: of another member, where one does not answer.
    pub(super) async fn ask<Q, A>(&self, method: &'static str, request: Q) -> Result<A, Fault>
    where
        Q: Message + Clone + 'static,
        A: Message + Default + 'static,
    {
        for _ in 1..self.target.endpoints.len() {
            match tokio::time::timeout(self.patience, self.call(method, request.clone())).await {
                Ok(Err(fault)) if fault.elsewhere => {}
                Ok(answer) => return answer,
                Err(_) => {}
            }
        }
        self.call(method, request).await
    }

    /// Sends a request once.
    pub(super) async fn call<Q, A>(&self, method: &'static str, request: Q) -> Result<A, Fault>
    where
        Q: Message + Clone + 'static,
        A: Message + Default + 'static,
    {
        let open = self.open().await?;
        let status = match self.send(&open, method, request.clone()).await {
            Ok(answer) => return Ok(answer),
            Err(status) => status,
        };
        if open.token.is_some() && is_stale_login(&status) {
            self.forget(&open, false);
            let open = self.open().await?;
            return self.send(&open, method, request).await.map_err(|status| self.judge(&open, status));
        }
        Err(self.judge(&open, status))
    }

    /// Opens a stream of answers that lasts until either side ends it.
    pub(super) async fn stream<Q, A>(&self, method: &'static str, requests: Q) -> Result<Streaming<A>, Fault>
    where
        Q: futures_util::Stream + Send + 'static,
        Q::Item: Message + 'static,
        A: Message + Default + 'static,
    {
        let open = self.open().await?;
        let unanswered = Unanswered { link: self, open: Some(&open) };
        let mut client = client(&open);
        let request = with_metadata(&open, requests);
        let opened = async {
            client.ready().await.map_err(|error| Status::from_error(error.into()))?;
            client.streaming(request, PathAndQuery::from_static(method), ProstCodec::default()).await
        };
        let answer = opened.await;
        unanswered.settle();
        answer.map(tonic::Response::into_inner).map_err(|status| {
            // The next one logs in anew, whatever it was.
            self.forget(&open, true);
            status.into()
        })
    }

    /// Leaves the member that is asked now.
    pub(super) fn leave(&self) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.open = None;
        state.at = (state.at + 1) % self.target.endpoints.len();
    }

    async fn send<Q, A>(&self, open: &Open, method: &'static str, request: Q) -> Result<A, Status>
    where
        Q: Message + 'static,
        A: Message + Default + 'static,
    {
        let unanswered = Unanswered { link: self, open: Some(open) };
        let mut client = client(open);
        let sent = async {
            client.ready().await.map_err(|error| Status::from_error(error.into()))?;
            let request = with_metadata(open, request);
            client.unary(request, PathAndQuery::from_static(method), ProstCodec::default()).await
        };
        let answer = sent.await;
        unanswered.settle();
        answer.map(tonic::Response::into_inner)
    }

    fn judge(&self, open: &Open, status: Status) -> Fault {
        let fault = Fault::from(status);
        if fault.elsewhere {
            self.forget(open, true);
        }
        fault
    }

    fn forget(&self, open: &Open, and_go_on: bool) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        if state.generation == open.generation {
            state.open = None;
            state.at = (state.at + usize::from(and_go_on)) % self.target.endpoints.len();
        }
    }

    fn standing(&self) -> Option<Open> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner).open.clone()
    }

    async fn open(&self) -> Result<Open, Fault> {
        if let Some(open) = self.standing() {
            return Ok(open);
        }
        let _turn = self.connecting.lock().await;
        if let Some(open) = self.standing() {
            return Ok(open);
        }
        let mut outcome = self.connect().await;
        for _ in 1..self.target.endpoints.len() {
            match outcome {
                Err(fault) if fault.elsewhere => outcome = self.connect().await,
                _ => break,
            }
        }
        outcome
    }

    /// Connects to one member. The next one is chosen first, for the case that the caller gives up meanwhile.
    async fn connect(&self) -> Result<Open, Fault> {
        let (at, generation) = {
            let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
            let at = state.at;
            state.at = (at + 1) % self.target.endpoints.len();
            state.generation += 1;
            (at, state.generation)
        };
        let Some(endpoint) = self.target.endpoints.get(at) else { return Err(odd_answer()) };
        let channel = endpoint.connect().await.map_err(Fault::not_connected)?;
        let token = self.log_in(&channel).await?;
        let open = Open { generation, channel, token };
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.at = at;
        state.open = Some(open.clone());
        Ok(open)
    }

    async fn log_in(&self, channel: &Channel) -> Result<Option<MetadataValue<Ascii>>, Fault> {
        let Some(login) = &self.target.login else { return Ok(None) };
        let request = AuthenticateRequest { name: login.user.clone(), password: login.password.clone() };
        let mut client = Grpc::new(channel.clone());
        let ready = client.ready().await.map_err(|error| Status::from_error(error.into()));
        ready.map_err(|status| Fault::from(status).before_the_request())?;
        let path = PathAndQuery::from_static(method::AUTHENTICATE);
        let answer: AuthenticateResponse = client
            .unary(Request::new(request), path, ProstCodec::default())
            .await
            .map_err(|status| Fault::from(status).before_the_request())?
            .into_inner();
        MetadataValue::try_from(answer.token).map(Some).map_err(|_| odd_answer())
    }
}

fn client(open: &Open) -> Grpc<Channel> {
    Grpc::new(open.channel.clone()).max_decoding_message_size(LARGEST_ANSWER)
}

fn with_metadata<T>(open: &Open, message: T) -> Request<T> {
    let mut request = Request::new(message);
    let metadata = request.metadata_mut();
    // A member that is cut off from the others says so at once, instead of letting everybody wait.
    metadata.insert("hasleader", MetadataValue::from_static("true"));
    if let Some(token) = &open.token {
        metadata.insert("authorization", token.clone());
    }
    request
}

/// A call under way. Dropped without an answer, by a caller who gave up, it speaks against the member.
struct Unanswered<'a> {
    link: &'a Link,
    open: Option<&'a Open>,
}

impl Unanswered<'_> {
    fn settle(mut self) {
        self.open = None;
    }
}

impl Drop for Unanswered<'_> {
    fn drop(&mut self) {
        if let Some(open) = self.open {
            self.link.forget(open, true);
        }
    }
}
