//! SIGHUP, and nodes that do not have the same file.

use chrono::Timelike;

use crate::place::Place;
use crate::redis_server::RedisServer;
use crate::trials::stored;
use crate::{jobs, wait, zone_file};

pub(super) fn a_reload_leaves_the_running_command_alone_and_plans_what_is_new(place: &Place) {
    let server = RedisServer::start();
    let long = |seconds| jobs::recorded("long", &jobs::one_slot(wait::SOON), seconds, 0);
    let before = long(8.0);
    place.jobs(&jobs::file(&before));
    let [node] = place.nodes(["a"], &server.url());
    let running = place.run_number(1);
    // The running job itself changes too.
    let changed = before.replace("\"8\"", "\"9\"");
    assert_ne!(changed, before);
    place.jobs(&jobs::file(&format!("{changed}{}", jobs::recorded("fresh", &jobs::every(2), 0.1, 0))));
    node.hang_up();
    assert_eq!(node.says("reloaded")["changed"], "fresh long");
    wait::until_true("the new job runs", || place.runs_of("fresh").len() >= 2);
    let first = place.end_of_run(1);
    assert_eq!((first.pid, first.attempt), (running.pid, 1));
    assert!(first.end_ms.unwrap() - first.start_ms >= 8_000);
    wait::until_true("the slot is done", || stored::is_done(&server, "long"));
    // The changed job's slot is done: it is not run again because of the reload.
    place.run_number(place.runs().len() + 1);
    assert_eq!(place.runs_of("long").len(), 1);
}

pub(super) fn a_file_with_an_error_changes_nothing_and_the_log_names_the_line(place: &Place) {
    let server = RedisServer::start();
    let job = jobs::recorded("beat", &jobs::every(2), 0.1, 0);
    place.jobs(&jobs::file(&job));
    let [mut node] = place.nodes(["a"], &server.url());
    place.run_number(1);
    let bad = jobs::file(&job.replace("slot = \"tick\"", "slot = \"tock\""));
    let line = 1 + bad.lines().position(|line| line.contains("tock")).unwrap();
    place.jobs(&bad);
    node.hang_up();
    let refusal = node.says("not reloaded");
    let said = refusal["error"].as_str().unwrap();
    assert!(said.contains(&format!("jobs.toml:{line}:")) && said.contains("tock"), "{said}");
    place.run_number(place.runs().len() + 2);
    assert!(node.is_running() && node.said("reloaded").is_empty());
}

pub(super) fn a_pipe_in_the_files_place_is_refused_and_the_next_hup_reads_again(place: &Place) {
    let server = RedisServer::start();
    let file = jobs::file(&jobs::recorded("beat", &jobs::every(2), 0.1, 0));
    place.jobs(&file);
    let [mut node] = place.nodes(["a"], &server.url());
    place.run_number(1);
    // Nobody will ever write into it.
    std::fs::remove_file(place.file("jobs.toml")).unwrap();
    nix::unistd::mkfifo(&place.file("jobs.toml"), nix::sys::stat::Mode::S_IRWXU).unwrap();
    node.hang_up();
    let refusal = node.says("not reloaded");
    assert!(refusal["error"].as_str().unwrap().contains("is not a regular file"), "{refusal}");
    place.run_number(place.runs().len() + 1);
    place.jobs(&file);
    node.hang_up();
    assert_eq!(node.says("reloaded")["level"], "INFO");
    place.jobs(&jobs::file(""));
    node.hang_up();
    wait::until_true("a file without its jobs is asked for twice", || node.said("not reloaded").len() == 2);
    node.hang_up();
    assert_eq!(node.says("reloaded: the file has no jobs")["level"], "WARN");
    node.terminate();
    assert!(node.exits().success());
}

pub(super) fn a_node_takes_an_updated_time_zone_database_by_a_signal(place: &Place) {
    let server = RedisServer::start();
    let folder = place.file("zoneinfo");
    zone_file::write(&folder, "Mars/Base", 0);
    // On the other side of the day in this zone, as it is now.
    let hours = [12, 13].map(|ahead| (chrono::Utc::now().hour() + ahead) % 24);
    let moved =
        format!("schedule = \"*/2 * {},{} * * *\"\ntimezone = \"Mars/Base\"\nslot = \"tick\"", hours[0], hours[1]);
    let moved = jobs::recorded("moved", &moved, 0.1, 0);
    place.jobs(&jobs::file(&format!("{moved}{}", jobs::recorded("beat", &jobs::every(2), 0.1, 0))));
    let node = place.node("a", &server.url()).variable("TZDIR", folder.display().to_string()).start();
    wait::until_true("two runs of the other job", || place.runs_of("beat").len() >= 2);
    assert_eq!(place.runs_of("moved").len(), 0);

    zone_file::write(&folder, "Mars/Base", 12);
    std::fs::write(folder.join("+VERSION"), "2031b\n").unwrap();
    node.hang_up();
    assert_eq!(node.says("time zones changed")["zones"], format!("{} (2031b)", folder.display()));
    assert_eq!(node.says("reloaded")["changed"], "moved");
    wait::until_true("the job runs", || !place.runs_of("moved").is_empty());
    // Commands read the file too, and this process has the zones of the host.
    place.jobs("");
    wait::until_true("the report has the release", || {
        let nodes = place.json(&["nodes"], &server.url());
        nodes[0]["zones"] == "2031b"
    });

    // The file cannot be used, the zones can.
    zone_file::write(&folder, "Mars/Base", 0);
    place.jobs("x");
    node.hang_up();
    node.says("not reloaded");
    wait::until_true("the job is planned anew", || node.said("reloaded").len() == 2);
}

pub(super) fn nodes_with_different_files_each_run_what_they_know_and_the_difference_is_stored(place: &Place) {
    let server = RedisServer::start();
    let both = jobs::recorded("both", &jobs::every(2), 0.1, 0);
    place.write("a.toml", &jobs::file(&both));
    place.write("b.toml", &jobs::file(&format!("{both}{}", jobs::recorded("only-b", &jobs::every(2), 0.1, 0))));
    let url = server.url();
    let nodes = [("a", "a.toml"), ("b", "b.toml")].map(|(name, file)| place.node(name, &url).config(file).start());
    nodes.iter().for_each(crate::daemon::Daemon::is_in_touch);
    wait::until_true("four slots", || place.runs_of("only-b").len() >= 4 && place.runs_of("both").len() >= 4);
    assert!(place.runs_of("only-b").iter().all(|run| run.node == "b"));
    // One look: the next run may begin before another.
    let slots: Vec<_> = place.runs_of("both").into_iter().map(|run| run.slot).collect();
    assert!(slots.windows(2).all(|pair| pair[0] != pair[1]), "each slot once: {slots:?}");
    let hash = |node: &str| {
        let report = server.text(&["HGET", "cronward:default:nodes", node]).expect("the node is known");
        serde_json::from_str::<serde_json::Value>(&report).unwrap()["config_hash"].as_str().unwrap().to_owned()
    };
    assert_ne!(hash("a"), hash("b"));
}

pub(super) fn two_namespaces_on_one_server_do_not_meet(place: &Place) {
    let server = RedisServer::start();
    place.jobs(&jobs::file(&jobs::recorded("beat", &jobs::every(2), 0.1, 0)));
    let url = server.url();
    let nodes = ["red", "blue"].map(|name| place.node(name, &url).namespace(name).start());
    nodes.iter().for_each(crate::daemon::Daemon::is_in_touch);
    let of = |node: &str| place.runs().into_iter().filter(|run| run.node == node).collect::<Vec<_>>();
    wait::until_true("four slots in each", || ["red", "blue"].iter().all(|node| of(node).len() >= 4));
    drop(nodes);
    for node in ["red", "blue"] {
        let slots: Vec<_> = of(node).windows(2).map(|pair| pair[1].slot_start_ms - pair[0].slot_start_ms).collect();
        assert!(slots.iter().all(|step| *step == 2_000), "each does every slot: {slots:?}");
    }
    let keys: Vec<String> = redis::from_redis_value(server.command(&["KEYS", "*"])).unwrap();
    let foreign = |key: &&String| !key.starts_with("cronward:red:") && !key.starts_with("cronward:blue:");
    assert_eq!(keys.iter().find(foreign), None);
    let ended = place.cronward(&["jobs", "--json", "--store", &url, "--namespace", "green"]);
    assert_eq!((ended.code, ended.stdout.trim()), (0, "[]"));
}
