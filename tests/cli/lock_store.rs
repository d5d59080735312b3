//! `cronward lock` on a server that is away.

use crate::program::Place;

#[test]
fn a_store_that_never_answered_is_no_busy_lock() {
    let place = Place::new();
    for flags in [&[][..], &["-E", "0"]] {
        let words = ["lock", "a", "--store", "redis://127.0.0.1:1", "--wait", "500ms"];
        let told = place.run(&[&words[..], flags, &["--", "/bin/echo", "never"]].concat());
        assert_eq!((told.code, &*told.stdout, told.stderr.lines().count()), (75, "", 1), "{told:?}");
        assert!(told.stderr.contains("redis://127.0.0.1:1: acquire: "), "{told:?}");
    }
}
