//! Which file knows which, and who knows each other in a circle. A name is looked up where it is defined, through every
//! `pub use`, so a folder's `mod.rs` that only passes names on is known by nobody.

use std::collections::{BTreeMap, BTreeSet};

use super::source::{Use, blank, calls, defines, mentions, modules_inside, paths, test_modules, uses, without_tests};

/// A file's path from the root of its crate, and its text.
pub(crate) type Sources = BTreeMap<String, String>;

/// Circles of the library that may stay: one machine in several files, and a history that is told as stories which refer to it.
pub(crate) const MAY_STAY: [&[&str]; 2] = [
    &["machine/slot.rs", "machine/running.rs", "machine/settling.rs"],
    &["verify/availability.rs", "verify/history.rs", "verify/node_run.rs", "verify/story.rs"],
];

/// What is wrong with the circles of the tree: those that the list does not have, and files of the list that are in no such circle
/// any more.
pub(crate) fn unlisted(sources: &Sources, list: &[&[&str]]) -> Vec<String> {
    let found = circles(sources);
    let within = |circle: &Circle, listed: &[&str]| circle.files.iter().all(|file| listed.contains(&file.as_str()));
    let is_listed = |circle: &&Circle| list.iter().any(|listed| within(circle, listed));
    let new = found.iter().filter(|circle| !is_listed(circle));
    let new = new.map(|circle| {
        let way = circle.way.join(" knows ");
        format!(
            "{} files know each other in a circle: {way}; move what both need to one of its own",
            circle.files.len()
        )
    });
    let gone = list.iter().flat_map(|listed| {
        let is_there =
            |file: &str| found.iter().any(|other| within(other, listed) && other.files.contains(&file.to_owned()));
        listed.iter().filter(move |file| !is_there(file)).map(|file| (*file, *listed))
    });
    let gone =
        gone.map(|(file, listed)| format!("{file} is in no circle of {} any more: take it out", listed.join(", ")));
    new.chain(gone).collect()
}

/// A module, from the crate's root; the root itself is empty.
type Module = Vec<String>;

/// Files that know each other in a circle, and one way round.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Circle {
    /// All of them, sorted.
    pub(crate) files: Vec<String>,
    /// A shortest way from the first one back to itself.
    pub(crate) way: Vec<String>,
}

/// Every circle of files, the largest first.
pub(crate) fn circles(sources: &Sources) -> Vec<Circle> {
    let known = Tree::read(sources).knows();
    let mut left: BTreeSet<&String> = known.keys().collect();
    let mut found = Vec::new();
    while let Some(first) = left.pop_first() {
        let files: Vec<String> = reached(&known, first)
            .into_iter()
            .filter(|other| *other == first || reached(&known, other).contains(first))
            .cloned()
            .collect();
        left.retain(|other| !files.contains(other));
        if files.len() > 1 {
            let way = way_back(&known, first);
            found.push(Circle { files, way });
        }
    }
    found.sort_by_key(|circle| std::cmp::Reverse(circle.files.len()));
    found
}

/// What a file knows at any remove; itself only on a circle.
fn reached<'a>(known: &'a BTreeMap<String, BTreeSet<String>>, from: &'a String) -> BTreeSet<&'a String> {
    let mut reached = BTreeSet::new();
    let mut open = vec![from];
    while let Some(file) = open.pop() {
        let next = known.get(file).into_iter().flatten();
        open.extend(next.filter(|next| reached.insert(*next)));
    }
    reached
}

fn way_back(known: &BTreeMap<String, BTreeSet<String>>, first: &String) -> Vec<String> {
    let mut ways = std::collections::VecDeque::from([vec![first.clone()]]);
    let mut seen = BTreeSet::new();
    while let Some(way) = ways.pop_front() {
        for next in known.get(&way[way.len() - 1]).into_iter().flatten() {
            let longer = [way.as_slice(), std::slice::from_ref(next)].concat();
            if next == first {
                return longer;
            }
            if seen.insert(next) {
                ways.push_back(longer);
            }
        }
    }
    Vec::new()
}

/// Where a path leads.
enum Target {
    Module(Module),
    /// Something that this file defines.
    Item(String),
}

/// The crate's modules and what each imports.
struct Tree {
    /// What each file defines.
    defined: BTreeMap<String, BTreeSet<String>>,
    /// The file of each module, of those that a file has inside too.
    files: BTreeMap<Module, String>,
    uses: BTreeMap<String, Vec<Use>>,
    /// Each file's code without its `use` statements.
    bodies: BTreeMap<String, String>,
}

/// How many names a name may be passed on by: a `use` of oneself would be looked up for ever.
const LONGEST_CHAIN: usize = 12;

impl Tree {
    fn read(sources: &Sources) -> Self {
        let mut tree =
            Self { defined: BTreeMap::new(), files: BTreeMap::new(), uses: BTreeMap::new(), bodies: BTreeMap::new() };
        for (name, text) in sources {
            tree.add(name, &blank(text));
        }
        let tests = test_files(sources);
        tree.bodies.retain(|name, _| !tests.contains(name));
        tree
    }

    fn add(&mut self, name: &str, blanked: &str) {
        let code = without_tests(blanked);
        let module = module_of(name);
        let child = |inside: String| [module.as_slice(), &[inside]].concat();
        self.files.extend(modules_inside(&code).into_iter().map(|inside| (child(inside), name.to_owned())));
        self.defined.insert(name.to_owned(), defines(&code));
        let (uses, body) = uses(&code);
        self.uses.insert(name.to_owned(), uses);
        self.bodies.insert(name.to_owned(), body);
        self.files.insert(module, name.to_owned());
    }

    fn knows(&self) -> BTreeMap<String, BTreeSet<String>> {
        self.bodies.keys().map(|name| (name.clone(), self.known_to(name))).collect()
    }

    /// Every other file of which this one says a name.
    fn known_to(&self, name: &str) -> BTreeSet<String> {
        let module = module_of(name);
        let body = &self.bodies[name];
        let mut found = BTreeSet::new();
        let mut meet = |target: Target| match target {
            Target::Item(file) => _ = found.insert(file),
            Target::Module(_) => {}
        };
        let mut aliases: Vec<(String, Module)> = self.children(&module);
        for import in &self.uses[name] {
            match self.resolve(&module, &import.path, LONGEST_CHAIN) {
                Target::Module(whole) if import.name == "*" => {
                    self.globbed(&whole, body).into_iter().for_each(&mut meet);
                }
                Target::Module(alias) => {
                    self.called_like(&alias, &import.name, body).into_iter().for_each(&mut meet);
                    aliases.push((import.name.clone(), alias));
                }
                // What is only passed on is known to whoever asks for it.
                item if !import.passed_on || mentions(body, &import.name) => meet(item),
                Target::Item(_) => {}
            }
        }
        for (alias, start) in aliases {
            for path in paths(body, &alias) {
                meet(self.resolve(&start, &path, LONGEST_CHAIN));
            }
        }
        for root in ["crate", "super", "self"] {
            for path in paths(body, root) {
                let path = [&[root.to_owned()], path.as_slice()].concat();
                meet(self.resolve(&module, &path, LONGEST_CHAIN));
            }
        }
        found.retain(|file| file != name && self.bodies.contains_key(file));
        found
    }

    /// The function that a folder hands out under the name of a module in it, where the code calls one of that name.
    fn called_like(&self, module: &[String], name: &str, body: &str) -> Option<Target> {
        let (own, parent) = module.split_last().filter(|_| calls(body, name))?;
        let import = self.uses[self.files.get(parent)?].iter().find(|import| import.name == *own)?;
        Some(self.resolve(parent, &import.path, LONGEST_CHAIN))
    }

    fn children(&self, module: &[String]) -> Vec<(String, Module)> {
        let own = self.files.keys().filter(|child| child.len() == module.len() + 1 && child.starts_with(module));
        own.map(|child| (child[child.len() - 1].clone(), child.clone())).collect()
    }

    /// What the code says of the names that a whole module hands out.
    fn globbed(&self, module: &[String], body: &str) -> Vec<Target> {
        let Some(file) = self.files.get(module) else { return Vec::new() };
        let defined = self.defined[file].iter().cloned();
        let passed = self.uses[file].iter().map(|import| import.name.clone());
        let said = defined.chain(passed).filter(|name| mentions(body, name));
        said.map(|name| self.resolve(module, &[name], LONGEST_CHAIN)).collect()
    }

    /// Where a path leads that is said in `from`. What is found nowhere is not of this crate, and leads nowhere else.
    fn resolve(&self, from: &[String], path: &[String], chain: usize) -> Target {
        let Some((first, rest)) = path.split_first() else { return Target::Module(from.to_vec()) };
        match first.as_str() {
            "crate" => return self.resolve(&[], rest, chain),
            "super" => return self.resolve(&from[..from.len().saturating_sub(1)], rest, chain),
            "self" => return self.resolve(from, rest, chain),
            _ => {}
        }
        let child = [from, std::slice::from_ref(first)].concat();
        if self.files.contains_key(&child) {
            return self.resolve(&child, rest, chain);
        }
        let Some(file) = self.files.get(from) else { return Target::Module(from.to_vec()) };
        if chain > 0 && !self.defined[file].contains(first) {
            let named = self.uses[file].iter().find(|import| import.name == *first && import.path != path);
            if let Some(import) = named {
                return match self.resolve(from, &import.path, chain - 1) {
                    Target::Module(module) => self.resolve(&module, rest, chain - 1),
                    item @ Target::Item(_) => item,
                };
            }
            for glob in self.uses[file].iter().filter(|import| import.name == "*") {
                if let Target::Module(module) = self.resolve(from, &glob.path, chain - 1)
                    && self.hands_out(&module, first)
                {
                    return self.resolve(&module, path, chain - 1);
                }
            }
        }
        Target::Item(file.clone())
    }

    fn hands_out(&self, module: &[String], name: &str) -> bool {
        let Some(file) = self.files.get(module) else { return false };
        self.defined[file].contains(name) || self.uses[file].iter().any(|import| import.name == name)
    }
}

/// Files that exist for tests only: by their names, or `#[cfg(test)] mod fixture;` in the file above.
pub(crate) fn test_files(sources: &Sources) -> BTreeSet<String> {
    let mut declared: BTreeSet<Module> = BTreeSet::new();
    for (name, text) in sources {
        let module = module_of(name);
        declared.extend(test_modules(&blank(text)).into_iter().map(|inside| [module.as_slice(), &[inside]].concat()));
    }
    let is_below = |module: &Module| (1..=module.len()).any(|length| declared.contains(&module[..length]));
    let tests = sources.keys().filter(|name| is_test_file(name) || is_below(&module_of(name)));
    tests.cloned().collect()
}

/// A file of tests by its name.
pub(crate) fn is_test_file(name: &str) -> bool {
    module_of(name).iter().any(|part| part == "tests" || part.ends_with("_tests"))
}

/// `store/redis/mod.rs` is the module `store::redis`, `lib.rs` the root.
fn module_of(name: &str) -> Module {
    let stem = name.trim_end_matches(".rs");
    stem.split('/').filter(|part| !matches!(*part, "mod" | "lib")).map(str::to_owned).collect()
}
