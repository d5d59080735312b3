//! Messages that are told once: a step reads what is known of the topic, lets the rule decide, and writes what has changed, in one
//! `BEGIN IMMEDIATE` transaction.

use chrono::{DateTime, Utc};

use super::{OwnCall, SqliteStore};
use crate::store::messages::{LoadedTopics, MessageRuled};
use crate::store::ruled::Reply;
use crate::store::rules::MessageStep;
use crate::store::sql::messages;
use crate::store::{Op, Topic, UntoldMessage};

impl MessageRuled for SqliteStore {
    async fn on_topic<T: Send + 'static>(
        &self,
        op: Op,
        topic: &Topic,
        rule: impl Fn(&mut MessageStep) -> T + Send + Sync + 'static,
    ) -> Reply<T> {
        let (shared, call) = (&self.shared, OwnCall::new(op));
        let work = async {
            let mut lane = shared.writer.hold(&shared.connector).await?;
            let mut tx = lane.write().await?;
            let loaded = messages::load(&mut tx, &shared.scope, std::slice::from_ref(topic)).await?;
            let mut step = loaded.step(topic, shared.scope.retention);
            let answer = rule(&mut step);
            if let Some(write) = loaded.write(topic, &step) {
                messages::save(&mut tx, &shared.scope, &write).await?;
            }
            call.commit(tx).await?;
            Ok(answer)
        };
        self.within(shared.limit, &call, &shared.writer, work).await
    }

    async fn untold_known(&self, topics: &[Topic]) -> Reply<(DateTime<Utc>, Vec<UntoldMessage>)> {
        let (shared, call) = (&self.shared, OwnCall::new(Op::Untold));
        let work = async {
            let mut lane = shared.reader.hold(&shared.connector).await?;
            let mut tx = lane.read().await?;
            let loaded: LoadedTopics<i64> = messages::load(&mut tx, &shared.scope, topics).await?;
            call.commit(tx).await?;
            Ok(loaded.untold(topics, shared.scope.retention))
        };
        self.within(shared.limit, &call, &shared.reader, work).await
    }
}
