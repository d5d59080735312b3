//! Expressions that were compiled before: a file of ten thousand jobs has a few hundred, and each is met by the check of the
//! file, by the plan of the node and by the registry. What an expression means depends on nothing but its text, so whether
//! it was compiled before changes no answer.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use super::syntax::{Compiled, Fault, compile};

/// The most that are kept, about 300 bytes each; one more, and all are forgotten.
const MOST: usize = 16_384;

static KNOWN: Mutex<BTreeMap<Arc<str>, Arc<Compiled>>> = Mutex::new(BTreeMap::new());

/// Compiles a trimmed expression, or answers what came of that before.
pub(super) fn compiled(text: &str) -> Result<(Arc<str>, Arc<Compiled>), Fault> {
    // Nothing is left half done when a holder panics: a map is only read, cleared, or given one more.
    let known = || KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some((text, compiled)) = known().get_key_value(text) {
        return Ok((Arc::clone(text), Arc::clone(compiled)));
    }
    let (text, compiled) = (Arc::from(text), Arc::new(compile(text)?));
    let mut known = known();
    if known.len() >= MOST {
        known.clear();
    }
    known.insert(Arc::clone(&text), Arc::clone(&compiled));
    Ok((text, compiled))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_text_is_compiled_once_and_a_wrong_one_is_told_each_time() {
        let (text, first) = compiled("7 3 9 1 *").unwrap();
        let (again, second) = compiled("7 3 9 1 *").unwrap();
        assert!(Arc::ptr_eq(&first, &second) && Arc::ptr_eq(&text, &again));
        assert_eq!(compiled("61 * * * *").unwrap_err(), compiled("61 * * * *").unwrap_err());
    }

    #[test]
    fn no_more_are_kept_than_fit() {
        for number in 0..MOST + 10 {
            let (minute, hour, day) = (number % 60, number / 60 % 24, number / 1_440 + 1);
            compiled(&format!("{minute} {hour} {day} 5 *")).unwrap();
        }
        assert!(KNOWN.lock().unwrap().len() <= MOST);
    }
}
