//! What stands in keys and messages: slot keys, names, tokens, periods, wake-ups.

use std::fmt::{Debug, Display};
use std::str::FromStr;

use super::is_one_line;
use crate::job::{JobName, NodeName};
use crate::slot::{Period, Slot, SlotKey, Token};
use crate::wake::Wake;

/// Any of the short words. True when the bytes are a slot key.
pub fn slot_key(bytes: &[u8]) -> bool {
    let text = String::from_utf8_lossy(bytes);
    let key = reads_back::<SlotKey>(&text);
    if let Some(key) = key {
        assert_eq!(SlotKey::of(key.start()), Some(key));
        assert_eq!(key.to_string(), text, "one instant, one key");
    }
    for name in [reads_back::<JobName>(&text).is_some(), reads_back::<NodeName>(&text).is_some()] {
        assert!(!name || text.len() <= 64);
    }
    reads_back::<Period>(&text);
    reads_back::<Token>(&text);
    reads_back::<Wake>(&text);
    if let Some((job, rest)) = text.split_once('@')
        && let Some((start, end)) = rest.split_once('/')
    {
        match Slot::parse(job, start, end) {
            Ok(slot) => assert!(slot.start() < slot.end() && slot.fence(999) > slot.fence(1)),
            Err(error) => is_one_line(&error.to_string()),
        }
    }
    key.is_some()
}

fn reads_back<T>(text: &str) -> Option<T>
where
    T: FromStr<Err: Display> + Display + PartialEq + Debug,
{
    match text.parse::<T>() {
        Ok(value) => {
            assert_eq!(value.to_string().parse::<T>().ok().as_ref(), Some(&value));
            Some(value)
        }
        Err(error) => {
            is_one_line(&error.to_string());
            None
        }
    }
}
