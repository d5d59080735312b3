//! Inputs: the seeds and the dictionary of a fuzz target, and what becomes of them when they are cut, doubled and spoilt.

use std::path::PathBuf;

use proptest::prelude::*;

/// What a target starts from.
#[derive(Clone, Debug)]
pub(crate) struct Material {
    /// Name and bytes of each seed.
    pub(crate) seeds: Vec<(String, Vec<u8>)>,
    words: Vec<Vec<u8>>,
}

impl Material {
    pub(crate) fn of(target: &str) -> Self {
        let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("fuzz");
        let mut files: Vec<_> =
            folder.join("seeds").join(target).read_dir().unwrap().map(|entry| entry.unwrap().path()).collect();
        files.sort();
        let name = |path: &PathBuf| path.file_name().unwrap().to_str().unwrap().to_owned();
        let seeds = files.iter().map(|path| (name(path), std::fs::read(path).unwrap())).collect();
        let dictionary = std::fs::read_to_string(folder.join(format!("dictionaries/{target}.dict"))).unwrap();
        let words = dictionary.lines().filter(|line| !line.starts_with('#')).map(unescape).collect();
        Self { seeds, words }
    }
}

/// A line of a dictionary: `"a\x0ab"`.
fn unescape(line: &str) -> Vec<u8> {
    let inner = line.strip_prefix('"').and_then(|line| line.strip_suffix('"')).unwrap();
    let mut parts = inner.split("\\x");
    let mut bytes = parts.next().unwrap().as_bytes().to_vec();
    for part in parts {
        bytes.push(u8::from_str_radix(&part[..2], 16).unwrap());
        bytes.extend(&part.as_bytes()[2..]);
    }
    bytes
}

/// An input, shown as a byte string when a claim does not hold.
#[derive(Clone)]
pub(crate) struct Input(pub(crate) Vec<u8>);

impl std::fmt::Debug for Input {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "b\"{}\"", self.0.escape_ascii())
    }
}

/// One thing done to an input.
#[derive(Clone, Debug)]
enum Edit {
    Replace(Vec<u8>),
    Repeat(u16),
    Flip(u8),
    Cut,
}

/// Bytes for a target: its seeds with a few edits, its words in any order, or anything at all.
pub(crate) fn bytes(target: &str) -> impl Strategy<Value = Input> + use<> {
    let Material { seeds, words } = Material::of(target);
    let seeds: Vec<_> = seeds.into_iter().map(|(_, bytes)| bytes).collect();
    let word = prop::sample::select(words);
    let replacement = prop_oneof![8 => word.clone(), 1 => prop::collection::vec(any::<u8>(), 0..6)];
    let edit = prop_oneof![
        6 => replacement.prop_map(Edit::Replace),
        1 => (2..2_000_u16).prop_map(Edit::Repeat),
        1 => any::<u8>().prop_map(Edit::Flip),
        1 => Just(Edit::Cut),
    ];
    let edits = prop::collection::vec((any::<prop::sample::Index>(), 0..24_usize, edit), 0..6);
    let spoilt = (prop::sample::select(seeds), edits).prop_map(|(mut bytes, edits)| {
        edits.iter().for_each(|(at, length, edit)| apply(&mut bytes, at, *length, edit));
        bytes
    });
    let made_up = prop::collection::vec(word, 0..40).prop_map(|words| words.concat());
    prop_oneof![6 => spoilt, 2 => made_up, 1 => prop::collection::vec(any::<u8>(), 0..300)].prop_map(Input)
}

fn apply(bytes: &mut Vec<u8>, at: &prop::sample::Index, length: usize, edit: &Edit) {
    let from = at.index(bytes.len() + 1);
    let to = (from + length).min(bytes.len());
    match edit {
        Edit::Replace(word) => drop(bytes.splice(from..to, word.iter().copied())),
        Edit::Repeat(times) => {
            let part = bytes[from..to].repeat(usize::from(*times));
            drop(bytes.splice(from..to, part));
        }
        Edit::Flip(mask) => bytes[from..to].iter_mut().for_each(|byte| *byte ^= mask),
        Edit::Cut => bytes.truncate(from),
    }
}
