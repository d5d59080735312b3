//! What a claim that came to nothing leaves at a master.

use cronward::slot::Audit;
use cronward::store::Store;

use super::*;

/// The script as a master is sent it (`store::redis::redlock::master`).
const UNDO: &str = concat!(
    include_str!("../../../src/store/redis/lua/prelude.lua"),
    include_str!("../../../src/store/redis/lua/slot.lua"),
    include_str!("../../../src/store/redis/lua/borrowed.lua"),
    include_str!("../../../src/store/redis/redlock/lua/undo.lua"),
);

fn audit(verb: &str) -> Audit {
    let [who, host, why] = ["alice", "ops-1", "the customer \"asks\""].map(str::to_owned);
    Audit { verb: verb.to_owned(), who, host, why, at: Utc::now() }
}

#[tokio::test(flavor = "multi_thread")]
async fn who_asked_is_taken_back_with_the_grant_and_no_other_verb() {
    let (servers, slot) = (masters(3), slot_of("job"));
    let store = open(&servers).await;
    store.reset(&slot, &audit("reset")).await.unwrap();
    let asked = ClaimRequest { audit: Some(audit("trigger")), ..request(&slot, "a", 7) };
    grant(&store, &asked).await;
    store.unlock(&slot, &audit("unlock")).await.unwrap();
    let (_, records) = store.inspect(std::slice::from_ref(&slot)).await.unwrap();
    let verbs = |audit: &[Audit]| audit.iter().map(|entry| entry.verb.clone()).collect::<Vec<_>>();
    assert_eq!(verbs(&records[0].audit), ["reset", "trigger", "unlock"]);

    // Nothing has ended it, as far as this master knows.
    let (server, log) = (&servers[0], format!("{}:log", mark_of(&slot)));
    let begun = server.text(&["HGET", &log, "1"]).unwrap().replace(",\"outcome\":\"lost_lease\"", "");
    server.command(&["HSET", &log, "1", &begun]);
    let entry = server.text(&["HGET", &log, "audit.2"]).unwrap();
    let head = entry.split_inclusive("\"at_ms\":").next().unwrap();
    let running = format!("cronward:default:{{{}}}:running", slot.job());
    let keys = [mark_of(&slot), format!("{}:attempts", mark_of(&slot)), log.clone(), running];
    let named = slot.to_string();
    let (ends, token) = (slot.end().timestamp_millis().to_string(), asked.token.to_string());
    let words =
        ["EVAL", UNDO, "4", &keys[0], &keys[1], &keys[2], &keys[3], &named, &ends, "60000", "wake", head, &token, "1"];
    server.command(&words);
    assert_eq!(server.text(&["HGET", &log, "1"]), None);
    let left: Vec<Option<String>> = (1..=3).map(|n| server.text(&["HGET", &log, &format!("audit.{n}")])).collect();
    assert!(left[0].as_ref().is_some_and(|text| text.contains("\"reset\"")), "{left:?}");
    assert!(left[1].as_ref().is_some_and(|text| text.contains("\"unlock\"")), "{left:?}");
    assert_eq!(left[2], None);
}
