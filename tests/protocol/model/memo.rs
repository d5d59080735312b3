//! Numbers for values that are large or cannot be hashed, so that a state of the model is a few bytes. Two values are
//! the same exactly when their keys are; what a key may leave out is said where it is made.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

/// A map whose look-ups are cheap without optimisation, too: most of a checker's time goes into them.
pub(crate) type Memo<K, V> = HashMap<K, V, BuildHasherDefault<Mix>>;

/// Mixes words as `FxHash` does. The keys are small numbers of this program's own making.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Mix(u64);

impl Hasher for Mix {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.write_u64(u64::from(*byte));
        }
    }

    fn write_u64(&mut self, word: u64) {
        self.0 = (self.0.rotate_left(5) ^ word).wrapping_mul(0x517c_c1b7_2722_0a95);
    }

    fn write_u8(&mut self, word: u8) {
        self.write_u64(u64::from(word));
    }

    fn write_u32(&mut self, word: u32) {
        self.write_u64(u64::from(word));
    }

    fn write_isize(&mut self, word: isize) {
        self.write_u64(word as u64);
    }
}

/// The number of a value.
pub(crate) type Id = u32;

/// Values by number.
#[derive(Debug)]
pub(crate) struct Numbered<T> {
    ids: HashMap<String, Id>,
    values: Vec<T>,
}

impl<T> Default for Numbered<T> {
    fn default() -> Self {
        Self { ids: HashMap::new(), values: Vec::new() }
    }
}

impl<T> Numbered<T> {
    /// The number of the next value with a new key.
    pub(crate) fn next(&self) -> Id {
        Id::try_from(self.values.len()).expect("few values")
    }

    /// The number of the value with this key; the first value with a key stays.
    pub(crate) fn id(&mut self, key: String, value: T) -> Id {
        let next = self.next();
        let values = &mut self.values;
        *self.ids.entry(key).or_insert_with(|| {
            values.push(value);
            next
        })
    }

    pub(crate) fn get(&self, id: Id) -> &T {
        &self.values[id as usize]
    }

    pub(crate) fn len(&self) -> usize {
        self.values.len()
    }
}
