//! Messages that are told once: what is known of a topic is read by one statement, the rule decides here, and what it has changed is written
//! on the condition that the row still has the version that was read; otherwise all over again. No row is locked while a node thinks.

use chrono::{DateTime, Utc};

use super::Dialect;
use super::Sent;
use super::call::ServerCall;
use super::pool::Lane;
use super::store::{ServerStore, TRIES, Tried, asked_first, contended};
use crate::store::messages::{LoadedTopics, MessageRuled, TopicWrite};
use crate::store::ruled::Reply;
use crate::store::rules::MessageStep;
use crate::store::sql::fault::SqlFault;
use crate::store::sql::messages;
use crate::store::{Op, Topic, UntoldMessage};

impl<D: Dialect> ServerStore<D> {
    async fn load_topics(&self, lane: &mut Lane<'_, D>, topics: &[Topic]) -> Result<LoadedTopics<i64>, SqlFault> {
        asked_first!(self, lane, |session| messages::load(session, &self.scope, topics))
    }

    async fn save_topic(
        &self,
        lane: &mut Lane<'_, D>,
        call: &ServerCall,
        write: Option<TopicWrite<'_, i64>>,
    ) -> Result<Tried<()>, SqlFault> {
        let Some(write) = write else { return Ok(Tried::Answered(())) };
        let session = lane.session(&self.place).await?;
        call.send();
        let written = messages::save(session, &self.scope, &write).await;
        self.written(lane, call, written).await
    }
}

impl<D: Dialect> MessageRuled for ServerStore<D> {
    async fn on_topic<T: Send + 'static>(
        &self,
        op: Op,
        topic: &Topic,
        rule: impl Fn(&mut MessageStep) -> T + Send + Sync + 'static,
    ) -> Reply<T> {
        let call = ServerCall::new(op);
        let work = async {
            let mut lane = self.lane().await?;
            call.ask();
            for _ in 0..TRIES {
                let loaded = self.load_topics(&mut lane, std::slice::from_ref(topic)).await?;
                let mut step = loaded.step(topic, self.scope.retention);
                let answer = rule(&mut step);
                let write = loaded.write(topic, &step);
                if matches!(self.save_topic(&mut lane, &call, write).await?, Tried::Answered(())) {
                    lane.keep();
                    return Ok(answer);
                }
            }
            Err(contended())
        };
        self.within(&call, work).await
    }

    async fn untold_known(&self, topics: &[Topic]) -> Reply<(DateTime<Utc>, Vec<UntoldMessage>)> {
        let call = ServerCall::new(Op::Untold);
        let work = async {
            let mut lane = self.lane().await?;
            call.ask();
            let loaded = self.load_topics(&mut lane, topics).await?;
            lane.keep();
            Ok(loaded.untold(topics, self.scope.retention))
        };
        self.within(&call, work).await
    }
}
