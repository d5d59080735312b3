//! Two real nodes on one SQLite file.

use rustix::process::Signal;
use serde_json::Value;

use super::nodes::Cluster;
use crate::process::Killed;
use crate::program::Ended;

const DEFAULTS: &str = "[node]\ndrain = \"5s\"\n[defaults]\nlease_ttl = \"10s\"\nretry_delay = \"200ms\"\n";

/// Every second of a day is a look, and the day is one slot: at whatever time it is, the work is due.
const EVERY_DAY: &str = "schedule = \"* * * * * *\"\nslot = \"day\"\n";

/// On a busy machine a start may take seconds.
const PATIENT: [&str; 4] = ["--allowance", "10s", "--recorder", "runs"];

fn report(ended: &Ended) -> Value {
    serde_json::from_str(&ended.stdout).unwrap_or_else(|error| panic!("{error}: {ended:?}"))
}

#[test]
fn two_nodes_do_their_slots_once_and_the_journals_show_it_across_a_rotation() {
    // Slots that last a day are not over before a busy machine has done them.
    let job =
        |name: &str, wait: &str| format!("[jobs.{name}]\n{EVERY_DAY}command = \"{wait}exec /bin/sh record.sh 0.1\"\n");
    let early = ["a", "b", "c"].map(|name| job(name, "")).concat();
    let late = ["d", "e", "f", "g"].map(|name| job(name, "until [ -e go ]; do sleep 0.1; done; ")).concat();
    let cluster = Cluster::with_jobs(&format!("{DEFAULTS}{early}{late}"));
    let nodes = ["a", "b"].map(|node| cluster.node(node));
    let done = || ["a.jsonl", "a.1", "b.jsonl"].map(|journal| cluster.tells(journal, "settled")).iter().sum::<usize>();
    cluster.until("three slots are done", || done() == 3);
    std::fs::rename(cluster.path().join("a.jsonl"), cluster.path().join("a.1")).unwrap();
    nodes[0].signal(Signal::HUP);
    cluster.until("the new journal has the plan again", || cluster.tells("a.jsonl", "planned") == 7);
    cluster.write("go", "");
    cluster.until("seven slots are done", || done() == 7);
    nodes.into_iter().for_each(Killed::leave);
    assert_eq!((cluster.tells("a.jsonl", "stopped"), cluster.tells("b.jsonl", "stopped")), (1, 1));

    let ended = cluster.cronward(&[&["verify", "a.jsonl", "a.1", "b.jsonl", "--json"][..], &PATIENT].concat());
    let told = report(&ended);
    assert_eq!((ended.code, &told["unexplained"], &told["violations"]), (0, &json("[]"), &json("[]")), "{told:#}");
    let (slots, once) = (told["slots"].as_u64().unwrap(), told["classes"]["once"]["slots"].as_u64().unwrap());
    assert_eq!((slots, once), (7, 7), "{told:#}");
    let recorded = cluster.lines("runs").iter().filter(|line| line["event"] == "start").count();
    assert_eq!(recorded, 7, "every slot was recorded");
}

#[test]
fn a_node_killed_mid_run_leaves_a_repeat_that_its_journal_explains() {
    let script = "[ $CRONWARD_ATTEMPT = 1 ] && exec /bin/sh record.sh 600; exec /bin/sh record.sh 0.1";
    let job = format!("[jobs.work]\n{EVERY_DAY}command = \"{script}\"\n");
    let cluster = Cluster::with_jobs(&format!("{DEFAULTS}{job}"));
    let mut nodes = ["a", "b"].map(|node| cluster.node(node));
    cluster.until("a run has started", || !cluster.lines("runs").is_empty());
    let victim = cluster.lines("runs")[0]["node"].as_str().unwrap().to_owned();
    let (index, survivor) = if victim == "a" { (0, "b.jsonl") } else { (1, "a.jsonl") };
    // Its journal has a renewal: what it told last is not its start.
    let journal = format!("{victim}.jsonl");
    cluster.until("the lease was renewed", || cluster.tells(&journal, "renewal_answered") > 0);
    nodes[index].kill();
    cluster.until("another node has done it", || cluster.tells(survivor, "settled") == 1);
    drop(nodes);
    // The power went too.
    cluster.write(&journal, &(cluster.read(&journal) + "{\"at\":\"20"));

    let ended = cluster.cronward(&[&["verify", "a.jsonl", "b.jsonl", "--json"][..], &PATIENT].concat());
    let told = report(&ended);
    assert_eq!((ended.code, &told["classes"]["repeat"]["explained"]), (0, &json("1")), "{told:#}");
    let why = told["explained"][0]["why"][0].as_str().unwrap();
    assert!(why.contains(&format!("{victim} died at")), "{told:#}");
    assert_eq!(told["recovery"]["crash"]["count"], 1, "{told:#}");
    assert!(told["notes"][0].as_str().unwrap().contains("the last line is cut"), "{told:#}");

    // Had the first node lived and ended its run, nothing would explain the second one.
    let started = cluster.lines(&journal).into_iter().find(|line| line["event"] == "run_started").unwrap();
    let mut forged = started;
    forged["event"] = json("\"run_ended\"");
    forged["outcome"] = json("\"success\"");
    forged["duration_s"] = json("1.0");
    forged["at"] = cluster.lines(survivor).last().unwrap()["at"].clone();
    let text = cluster.read(&journal).replace("{\"at\":\"20{", "{").trim_end_matches("{\"at\":\"20").to_owned();
    cluster.write(&journal, &format!("{text}{forged}\n"));
    let ended = cluster.cronward(&["verify", "a.jsonl", "b.jsonl", "--allowance", "10s"]);
    assert_eq!(ended.code, 1, "{ended:?}");
    assert!(ended.stdout.contains("unexplained: work@"), "{ended:?}");
}

fn json(text: &str) -> Value {
    serde_json::from_str(text).unwrap()
}
