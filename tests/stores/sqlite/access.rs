//! Who may read and write the file, and what is said to those who may not.

use std::fs::{Permissions, set_permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use crate::sqlite::bench::{grant, open, place, slot};
use crate::sqlite::child::{Running, command};

fn mode(path: &str) -> u32 {
    std::fs::metadata(path).unwrap().permissions().mode() & 0o777
}

/// What a user without rights is told. Root goes by no permission bits, so the child gives root up.
fn opened_by_nobody(path: &Path) -> String {
    let mut command = command("open", path, &[]);
    command.env("CRONWARD_TEST_NOBODY", "1");
    Running::start(command).rest().concat()
}

#[tokio::test]
async fn the_file_and_what_sqlite_keeps_beside_it_are_only_for_the_owner() {
    let place = place();
    let store = open(&place.path).await;
    grant(&store, &slot("a")).await;
    for end in ["", "-wal", "-shm"] {
        let path = format!("{}{end}", place.path.display());
        assert_eq!(mode(&path), 0o600, "{path}");
    }
}

#[tokio::test]
async fn a_file_of_somebody_else_is_denied_by_name() {
    let place = place();
    drop(open(&place.path).await);
    set_permissions(place.directory.path(), Permissions::from_mode(0o777)).unwrap();
    set_permissions(&place.path, Permissions::from_mode(0o000)).unwrap();
    let told = opened_by_nobody(&place.path);
    assert!(told.starts_with("denied ") && told.contains(&place.path.display().to_string()), "{told}");
    assert!(told.contains("owner and mode"), "{told}");
}

#[tokio::test]
async fn a_file_that_may_only_be_read_is_called_read_only() {
    let place = place();
    drop(open(&place.path).await);
    set_permissions(place.directory.path(), Permissions::from_mode(0o777)).unwrap();
    set_permissions(&place.path, Permissions::from_mode(0o444)).unwrap();
    let told = opened_by_nobody(&place.path);
    assert!(told.starts_with("read_only ") && told.contains(&place.path.display().to_string()), "{told}");
}

#[tokio::test]
async fn a_directory_that_may_only_be_read_is_called_read_only() {
    let place = place();
    drop(open(&place.path).await);
    set_permissions(&place.path, Permissions::from_mode(0o666)).unwrap();
    set_permissions(place.directory.path(), Permissions::from_mode(0o555)).unwrap();
    let told = opened_by_nobody(&place.path);
    assert!(told.starts_with("read_only ") && told.contains("keeps its log beside the file"), "{told}");
}

#[test]
fn a_directory_that_cannot_be_made_is_denied_by_name() {
    let place = place();
    set_permissions(place.directory.path(), Permissions::from_mode(0o755)).unwrap();
    let wanted = place.directory.path().join("a");
    let told = opened_by_nobody(&wanted.join("b/cronward.sqlite"));
    assert!(told.starts_with("denied ") && told.contains(&wanted.display().to_string()), "{told}");
    assert!(told.contains("create it for the user"), "{told}");
}

#[test]
fn a_file_that_cannot_be_made_is_denied_by_name() {
    let place = place();
    set_permissions(place.directory.path(), Permissions::from_mode(0o755)).unwrap();
    let told = opened_by_nobody(&place.path);
    assert!(told.starts_with("denied ") && told.contains(&place.path.display().to_string()), "{told}");
}

#[test]
fn a_user_who_may_write_is_let_in() {
    let place = place();
    set_permissions(place.directory.path(), Permissions::from_mode(0o777)).unwrap();
    assert_eq!(opened_by_nobody(&place.path), "opened");
}
