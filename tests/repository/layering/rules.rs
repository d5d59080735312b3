//! The table of `ARCHITECTURE.md`, and the judgement of one file by it.

use super::circles::is_test_file;
use super::source::{blank, mentions, paths, without_tests};

/// The folder under which the files of `tools/simulate/src/` stand here, as if they were beside `node`.
pub(crate) const SIMULATOR: &str = "simulate";

/// The layers from the ground up; a module knows what is below it, and beside it only what [`BESIDE`] lists.
const LAYERS: [&[&str]; 11] = [
    &["slot", "job", "resource", "clock", "reply", "error", "event", "wake", "message", "text", "file", "zone"],
    &["machine", "schedule"],
    &["store", "exec", "observe"],
    &["drive"],
    &["node", "service", "lock", "verify", SIMULATOR],
    &["config", "metrics"],
    &["notify"],
    &["admin"],
    &["board"],
    &["web"],
    &["cli", "fuzzing"],
];

/// Who may know a neighbour of the same layer. On the ground everybody may: the words are made of each other.
const BESIDE: &[(&str, &str)] = &[
    // The views that programs read are made of records and of the registry.
    ("observe", "store"),
    // Simulated nodes are driven by the machine of real ones, and what they write is judged as what those write.
    (SIMULATOR, "node"),
    (SIMULATOR, "verify"),
    // How a lease stands is one word, of a slot's and of a lock's.
    ("lock", "service"),
    // A crontab is read by a command, and its parser is tried as the others are.
    ("fuzzing", "cli"),
];

/// What the binary itself knows: the commands, and the shim of a command, which is the same binary.
const MAIN_KNOWS: &[&str] = &["cli", "exec"];

/// Who may not know something though it is below.
const APART: &[(&str, &str)] =
    &[("store", "machine"), ("store", "schedule"), ("exec", "machine"), ("exec", "schedule"), ("config", "node")];

/// Parts of `store` that an adapter may not know, besides the other adapters.
const ABOVE_ADAPTERS: &[&str] = &["layer", "conformance"];

/// The adapters.
pub(crate) const ADAPTERS: &[&str] = &["redis", "sql", "etcd", "zookeeper", "memory"];

/// Modules that are pure: values in, values out.
const PURE: &[&str] = &[
    "slot", "job", "resource", "reply", "error", "event", "wake", "message", "text", "machine", "schedule", "verify",
    SIMULATOR,
];

/// The parts of other modules that are as pure.
const PURE_PARTS: &[(&str, &str)] = &[
    ("store", "redlock"),
    ("board", "cell"),
    ("board", "chores"),
    ("board", "concern"),
    ("board", "faults"),
    ("board", "filter"),
    ("board", "judge"),
    ("board", "line"),
    ("board", "sheet"),
    ("board", "snapshot"),
    ("board", "window"),
    ("node", "action"),
    ("node", "active"),
    ("node", "machine"),
    ("node", "membership"),
    ("node", "plan"),
    ("node", "request"),
    ("node", "resets"),
    ("node", "verdicts"),
    ("notify", "desk"),
    ("notify", "entry"),
    ("notify", "letter"),
    ("notify", "lookout"),
    ("notify", "machine"),
    ("notify", "notice"),
    ("notify", "pace"),
    ("notify", "texts"),
];

/// What pure code never says.
const IMPURE: &[&str] = &[
    "async",
    "await",
    "tokio",
    "tracing",
    "SystemTime",
    "Instant::now",
    "Utc::now",
    "Local::now",
    "std::fs",
    "std::net",
    "std::thread",
    "std::process",
    "std::env",
    "getrandom",
    "println",
    "eprintln",
];

/// The most lines of code that a file has, its tests not counted.
const LONGEST: usize = 400;

/// Where a file is, by its path under `src/` or [`SIMULATOR`].
pub(crate) fn path(name: &str) -> String {
    let simulated = name.strip_prefix(SIMULATOR).filter(|rest| rest.starts_with('/'));
    simulated.map_or_else(|| format!("src/{name}"), |rest| format!("tools/simulate/src{rest}"))
}

/// Every rule that the file breaks; `name` is its path under `src/` or [`SIMULATOR`].
pub(crate) fn check(name: &str, text: &str) -> Vec<String> {
    let (mut found, path) = (Vec::new(), path(name));
    if !text.starts_with("//!") {
        found.push(format!("{path}: a file opens with `//!`: what it is for and what it never does"));
    }
    let blanked = blank(text);
    let code = without_tests(&blanked);
    let module = module_of(name);
    if is_test_file(name) || name.ends_with("lib.rs") {
        return found;
    }
    found.extend(length(&path, text, &code));
    found.extend(imports(&module, &code).into_iter().map(|rule| format!("{path}: {rule}")));
    found.extend(purity(&module, &code).into_iter().map(|rule| format!("{path}: {rule}")));
    found
}

/// `store/redis/mod.rs` is the module `store::redis`.
fn module_of(name: &str) -> Vec<String> {
    let stem = name.trim_end_matches(".rs");
    stem.split('/').filter(|part| *part != "mod").map(str::to_owned).collect()
}

fn length(path: &str, text: &str, code: &str) -> Option<String> {
    // Lines that only the tests fill are blank in `code`; blank lines and comments of the code itself do count.
    let in_tests = text
        .lines()
        .zip(blank(text).lines().zip(code.lines()))
        .filter(|(_, (before, after))| !before.trim().is_empty() && after.trim().is_empty())
        .count();
    let lines = text.lines().count() - in_tests;
    (lines > LONGEST).then(|| format!("{path}: {lines} lines of code; split it, {LONGEST} is the most"))
}

fn layer_of(module: &str) -> Option<usize> {
    LAYERS.iter().position(|layer| layer.contains(&module))
}

fn imports(module: &[String], code: &str) -> Vec<String> {
    if module[0] == "main" {
        let known = |path: &Vec<String>| path.first().is_some_and(|first| MAIN_KNOWS.contains(&first.as_str()));
        let others = paths(code, "cronward").into_iter().filter(|path| !known(path));
        return others.map(|path| format!("main may not know {}", path.join("::"))).collect();
    }
    let Some(layer) = layer_of(&module[0]) else {
        return vec![format!("module {} has no layer: give it one in tests/repository/layering/rules.rs", module[0])];
    };
    if module[0] == SIMULATOR {
        return paths(code, "cronward").iter().filter_map(|target| judge(module, layer, target)).collect();
    }
    let relative = paths(code, "super").into_iter().map(|path| absolute(module, path));
    let targets = paths(code, "crate").into_iter().chain(relative);
    targets.filter_map(|target| judge(module, layer, &target)).collect()
}

/// `super::super::x` seen from `module`, as a path from the crate's root.
fn absolute(module: &[String], path: Vec<String>) -> Vec<String> {
    let ups = 1 + path.iter().take_while(|part| *part == "super").count();
    let mut whole = module[..module.len().saturating_sub(ups)].to_vec();
    whole.extend(path.into_iter().skip(ups - 1));
    whole
}

/// Why `module` may not know `target`, if it may not.
fn judge(module: &[String], layer: usize, target: &[String]) -> Option<String> {
    let (own, other) = (module[0].as_str(), target.first()?.as_str());
    let part = target.get(1).map(String::as_str);
    if own == other {
        return within_store(module, part);
    }
    let Some(below) = layer_of(other) else {
        return Some(format!("{other} has no layer: give it one in tests/repository/layering/rules.rs"));
    };
    let pair = (own, other);
    let words = below == 0 && layer == 0;
    let allowed = words || (below < layer && !APART.contains(&pair)) || BESIDE.contains(&pair);
    (!allowed).then(|| format!("{own} may not know {other} ({})", target.join("::")))
}

fn is_pure_part(module: &[String]) -> bool {
    module.get(1).is_some_and(|part| PURE_PARTS.contains(&(module[0].as_str(), part.as_str())))
}

/// Adapters know the contract, not each other and not what stands above them.
fn within_store(module: &[String], part: Option<&str>) -> Option<String> {
    if module[0] == "store" && is_pure_part(module) {
        let part = part.filter(|part| ADAPTERS.contains(part) || ABOVE_ADAPTERS.contains(part))?;
        return Some(format!("store::{} may not know store::{part}", module[1]));
    }
    let adapter = module.get(1).filter(|name| module[0] == "store" && ADAPTERS.contains(&name.as_str()))?;
    let part = part?;
    let foreign = part != adapter && (ADAPTERS.contains(&part) || ABOVE_ADAPTERS.contains(&part));
    foreign.then(|| format!("store::{adapter} may not know store::{part}"))
}

fn purity(module: &[String], code: &str) -> Vec<String> {
    let part = module.get(1).filter(|_| is_pure_part(module));
    let pure = if PURE.contains(&module[0].as_str()) { Some(&module[0]) } else { part };
    let Some(pure) = pure else { return Vec::new() };
    let said = IMPURE.iter().filter(|words| mentions(code, words));
    said.map(|words| format!("{pure} is pure and may not say `{words}`")).collect()
}
