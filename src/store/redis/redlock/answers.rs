//! Answers of the scripts of a quorum, read. As total as `decode`: whatever a server answers becomes a value or a [`Corrupt`].

use std::time::Duration;

use redis::Value;

use crate::reply::Renewal;
use crate::slot::{Attempt, DoneMark, SlotKey, VerdictRecord};
use crate::store::redis::decode::{self, Corrupt, RawMark, instant, integer, json, list, millis, text};
use crate::store::redlock::claim::{Found, Look, Own};
use crate::store::redlock::grant::{Ack, Said};
use crate::store::redlock::renewal::Answer;

/// The items of an answer, one after the other.
struct Items<'a>(std::slice::Iter<'a, Value>);

impl<'a> Items<'a> {
    /// Opens an answer and takes its first word.
    fn open(value: &'a Value) -> Result<(&'a str, Self), Corrupt> {
        let mut items = Self(list(value)?.iter());
        let word = items.text()?;
        if word == "corrupt" {
            let key = items.text()?;
            return Err(Corrupt::at(key, items.text().unwrap_or("")));
        }
        Ok((word, items))
    }

    fn next(&mut self) -> Result<&'a Value, Corrupt> {
        self.0.next().ok_or_else(|| unreadable("it is too short"))
    }

    fn text(&mut self) -> Result<&'a str, Corrupt> {
        text(self.next()?)
    }

    fn integer(&mut self) -> Result<i64, Corrupt> {
        integer(self.next()?)
    }

    fn number(&mut self) -> Result<u32, Corrupt> {
        u32::try_from(self.integer()?).map_err(|_| unreadable("a number is out of range"))
    }

    fn span(&mut self) -> Result<Duration, Corrupt> {
        Ok(millis(self.integer()?))
    }

    fn key(&mut self) -> Result<SlotKey, Corrupt> {
        self.text()?.parse().map_err(|_| unreadable("a slot has another form"))
    }

    fn mark(&mut self) -> Result<RawMark, Corrupt> {
        RawMark::parse(self.text()?).ok_or_else(|| unreadable("a mark has another form"))
    }

    fn done(&mut self) -> Result<DoneMark, Corrupt> {
        let mark = self.mark()?;
        Ok(DoneMark { by: mark.by, at: mark.at })
    }
}

fn unreadable(what: &str) -> Corrupt {
    Corrupt { message: format!("the script's answer cannot be read: {what}"), untouched: false }
}

/// The answer of a counted script: the server's age, the job's longest lease that it knows of, and what it did.
fn counted(reply: &Value) -> Result<(Duration, Duration, &Value), Corrupt> {
    match list(reply)? {
        [age, longest, answer] => Ok((millis(integer(age)?), millis(integer(longest)?), answer)),
        _ => Err(unreadable("it has another form")),
    }
}

/// The answer of `reserve.lua`.
pub(super) fn look(reply: &Value) -> Result<Look, Corrupt> {
    let (age, longest, answer) = counted(reply)?;
    let (_, mut items) = Items::open(answer)?;
    let now = instant(items.integer()?)?;
    let (counter, forgiven) = (items.number()?, items.number()?);
    let latest = items.integer()?;
    let latest = if latest > 0 { Some(instant(latest)?) } else { None };
    let found = match items.text()? {
        "reserved" => Found::Reserved { own: own(&mut items)? },
        "done" => Found::Done(items.done()?),
        "early" => Found::Early,
        "closed" => Found::Closed,
        "held" => held(&mut items)?,
        "exhausted" => Found::Exhausted,
        "backoff" => Found::Backoff { remaining: items.span()? },
        "spent" => Found::Spent,
        "paused" => {
            let left = items.integer()?;
            Found::Paused { remaining: (left >= 0).then(|| millis(left)) }
        }
        "blocked" => {
            let (key, mark) = (items.key()?, items.mark()?);
            let token = mark.token.ok_or_else(|| unreadable("a lease has no token"))?;
            Found::Blocked { key, token, by: mark.by, remaining: items.span()? }
        }
        _ => return Err(unreadable("a word is not known")),
    };
    Ok(Look { age, longest, now, counter, forgiven, latest, found })
}

fn own(items: &mut Items<'_>) -> Result<Option<Own>, Corrupt> {
    let attempt: Attempt = items.number()?;
    let at = instant(items.integer()?)?;
    Ok((attempt > 0).then_some(Own { attempt, at }))
}

fn held(items: &mut Items<'_>) -> Result<Found, Corrupt> {
    let mark = items.mark()?;
    let token = mark.token.ok_or_else(|| unreadable("a lease has no token"))?;
    Ok(Found::Held { token, by: mark.by, remaining: items.span()? })
}

/// The answer of `grant.lua`.
pub(super) fn ack(reply: &Value) -> Result<Ack, Corrupt> {
    let (age, _, answer) = counted(reply)?;
    let (word, mut items) = Items::open(answer)?;
    let said = match word {
        "granted" => Said::Granted { at: instant(items.integer()?)? },
        "done" => Said::Done(items.done()?),
        "held" => Said::Held { by: items.mark()?.by, remaining: items.span()? },
        "taken" => Said::Taken,
        "closed" => Said::Closed,
        _ => return Err(unreadable("its first word is not known")),
    };
    Ok(Ack { age, said })
}

/// The answer of `renew.lua`.
pub(super) fn renewal(reply: &Value) -> Result<Answer, Corrupt> {
    let (age, longest, answer) = counted(reply)?;
    let said: Renewal = decode::renewal(answer)?;
    Ok(Answer { age, longest, said })
}

/// The answer of `verdict.lua`: what is recorded there now, and whether it was recorded before.
pub(super) fn verdict(reply: &Value, log: &str) -> Result<(bool, VerdictRecord), Corrupt> {
    let (word, mut items) = Items::open(reply)?;
    let record = json::<VerdictRecord>(items.text()?, log, "verdict")?;
    Ok((word == "already", record))
}

/// The answer of a script that only does something.
pub(super) fn done(reply: &Value) -> Result<(), Corrupt> {
    Items::open(reply).map(drop)
}
