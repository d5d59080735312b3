//! `cronward doctor` before ZooKeeper.

use crate::patient::{doctor, lists_nothing};
use crate::zookeeper::store;
use crate::zookeeper_server::ZookeeperServer;

#[tokio::test]
async fn a_server_alone_is_warned_of_and_what_another_user_made_is_a_fault() {
    let server = ZookeeperServer::start();
    let told = doctor(&server.url()).await;
    assert_eq!((told.names(), told.code), (vec!["servers warning"], 1), "{:?}", told.bad);
    assert_eq!(told.found("rights"), ["all 29 operations are allowed: each was tried"]);
    lists_nothing(&store(&server).await).await;
    let client = server.connect().await;
    for folder in ["slot", "note", "job", "node", "lock"] {
        let path = format!("/cronward/default/{folder}");
        let left = client.list_children(&path).await.unwrap_or_default();
        assert_eq!(left, [""; 0], "{path}");
    }

    let own = server.url().replace("zookeeper://", "zookeeper://cronward:secret@");
    let closed = doctor(&format!("{own}/closed")).await;
    assert_eq!(closed.names(), ["servers warning"], "{:?}", closed.bad);
    let stranger = doctor(&format!("{}/closed", server.url())).await;
    assert_eq!(stranger.code, 2, "{:?}", stranger.bad);
    let fault = stranger.bad.iter().find(|(name, _)| name.ends_with(" error")).unwrap();
    assert!(fault.1["fix"].as_str().unwrap().contains("docs/stores.md"), "{fault:?}");
}
