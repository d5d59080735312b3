//! From what Redis answered to what the contract speaks of. Total: whatever stands at the keys, or whatever answers,
//! becomes a value or a [`Corrupt`]; nothing here panics, and nothing here talks to a server.
//!
//! A script's reply is an array whose first item is a word. The mark comes as it stands at its key:
//! `running|backoff|done <token> <node> <attempt> <ms>`; the token is `-` where an operator said that it is done.

use std::time::Duration;

use chrono::{DateTime, Utc};
use redis::Value;
use serde::Deserialize;

use crate::job::NodeName;
use crate::slot::{DoneMark, Holder, SlotKey, Token, VerdictRecord};
use crate::store::{Claim, Closing, Intervention, Release, Renewal, Settlement};
use crate::text::message;

/// What cannot be read, as a lowercase fragment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Corrupt {
    /// What and where.
    pub(super) message: String,
    /// True when the script found it before its first write.
    pub(super) untouched: bool,
}

impl Corrupt {
    /// An answer of another form.
    pub(super) fn reply(what: &str) -> Self {
        Self { message: format!("the script's answer cannot be read: {what}"), untouched: false }
    }

    /// Something foreign at a key.
    pub(super) fn at(key: &str, what: &str) -> Self {
        // A foreign answer may name any key.
        let (key, what) = (message(key, 300), message(what, 120));
        Self { message: format!("{key} holds what cronward did not write: {what}"), untouched: true }
    }
}

/// A mark that stands at a slot's key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct RawMark {
    pub(super) state: MarkState,
    /// None for a done marker that an operator set.
    pub(super) token: Option<Token>,
    pub(super) by: Holder,
    pub(super) at: DateTime<Utc>,
}

/// The first word of a mark.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum MarkState {
    Running,
    Backoff,
    Done,
}

impl RawMark {
    /// Reads a mark; none when it is not one.
    pub(super) fn parse(text: &str) -> Option<Self> {
        let mut parts = text.split(' ');
        let state = match parts.next()? {
            "running" => MarkState::Running,
            "backoff" => MarkState::Backoff,
            "done" => MarkState::Done,
            _ => return None,
        };
        let token = match parts.next()? {
            "-" if state == MarkState::Done => None,
            token => Some(token.parse().ok()?),
        };
        let node = NodeName::new(parts.next()?).ok()?;
        let attempt = parts.next()?.parse().ok()?;
        let at = DateTime::from_timestamp_millis(parts.next()?.parse().ok()?)?;
        parts.next().is_none().then_some(Self { state, token, by: Holder { node, attempt }, at })
    }
}

/// A reply, read item by item.
pub(super) struct Fields<'a> {
    /// Its first word.
    pub(super) word: &'a str,
    items: std::slice::Iter<'a, Value>,
}

impl<'a> Fields<'a> {
    /// Opens a reply. One that says `corrupt` is an error here, so that no caller can forget it.
    pub(super) fn of(value: &'a Value) -> Result<Self, Corrupt> {
        let items = list(value)?;
        let mut fields = Self { word: "", items: items.iter() };
        fields.word = fields.text()?;
        if fields.word == "corrupt" {
            let key = fields.text()?;
            return Err(Corrupt::at(key, fields.text().unwrap_or("")));
        }
        Ok(fields)
    }

    pub(super) fn next(&mut self) -> Result<&'a Value, Corrupt> {
        self.items.next().ok_or_else(|| Corrupt::reply("it is too short"))
    }

    pub(super) fn text(&mut self) -> Result<&'a str, Corrupt> {
        text(self.next()?)
    }

    pub(super) fn integer(&mut self) -> Result<i64, Corrupt> {
        integer(self.next()?)
    }

    pub(super) fn number(&mut self) -> Result<u32, Corrupt> {
        u32::try_from(self.integer()?).map_err(|_| Corrupt::reply("a number is out of range"))
    }

    pub(super) fn span(&mut self) -> Result<Duration, Corrupt> {
        Ok(millis(self.integer()?))
    }

    pub(super) fn instant(&mut self) -> Result<DateTime<Utc>, Corrupt> {
        instant(self.integer()?)
    }

    pub(super) fn key(&mut self) -> Result<SlotKey, Corrupt> {
        self.text()?.parse().map_err(|_| Corrupt::reply("a slot has another form"))
    }

    pub(super) fn mark(&mut self) -> Result<RawMark, Corrupt> {
        let text = self.text()?;
        RawMark::parse(text).ok_or_else(|| Corrupt::reply("a mark has another form"))
    }

    fn holder(&mut self) -> Result<Holder, Corrupt> {
        let node = NodeName::new(self.text()?).map_err(|_| Corrupt::reply("a node's name is not allowed"))?;
        Ok(Holder { node, attempt: self.number()? })
    }

    pub(super) fn done(&mut self) -> Result<DoneMark, Corrupt> {
        let mark = self.mark()?;
        Ok(DoneMark { by: mark.by, at: mark.at, token: mark.token })
    }

    /// Whether there is nothing more to read.
    pub(super) fn is_over(&self) -> bool {
        self.items.len() == 0
    }

    pub(super) fn unknown<T>(self) -> Result<T, Corrupt> {
        Err(Corrupt::reply("its first word is not known"))
    }
}

/// An array's items.
pub(super) fn list(value: &Value) -> Result<&[Value], Corrupt> {
    match value {
        Value::Array(items) => Ok(items),
        _ => Err(Corrupt::reply("it is no array")),
    }
}

/// A string.
pub(super) fn text(value: &Value) -> Result<&str, Corrupt> {
    match value {
        Value::BulkString(bytes) => std::str::from_utf8(bytes).map_err(|_| Corrupt::reply("a text is not UTF-8")),
        Value::SimpleString(text) => Ok(text),
        _ => Err(Corrupt::reply("a text is missing")),
    }
}

/// An integer.
pub(super) fn integer(value: &Value) -> Result<i64, Corrupt> {
    match value {
        Value::Int(number) => Ok(*number),
        _ => Err(Corrupt::reply("a number is missing")),
    }
}

/// Milliseconds since the epoch.
pub(super) fn instant(millis: i64) -> Result<DateTime<Utc>, Corrupt> {
    DateTime::from_timestamp_millis(millis).ok_or_else(|| Corrupt::reply("an instant is out of range"))
}

/// Milliseconds; what is negative has passed.
pub(super) fn millis(millis: i64) -> Duration {
    Duration::from_millis(u64::try_from(millis).unwrap_or(0))
}

/// JSON that stands in a field of a hash.
pub(super) fn json<'a, T: Deserialize<'a>>(text: &'a str, key: &str, field: &str) -> Result<T, Corrupt> {
    serde_json::from_str(text).map_err(|_| Corrupt::at(key, &format!("field {field:?} is not its JSON")))
}

/// The answer of `claim.lua`.
pub(super) fn claim(reply: &Value) -> Result<Claim, Corrupt> {
    let mut fields = Fields::of(reply)?;
    Ok(match fields.word {
        "claimed" => {
            Claim::Claimed { attempt: fields.number()?, used: fields.number()?, at: fields.instant()?, revision: None }
        }
        "held" => Claim::Held { by: fields.mark()?.by, remaining: fields.span()? },
        "done" => Claim::Done(fields.done()?),
        "exhausted" => Claim::Exhausted { used: fields.number()? },
        "backoff" => Claim::Backoff { remaining: fields.span()? },
        "paused" => {
            let left = fields.integer()?;
            Claim::Paused { remaining: (left >= 0).then(|| millis(left)) }
        }
        "blocked" => Claim::Blocked { key: fields.key()?, by: fields.mark()?.by, remaining: fields.span()? },
        "early" => Claim::Early { remaining: fields.span()? },
        "closed" => Claim::Closed,
        _ => return fields.unknown(),
    })
}

/// The answer of `renew.lua`.
pub(super) fn renewal(reply: &Value) -> Result<Renewal, Corrupt> {
    let mut fields = Fields::of(reply)?;
    Ok(match fields.word {
        "renewed" => Renewal::Renewed,
        "restored" => Renewal::Restored,
        "lost" if fields.is_over() => Renewal::Lost { to: None },
        "lost" => Renewal::Lost { to: Some(fields.mark()?.by) },
        "done" => Renewal::Done(fields.done()?),
        _ => return fields.unknown(),
    })
}

/// The answer of `complete.lua`.
pub(super) fn settlement(reply: &Value) -> Result<Settlement, Corrupt> {
    let mut fields = Fields::of(reply)?;
    Ok(match fields.word {
        "recorded" => Settlement::Recorded,
        "overtaken" => Settlement::Overtaken { by: fields.holder()? },
        _ => return fields.unknown(),
    })
}

/// The answer of `release.lua`.
pub(super) fn release(reply: &Value) -> Result<Release, Corrupt> {
    let mut fields = Fields::of(reply)?;
    Ok(match fields.word {
        "released" => Release::Released,
        "expired" => Release::Expired,
        "overtaken" => Release::Overtaken { by: fields.holder()? },
        _ => return fields.unknown(),
    })
}

/// The answer of `close.lua`; `log` is the key that a recorded verdict was read from.
pub(super) fn closing(reply: &Value, log: &str) -> Result<Closing, Corrupt> {
    let mut fields = Fields::of(reply)?;
    let verdict = |fields: &mut Fields<'_>| -> Result<_, Corrupt> {
        Ok(json::<VerdictRecord>(fields.text()?, log, "verdict")?.verdict)
    };
    Ok(match fields.word {
        "first" => Closing::First(verdict(&mut fields)?),
        "already" => Closing::Already(verdict(&mut fields)?),
        "running" => Closing::Running { by: fields.mark()?.by, remaining: fields.span()? },
        "open" => Closing::Open { remaining: fields.span()? },
        _ => return fields.unknown(),
    })
}

/// The answer of a script that takes a slot from whoever had it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Taking {
    /// It is answered.
    Over(Intervention),
    /// Nothing was changed: a foreign key of this name was held with the slot, and the script is to be told of it.
    Borrowed(String),
}

/// The answer of `reset.lua` and `unlock.lua`.
pub(super) fn taking(reply: &Value) -> Result<Taking, Corrupt> {
    let mut fields = Fields::of(reply)?;
    match fields.word {
        "borrowed" => Ok(Taking::Borrowed(fields.text()?.to_owned())),
        _ => intervention(reply).map(Taking::Over),
    }
}

/// The answer of the script that makes jobs known.
pub(super) fn registered(reply: &Value) -> Result<(), Corrupt> {
    let fields = Fields::of(reply)?;
    if fields.word == "registered" { Ok(()) } else { fields.unknown() }
}

/// The answer of every operator's script.
pub(super) fn intervention(reply: &Value) -> Result<Intervention, Corrupt> {
    let mut fields = Fields::of(reply)?;
    Ok(match fields.word {
        "applied" => Intervention::Applied,
        "unchanged" => Intervention::Unchanged,
        "held" => Intervention::Held { by: fields.mark()?.by, remaining: fields.span()? },
        _ => return fields.unknown(),
    })
}
