//! Users: what one makes, no other may touch.

use cronward::store::{Applied, ErrorKind, Renewal, Store, Wake};

use crate::zookeeper::{granted, next, open, request, slot_of, store};
use crate::zookeeper_server::ZookeeperServer;

#[tokio::test]
async fn what_a_user_makes_is_closed_to_others() {
    let server = ZookeeperServer::start();
    let own = open(&server.url().replace("zookeeper://", "zookeeper://cronward:secret@")).await;
    let mut hints = own.subscribe();
    assert_eq!(next(&mut hints).await, Wake::Resync);
    let lease = granted(&own, &request(&slot_of("push"), 1)).await;
    assert_eq!(own.renew(&lease).await.unwrap(), Renewal::Renewed);
    for stranger in [store(&server).await, open(&server.url().replace("://", "://cronward:wrong@")).await] {
        let error = stranger.claim(&request(&slot_of("push"), 2)).await.unwrap_err();
        assert_eq!((error.kind, error.applied), (ErrorKind::Denied, Applied::No), "{error}");
        assert!(error.message.contains("docs/stores.md"), "{error}");
    }
}
