//! The log of a node, and whoever should read it.

use std::io::Write;

use crate::jobs;
use crate::place::Place;
use crate::redis_server::RedisServer;

pub(super) fn a_pipe_that_nobody_reads_holds_up_neither_the_jobs_nor_term(place: &Place) {
    let server = RedisServer::start();
    place.jobs(&jobs::file(&jobs::recorded("beat", &jobs::every(2), 0.1, 0)));
    let (reader, mut full) = std::io::pipe().unwrap();
    let log = full.try_clone().unwrap();
    // Fills the pipe, and hangs in it as the log does.
    std::thread::spawn(move || while full.write_all(&[b'\n'; 4_096]).is_ok() {});
    let mut node = place.node("a", &server.url()).start_into(log);
    place.run_number(3);
    node.terminate();
    assert!(node.exits().success());
    drop(reader);
}
