//! Holds `src/` and the simulator to the picture in `ARCHITECTURE.md`: imports go down only and never in a circle, the core stays pure, files stay
//! readable, and a name means one thing.
//!
//! It reads text, not types: comments, string literals and test modules are blanked out first, and then every
//! `crate::` and `super::` path is looked at, in the simulator every `cronward::` path. It never judges what code in `tests/` or `#[cfg(test)]` imports.

mod circles;
mod names;
mod rules;
mod source;

use std::path::{Path, PathBuf};

use circles::{MAY_STAY, Sources, circles, unlisted};
use names::{files_that_name_every_store, named_stores, overused};
use rules::{SIMULATOR, check};

/// Every `.rs` file under a folder, sorted, so that a failure reads the same on every machine.
fn rust_files(folder: &Path) -> Vec<PathBuf> {
    let mut files = Vec::new();
    for entry in std::fs::read_dir(folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display())) {
        let path = entry.unwrap().path();
        if path.is_dir() {
            files.extend(rust_files(&path));
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            files.push(path);
        }
    }
    files.sort();
    files
}

/// The files under a folder of the repository, by their paths in it.
fn read(folder: &str) -> Sources {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join(folder);
    let files = rust_files(&root);
    assert!(files.len() > 15, "only {} files found under {}", files.len(), root.display());
    let name = |file: &Path| file.strip_prefix(&root).unwrap().to_str().unwrap().to_owned();
    files.iter().map(|file| (name(file), std::fs::read_to_string(file).unwrap())).collect()
}

/// The library and its binary.
fn library() -> Sources {
    read("src")
}

/// The simulator without the program around it.
fn simulator() -> Sources {
    let mut files = read("tools/simulate/src");
    files.retain(|name, _| !name.starts_with("bin/"));
    files
}

/// Both.
fn sources() -> Sources {
    let simulated = simulator().into_iter().map(|(name, text)| (format!("{SIMULATOR}/{name}"), text));
    library().into_iter().chain(simulated).collect()
}

#[test]
fn the_source_keeps_to_its_layers() {
    let broken: Vec<String> = sources().iter().flat_map(|(name, text)| check(name, text)).collect();
    assert!(broken.is_empty(), "{} rules of ARCHITECTURE.md are broken:\n{}", broken.len(), broken.join("\n"));
}

#[test]
fn files_know_each_other_in_no_circle_that_is_not_listed() {
    assert_eq!(unlisted(&library(), &MAY_STAY), Vec::<String>::new());
    assert_eq!(unlisted(&simulator(), &[]), Vec::<String>::new());
}

#[test]
fn no_name_of_a_type_stands_for_more_than_two() {
    assert_eq!(overused(&sources()), Vec::<String>::new());
}

#[test]
fn a_store_is_named_in_its_folder_and_in_one_table_alone() {
    assert_eq!(named_stores(&sources()), Vec::<String>::new());
}

/// The list in `ARCHITECTURE.md` of what a new store touches, and its number.
#[test]
fn the_files_that_name_every_store_are_those_that_are_told_to_whoever_adds_one() {
    let page = std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/ARCHITECTURE.md")).unwrap();
    let section = page.split("### What a new store touches").nth(1).expect("the section");
    let (list, _) = section.split_once("And around it:").expect("the list of src");
    let sources = sources();
    let files = files_that_name_every_store(&sources);
    let untold: Vec<_> = files.iter().filter(|file| !list.contains(&format!("`{file}`"))).collect();
    assert!(untold.is_empty(), "{untold:?} are not in the list");
    let numbers = ["no", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine"];
    let told =
        section.split("That is ").nth(1).and_then(|rest| rest.split_once(" files in `src`")).expect("the number");
    assert_eq!(numbers.iter().position(|number| *number == told.0), Some(files.len()), "{files:?}");
}

#[test]
fn an_entry_of_a_list_of_circles_that_is_gone_is_told() {
    let gone = unlisted(&Sources::new(), &MAY_STAY);
    for file in ["machine/slot.rs", "verify/node_run.rs"] {
        assert!(gone.iter().any(|told| told.starts_with(file)), "{gone:?}");
    }
    // Two of three still know each other.
    let rest = [
        ("machine/mod.rs", "mod slot;\nmod running;"),
        ("machine/slot.rs", "use crate::machine::running::Two;\npub struct One(Two);"),
        ("machine/running.rs", "use crate::machine::slot::One;\npub struct Two(Box<One>);"),
    ];
    let gone = unlisted(&rest.map(|(name, code)| (name.to_owned(), code.to_owned())).into(), &MAY_STAY);
    let told = |file: &str| gone.iter().any(|told| told.starts_with(file));
    assert!(told("machine/settling.rs") && !told("machine/slot.rs") && !told("machine/running.rs"), "{gone:?}");
}

#[test]
fn a_literal_that_names_a_store_elsewhere_is_told() {
    let table = "pub const SCHEMES: &[(&str, &str)] = &[(\"redis\", \"redis\"), (\"memory\", \"\")];";
    let told = |file: &str, code: &str| {
        let tree = [("store/url.rs".to_owned(), table.to_owned()), (file.to_owned(), code.to_owned())];
        named_stores(&tree.into()).len()
    };
    for code in [
        "fn f(x: &str) -> bool { x == \"redis\" }",
        "const X: &str = \"redis://h\";",
        "const X: &str = r#\"memory\"#;",
        "#[cfg(feature = \"redis\")]\nconst X: &str = \"memory\";",
    ] {
        assert_eq!(told("cli/show.rs", code), 1, "{code}");
        assert_eq!(told("store/redis/keys.rs", code), 0, "{code}");
    }
    for code in [
        "// \"redis\"\n/// \"redis\"",
        "#[cfg(feature = \"redis\")]\nfn f() { cfg!(feature = \"redis\") }",
        "const X: &str = \"see redis\"; const Y: &str = \"rediss-like\"; const Z: char = '\"';",
        "#[cfg(test)]\nmod tests { const X: &str = \"redis\"; const ä: char = 'ä'; }",
    ] {
        assert_eq!(told("cli/show.rs", code), 0, "{code}");
    }
}

/// The circles of a made-up tree: each line `path: code`.
fn made_up(files: &[(&str, &str)]) -> Vec<Vec<String>> {
    let tree: Sources = files.iter().map(|(name, code)| ((*name).to_owned(), (*code).to_owned())).collect();
    circles(&tree).into_iter().map(|circle| circle.files).collect()
}

#[test]
fn two_files_that_import_from_each_other_are_a_circle() {
    let found = made_up(&[
        ("a/mod.rs", "mod one;\nmod two;"),
        ("a/one.rs", "use crate::a::two::Two;\npub struct One(Two);"),
        ("a/two.rs", "pub struct Two;\nfn f() -> super::one::One { todo!() }"),
        ("a/three.rs", "use crate::a::one::One;"),
    ]);
    assert_eq!(found, [["a/one.rs", "a/two.rs"]]);
}

#[test]
fn a_circle_is_seen_through_names_that_are_passed_on() {
    let found = made_up(&[
        ("a/mod.rs", "mod one;\npub use one::One as Renamed;"),
        ("a/one.rs", "use crate::b::{self, Two};\npub struct One(Two);"),
        ("b/mod.rs", "mod two;\nmod deep;\npub use deep::*;"),
        ("b/deep.rs", "pub use super::two::Two;"),
        ("b/two.rs", "pub struct Two;\nimpl Two { fn f(_: crate::a::Renamed) {} }"),
    ]);
    assert_eq!(found, [["a/one.rs", "b/two.rs"]]);
}

#[test]
fn a_folder_that_only_passes_names_on_is_in_no_circle() {
    let found = made_up(&[
        ("a/mod.rs", "mod one;\nmod two;\npub use one::One;\npub use two::{Two, make};"),
        ("a/one.rs", "pub struct One;"),
        ("a/two.rs", "use crate::a::One;\npub struct Two(One);\npub fn make() {}"),
    ]);
    assert_eq!(found, Vec::<Vec<String>>::new());
}

#[test]
fn what_a_folder_defines_or_calls_itself_counts() {
    let folder = "mod one;\npub struct Shared;\npub fn all() { one::run() }";
    let found = made_up(&[("a/mod.rs", folder), ("a/one.rs", "use super::Shared;\npub fn run() {}")]);
    assert_eq!(found, [["a/mod.rs", "a/one.rs"]]);
}

#[test]
fn an_imported_module_is_known_by_what_is_said_of_it() {
    let found = made_up(&[
        ("a.rs", "use crate::b;\nfn f() { b::g() }\npub fn h() {}"),
        ("b.rs", "use crate::a as other;\npub fn g() { other::h() }"),
    ]);
    assert_eq!(found, [["a.rs", "b.rs"]]);
}

#[test]
fn a_function_that_bears_the_name_of_its_module_is_known_by_its_call() {
    let found = made_up(&[
        ("a/mod.rs", "mod line;\nmod help;\npub use line::line;"),
        ("a/line.rs", "use crate::a::help;\npub fn line() { help::help() }"),
        ("a/help.rs", "use crate::a::line;\npub fn help() { line() }"),
        ("a/other.rs", "use crate::a::line;\npub fn other(x: X) { x.line(); y::line() }"),
    ]);
    assert_eq!(found, [["a/help.rs", "a/line.rs"]]);
}

#[test]
fn a_whole_modules_names_are_known_where_they_are_said() {
    let found = made_up(&[
        ("a.rs", "use crate::b::*;\npub struct One(Two);"),
        ("b.rs", "use crate::a::*;\npub struct Two(Option<Box<One>>);\npub struct Unsaid;"),
        ("c.rs", "use crate::b::*;"),
    ]);
    assert_eq!(found, [["a.rs", "b.rs"]]);
}

#[test]
fn a_circle_of_more_than_two_is_one_circle_with_a_way_round() {
    let tree: Sources = [
        ("a.rs", "use crate::b::B;\npub struct A(B);"),
        ("b.rs", "use crate::c::C;\npub struct B(C);"),
        ("c.rs", "pub struct C;\nfn f(_: crate::a::A) {}"),
    ]
    .map(|(name, code)| (name.to_owned(), code.to_owned()))
    .into();
    let found = circles(&tree);
    assert_eq!(found.len(), 1, "{found:?}");
    assert_eq!(found[0].way, ["a.rs", "b.rs", "c.rs", "a.rs"]);
}

#[test]
fn tests_comments_and_strings_make_no_circle() {
    let found = made_up(&[
        ("lib.rs", "mod a;\nmod b;\n#[cfg(test)]\nmod fixture;"),
        ("a.rs", "use crate::b::B;\npub struct A(B);\n#[cfg(test)]\nmod tests { use crate::fixture::scene; }"),
        ("b.rs", "/// See [`crate::a::A`].\npub struct B;\nconst X: &str = \"crate::a::A\";"),
        ("fixture.rs", "use crate::a::A;\npub fn scene() -> A { todo!() }"),
        ("c.rs", "use crate::b::B;\n#[cfg(test)]\nmod tests { use crate::b::B; }"),
    ]);
    assert_eq!(found, Vec::<Vec<String>>::new());
}

#[test]
fn a_third_type_of_one_name_is_told() {
    let tree = |count: usize| -> Sources {
        (0..count).map(|at| (format!("f{at}.rs"), "pub enum Fresh { A }\nimpl X { type Y = u8; }".to_owned())).collect()
    };
    let told = |count| overused(&tree(count)).into_iter().filter(|line| line.contains("Fresh")).collect::<Vec<_>>();
    assert_eq!(told(2), Vec::<String>::new());
    assert_eq!(told(3).len(), 1, "{:?}", told(3));
}

/// What the checker says of a file that opens as it should and then has this code.
fn findings(name: &str, code: &str) -> Vec<String> {
    check(name, &format!("//! A file.\n\n{code}\n"))
}

#[track_caller]
fn refused(name: &str, code: &str, because: &str) {
    let findings = findings(name, code);
    assert!(findings.iter().any(|finding| finding.contains(because)), "{name}: {code:?} gave {findings:?}");
}

#[track_caller]
fn allowed(name: &str, code: &str) {
    assert_eq!(findings(name, code), Vec::<String>::new(), "{name}: {code:?}");
}

#[test]
fn an_import_of_a_higher_layer_is_refused_however_it_is_written() {
    refused("slot/key.rs", "use crate::machine::SlotMachine;", "slot may not know machine");
    refused("store/contract.rs", "use crate::{\n    slot::Slot,\n    node::Node,\n};", "store may not know node");
    refused("exec/launch.rs", "fn f() { crate::config::load() }", "exec may not know config");
    refused("machine/slot.rs", "use super::super::node::Node;", "machine may not know node");
    refused("node/daemon.rs", "use crate::cli::Args;", "node may not know cli");
}

#[test]
fn an_import_of_a_lower_layer_is_allowed() {
    allowed("node/daemon.rs", "use crate::{machine::SlotMachine, schedule::Planner, store::Store, exec::Launcher};");
    allowed("config/model.rs", "use crate::{exec::check_placeholders, schedule::Schedule, store::JobEntry};");
    allowed("cli/run.rs", "use crate::config;\nuse crate::node::Node;");
    allowed("observe/view.rs", "use crate::store::JobEntry;\nuse crate::machine::SlotMachine;");
    refused("store/layer/seen.rs", "use crate::observe::Observer;", "store may not know observe");
    allowed("slot/run.rs", "use crate::job::NodeName;\nuse super::Slot;");
}

#[test]
fn the_two_halves_of_the_core_do_not_know_each_other() {
    refused("machine/slot.rs", "use crate::schedule::Tick;", "machine may not know schedule");
    refused("schedule/planner.rs", "use crate::machine::SlotMachine;", "schedule may not know machine");
}

#[test]
fn the_guard_knows_the_words_of_a_store_but_not_the_store() {
    allowed("machine/action.rs", "use crate::{error::StoreError, reply::Claim, wake::Wake};");
    allowed("store/mod.rs", "pub use crate::reply::{Claim, Renewal};");
    refused("machine/action.rs", "use crate::store::Store;", "machine may not know store");
    refused("reply.rs", "use crate::store::Store;", "reply may not know store");
}

#[test]
fn an_adapter_knows_neither_another_adapter_nor_the_guard() {
    refused("store/redis/script.rs", "use crate::store::sql::SqliteStore;", "store::redis may not know store::sql");
    refused("store/sql/mod.rs", "use super::memory::MemoryStore;", "store::sql may not know store::memory");
    refused(
        "store/memory/mod.rs",
        "use crate::{store::{Claim, layer::Timeout}};",
        "store::memory may not know store::layer",
    );
    refused("store/redis/mod.rs", "use crate::machine::SlotMachine;", "store may not know machine");
    allowed(
        "store/redis/mod.rs",
        "mod script;\nuse crate::store::{Claim, Store};\nuse crate::store::redis::script::X;",
    );
    allowed("store/open.rs", "use crate::store::{redis::RedisStore, sql::SqliteStore};");
}

#[test]
fn what_weighs_the_answers_of_masters_is_pure_and_knows_no_server() {
    refused("store/redlock/claim.rs", "async fn f() {}", "`async`");
    refused(
        "store/redlock/claim.rs",
        "use crate::store::redis::RedisStore;",
        "store::redlock may not know store::redis",
    );
    allowed("store/redis/redlock/claim.rs", "use crate::store::redlock::claim::Terms;\nasync fn f() {}");
}

#[test]
fn the_simulator_is_pure_and_knows_what_drives_real_nodes_but_not_what_configures_them() {
    allowed(
        "simulate/daemon.rs",
        "use crate::engine::Time;\nuse cronward::node::NodeMachine;\nuse cronward::{drive::Fact, machine::End, verify, store};",
    );
    refused("simulate/daemon.rs", "use cronward::config::Config;", "simulate may not know config");
    refused("simulate/daemon.rs", "use cronward::{clock::Now, service::Guard};", "simulate may not know service");
    refused("simulate/daemon.rs", "fn f() { cronward::cli::main() }", "simulate may not know cli");
    refused("simulate/daemon.rs", "async fn f() {}", "`async`");
    refused(
        "simulate/daemon.rs",
        "fn f() { getrandom::fill(&mut bits) }",
        "tools/simulate/src/daemon.rs: simulate is pure",
    );
    refused("simulate/daemon.rs", &"fn f() {}\n".repeat(400), "400 is the most");
}

#[test]
fn only_main_knows_the_commands() {
    refused("config/model.rs", "use crate::cli::Args;", "config may not know cli");
    allowed("main.rs", "fn main() -> std::process::ExitCode { cronward::cli::main() }");
    refused("main.rs", "fn main() { cronward::node::run() }", "main may not know node");
}

#[test]
fn the_core_neither_awaits_nor_reads_a_clock_nor_logs() {
    for (code, word) in [
        ("async fn f() {}", "`async`"),
        ("fn f() { tokio::spawn(g) }", "`tokio`"),
        ("fn f() { tracing::info!(\"x\") }", "`tracing`"),
        ("fn f() { std::time::SystemTime::now(); }", "`SystemTime`"),
        ("fn f() { Instant::now(); }", "`Instant::now`"),
        ("fn f() { chrono::Utc::now(); }", "`Utc::now`"),
        ("fn f() { std::fs::read(p); }", "`std::fs`"),
        ("fn f() { println!(\"x\") }", "`println`"),
    ] {
        refused("machine/slot.rs", code, word);
        refused("schedule/planner.rs", code, word);
        refused("slot/key.rs", code, word);
    }
    allowed("node/daemon.rs", "async fn f() { tokio::spawn(g).await }");
    allowed("clock.rs", "fn f() { chrono::Utc::now(); }");
    allowed("machine/slot.rs", "fn async_like() { let tokio_free = 1; }");
}

#[test]
fn comments_strings_and_test_modules_are_not_code() {
    allowed("machine/slot.rs", "// use crate::node::Node; async\n/* tokio /* nested */ async */");
    allowed("machine/slot.rs", "/// See [`crate::node`].\nconst X: &str = \"async crate::node::Node \\\" tokio\";");
    allowed(
        "machine/slot.rs",
        "const X: &str = r#\"async \" crate::node\"#; const Y: char = '\"'; const Z: char = 'a';",
    );
    allowed("machine/slot.rs", "#[cfg(test)]\nmod tests {\n    use crate::node::Node;\n    async fn f() {}\n}");
    allowed("machine/tests.rs", "use crate::node::Node;");
    allowed("machine/tests/claiming.rs", "use crate::node::Node;");
    refused("machine/slot.rs", "fn f<'a>(x: &'a str) {} // fine\nuse crate::node::Node;", "machine may not know node");
    refused("machine/slot.rs", "#[cfg(test)]\nuse std::fmt;\nuse crate::node::Node;", "machine may not know node");
}

#[test]
fn code_after_a_test_module_is_code_again() {
    let code = "#[cfg(test)]\nmod tests {\n    fn f() {}\n}\n\nuse crate::node::Node;";
    refused("machine/slot.rs", code, "machine may not know node");
}

#[test]
fn a_file_without_a_purpose_or_too_long_to_read_is_refused() {
    let silent = check("slot/key.rs", "use std::fmt;\n");
    assert!(silent[0].contains("opens with `//!`"), "{silent:?}");
    refused("slot/key.rs", &"const X: u8 = 0;\n".repeat(401), "lines of code");
    let mostly_tests = format!("#[cfg(test)]\nmod tests {{\n{}}}", "    const X: u8 = 0;\n".repeat(500));
    allowed("slot/key.rs", &mostly_tests);
}

#[test]
fn a_module_without_a_layer_is_refused() {
    refused("helpers/mod.rs", "fn f() {}", "has no layer");
    refused("node/daemon.rs", "use crate::helpers::f;", "has no layer");
}
