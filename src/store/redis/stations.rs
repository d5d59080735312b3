//! The masters of a cluster, each to be tried by itself: through the jobs whose keys it keeps.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::route::Route;
use super::slots::slot_of;
use super::store::RedisStore;
use crate::job::JobName;
use crate::store::{Station, Store};

impl RedisStore {
    /// Each master of the cluster, as it tells now who they are; none of a single server.
    pub(in crate::store) async fn stations(self) -> Vec<Station> {
        let Route::Many(cluster) = &self.route else { return Vec::new() };
        // That no server tells of the cluster is found out by whoever asks first.
        let Some(map) = cluster.map().await.map(Arc::new) else { return Vec::new() };
        let keys = self.keys.clone();
        let store: Arc<dyn Store> = Arc::new(self);
        let masters: BTreeSet<_> = map.owners().cloned().collect();
        let station = |master| {
            let (map, keys) = (Arc::clone(&map), keys.clone());
            // All keys of a job are kept together.
            let keeps = move |job: &JobName| map.owner(slot_of(&keys.pause(job))) == Some(&master);
            Station::of_some(Arc::clone(&store), keeps)
        };
        masters.into_iter().map(station).collect()
    }
}
