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
