//! What about a ZooKeeper ensemble can betray the guard: how many servers it has. Judged by `judge`, which is pure. Changes
//! nothing.

use super::store::ZookeeperStore;
use crate::store::Finding;

/// Where an ensemble keeps its own list of servers (ZooKeeper 3.5 or later); anybody may read it.
const SERVERS: &str = "/zookeeper/config";

impl ZookeeperStore {
    /// Looks at the ensemble.
    pub(in crate::store) async fn examine(&self) -> Vec<Finding> {
        // That it cannot be reached is found out by whoever asks first.
        let Ok(session) = self.link.session().await else { return Vec::new() };
        let limit = self.options.op_timeout;
        let listed = tokio::time::timeout(limit, session.client.get_data(SERVERS)).await;
        let listed = listed.ok().and_then(Result::ok).map(|(data, _)| String::from_utf8_lossy(&data).into_owned());
        judge(listed.as_deref())
    }
}

/// What is to be said of an ensemble with this list of servers.
fn judge(listed: Option<&str>) -> Vec<Finding> {
    let Some(listed) = listed else {
        return vec![Finding::ok("servers", "this user may not ask for them")];
    };
    let voting = |line: &&str| line.starts_with("server.") && !line.contains(":observer");
    let count = listed.lines().filter(voting).count();
    vec![match count {
        // A server alone lists nobody.
        0 | 1 => {
            let effect = "when this server is down there is no other: nothing starts";
            Finding::warning("servers", "one", effect, "zoo.cfg: run three servers")
        }
        even if even % 2 == 0 => {
            let effect = "an even number bears no more losses than one server less";
            Finding::warning("servers", format!("{even}"), effect, "zoo.cfg: run an odd number of servers")
        }
        odd => Finding::ok("servers", format!("{odd}")),
    }]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::Severity;

    fn severity(listed: &str) -> Severity {
        judge(Some(listed)).remove(0).severity
    }

    #[test]
    fn an_ensemble_of_one_or_of_an_even_number_is_warned_of() {
        let server = |n: usize| format!("server.{n}=h{n}:2888:3888:participant;2181\n");
        let servers = |count: usize| (1..=count).map(server).collect::<String>() + "version=100000000";
        assert_eq!(
            [0, 1, 2, 3, 4, 5].map(|count| severity(&servers(count)) == Severity::Ok),
            [false, false, false, true, false, true]
        );
        let observed = servers(3) + "\nserver.4=h4:2888:3888:observer;2181";
        assert_eq!(severity(&observed), Severity::Ok);
    }
}
