//! From what the scripts of locks answered to what the contract speaks of. As total as `decode`: what stands at the keys, or whatever
//! answers, becomes a value or a [`Corrupt`].

use std::collections::BTreeMap;

use chrono::{DateTime, Utc};
use redis::Value;

use crate::job::{LockName, NodeName};
use crate::resource::{
    Acquired, Demands, LockHolder, LockPlace, LockRecord, LockRefusal, LockRelease, LockRenewal, OwnerId,
};
use crate::slot::{Audit, Fence, Token};
use crate::store::redis::decode::{Corrupt, Fields, instant, integer, json, list, text};
use crate::store::redis::keys::LockKeys;
use crate::store::rules::{LockState, QueueEntry};

/// The answer of `lock/acquire.lua`.
pub(in crate::store::redis) fn acquired(reply: &Value, demands: &Demands) -> Result<Acquired, Corrupt> {
    let mut fields = Fields::of(reply)?;
    Ok(match fields.word {
        "held" => {
            let fence = Fence(place(&mut fields)?);
            let at = fence.instant().ok_or_else(|| Corrupt::reply("a fence is no instant"))?;
            let places = demands.iter().map(|_| place(&mut fields)).collect::<Result<_, _>>()?;
            Acquired::Held { fence, at, places }
        }
        "waiting" => {
            let (ahead, remaining) = (fields.number()?, fields.span()?);
            Acquired::Waiting { ahead, by: holder(&mut fields)?, remaining }
        }
        "busy" => {
            let (_, remaining) = (fields.number()?, fields.span()?);
            Acquired::Busy { by: holder(&mut fields)?, remaining }
        }
        "refused" => Acquired::Refused(match fields.text()? {
            "spent" => LockRefusal::Spent,
            "full" => LockRefusal::Full,
            "itself" => LockRefusal::WaitsForItself,
            _ => return fields.unknown(),
        }),
        _ => return fields.unknown(),
    })
}

/// The answer of `lock/renew.lua`.
pub(in crate::store::redis) fn renewed(reply: &Value) -> Result<LockRenewal, Corrupt> {
    let mut fields = Fields::of(reply)?;
    Ok(match fields.word {
        "renewed" => LockRenewal::Renewed,
        "restored" => LockRenewal::Restored,
        "lost" => LockRenewal::Lost { to: holder_if_any(&mut fields)? },
        _ => return fields.unknown(),
    })
}

/// The answer of `lock/release.lua`: of each lock what that came to, of which the worst is told.
pub(in crate::store::redis) fn released(reply: &Value, demands: &Demands) -> Result<LockRelease, Corrupt> {
    let mut fields = Fields::of(reply)?;
    if fields.word != "left" {
        return fields.unknown();
    }
    let mut answer = LockRelease::Released;
    for _ in demands {
        let mut part = Fields::of(fields.next()?)?;
        answer = answer.worse(match part.word {
            "released" => LockRelease::Released,
            "expired" => LockRelease::Expired,
            "overtaken" => LockRelease::Overtaken { by: holder_if_any(&mut part)? },
            _ => return part.unknown(),
        });
    }
    Ok(answer)
}

/// The answer of `lock/read.lua` without a lock: the clock, and the names of all, in order.
pub(in crate::store::redis) fn names(reply: &Value, key: &str) -> Result<(DateTime<Utc>, Vec<LockName>), Corrupt> {
    let (now, items) = after_clock(reply)?;
    let name = |item| {
        let name = text(item)?;
        LockName::new(name).map_err(|_| Corrupt::at(key, &format!("{name:?} is no lock's name")))
    };
    let mut names = items.iter().map(name).collect::<Result<Vec<_>, _>>()?;
    names.sort_unstable();
    Ok((now, names))
}

/// The answer of `lock/read.lua`. Who holds is for the rules to say.
pub(in crate::store::redis) fn known_locks(
    reply: &Value,
    asked: &[(LockName, LockKeys)],
) -> Result<(DateTime<Utc>, Vec<LockRecord>), Corrupt> {
    let (now, items) = after_clock(reply)?;
    if items.len() != asked.len() {
        return Err(Corrupt::reply("it has other locks than were asked for"));
    }
    let of_lock = |(item, (name, keys)): (&Value, &(LockName, LockKeys))| Ok(known_lock(item, keys)?.record(name, now));
    Ok((now, items.iter().zip(asked).map(of_lock).collect::<Result<_, Corrupt>>()?))
}

fn after_clock(reply: &Value) -> Result<(DateTime<Utc>, &[Value]), Corrupt> {
    let (clock, items) = list(reply)?.split_first().ok_or_else(|| Corrupt::reply("it has no clock"))?;
    Ok((instant(integer(clock)?)?, items))
}

/// An entry is what both the hash and the queue have.
fn known_lock(item: &Value, keys: &LockKeys) -> Result<LockState, Corrupt> {
    let [known, queue, audit] = list(item)? else { return Err(Corrupt::reply("a lock has another form")) };
    let mut fields = BTreeMap::new();
    for pair in list(known)?.chunks(2) {
        let [field, content] = pair else { return Err(Corrupt::at(&keys.known, "a field without a value")) };
        fields.insert(text(field)?, text(content)?);
    }
    let mut entries = Vec::new();
    for member in list(queue)? {
        let token = text(member)?.get(32..).unwrap_or_default();
        if let Some(content) = fields.remove(token) {
            let foreign = || Corrupt::at(&keys.known, &format!("{token} {content}"));
            entries.push(entry(token, content).ok_or_else(foreign)?);
        }
    }
    let audit = match audit {
        Value::Nil => Vec::new(),
        lines => {
            text(lines)?.lines().map(|line| json::<Audit>(line, &keys.audit, "a line")).collect::<Result<_, _>>()?
        }
    };
    Ok(LockState::of_entries(entries, audit))
}

/// An entry as `lock/queue.lua` writes it.
fn entry(token: &str, content: &str) -> Option<QueueEntry> {
    let mut parts = content.splitn(9, ' ');
    Some(QueueEntry {
        token: token.parse().ok()?,
        place: parts.next()?.parse().ok()?,
        fence: parts.next()?.parse().ok()?,
        weight: parts.next()?.parse().ok()?,
        of: parts.next()?.parse().ok()?,
        until: DateTime::from_timestamp_millis(parts.next()?.parse().ok()?)?,
        owner: parts.next()?.parse().ok()?,
        instance: parts.next()?.parse::<Token>().ok()?,
        node: NodeName::new(parts.next()?).ok()?,
        label: parts.next()?.to_owned(),
    })
}

/// A place, or a fence.
fn place(fields: &mut Fields<'_>) -> Result<LockPlace, Corrupt> {
    u64::try_from(fields.integer()?).map_err(|_| Corrupt::reply("a number is out of range"))
}

fn holder(fields: &mut Fields<'_>) -> Result<LockHolder, Corrupt> {
    let node = NodeName::new(fields.text()?).map_err(|_| Corrupt::reply("a node's name is not allowed"))?;
    let owner: OwnerId = fields.text()?.parse().map_err(|_| Corrupt::reply("an owner has another form"))?;
    let fence = Some(place(fields)?).filter(|fence| *fence > 0).map(Fence);
    Ok(LockHolder { node, label: fields.text()?.to_owned(), owner, fence })
}

fn holder_if_any(fields: &mut Fields<'_>) -> Result<Option<LockHolder>, Corrupt> {
    if fields.is_over() { Ok(None) } else { holder(fields).map(Some) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::job::Namespace;
    use crate::resource::Demand;
    use crate::store::redis::keys::Keys;

    fn of(words: &[&str]) -> Value {
        let word = |word: &&str| match word.parse() {
            Ok(number) => Value::Int(number),
            Err(_) => Value::BulkString(word.as_bytes().to_vec()),
        };
        Value::Array(words.iter().map(word).collect())
    }

    fn demands() -> Demands {
        Demands::from(Demand::exclusive(LockName::new("x").unwrap()))
    }

    const OWNER: &str = "0000000000000000000000000000000a";

    #[test]
    fn every_answer_of_a_script_is_read() {
        let asked = |words: &[&str]| acquired(&of(words), &demands());
        let held = asked(&["held", "1700000000000", "1600000000000"]).unwrap();
        assert!(
            matches!(held, Acquired::Held { fence: Fence(1_700_000_000_000), places, .. } if places == [1_600_000_000_000])
        );
        let waiting = asked(&["waiting", "3", "1500", "n", OWNER, "0", "a label"]).unwrap();
        let by = LockHolder {
            node: NodeName::new("n").unwrap(),
            label: "a label".to_owned(),
            owner: OWNER.parse().unwrap(),
            fence: None,
        };
        let remaining = std::time::Duration::from_millis(1_500);
        assert_eq!(waiting, Acquired::Waiting { ahead: 3, by: by.clone(), remaining });
        assert_eq!(asked(&["refused", "itself"]), Ok(Acquired::Refused(LockRefusal::WaitsForItself)));
        assert_eq!(renewed(&of(&["lost"])), Ok(LockRenewal::Lost { to: None }));
        let lost = renewed(&of(&["lost", "n", OWNER, "0", "a label"]));
        assert_eq!(lost, Ok(LockRenewal::Lost { to: Some(by) }));
        let parts = Value::Array(vec![of(&["left"]), of(&["expired"])]);
        assert!(released(&parts, &demands()).is_err(), "its first word is an array");
        let Value::Array(mut left) = of(&["left"]) else { unreachable!() };
        left.push(of(&["overtaken"]));
        assert_eq!(released(&Value::Array(left), &demands()), Ok(LockRelease::Overtaken { by: None }));
    }

    #[test]
    fn what_no_script_answers_is_an_error() {
        for words in [
            &["held"][..],
            &["held", "-1", "5"],
            &["held", "9223372036854775807", "5"],
            &["held", "5"],
            &["waiting", "-1", "5", "n", OWNER, "0", ""],
            &["waiting", "1", "5", "no node", OWNER, "0", ""],
            &["waiting", "1", "5", "n", "owner", "0", ""],
            &["waiting", "1", "5", "n", OWNER, "0"],
            &["refused", "because"],
            &["renewed"],
            &["granted"],
            &[],
        ] {
            assert!(acquired(&of(words), &demands()).is_err(), "{words:?}");
        }
        assert!(released(&of(&["left"]), &demands()).is_err(), "of no lock");
        assert!(known_locks(&of(&["5"]), &[asked_lock()]).is_err());
        assert!(names(&of(&["5", "NO NAME"]), "locks").is_err());
    }

    fn asked_lock() -> (LockName, LockKeys) {
        let name = LockName::new("x").unwrap();
        let keys = Keys::new(&Namespace::new("prod").unwrap()).lock(&name);
        (name, keys)
    }

    #[test]
    fn an_entry_is_what_the_hash_and_the_queue_have() {
        let tokens = [1_u128, 2, 3].map(|bits| Token::from_bits(bits).to_string());
        let entry = |place: u64| format!("{place} 0 1 1 1800000000000 {OWNER} {OWNER} n two words");
        let fields = [("last", "7"), (&*tokens[0], &*entry(9)), (&*tokens[1], &*entry(8))];
        let known: Vec<&str> = fields.iter().flat_map(|(field, content)| [*field, *content]).collect();
        let text = |text: &str| Value::BulkString(text.as_bytes().to_vec());
        let known = Value::Array(known.into_iter().map(text).collect());
        let queue = [1, 0, 2].map(|index: usize| text(&format!("{OWNER}{}", tokens[index])));
        let lock = Value::Array(vec![known, Value::Array(queue.to_vec()), Value::Nil]);
        let reply = Value::Array(vec![Value::Int(1_700_000_000_000), lock]);
        let (_, records) = known_locks(&reply, &[asked_lock()]).unwrap();
        let seen: Vec<_> =
            records[0].entries.iter().map(|entry| (entry.place, entry.holds, &*entry.by.label)).collect();
        assert_eq!(seen, [(8, true, "two words"), (9, true, "two words")], "one owner weighs once");
    }
}
